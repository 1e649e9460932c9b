"""A package's object store and a model of what it should do; a run of slow clients over real bytes.

A script is a list of [time in ns, action, arguments ...]; all objects of one script have the same size, and lie in one
segment, so that there is space exactly where enough of it is free. Its trace has for each action [outcome, free bytes,
keys that exist].
"""

import contextlib
from collections.abc import Sequence
from random import Random

LEASE, SOFT, DISCARD, RELEASE, HEARTBEAT = 10, 100, 30, 200, 20
KEYS = "abcdefghijkl"

MISTAKES = {
    "exists leases": "to ask whether an object exists gave a lease: who polls keeps it for ever",
    "exists is use": "to ask whether an object exists counted as its use",
    "get is no use": "a get did not count as a use: what is read most may be evicted first",
    "leased goes": "a leased object was evicted while somebody may read it",
    "lease ends early": "a lease holds at its last ns too",
    "unfinished goes": "an object was evicted while its put is under way",
    "soft is hard": "a soft pin was taken for a hard one",
    "no soft": "soft pins were forgotten: they go after all others",
    "soft is not renewed": "a use did not begin the soft pin anew",
    "no hard": "a hard pin was evicted",
    "newest first": "the most recently used went first",
    "only as needed": "only what was asked for was evicted: `share` of the capacity goes at once",
    "all goes": "everything was evicted that could be",
    "high is enough": "eviction began at `high`, not above it",
    "no tick": "nothing was evicted above `high`",
    "key is kept": "an old put kept its key: after `discard` another one may replace it",
    "space at once": "the space of a replaced put was used again at once, while its client may still write there",
    "zombies stay": "a zombie's space was never freed",
    "abandoned stays": "a put that never ended kept its space for ever",
    "overwritten": "an object that is complete was replaced: objects never change",
    "unfinished is seen": "an object was handed out before its put had ended",
    "unfinished exists": "an object exists from the end of its put on, not from its start",
    "late end": "a put that was replaced ended all the same",
}


class Model:
    """What a store does, with one mistake or none. Order of `entries`: by last use."""

    def __init__(self, capacity: int, size: int, high: float, share: float, mistake: str = ""):
        self.capacity, self.size, self.high, self.share = capacity, size, high, share
        self.mistake = mistake
        self.entries: list[dict] = []
        self.zombies: list[dict] = []

    def run(self, script: Sequence[list]) -> list[list]:
        """The trace."""
        trace = []
        for now, action, *arguments in script:
            outcome = getattr(self, f"do_{action}")(now, *arguments)
            keys = [key for key in KEYS if self.do_exists(now, key)]
            trace.append([outcome, self.free, keys])
        return trace

    @property
    def free(self) -> int:
        """Bytes that nobody has."""
        return self.capacity - self.size * (len(self.entries) + len(self.zombies))

    def find(self, key: str, complete: bool = True) -> dict | None:
        """The entry of a key."""
        found = (e for e in self.entries if e["key"] == key and (e["complete"] or not complete))
        return next(found, None)

    def do_put(self, now: int, number: int, key: str, pin: str = "") -> str:
        """put_start; put number `number` of the script."""
        old = self.find(key, complete=False)
        if old is not None:
            young = now - old["started"] < DISCARD or self.mistake == "key is kept"
            if (old["complete"] and self.mistake != "overwritten") or (not old["complete"] and young):
                return "StoreError"
            self.entries.remove(old)
            if self.mistake != "space at once":
                self.zombies.append(old)
        if self.free < self.size:
            self.evict(self.size, now)
        if self.free < self.size:
            return "NoSpaceError"
        new = {"key": key, "number": number, "started": now, "pin": pin, "complete": False, "leased": -1, "soft": -1}
        self.entries.append(new)
        return "ok"

    def do_end(self, now: int, number: int) -> str:
        """put_end."""
        for entry in self.entries + (self.zombies if self.mistake == "late end" else []):
            if entry["number"] == number and not entry["complete"]:
                entry["complete"] = True
                self.use(entry, now)
                return "ok"
        return "StoreError"

    def do_revoke(self, _: int, number: int) -> str:
        """put_revoke."""
        found = [e for e in self.entries if e["number"] == number and not e["complete"]]
        self.entries = [e for e in self.entries if e not in found]
        return "ok" if found else "StoreError"

    def do_get(self, now: int, key: str) -> int | None:
        """Until when the lease holds."""
        entry = self.find(key, complete=self.mistake != "unfinished is seen")
        if entry is None:
            return None
        entry["leased"] = now + LEASE
        if self.mistake != "get is no use":
            self.use(entry, now)
        return entry["leased"]

    def do_exists(self, now: int, key: str) -> bool:
        """Whether there is one."""
        entry = self.find(key, complete=self.mistake != "unfinished exists")
        if entry is not None and self.mistake == "exists leases":
            entry["leased"] = now + LEASE
        if entry is not None and self.mistake == "exists is use":
            self.use(entry, now)
        return entry is not None

    def do_remove(self, now: int, key: str) -> str:
        """Only what nobody may read."""
        entry = self.find(key)
        if entry is None or entry["leased"] >= now:
            return "StoreError"
        self.entries.remove(entry)
        return "ok"

    def do_tick(self, now: int) -> None:
        """Old puts, and the 90 percent."""
        if self.mistake != "zombies stay":
            self.zombies = [e for e in self.zombies if now - e["started"] < RELEASE]
        if self.mistake != "abandoned stays":
            self.entries = [e for e in self.entries if e["complete"] or now - e["started"] < RELEASE]
        used, limit = self.capacity - self.free, self.high * self.capacity
        if (used > limit or (used == limit and self.mistake == "high is enough")) and self.mistake != "no tick":
            self.evict(0, now)

    def use(self, entry: dict, now: int) -> None:
        """It comes last, and its soft pin begins anew."""
        if entry in self.entries:
            self.entries.append(self.entries.pop(self.entries.index(entry)))
        if entry["pin"] == "soft" and (self.mistake != "soft is not renewed" or entry["soft"] < 0):
            entry["soft"] = now + SOFT

    def evict(self, least: int, now: int) -> None:
        """Oldest use first, soft pins last."""
        wanted = max(least, 0 if self.mistake == "only as needed" else int(self.share * self.capacity))
        wanted = self.capacity if self.mistake == "all goes" else wanted
        order = self.entries[::-1] if self.mistake == "newest first" else list(self.entries)
        soft = [e for e in order if e["soft"] >= now and self.mistake != "no soft"]
        before = self.free
        for entry in [e for e in order if e not in soft] + ([] if self.mistake == "soft is hard" else soft):
            held = entry["leased"] >= now + (self.mistake == "lease ends early") and self.mistake != "leased goes"
            hard = entry["pin"] == "hard" and self.mistake != "no hard"
            under_way = not entry["complete"] and self.mistake != "unfinished goes"
            if self.free - before < wanted and not (held or hard or under_way):
                self.entries.remove(entry)


def config_of(solution, **changed):
    """The times above."""
    times = {"lease": LEASE, "soft_pin": SOFT, "discard": DISCARD, "release": RELEASE, "heartbeat": HEARTBEAT}
    return solution.module("cluster.store_object").StoreConfig(**times | changed)


def master_of(solution, segments: dict[str, int], **changed):
    """A master; segment "s0" is lent by client "c0"."""
    master = solution.module("cluster.store").Master(Random(0), config_of(solution, **changed))
    for name, capacity in segments.items():
        master.mount(name, capacity, f"c{name[1:]}", 0)
    return master


def outcome_of(solution, function) -> object:
    """What a call returned, or the name of the error of the store that it raised."""
    errors = solution.module("cluster.store_object")
    try:
        return function()
    except errors.NoSpaceError:
        return "NoSpaceError"
    except errors.StoreError:
        return "StoreError"


def play_store(solution, script: Sequence[list], capacity: int, size: int, high: float, share: float) -> list[list]:
    """The trace of a package's store."""
    master = master_of(solution, {"s0": capacity}, high=high, share=share, heartbeat=10**9)
    puts, trace = {}, []

    def act(now: int, action: str, first: int | str = 0, *rest: str) -> object:
        match action:
            case "put":
                pin = rest[1] if len(rest) > 1 else ""
                puts[first] = master.put_start(rest[0], size, now, soft=pin == "soft", hard=pin == "hard")
            case "end" | "revoke" if first not in puts:
                return "StoreError"
            case "end":
                master.put_end(puts[first], now)
            case "revoke":
                master.put_revoke(puts[first])
            case "get":
                return None if (grant := master.get(first, now)) is None else grant.until
            case "exists":
                return master.exists(first)
            case "remove":
                master.remove(first, now)
            case "tick":
                return master.tick(now)
        return "ok"

    for step in script:
        outcome = outcome_of(solution, lambda step=step: act(*step))
        trace.append([outcome, master.pool.free, [key for key in KEYS if master.exists(key)]])
    return trace


def store_script(rng: Random, actions: int) -> list[list]:
    """Puts that end soon, late or never, gets, polls and ticks."""
    script, now, number, begun = [], 0, 0, []
    for _ in range(actions):
        now += rng.randrange(5)
        roll, key = rng.random(), rng.choice(KEYS)
        if roll < 0.35:
            number += 1
            script.append(
                [now, "put", number, key, rng.choice(["", "", "", "soft", "hard" if number % 9 == 0 else ""])]
            )
            begun.append(number)
        elif roll < 0.6 and begun:
            which = begun.pop(rng.randrange(len(begun)))
            if rng.random() < 0.8:  # else its client is gone
                script.append([now, "end" if rng.random() < 0.9 else "revoke", which])
        elif roll < 0.75:
            script.append([now, "get", key])
        elif roll < 0.8:
            script.append([now, "remove", key])
        else:
            script.append([now, "tick"])
    return script


def bytes_run(solution, seed: int, actions: int = 300) -> dict[str, list]:
    """Clients that are slow, vanish in the middle, and write late, over real bytes in three segments.

    Returns "reads": [key, whether the grant held at its end, whether the bytes were those of its put], and "broken":
    what was wrong with leases and space, as text.
    """
    rng, now = Random(seed), 0
    master = master_of(solution, {"s0": 60, "s1": 60, "s2": 60}, heartbeat=10**9)
    memory = {f"s{n}": bytearray(60) for n in range(3)}
    written, started, leases = {}, {}, {}
    puts, gets, reads, broken = [], [], [], []
    error = solution.module("cluster.store_object").StoreError
    for _ in range(actions):
        now += rng.randrange(4)
        roll, key = rng.random(), rng.randrange(12)
        if roll < 0.3:
            pins = {"soft": rng.random() < 0.2, "hard": rng.random() < 0.005}
            with contextlib.suppress(error):
                put = master.put_start(key, rng.randrange(1, 25), now, replicas=rng.choice([1, 1, 2]), **pins)
                puts.append(put)
                written[put.version], started[put.version] = rng.randbytes(put.replicas[0].size), now
        elif roll < 0.55 and puts:
            put = puts.pop(rng.randrange(len(puts)))
            if rng.random() > 0.15 and now - started[put.version] < RELEASE:  # else it is gone, or gives up
                for segment, offset, size in put.replicas:  # perhaps for a key that another put has by now
                    memory[segment][offset : offset + size] = written[put.version]
                with contextlib.suppress(error):
                    master.put_end(put, now) if rng.random() < 0.8 else master.put_revoke(put)
        elif roll < 0.75:
            if (grant := master.get(key, now)) is not None:
                gets.append(grant)
                leases[key] = grant
        elif roll < 0.9 and gets:
            grant = gets.pop(rng.randrange(max(0, len(gets) - 4), len(gets)))
            found = [bytes(memory[segment][offset : offset + size]) for segment, offset, size in grant.replicas]
            reads.append([key, grant.holds(now), all(each == written[grant.version] for each in found)])
        elif roll < 0.95:
            with contextlib.suppress(error):
                master.remove(key, now)
        else:
            master.tick(now)
        held = [grant for grant in leases.values() if grant.holds(now)]
        lost = [g.key for g in held if g.key not in master.objects or master.objects[g.key].put.version != g.version]
        broken += [f"key {key} is leased at {now} ns, and another object or none is there" for key in lost]
        broken += [f"{text} at {now} ns" for text in _space(master)]
    return {"reads": reads, "broken": broken[:3]}


def _space(master) -> list[str]:
    """What is wrong with who has which bytes."""
    pieces = [r for e in [*master.objects.values(), *master.zombies] for r in e.put.replicas]
    texts, ends = [], {}
    if sum(r.size for r in pieces) + master.pool.free != master.pool.capacity:
        texts.append(
            f"{sum(r.size for r in pieces)} bytes are held and {master.pool.free} free of {master.pool.capacity}"
        )
    for segment, offset, size in sorted(pieces):
        if offset < ends.get(segment, 0):
            texts.append(f"two objects have byte {offset} of {segment}")
        ends[segment] = offset + size
    return texts
