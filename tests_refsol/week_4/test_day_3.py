"""Day 3, a distributed runtime: a ledger written down afresh, and processes on a simulated network in virtual time."""

import asyncio
import random
from collections import Counter
from contextlib import aclosing, suppress
from fractions import Fraction
from itertools import pairwise

from course.case import case, error_of
from course.cluster_case.greedy import alone, next_token
from course.cluster_case.ledger import LEDGER_MISTAKES, Belief, Ledger, below, played, script_of
from course.cluster_case.scene import MS, TOKEN, TTL, Scene, collect, generate
from course.cluster_case.trouble import Flaky, ended, fragile, noted, until
from course.cluster_case.world import World
from course.stub import stub_of
from course.suspects import named

SECOND = 1000 * MS


def explain(got: object, want: object, text: str, mistakes: dict[str, object] | None = None) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    if got != want:
        raise AssertionError(f"{text}\n{named(m for m, value in (mistakes or {}).items() if value == got)}".strip())


def blame(text: str, mistakes: dict[str, bool]) -> None:
    """Raise AssertionError with `text` and the mistakes that were made."""
    raise AssertionError(f"{text}\n{named(mistake for mistake, made in mistakes.items() if made)}".strip())


def demand(holds: bool, text: str) -> None:
    """Raise AssertionError with `text` unless something holds."""
    if not holds:
        raise AssertionError(text)


def ends_as(got: dict, kind: str, text: str, word: str = "") -> None:
    """Raise AssertionError unless `got`, from `error_of`, is an error of this kind whose message holds a word."""
    demand(got["type"] == kind, f"{text}: expected {kind}, got {got['type'] or got['value']!r}")
    demand(word in got["message"], f"{text}: the message should name {word!r}: {got['message']!r}")


async def outcome(awaitable) -> list:
    """["ok", value], or the names of the error's class and of its bases, and its text; a stub's error passes."""
    try:
        return ["ok", await awaitable]
    except Exception as error:
        if stub_of(error):
            raise
        return [*(kind.__name__ for kind in type(error).__mro__[:-3]), str(error)]


def parts_of(solution):
    module = solution.module("cluster.discovery")
    return module.Registry, module.View, module.Change


# Task 1


@case(task=1)
class APrefixEndsAtASlash:
    """A prefix covers itself and what lies below it, part by part; an empty one covers everything."""

    def inputs(rng):
        draw = lambda: "/".join("abc"[i] * n for i, n in rng.integers((0, 1), (3, 3), (rng.integers(1, 4), 2)))  # noqa: E731
        pairs = [["", "a/b"], ["work", "worker/1"], ["work", "work/1"], ["work/1", "work/10"], ["work", "work"]]
        return pairs + [["work/1", "work"], ["worker", "work"]] + [[draw(), draw()] for _ in range(300)]

    def observe(solution, inputs):
        return [solution.module("cluster.discovery").covers(prefix, key) for prefix, key in inputs]

    def verify(inputs, got):
        for (prefix, key), value in zip(inputs, got, strict=True):
            explain(value, below(prefix, key), f"covers({prefix!r}, {key!r}) is {value}", {
                "any text that begins with the prefix counts: its end must be that of a part":
                    key.startswith(prefix) and bool(prefix),
                "an empty prefix covers everything": bool(prefix) and below(prefix, key),
                "a prefix covers itself": below(prefix, key) and prefix != key,
            })  # fmt: skip


def drive(solution, script: list[list], ttl: int) -> list:
    """The same of the package, and the registry."""
    registry, ids, results = parts_of(solution)[0](ttl), [], []
    for now, kind, lease, key, value in script:
        if kind == "grant":
            ids.append(registry.grant(now))
            done = {"type": None}
        elif kind == "put":
            done = error_of(lambda at=(ids[lease], key, value, now): registry.put(*at))
        else:
            done = error_of(lambda kind=kind, at=(ids[lease], now): getattr(registry, kind)(*at))
        results.append([done["type"], dict(sorted(registry.get("a", now).items()))])
    return results


def assert_played(script: list[list], ttl: int, got: list) -> None:
    want = played(script, ttl)
    at = next((i for i, pair in enumerate(zip(got, want, strict=True)) if pair[0] != pair[1]), None)
    if at is None:
        return
    wrong = {told: played(script[: at + 1], ttl, mistake)[at] for told, mistake in LEDGER_MISTAKES.items()}
    wrong = {told: value for told, value in wrong.items() if value != want[at]}
    now, kind, lease, key, value = script[at]
    step = f"{kind} of lease {lease}" + (f", {key} = {value}" if kind == "put" else "")
    explain(got[at], want[at], f"ttl {ttl}, at {now}: after {step} below \"a\" there is {got[at][1]}, and it raised "
        f"{got[at][0]}: expected {want[at][1]} and {want[at][0]}", wrong)  # fmt: skip


@case(task=1, params=[{"steps": 6, "runs": 150}, {"steps": 60, "runs": 20}])
class TheRegistryKeepsItsLedger:
    """After any calls: a key is there exactly while the lease that set it last lives, and a dead lease sets nothing."""

    def inputs(rng, steps, runs):
        seed = int(rng.integers(1 << 30))
        return {"ttl": 100, "scripts": [script_of(random.Random(seed + i), steps, 100) for i in range(runs)]}

    def observe(solution, inputs):
        return [drive(solution, script, inputs["ttl"]) for script in inputs["scripts"]]

    def verify(inputs, got):
        for script, results in zip(inputs["scripts"], got, strict=True):
            assert_played(script, inputs["ttl"], results)


@case(task=1)
class ADeadLeaseIsNamed:
    """`renew` and `put` without a lease that lives raise LeaseError with its id; `revoke` does nothing then."""

    def inputs(rng):
        return {"skip": int(rng.integers(20, 90)), "end": ["revoked", "expired"][int(rng.integers(2))]}

    def observe(solution, inputs):
        registry = parts_of(solution)[0](100)
        for _ in range(inputs["skip"]):
            registry.grant(0)
        lease = registry.grant(0)
        if inputs["end"] == "revoked":
            registry.revoke(lease, 50)
        calls = [lambda: registry.renew(lease, 100), lambda: registry.put(lease, "a", 1, 100)]
        calls += [lambda: registry.put(lease + 1000, "a", 1, 100), lambda: registry.revoke(lease, 100)]
        return [lease, [error_of(call) for call in calls]]

    def verify(inputs, got):
        lease, (renew, put, unknown, revoke) = got
        ends_as(renew, "LeaseError", f"renewing a lease that was {inputs['end']}", str(lease))
        ends_as(put, "LeaseError", f"a key of a lease that was {inputs['end']}", str(lease))
        ends_as(unknown, "LeaseError", "a key of a lease that never was", str(lease + 1000))
        demand(revoke["type"] is None, f"revoking what is {inputs['end']} already raised {revoke['type']}")


@case(task=1)
class NoIdComesBack:
    """Ids are never used again, whatever was revoked or has expired: a process that restarts is another one."""

    def inputs(rng):
        return {"steps": rng.choice(["grant", "grant", "revoke", "wait"], 80).tolist()}

    def observe(solution, inputs):
        registry, now, ids = parts_of(solution)[0](100), 0, []
        for step in ["grant", "grant", "revoke", "grant", *inputs["steps"]]:
            if step == "grant":
                ids.append(registry.grant(now))
            elif step == "wait":
                now += 60
            else:
                registry.revoke(ids[-1], now)
        return ids

    def verify(inputs, got):
        again = [number for number, times in Counter(got).items() if times > 1]
        demand(not again, f"the ids {again} came back: who still knows the old process takes the new one for it (ABA)")


def told_by(solution, script: list[list]) -> list:
    """What two watchers are told while a script runs, step by step, and what there is at the end."""
    registry, ids, told = parts_of(solution)[0](100), [], []
    tell = lambda who: lambda change: told[-1].append([who, *change])  # noqa: E731
    for now, kind, lease, key, value in script:
        told.append([])
        if kind == "grant":
            ids.append(registry.grant(now))
            if len(ids) == 1:
                registry.watch("a", tell("a"), now)
                registry.watch("", tell(""), now)
        elif kind == "put":
            error_of(lambda at=(ids[lease], key, value, now): registry.put(*at))
        else:
            error_of(lambda kind=kind, at=(ids[lease], now): getattr(registry, kind)(*at))
    return told


AGAIN = [[0, "grant", 0, "", 0], [1, "put", 0, "a/1", 5], [2, "put", 0, "a/1", 5], [50, "grant", 1, "", 0]]
AGAIN += [[60, "put", 1, "a/1", 5], [70, "put", 0, "a/2", 6], [100, "grant", 2, "", 0], [150, "grant", 3, "", 0]]
"""The same value again, by the same lease and by another one; and leases that end at the time of a grant."""


@case(task=1, params=[{"steps": 8, "runs": 40}, {"steps": 60, "runs": 15}])
class EveryChangeIsToldOnce:
    """Watchers hear of each key that is set or goes, once, in order, and only below their prefix."""

    def inputs(rng, steps, runs):
        return [AGAIN, *(script_of(random.Random(int(rng.integers(1 << 30))), steps, 100) for _ in range(runs))]

    def observe(solution, inputs):
        return [told_by(solution, script) for script in inputs]

    def verify(inputs, got):
        for script, told in zip(inputs, got, strict=True):
            assert_told(script, told)


def assert_told(script: list[list], got: list) -> None:
    ledger, before, beliefs = Ledger(100), {}, {"a": {}, "": {}}
    for (now, kind, lease, key, value), told in zip(script, got, strict=True):
        ended = Counter((k, None) for k in before if k == key and k not in ledger.keys("", now))
        failed = ledger.apply([kind, key, value], now, lease)
        there = ledger.keys("", now)
        step = f"{kind} of lease {lease} at {now}" + (f", {key} = {value}" if kind == "put" else "")
        expected = Counter((k, None) for k in before if k not in there)
        if kind == "put" and not failed:
            expected[key, value] += 1
        for who, belief in beliefs.items():
            mine = [(k, v) for name, k, v in told if name == who]
            want = Counter({change: n for change, n in expected.items() if below(who, change[0])})
            missing, more = (
                want - Counter(mine),
                Counter(mine) - want - ended,
            )  # it may hear that a key ended and came back
            demand(not missing, f"{step}: the watcher of {who!r} did not hear of {sorted(map(str, missing))}")
            demand(not more, f"{step}: the watcher of {who!r} should not have heard of {sorted(map(str, more))}")
            for k, v in mine:
                belief.pop(k, None)
                belief |= {k: v} if v is not None else {}
            here = {k: v for k, v in there.items() if below(who, k)}
            explain(belief, here, f"{step}: what the watcher of {who!r} heard adds up to {belief}, but there is {here}")
        before = there


def parse(value: object) -> int:
    """Of what is put: twice a number."""
    if not isinstance(value, int):
        raise ValueError(f"{value!r} is no number")
    return 2 * value


def changes_of(rng, count: int) -> list:
    draw = lambda: [f"k{rng.integers(4)}", [None, "broken", 0, 1, 2, 3][int(rng.integers(6))]]  # noqa: E731
    return [draw() for _ in range(count)]


@case(task=1)
class AViewFollowsChanges:
    """A view takes each change and returns what it changed; what cannot be parsed, or is known, changes nothing."""

    def inputs(rng):
        first = [["k0", value] for value in (None, 1, 1, "broken", 2, None, None, "broken", 3)]
        return first + changes_of(rng, 60)

    def observe(solution, inputs):
        _, view_of, change = parts_of(solution)
        view, told = view_of(parse), []
        for key, value in inputs:
            one = change(key, value)
            told.append([error_of(lambda one=one: list(map(list, view.apply(one)))), dict(view.entries)])
        return told

    def verify(inputs, got):
        belief = Belief()
        for (key, value), (done, entries) in zip(inputs, got, strict=True):
            before = dict(belief.entries)
            want = belief.apply(key, value)
            text = f"{before}, then {key} = {value!r}"
            demand(done["type"] is None, f"{text}: raised {done['type']}: {done.get('message')}")
            explain(entries, belief.entries, f"{text}: the view believes {entries}, expected {belief.entries}", {
                "what cannot be parsed removed the entry: it keeps its old value":
                    {k: v for k, v in before.items() if k != key},
                "a removal changed nothing": before,
                "values go through parse": before | {key: value},
            })  # fmt: skip
            explain(done["value"], want, f"{text}: it returned {done['value']}, expected {want}", {
                "a value that was known already is told again": value is not None and [[key, before.get(key)]],
                "a removal is told of what was not there": value is None and [[key, None]],
                "it returned what came, not what it changed": [[key, value]],
            })  # fmt: skip


@case(task=1)
class AResyncIsADifference:
    """After missed changes a snapshot brings a view up to date: what is gone first, then what is new or other."""

    def inputs(rng):
        first = [{"k0": 1, "k1": 2}, {"k0": "broken", "k1": 2}, {"k1": 3, "k2": 1}, {}]
        return first + [dict(changes_of(rng, int(rng.integers(0, 6)))) for _ in range(40)]

    def observe(solution, inputs):
        view, told = parts_of(solution)[1](parse), []
        for snapshot in inputs:
            snapshot = {key: value for key, value in snapshot.items() if value is not None}
            told.append([error_of(lambda s=snapshot: list(map(list, view.resync(s)))), dict(view.entries)])
        return told

    def verify(inputs, got):
        belief = Belief()
        for snapshot, (done, entries) in zip(inputs, got, strict=True):
            snapshot = {key: value for key, value in snapshot.items() if value is not None}
            before = dict(belief.entries)
            want = belief.resync(snapshot)
            text = f"{before}, then all there is: {snapshot}"
            fresh = {k: 2 * v for k, v in snapshot.items() if isinstance(v, int)}
            demand(done["type"] is None, f"{text}: raised {done['type']}: {done.get('message')}")
            explain(entries, belief.entries, f"{text}: the view believes {entries}, expected {belief.entries}", {
                "what is missing in the snapshot stayed: that is how a dead worker is routed to for ever":
                    before | fresh,
                "the view was emptied first: an entry that cannot be parsed keeps its old value": fresh,
            })  # fmt: skip
            told = done["value"]
            explain(sorted(told, key=str), sorted(want, key=str), f"{text}: it returned {told}, expected {want}", {
                "all was told, not the difference: was the view emptied first?":
                    sorted([c for c in want if c[1] is None] + [[k, v] for k, v in fresh.items()], key=str),
                "what is gone was not told": sorted((c for c in want if c[1] is not None), key=str),
            })  # fmt: skip
            gone = [value is None for _, value in told]
            demand(gone == sorted(gone, reverse=True), f"{text}: it returned {told}: what is gone comes first")


# Task 2


ODD = TTL + 7
"""ns: parts of it are rounded."""


@case(task=2, params=[{"latency": 1}, {"latency": 40}, {"latency": 700}])
class ALeaseCountsFromWhenItWasAskedFor:
    """`start` believes in the lease for ttl from when it asked; the registry, which counts from later, for longer."""

    def inputs(rng, latency):
        return {"latency": latency * MS, "begin": int(rng.integers(1, 5000)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open()
            discovery = scene.discovery("worker")
            await scene.wait(inputs["begin"])
            await discovery.start()
            there = registry.next_deadline()
            return [discovery.lease, discovery.ttl, discovery.deadline, there, discovery.lease in registry.leases]

        return Scene(solution, latency=inputs["latency"]).run(main)

    def verify(inputs, got):
        _, ttl, deadline, there, known = got
        begin, latency = inputs["begin"], inputs["latency"]
        demand(known and ttl == TTL, f"lease {got[0]}, ttl {ttl}: expected what the registry has granted, and {TTL}")
        explain(deadline, begin + TTL, f"asked at {begin} ns, deadline {deadline}: expected {begin + TTL}", {
            "counted from when the answer came: the registry counts from before that": begin + 4 * latency + TTL,
            "counted from when the registry was asked: nobody here knows that": begin + 3 * latency + TTL,
        })  # fmt: skip
        demand(deadline <= there, f"this process believes until {deadline}, the registry only until {there}")


@case(task=2, params=[{"late": 0}, {"late": 1}])
class ALeaseThatComesTooLateIsNone:
    """`start` raises LeaseError where the answer took as long as the lease lives, or longer."""

    def inputs(rng, late):
        return {"latency": TTL // 4 + late * int(rng.integers(1, 500)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            await scene.open()
            return await outcome(scene.discovery("worker").start())

        return Scene(solution, latency=inputs["latency"]).run(main)

    def verify(inputs, got):
        text = f"the answer came {4 * inputs['latency']} ns after it was asked for, the lease lives {TTL}"
        demand("LeaseError" in got, f"{text}: expected LeaseError, got {got[0]}")


@case(task=2, params=[{"latency": 1}, {"latency": 100}])
class ARenewalEachHalfOfItsLife:
    """While the registry answers, a renewal comes each ttl / 2, and the lease never ends."""

    def inputs(rng, latency):
        return {"latency": latency * MS, "seconds": int(rng.integers(60, 90))}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open(noted(scene))
            discovery = scene.discovery("worker")
            await discovery.start()
            task = asyncio.create_task(discovery.keep_alive())
            end = await ended(scene, task, inputs["seconds"] * SECOND)
            return {"end": end, "came": registry.came, "there": list(registry.leases), "alive": discovery.alive}

        return Scene(solution, latency=inputs["latency"]).run(main)

    def verify(inputs, got):
        latency, came = inputs["latency"], got["came"]
        demand(got["end"] is None, f"nothing was wrong, but `keep_alive` returned at {got['end']} ns")
        demand(len(came) > 3, f"{len(came)} renewals in {inputs['seconds']} s: expected one each {TTL // 2} ns")
        steps = [later - earlier for earlier, later in pairwise([3 * latency, *came])]
        near = lambda time: all(abs(step - time) <= latency for step in steps[1:])  # noqa: E731
        if not near(TTL // 2):
            blame(f"renewals came {min(steps)} to {max(steps)} ns apart, the latency is {latency}: expected "
                    f"{TTL // 2}", {
                "it was counted from the answer: count from when the last renewal was sent":
                    near(TTL // 2 + 2 * latency),
                "one each ttl comes too late if it is lost once": min(steps[1:]) > 0.8 * TTL,
                "one each ttl / 8 is only for those that broke": near(TTL // 8),
            })  # fmt: skip
        demand(bool(got["there"]) and got["alive"], "the lease has ended, though it was renewed all the time")


STAGES = {"between renewals": (0.25, 2.0), "while one travels": (0.5, 0.5), "while its answer does": (0.5, 1.5)}
"""When the link is cut, after the last renewal that was seen: parts of ttl, and of the latency."""


@case(task=2, params=[{"stage": stage} for stage in STAGES])
class TheProcessStopsFirst:
    """Cut off, `keep_alive` returns ttl after the last answered renewal was sent, before the registry forgets it."""

    def inputs(rng, stage):
        return {"stage": stage, "latency": int(rng.integers(20, 80)) * MS, "renewals": int(rng.integers(1, 4))}

    def observe(solution, inputs):
        latency, (half, part) = inputs["latency"], STAGES[inputs["stage"]]

        async def main(scene):
            registry = await scene.open(noted(scene))
            discovery = scene.discovery("worker")
            await discovery.start()
            task = asyncio.create_task(discovery.keep_alive())
            await until(scene, lambda: len(registry.came) == inputs["renewals"], task)
            last = max([3 * latency, *registry.came])
            await scene.wait(int(last - latency + half * TTL + part * latency) - scene.now)
            cut = scene.now
            scene.network.cut("worker", "store")
            there = max([last, *registry.came]) + TTL
            end = await ended(scene, task, 4 * TTL)
            return {"cut": cut, "came": registry.came, "end": end, "there": there, "alive": discovery.alive}

        return Scene(solution, latency=latency).run(main)

    def verify(inputs, got):
        latency, end = inputs["latency"], got["end"]
        sent = max([0, *(came - latency for came in got["came"] if came + latency <= got["cut"])])
        text = f"latency {latency}, cut at {got['cut']} ns, the last renewal that was answered was sent at {sent}"
        demand(end is not None, f"{text}: `keep_alive` never returns. Nobody else can stop a process that is cut off")
        if end != sent + TTL:
            blame(f"{text}: `keep_alive` returned at {end}, expected {sent + TTL}", {
                "counted from when the answer came: the registry counts from before that":
                    end == sent + 2 * latency + TTL,
                "a renewal counts only once it is answered": end == max([0, *got["came"]]) - latency + TTL,
                "one that hangs is no reason to stop before the deadline": end < sent + TTL,
            })  # fmt: skip
        demand(end <= got["there"], f"{text}: it stopped at {end}, the registry had forgotten it at {got['there']}")
        demand(not got["alive"], f"{text}: `keep_alive` has returned, and `alive` still says yes")


@case(task=2, params=[{"eighths": 2}, {"eighths": 3}, {"eighths": 30}])
class ABrokenRenewalIsTriedAgain:
    """Where a connection breaks, it asks again each ttl / 8, on a new one, until the lease has ended."""

    def inputs(rng, eighths):
        return {"span": eighths * TTL // 8, "begin": TTL // 2 - int(rng.integers(1, 300)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open(noted(scene))
            host = Flaky(scene, scene.network.host("worker"))
            discovery = scene.part("lease.Discovery")(
                scene.part("channel.Channels")(host), scene.address, scene.clock()
            )
            await discovery.start()
            task = asyncio.create_task(outcome(discovery.keep_alive()))
            await scene.wait(inputs["begin"] - scene.now)
            host.break_all(inputs["span"])
            tries = host.tries
            end = await ended(scene, task, inputs["span"] + TTL)
            raised = task.result()[0] if end is not None else None
            return {"end": end, "raised": raised, "tries": host.tries - tries, "came": registry.came}

        return error_of(lambda: Scene(solution, ttl=ODD).run(main))

    def verify(inputs, got):
        text = f"the connection broke at {inputs['begin']} ns, and no other was to be had for {inputs['span']} ns"
        demand(got["type"] != "LivelockError", f"{text}: at its deadline `keep_alive` asks again and again without a "
            f"wait. Look at `alive` after each wait\n{got.get('message')}")  # fmt: skip
        demand(got["type"] is None, f"{text}: {got['type']}: {got.get('message')}")
        got = got["value"]
        begin, span, end = inputs["begin"], inputs["span"], got["end"]
        demand(got["raised"] in (None, "ok"), f"{text}: `keep_alive` raised {got['raised']}: it should try again")
        most = min(span, ODD) // (ODD // 8) + 2
        demand(got["tries"] <= most, f"{text}: {got['tries']} connections were tried, at most {most} are worth it")
        if span < TTL // 2:
            demand(end is None, f"{text}, but `keep_alive` gave up at {end}: try each ttl / 8 until {ODD}")
            late = got["came"][0] - begin - span
            demand(late <= TTL // 8 + 5 * MS, f"{text}: the next renewal came {late} ns after that: try each ttl / 8")
        else:
            demand(end is not None, f"{text}: `keep_alive` does not return, though the lease ended at {ODD}")
            explain(end, ODD, f"{text}: `keep_alive` returned at {end}, the lease ended at {ODD}")


@case(task=2)
class ATryIsCountedFromWhenItWasSent:
    """A renewal that breaks while it is under way is sent again ttl / 8 after it was sent, not after it broke."""

    def inputs(rng):
        return {"latency": 200 * MS, "after": int(rng.integers(60, 340)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            await scene.open()
            host, times = Flaky(scene, scene.network.host("worker")), []
            connect = host.connect

            async def noted_connect(address):
                times.append(scene.now)
                return await connect(address)

            host.connect = noted_connect
            discovery = scene.part("lease.Discovery")(
                scene.part("channel.Channels")(host), scene.address, scene.clock()
            )
            await discovery.start()
            task = asyncio.create_task(outcome(discovery.keep_alive()))
            await scene.wait(ODD // 2 + inputs["after"] - scene.now)
            host.break_all(20 * MS)
            await scene.wait(SECOND)
            task.cancel()
            return times

        return Scene(solution, ttl=ODD, latency=inputs["latency"]).run(main)

    def verify(inputs, got):
        want, after = ODD // 2 + ODD // 8, inputs["after"]
        text = f"a renewal was sent at {ODD // 2} ns and broke {after} ns later"
        demand(len(got) == 2, f"{text}: {len(got)} connections were opened, expected the first, and one for a new try")
        if abs(got[1] - want) > 2 * MS:
            blame(f"{text}: the next try was at {got[1]}, expected {want}, ttl / 8 after it was sent", {
                "ttl / 8 was counted from when it broke": abs(got[1] - want - after) <= 2 * MS,
            })  # fmt: skip


@case(task=2)
class WhatTheRegistryHasEndedIsOver:
    """Where the registry says that the lease is not alive, `keep_alive` returns, and `alive` is False at once."""

    def inputs(rng):
        return {"revoke": int(rng.integers(100, 1900)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open()
            discovery = scene.discovery("worker")
            await discovery.start()
            task = asyncio.create_task(outcome(discovery.keep_alive()))
            await scene.wait(inputs["revoke"] - scene.now)
            registry.revoke(discovery.lease, scene.now)
            end = await ended(scene, task, 2 * TTL)
            return {"end": end, "raised": end and task.result()[0], "alive": discovery.alive}

        return Scene(solution).run(main)

    def verify(inputs, got):
        text = f"the lease was ended at {inputs['revoke']} ns, the next renewal was answered with LeaseError"
        demand(got["end"] is not None, f"{text}: `keep_alive` does not return")
        demand(got["raised"] == "ok", f"{text}: `keep_alive` raised {got['raised']}: it should return")
        demand(got["end"] <= TTL // 2 + 5 * MS, f"{text}: it returned at {got['end']}, long after that")
        demand(not got["alive"], f"{text}: `alive` still says yes: this process would go on until its own deadline")


@case(task=2, params=[{"first": 1}, {"first": 300}])
class ABlockedLoopLosesItsLease:
    """Code that blocks the loop starves the renewal: after more than ttl `keep_alive` returns, and renews no more.

    Also where the registry would still accept it, because the last renewal had a long way: it must not come back.
    """

    def inputs(rng, first):
        later = int(rng.integers(first // 3, max(first // 2, 2)))
        return {"short": int(rng.integers(200, 900)) * MS, "first": first * MS, "later": later * MS}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open(noted(scene))
            loop = asyncio.get_running_loop().process("worker")
            seen, tasks = {}, []

            async def worker():
                discovery = scene.discovery("worker")
                await discovery.start()
                tasks.append(asyncio.create_task(discovery.keep_alive()))
                await asyncio.sleep(0.9)
                loop.block(inputs["short"])
                await asyncio.sleep(1.5)
                seen["kept"] = not tasks[0].done()
                scene.network.latency = lambda sender, receiver: MS // 100
                end = discovery.deadline + inputs["later"]
                loop.block(end - loop.now)
                await asyncio.sleep(1)
                renewals = sum(came > end for came in registry.came)
                seen.update(gone=tasks[0].done(), renewals=renewals, alive=discovery.alive)

            task = loop.create_task(worker())
            await until(scene, lambda: False, task)
            return seen

        return Scene(solution, latency=inputs["first"]).run(main)

    def verify(inputs, got):
        demand(got["kept"], f"blocked for {inputs['short']} ns, the lease was lost, though it lives for {TTL}")
        text = f"blocked until {inputs['later']} ns after the deadline"
        demand(got["gone"] and not got["alive"], f"{text}, `keep_alive` goes on: what had to stop came back to life. "
            "Look at `alive` after each wait")  # fmt: skip
        explain(got["renewals"], 0, f"{text}, it renewed after that")


@case(task=2)
class AnAnswerThatComesTooLate:
    """The loop blocks while a renewal is under way, until after the deadline: what was answered counts no more."""

    def inputs(rng):
        return {"latency": int(rng.integers(100, 300)) * MS, "later": int(rng.integers(1, 900)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open(noted(scene))
            loop = asyncio.get_running_loop().process("worker")
            seen = {}

            async def worker():
                discovery = scene.discovery("worker")
                await discovery.start()
                task = asyncio.create_task(discovery.keep_alive())
                sent = discovery.deadline - TTL + TTL // 2
                await asyncio.sleep((sent + inputs["latency"] - scene.now) / SECOND)
                end = discovery.deadline + inputs["later"]
                loop.block(end - loop.now)
                await asyncio.sleep(1)
                seen.update(gone=task.done(), alive=discovery.alive, renewals=len(registry.came))
                await asyncio.sleep(TTL / SECOND)
                seen.update(later=len(registry.came))

            task = loop.create_task(worker())
            await until(scene, lambda: False, task)
            return seen

        return Scene(solution, latency=inputs["latency"]).run(main)

    def verify(inputs, got):
        text = f"blocked while a renewal was under way, until {inputs['later']} ns after the deadline"
        demand(got["renewals"] >= 1, f"{text}: no renewal was sent ttl / 2 after the lease was asked for")
        demand(got["gone"] and not got["alive"], f"{text}: `keep_alive` goes on, and what had to stop came back to "
            "life. Look at `alive` after the answer, too")  # fmt: skip
        explain(got["later"], got["renewals"], f"{text}, it renewed after that")


@case(task=2, params=[{"asking": False}, {"asking": True}])
class KeepAliveCanBeCancelled:
    """Whoever cancels `keep_alive`, asleep or while it asks, ends it: it must not renew for a process that is gone."""

    def inputs(rng, asking):
        return {"begin": TTL // 2 + 5 * MS if asking else int(rng.integers(200, 1500)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open(noted(scene))
            discovery = scene.discovery("worker")
            await discovery.start()
            task = asyncio.create_task(discovery.keep_alive())
            await scene.wait(inputs["begin"] - scene.now)
            task.cancel()
            await scene.wait(50 * MS)
            done, came = task.done(), len(registry.came)
            await scene.wait(TTL)
            task.cancel()
            return [done, came, len(registry.came)]

        return Scene(solution, latency=10 * MS).run(main)

    def verify(inputs, got):
        done, before, after = got
        demand(done, f"cancelled at {inputs['begin']} ns, `keep_alive` goes on: it must not catch CancelledError")
        explain(after, before, f"cancelled at {inputs['begin']} ns, it renewed after that")


@case(task=2)
class ARegistryThatStumbles:
    """A registry whose handler raises is no reason to raise: `keep_alive` ends, and `changes` tries again."""

    def inputs(rng):
        return {"value": int(rng.integers(1, 99))}

    def observe(solution, inputs):
        renewals = []

        async def raises(body):
            renewals.append(1)
            raise KeyError("row")
            yield

        async def main(scene):
            calls = []

            async def stumbles(body):
                calls.append(scene.now)
                if len(calls) == 1:
                    raise KeyError("row")
                if len(calls) > 2:
                    yield {"a/1": inputs["value"]}
                    await asyncio.sleep(100)

            server = scene.part("rpc.Server")(scene.network.host("store"))

            async def grant(body):
                yield {"value": {"lease": 1, "ttl": TTL}}

            server.handlers |= {"discovery/grant": grant, "discovery/renew": raises, "discovery/watch": stumbles}
            scene.address = await server.start()
            discovery = scene.discovery("worker")
            await discovery.start()
            task = asyncio.create_task(outcome(discovery.keep_alive()))
            view, told = scene.part("discovery.View")(parse), []
            items = discovery.changes("a", view, 50 * MS)
            changes = asyncio.create_task(outcome(collect(items, told)))
            await scene.wait(SECOND)
            ended_as, entries = changes.done() and changes.result()[0], dict(view.entries)
            changes.cancel()
            end = await ended(scene, task, 2 * TTL)
            kept = {"kept": end and task.result()[0], "alive": discovery.alive, "renewals": len(renewals)}
            return kept | {"changes": ended_as, "view": entries}

        return Scene(solution).run(main)

    def verify(inputs, got):
        kept = "does not return" if got["kept"] is None else f"raised {got['kept']}"
        demand(got["kept"] == "ok", f"the registry's handler raised at a renewal: `keep_alive` {kept}: it must return, "
            "nobody else would stop this process")  # fmt: skip
        demand(not got["alive"], "the registry has not renewed, `keep_alive` has returned, and `alive` still says yes")
        explain(got["renewals"], 1, f"the registry's handler raised at a renewal, and got {got['renewals']} of them: "
            "RemoteError is final, only what breaks is tried again")  # fmt: skip
        demand(not got["changes"], f"the registry's `watch` raised once, and ended once without an item: `changes` "
            f"ended with {got['changes']}: it goes on for ever")  # fmt: skip
        explain(got["view"], {"a/1": 2 * inputs["value"]}, f"after that the view believes {got['view']}")


@case(task=2)
class WhoLeavesWatchesNoMore:
    """Closing `changes` between two items ends the watch at the registry."""

    def inputs(rng):
        return {"wait": int(rng.integers(5, 50)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open()
            discovery = scene.discovery("worker")
            await discovery.start()
            items = discovery.changes("a", scene.part("discovery.View")(parse), 200 * MS)
            first = await anext(items)
            await scene.wait(inputs["wait"])
            before = len(registry.watches)
            await items.aclose()
            await scene.wait(10 * MS)
            return [list(first), before, len(registry.watches)]

        return Scene(solution).run(main)

    def verify(inputs, got):
        explain(got, [[], 1, 0], f"first item, watches at the registry, and after `changes` was closed: {got}")


@case(task=2, params=[{"trouble": "none"}, {"trouble": "broken"}, {"trouble": "cut"}])
class GivingALeaseBack:
    """`revoke` ends the lease and its keys; it asks again where that breaks, until TimeoutError at the deadline."""

    def inputs(rng, trouble):
        return {"trouble": trouble, "begin": int(rng.integers(100, 1900)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open()
            host = Flaky(scene, scene.network.host("worker"))
            discovery = scene.part("lease.Discovery")(
                scene.part("channel.Channels")(host), scene.address, scene.clock()
            )
            await discovery.start()
            await discovery.put("a/1", 5)
            await scene.wait(inputs["begin"] - scene.now)
            if inputs["trouble"] == "broken":
                host.break_all(TTL // 4)
            elif inputs["trouble"] == "cut":
                scene.network.cut("worker", "store")
            task = asyncio.create_task(outcome(discovery.revoke()))
            end = await ended(scene, task, 3 * TTL)
            return {"end": end, "said": end and task.result()[0], "keys": len(registry.values), "tries": host.tries}

        return Scene(solution).run(main)

    def verify(inputs, got):
        end, text = got["end"], f"`revoke` at {inputs['begin']} ns, trouble: {inputs['trouble']}"
        demand(end is not None, f"{text}: it does not return. The lease ends at {TTL}, whatever the registry says")
        if inputs["trouble"] == "cut":
            explain([got["said"], end], ["TimeoutError", TTL], f"{text}: {got['said']} at {end}: expected "
                f"TimeoutError at {TTL}, when the lease ends")  # fmt: skip
            return
        demand(got["said"] == "ok", f"{text}: it raised {got['said']}: ask again while the lease lives")
        explain(got["keys"], 0, f"{text}: {got['keys']} keys are left at the registry: they must vanish at once")
        late = end - inputs["begin"] - (TTL // 4 if inputs["trouble"] == "broken" else 0)
        demand(late <= TTL // 8 + 10 * MS, f"{text}: it took {late} ns longer than the trouble")
        demand(got["tries"] <= 5, f"{text}: {got['tries']} connections were tried: wait for ttl / 8 between two")


def registrations(rng, count: int) -> list:
    """[wait in ms, key, value or None to end its lease]."""
    draw = lambda: [int(rng.integers(1, 400)), f"{'ab'[rng.integers(3) // 2]}/{rng.integers(4)}", int(rng.integers(9))]  # noqa: E731
    return [[wait, key, value if value < 6 else None] for wait, key, value in (draw() for _ in range(count))]


@case(task=2, params=[{"breaks": 0}, {"breaks": 1}, {"breaks": 4}])
class AViewIsKeptInStep:
    """`changes` brings a view up to date, then takes each change; after a lost connection it takes the difference."""

    def inputs(rng, breaks):
        steps = registrations(rng, 40)
        for at in sorted(rng.choice(range(4, 36, 6), breaks, replace=False).tolist(), reverse=True):
            away = [100, "break", int(rng.integers(10, 900))]
            steps[at:at] = [[50, "a/8", 3], away, [1, "a/8", None], [1, "a/9", int(rng.integers(9))]]
        return {"steps": steps, "retry": 200}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open(scene.part("discovery.Registry")(1000 * SECOND))
            host = Flaky(scene, scene.network.host("client"))
            discovery = scene.part("lease.Discovery")(
                scene.part("channel.Channels")(host), scene.address, scene.clock()
            )
            view, told = scene.part("discovery.View")(parse), []
            registry.put(registry.grant(scene.now), "a/0", 7, scene.now)
            items = discovery.changes("a", view, inputs["retry"] * MS)
            task = asyncio.create_task(collect(items, told))
            await scene.wait(20 * MS)
            first = [list(map(list, told[0])) if told else None, dict(view.entries)]
            seen = await play(scene, registry, host, inputs, view)
            await scene.wait(2 * SECOND)
            there = {key: 2 * value for key, value in sorted(registry.get("a", scene.now).items())}
            watches, died = len(registry.watches), task.done()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await scene.wait(20 * MS)
            flat = [list(change) for changes in told for change in changes]
            seen.append([dict(sorted(view.entries.items())), there])
            return [first, there, seen, flat, watches, len(registry.watches), died, host.tries]

        return Scene(solution).run(main)

    def verify(inputs, got):
        first, there, seen, told, watches, left, died, tries = got
        explain(first, [[["a/0", 14]], {"a/0": 14}], f"the first item was {first[0]}, and the view {first[1]}: "
            "it is the difference to all that there is")  # fmt: skip
        demand(not died, "`changes` has ended: it goes on for ever, also after a connection was lost")
        breaks = [wait for _, key, wait in inputs["steps"] if key == "break"]
        for number, (entries, now) in enumerate(seen, 1):
            when = f"after {number} lost connections" if number < len(seen) else "at the end"
            explain(entries, now, f"{when} the view believes {entries}, but there is {now}", {
                "what is missing in the snapshot stayed": entries | now,
            })  # fmt: skip
        belief = {}
        for key, value in told:
            belief.pop(key, None)
            belief |= {key: value} if value is not None else {}
        explain(dict(sorted(belief.items())), there, f"what was yielded adds up to {belief}, but there is {there}")
        explain([watches, left], [1, 0], f"the registry knew {watches} watches while one was on, and {left} "
            "after it was closed: expected 1 and 0")  # fmt: skip
        most = 1 + sum(wait // inputs["retry"] + 2 for wait in breaks)
        demand(tries <= most, f"{tries} connections were tried, at most {most} are worth it: wait `retry` between two")


async def play(scene: Scene, registry, host: Flaky, inputs: dict, view) -> list:
    """Carry out `registrations`. Returns the view and what there is, a while after each lost connection."""
    leases, seen, wait_for = {}, [], 0
    for wait, key, value in inputs["steps"]:
        await scene.wait(wait * MS if scene.now >= wait_for else MS)
        if key == "break":
            host.break_all(value * MS)
            wait_for, left = scene.now + value * MS, 4
        elif value is None and key in leases:
            registry.revoke(leases.pop(key), scene.now)
        elif value is not None:
            leases.setdefault(key, registry.grant(scene.now))
            registry.put(leases[key], key, value, scene.now)
        left = left - 1 if wait_for else 0
        if wait_for and not left:
            await scene.wait(max(wait_for - scene.now, 0) + (inputs["retry"] + 10) * MS)
            there = {key: 2 * value for key, value in sorted(registry.get("a", scene.now).items())}
            seen.append([dict(sorted(view.entries.items())), there])
            wait_for = 0
    return seen


# Task 3


@case(task=3)
class RoundRobinTakesEachInTurn:
    """The next id after the last choice, or the lowest: so those that come and go change no other's turn."""

    def inputs(rng):
        pool = sorted(rng.choice(60, 12, replace=False).tolist())
        return [[i for i in pool if rng.random() < 0.7] or pool[:1] for _ in range(80)] + [pool] * 24

    def observe(solution, inputs):
        balancer = solution.module("cluster.balance").RoundRobin()
        return [balancer.choose(ids, {}) for ids in inputs]

    def verify(inputs, got):
        last, turn = -1, 0
        for i, (ids, value) in enumerate(zip(inputs, got, strict=True)):
            want = next((number for number in ids if number > last), ids[0])
            explain(value, want, f"choice {i} of {ids}, after {last if i else 'none'}: got {value}, expected {want}", {
                "a count of choices, taken modulo how many there are: whoever comes or goes shifts all turns":
                    ids[i % len(ids)],
                "the place of the last choice was kept, not its id": ids[turn % len(ids)],
                "the highest id is followed by the lowest": None,
            })  # fmt: skip
            last, turn = value, ids.index(value) + 1


def drawn(solution, inputs: dict, n: int) -> list[int]:
    """n choices."""
    module, kind = solution.module("cluster.balance"), inputs["kind"]
    rng = random.Random(inputs["seed"])
    extra = [dict(map(tuple, inputs["weights"]))] if kind == "DeviceWeighted" else []
    balancer, inflight = getattr(module, kind)(rng, *extra), dict(map(tuple, inputs["inflight"]))
    return [balancer.choose(inputs["ids"], inflight) for _ in range(n)]


def assert_even(got: list[int], want: dict[int, Fraction], text: str, mistakes: dict[str, dict] | None = None) -> None:
    """Raise AssertionError unless the shares of choices are those wanted, to five standard deviations."""
    n, counts = len(got), Counter(got)

    def fits(shares: dict) -> bool:
        near = lambda i, p: abs(counts[i] - n * p) <= 5 * float(n * p * (1 - p)) ** 0.5  # noqa: E731
        return set(counts) <= {i for i, p in shares.items() if p} and all(near(i, p) for i, p in shares.items())

    if not fits(want):
        found = {i: round(counts[i] / n, 3) for i in sorted({*want, *counts})}
        expected = {i: round(float(p), 3) for i, p in want.items()}
        blame(f"{text}: shares of {n} choices are {found}, expected {expected}", {
            mistake: fits(shares) for mistake, shares in (mistakes or {}).items()
        })  # fmt: skip


def among(ids: list[int]) -> dict[int, Fraction]:
    return dict.fromkeys(ids, Fraction(1, len(ids)))


@case(task=3, params=[{"kind": "LeastLoaded"}, {"kind": "DeviceWeighted"}])
class TheLeastLoadedAndTiesByChance:
    """One with the least load, each of those with the same chance; what is not in `inflight` has no call."""

    def inputs(rng, kind):
        ids = [3, 5, 9, 12, 20]
        loads = {i: int(n) for i, n in zip(ids, rng.integers(0, 3, 5), strict=True) if n}
        weights = {3: 4.0, 12: 2.0} if kind == "DeviceWeighted" else {}
        least = {"kind": kind, "seed": int(rng.integers(1 << 30)), "ids": ids, "weights": list(weights.items())}
        tied = {3: 8, 5: 2, 9: 3, 12: 4, 20: 2} if weights else {3: 2, 5: 1, 9: 1, 12: 1, 20: 4}
        gone = {3: 8, 5: 2, 9: 2, 12: 4, 20: 2, 4: 1, 99: 1}  # calls that were left at some who are not in `ids`
        tables = (loads, tied, {3: 1, 5: 1, 12: 1, 20: 1}, {}, gone)
        return [least | {"inflight": list(table.items())} for table in tables]

    def observe(solution, inputs):
        return [[drawn(solution, part, 2000), drawn(solution, part, 60)] for part in inputs]

    def verify(inputs, got):
        for part, (choices, again) in zip(inputs, got, strict=True):
            demand(choices[:60] == again, f"{part['kind']}: the same seed gave other choices: draw with `self.rng`")
            ids, inflight, weights = part["ids"], dict(part["inflight"]), dict(part["weights"])
            loads = {i: Fraction(inflight.get(i, 0)) / Fraction(weights.get(i, 1)) for i in ids}
            least = [i for i in ids if loads[i] == min(loads.values())]
            heavy = {i: inflight.get(i, 0) * Fraction(weights.get(i, 1)) for i in ids}
            assert_even(choices, among(least), f"{part['kind']}, calls {inflight}, weights {weights}", {
                "ties go to the first: while nothing runs it gets every call, of every client": among(least[:1]),
                "ties go to the last": among(least[-1:]),
                "the weights were left out": among([i for i in ids if inflight.get(i, 0) ==
                    min(inflight.get(j, 0) for j in ids)]),
                "a weight is what an instance can do: divide by it": among([i for i in ids if heavy[i] ==
                    min(heavy.values())]),
                "the most loaded was taken": among([i for i in ids if loads[i] == max(loads.values())]),
                "who is not in `inflight` has no call": among([i for i in ids if i in inflight and inflight[i] ==
                    min(inflight.values())] or ids),
            })  # fmt: skip


@case(task=3)
class PowerOfTwoComparesTwo:
    """The less loaded of two different ones that are drawn: the k-th least of n in 2 (n - k) / n (n - 1) of all."""

    def inputs(rng):
        ids = [3, 5, 9, 12, 20, 31]
        order = rng.permutation(ids).tolist()
        seed = {"kind": "PowerOfTwo", "seed": int(rng.integers(1 << 30))}
        inflight = [[number, load] for load, number in enumerate(order) if load]
        tables = [(ids, inflight), ([7], []), (ids, [[number, 2] for number in ids])]
        return [seed | {"ids": numbers, "inflight": calls} for numbers, calls in tables]

    def observe(solution, inputs):
        first, alone, tied = inputs
        return [drawn(solution, one, n) for one, n in ((first, 6000), (alone, 20), (first, 60), (tied, 6000))]

    def verify(inputs, got):
        demand(got[0][:60] == got[2], "the same seed gave other choices: draw with `self.rng`")
        ids, inflight = inputs[0]["ids"], dict(map(tuple, inputs[0]["inflight"]))
        order, n = sorted(ids, key=lambda i: inflight.get(i, 0)), len(ids)
        shares = lambda of: {i: of(k) for k, i in enumerate(order, 1)}  # noqa: E731
        assert_even(got[0], shares(lambda k: Fraction(2 * (n - k), n * (n - 1))), f"calls {inflight}", {
            "two may be the same one: draw different ones": shares(lambda k: Fraction(2 * (n - k) + 1, n * n)),
            "all were compared: that is the least loaded": among(order[:1]),
            "loads were not compared": among(ids),
            "the more loaded of the two was taken": shares(lambda k: Fraction(2 * (k - 1), n * (n - 1))),
        })  # fmt: skip
        explain(set(got[1]), {7}, f"of one instance, {set(got[1])} was chosen")
        assert_even(got[3], among(ids), f"instances {ids} with two calls each", {
            "of two equal ones the lower id was taken: take the one that was drawn first": {
                i: Fraction(2 * (n - k), n * (n - 1)) for k, i in enumerate(ids, 1)},
            "of two equal ones the higher id was taken: take the one that was drawn first": {
                i: Fraction(2 * (k - 1), n * (n - 1)) for k, i in enumerate(ids, 1)},
        })  # fmt: skip


class Asked:
    """A balancer that notes what it is offered, and takes the last."""

    def __init__(self):
        self.offers: list[list] = []

    def choose(self, ids, inflight):
        self.offers.append([list(ids), sorted(map(list, inflight.items()))])
        return ids[-1]


def ids_of(workers: list) -> list[int]:
    return [worker.discovery.lease for worker in workers]


async def workers_of(scene: Scene, count: int) -> list:
    return [await scene.worker(f"worker-{i}") for i in range(count)]


WISH = {"token_ids": [3, 1], "max_tokens": 30}


@case(task=3)
class ACallIsCountedUntilItEnds:
    """`inflight` has each call until its answer has ended, broke, raised, or was left, and nothing after that."""

    def inputs(rng):
        return {"token": int(rng.integers(2, 20))}

    def observe(solution, inputs):
        async def broken(body):
            yield 1
            raise KeyError("row")

        async def main(scene):
            await scene.open()
            workers, asked = await workers_of(scene, 2), Asked()
            client, found = await scene.client(asked), {}
            calls = [asyncio.create_task(collect(client.call(WISH))) for _ in range(3)]
            first, second = ids_of(workers)
            named_call = asyncio.create_task(collect(client.call(WISH, first)))
            await scene.wait(inputs["token"] * TOKEN)
            found["during"] = sorted(map(list, client.inflight.items()))
            answers = await asyncio.gather(*calls, named_call)
            found["ended"] = dict(client.inflight)
            short = asyncio.create_task(collect(client.call(WISH | {"max_tokens": 5})))
            long = asyncio.create_task(collect(client.call(WISH)))
            await short
            found["one of two"] = sorted(map(list, client.inflight.items()))
            await long
            found["both"] = dict(client.inflight)
            async with aclosing(client.call(WISH)) as items:
                await anext(items)
            found["left"] = dict(client.inflight)
            await scene.endpoint(workers[1]).serve(broken)
            found["error"] = await outcome(collect(client.call(WISH)))
            found["raised"] = dict(client.inflight)
            call = asyncio.create_task(outcome(collect(client.call(WISH, first))))
            await scene.wait(3 * TOKEN)
            scene.network.crash("worker-0")
            found["lost"] = await call
            found["broke"] = dict(client.inflight)
            found["offers"] = asked.offers
            return [found, first, second, [[item["token"] for item in answer] for answer in answers]]

        return Scene(solution).run(main)

    def verify(inputs, got):
        found, first, second, answers = got
        explain(answers, [alone([3, 1], 30)] * 4, "an answer is not what the worker sent")
        during = found["during"]
        explain(during, [[first, 1], [second, 3]], f"three calls to {second}, one to {first}: `inflight` is {during}", {
            "a call counts from the moment in which it is made": [],
        })  # fmt: skip
        for moment, text in {
            "ended": "after four answers have ended",
            "both": "after two answers have ended, one after the other,",
            "left": "after a call was left in the middle",
            "raised": "after the handler raised",
            "broke": "after the worker was lost",
        }.items():
            explain(found[moment], {}, f"{text} `inflight` is {found[moment]}: a call that is over still counts")
        demand("RemoteError" in found["error"], f"the handler raised KeyError: the call ended with {found['error'][0]}")
        demand("ConnectionError" in found["lost"], f"the worker was lost: the call ended with {found['lost'][0]}")
        explain(found["one of two"], [[second, 1]], f"two calls to {second}, one has ended: `inflight` is "
            f"{found['one of two']}", {"the end of one call ended the count of the other": []})  # fmt: skip
        explain(len(found["offers"]), 7, f"the balancer was asked {len(found['offers'])} times in 7 calls without a "
            "name and 2 with one: who is named needs no choice")  # fmt: skip
        offers = [offer[1] for offer in found["offers"]][:3]
        explain(offers, [[], [[second, 1]], [[second, 2]]], f"the balancer was told of {offers} before three calls: it "
            "needs those in flight, one more each time")  # fmt: skip


@case(task=3)
class WhoFailsIsLeftAlone:
    """A lost connection takes an instance out for ttl; an error of its handler does not; a named one may be refused."""

    def inputs(rng):
        return {"later": int(rng.integers(1, 1900)) * MS}

    def observe(solution, inputs):
        async def broken(body):
            raise KeyError("row")
            yield

        async def main(scene):
            await scene.open()
            workers, found = [await scene.worker("a", broken), await scene.worker("b"), await scene.worker("c")], {}
            a, b, c = ids_of(workers)
            client = await scene.client(Asked())
            found["chosen by name"] = client.choose(a).id
            found["error"] = await outcome(collect(client.call(WISH, a)))
            found["after error"] = list(client.instances())
            scene.network.crash("c")
            found["lost"] = await outcome(collect(client.call(WISH)))
            found["after loss"] = list(client.instances())
            found["chosen"] = error_of(lambda: client.choose().id).get("value")
            found["named"] = [await outcome(collect(client.call(WISH, number))) for number in (c, 999)]
            await scene.wait(inputs["later"])
            found["later"] = list(client.instances())
            workers[1].server.accepting = False
            found["refused"] = await outcome(collect(client.call(WISH, b)))
            found["after refusal"] = list(client.instances())
            return [found, a, b, c]

        return Scene(solution).run(main)

    def verify(inputs, got):
        found, a, b, c = got
        explain(found["chosen by name"], a, f"{a} was named: got {found['chosen by name']}")
        demand("RemoteError" in found["error"], f"a handler raised: the call ended with {found['error'][0]}")
        explain(found["after error"], [a, b, c], f"after a handler raised {found['after error']} of {[a, b, c]} may be "
            "called: another one would raise as well, nobody is down")  # fmt: skip
        demand("ConnectionError" in found["lost"], f"a worker crashed: the call ended with {found['lost'][0]}")
        for moment in ("after loss", "later"):
            explain(found[moment], [a, b], f"after {c} was lost {found[moment]} may be called: leave it alone for ttl")
        demand("RefusedError" in found["refused"], f"{b} refused a call, which ended with {found['refused'][0]}")
        explain(found["after refusal"], [a], f"after {b} refused a call {found['after refusal']} may be called: "
            "RefusedError is a ConnectionError, too, leave it alone")  # fmt: skip
        explain(found["chosen"], b, f"the balancer takes the last of {[a, b]}: got {found['chosen']}")
        for number, said in zip((c, 999), found["named"], strict=True):
            demand("NoInstanceError" in said, f"{number} may not be called: the call ended with {said[0]}")


@case(task=3)
class SilenceIsAFailure:
    """With `idle`, an instance that says nothing for so long has failed: a cut link breaks no connection."""

    def inputs(rng):
        return {"tokens": int(rng.integers(1, 20)), "idle": int(rng.integers(50, 400)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            await scene.open()
            await scene.worker("worker")
            client = await scene.client(idle=inputs["idle"])
            got, begun = [], scene.now
            call = asyncio.create_task(outcome(collect(client.call(WISH), got)))
            await until(scene, lambda: len(got) >= inputs["tokens"], call)
            cut = scene.now
            scene.network.cut("client", "worker")
            end = await ended(scene, call, 20 * SECOND)
            return [len(got), end and call.result()[:-1], end and end - cut, dict(client.inflight), begun]

        return Scene(solution).run(main)

    def verify(inputs, got):
        tokens, said, after, inflight, _ = got
        demand(
            said is not None, f"the link was cut after {tokens} tokens, and the call waits for ever: use `self.item`"
        )
        demand("ConnectionError" in said, f"no token for {inputs['idle']} ns: the call ended with {said[0]}")
        demand(after <= inputs["idle"] + 2 * MS, f"it ended {after} ns after the cut, idle is {inputs['idle']}")
        explain(inflight, {}, f"`inflight` is {inflight} after that")


@case(task=3)
class NobodyRoutesWithoutALease:
    """A process whose lease has ended calls nobody: what it knows of the others may be old."""

    def inputs(rng):
        return {"begin": int(rng.integers(100, 1900)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            await scene.open()
            await workers_of(scene, 2)
            client = await scene.client()
            await scene.wait(inputs["begin"])
            before = error_of(lambda: client.choose().id)
            other = await scene.client(name="other")
            await other.runtime.stop()
            loop, said = asyncio.get_running_loop(), [error_of(lambda: other.choose().id)]
            loop.block(2 * TTL)  # nothing of this process ran, so nobody has told the client that its lease has ended
            named_one = next(iter(client.view.entries.values())).id
            said += [error_of(lambda: client.choose().id), error_of(lambda: client.choose(named_one).id)]
            return [before, [*said[1:], said[0]], len(client.view.entries)]

        return Scene(solution).run(main)

    def verify(inputs, got):
        before, told, known = got
        demand(before["type"] is None, f"a client with a lease and two instances: raised {before['type']}")
        without = f"without a lease for {TTL} ns"
        for said, text in zip(told, (without, f"{without}, by name,", "in a process that has stopped"), strict=True):
            demand(said["type"] == "NoInstanceError", f"{text} it chose among {known} instances that it once knew: "
                f"expected NoInstanceError, got {said['type'] or said['value']}")  # fmt: skip


@case(task=3)
class NothingIsSentWithoutALease:
    """A process that was blocked past its deadline sends nothing more, not even what its handler had ready."""

    def inputs(rng):
        return {"tokens": int(rng.integers(2, 20)), "block": TTL + int(rng.integers(1, 3000)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open()
            loop, got = asyncio.get_running_loop().process("worker"), []

            async def handler(body):
                async for item in generate(body):
                    if len(got) >= inputs["tokens"]:
                        loop.block(inputs["block"])
                    yield item

            worker = await on_loop(scene, loop, scene.worker("worker", handler))
            client = await scene.client()
            call = asyncio.create_task(outcome(collect(client.call({"token_ids": [1], "max_tokens": 400}), got)))
            await until(scene, lambda: len(got) >= inputs["tokens"], call)
            await scene.wait(MS)
            before = len(got)
            await scene.wait(inputs["block"] + TTL)
            return [before, len(got), worker.state, list(registry.values), call.done()]

        return Scene(solution).run(main)

    def verify(inputs, got):
        before, after, state, keys, done = got
        demand(after == before, f"blocked for {inputs['block']} ns, its lease of {TTL} ns had ended, and it sent "
            f"{after - before} items after that: it serves on after its lease has expired")  # fmt: skip
        demand(state == "stopped" and done, f"the process is {state!r}: it must stop once its lease is lost")
        explain(keys, [], f"the registry still has {keys}")


async def on_loop(scene: Scene, loop, work):
    """The result of a coroutine that runs on another process's loop."""
    task = loop.create_task(work)
    await until(scene, lambda: False, task)
    return task.result()


@case(task=3, params=[{"limit": None}, {"limit": 10}, {"limit": 0.1}])
class LeavingLosesNoRequest:
    """`stop` vanishes from discovery first, then finishes what was begun, within its limit, and then ends."""

    def inputs(rng, limit):
        tokens = rng.integers(5, 60, 4).tolist() + ([] if limit == 0.1 else [int(rng.integers(450, 600))])
        return {"limit": limit and int(limit * SECOND), "tokens": tokens}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open()
            worker, other = await workers_of(scene, 2)
            client, found = await scene.client(), {}
            key, got = next(iter(worker.server.handlers)), [[] for _ in inputs["tokens"]]
            wishes = [{"token_ids": [i], "max_tokens": n} for i, n in enumerate(inputs["tokens"])]
            calls = [asyncio.create_task(outcome(collect(client.call(w), g))) for w, g in zip(wishes, got, strict=True)]
            await scene.wait(3 * TOKEN)
            begun = scene.now
            stop = asyncio.create_task(outcome(worker.stop(inputs["limit"])))
            await scene.wait(5 * MS)
            found["there"] = [value["id"] == worker.discovery.lease for value in registry.values.values()]
            found["state"], found["alive"] = worker.state, worker.alive
            found["chosen"] = client.choose().id == other.discovery.lease
            found["refused"] = await outcome(client.runtime.channels.ask(worker.address, key, WISH))
            end = await ended(scene, stop, 100 * SECOND)
            found["end"], found["said"] = end and end - begun, end and stop.result()[0]
            await asyncio.gather(*calls)
            found["outcomes"] = [call.result()[0] for call in calls]
            found["answers"] = [[item["token"] for item in items] for items in got]
            found["final"], found["stopped"], found["mute"] = worker.state, worker.stopped.is_set(), not worker.alive
            again = asyncio.create_task(outcome(worker.stop()))
            await scene.wait(MS)
            found["again"], found["then"] = again.done() and again.result()[0], worker.state
            again.cancel()
            return found

        return Scene(solution).run(main)

    def verify(inputs, got):
        limit, tokens = inputs["limit"], inputs["tokens"]
        text = f"`stop` with calls in flight that take {max(tokens) * TOKEN} ns in all, limit {limit}"
        want = [alone([i], n) for i, n in enumerate(tokens)]
        lost = sum(answer != whole for answer, whole in zip(got["answers"], want, strict=True))
        fits = limit is None or limit > max(tokens) * TOKEN
        if fits:
            explain(
                lost, 0, f"{text}: {lost} of {len(tokens)} answers were cut off: finish what was begun before the end"
            )
        demand(
            not any(got["there"]), f"{text}: 5 ms later it is still registered: give the lease back first, then drain"
        )
        demand(got["chosen"], f"{text}: the client still chooses it")
        explain(got["state"], "draining", f"{text}: 5 ms later the state is {got['state']!r}, expected 'draining'")
        demand(got["alive"], f"{text}: while draining it must go on to answer, though its lease is gone")
        demand("RefusedError" in got["refused"], f"{text}: a new call while draining ended with {got['refused'][0]}")
        demand(got["end"] is not None, f"{text}: it does not end")
        demand(got["said"] == "ok", f"{text}: it raised {got['said']}")
        last = min((max(tokens) - 3) * TOKEN, 10**12 if limit is None else limit)
        demand(abs(got["end"] - last) <= 15 * MS, f"{text}: it took {got['end']} ns, expected about {last}")
        explain([got["final"], got["stopped"]], ["stopped", True], f"{text}: then the state is {got['final']!r}, "
            f"`stopped` set: {got['stopped']}")  # fmt: skip
        demand(got["mute"], f"{text}: it has stopped, and `alive` still says yes: nobody may hear from it any more")
        explain([got["again"], got["then"]], ["ok", "stopped"], f"{text}: a second `stop`, after it has stopped, gave "
            f"{got['again']} within 1 ms, and the state was {got['then']!r} then: it changes nothing")  # fmt: skip


@case(task=3)
class NoTimeToDrain:
    """`stop(0)` gives the lease back and ends: 0 is a limit, and None is none."""

    def inputs(rng):
        return {"begin": int(rng.integers(20, 200)) * MS}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open()
            (worker,) = await workers_of(scene, 1)
            client = await scene.client()
            call = asyncio.create_task(outcome(collect(client.call({"token_ids": [1], "max_tokens": 900}))))
            await scene.wait(inputs["begin"])
            begun = scene.now
            end = await ended(scene, asyncio.create_task(worker.stop(0)), 100 * SECOND)
            keys = [value["id"] for value in registry.values.values() if value["id"] == worker.discovery.lease]
            return [end and end - begun, worker.state, len(keys), (await call)[0]]

        return Scene(solution).run(main)

    def verify(inputs, got):
        end, state, keys, said = got
        demand(end is not None and end <= 20 * MS, f"`stop(0)` took {end} ns: 0 is a limit, None is none")
        explain([state, keys], ["stopped", 0], f"after `stop(0)` the state is {state!r}, and {keys} keys are left")
        demand(said != "ok", "an answer of 9 s was complete at once")


@case(task=3)
class ADrainWaitsForTheLast:
    """`Server.drain` begins no call, and returns when the last of those that were begun has ended."""

    def inputs(rng):
        return {"lengths": rng.integers(0, 40, 5).tolist()}

    def observe(solution, inputs):
        async def ticks(body):
            for i in range(body):
                await asyncio.sleep(TOKEN / SECOND)
                yield i

        async def main(scene):
            server = scene.part("rpc.Server")(scene.network.host("server"))
            server.handlers["ticks"] = ticks
            channels = scene.part("channel.Channels")(scene.network.host("client"))
            address = await server.start()
            await outcome(channels.ask(address, "ticks", 1))
            begun = scene.now
            calls = [
                asyncio.create_task(outcome(collect(channels.call(address, "ticks", n)))) for n in inputs["lengths"]
            ]
            left = asyncio.create_task(collect(channels.call(address, "ticks", 900)))
            await scene.wait(2 * MS)
            drain = asyncio.create_task(server.drain())
            await scene.wait(2 * MS)
            refused = await outcome(channels.ask(address, "ticks", 3))
            left.cancel()
            end = await ended(scene, drain, 10 * SECOND)
            results = [result[1] for result in await asyncio.gather(*calls)]
            late = await outcome(channels.ask(address, "ticks", 3))
            again = await ended(scene, asyncio.create_task(server.drain()), SECOND)
            return [end and end - begun, [refused[0], late[0]], [len(r) for r in results], again]

        return Scene(solution).run(main)

    def verify(inputs, got):
        end, refused, results, again = got
        for said, when in zip(refused, ("while it drains", "after it has drained"), strict=True):
            explain(said, "RefusedError", f"a call that came {when} ended with {said}: it must be refused")
        demand(end is not None, "`drain` does not return, though all calls have ended, one because its caller left")
        demand(again is not None, "a second `drain`, without any call, does not return")
        explain(results, inputs["lengths"], f"calls of {inputs['lengths']} items gave {results}")
        last = max(max(inputs["lengths"]) * TOKEN + MS, 4 * MS)
        demand(abs(end - last) <= 2 * MS, f"calls of {inputs['lengths']} items, one each {TOKEN} ns: `drain` "
            f"returned after {end} ns, expected {last}: the last call's end")  # fmt: skip


@case(task=3, params=[{"healed": False}, {"healed": True}])
class LeavingWithoutARegistry:
    """Cut off from the registry `stop` goes on to answer, and ends when the lease does at the latest."""

    def inputs(rng, healed):
        return {"begin": int(rng.integers(100, 1500)) * MS, "healed": healed}

    def observe(solution, inputs):
        async def main(scene):
            registry = await scene.open()
            (worker,) = await workers_of(scene, 1)
            client, got = await scene.client(), []
            call = asyncio.create_task(outcome(collect(client.call({"token_ids": [1], "max_tokens": 5000}), got)))
            await scene.wait(inputs["begin"])
            scene.network.cut("worker-0", "store")
            deadline = worker.discovery.deadline
            stop = asyncio.create_task(outcome(worker.stop(TTL)))
            await scene.wait(200 * MS)
            state, alive, before = worker.state, worker.alive, len(got)
            await scene.wait(200 * MS)
            answered = len(got) - before
            if inputs["healed"]:
                scene.network.heal("worker-0", "store")
                await scene.wait(10 * MS)
            later, keys = worker.state, [v for v in registry.values.values() if v["id"] == worker.discovery.lease]
            end = await ended(scene, stop, 20 * SECOND)
            await ended(scene, call, SECOND)
            return [state, alive, answered, later, len(keys), end, end and stop.result()[0], deadline, worker.state]

        return Scene(solution).run(main)

    def verify(inputs, got):
        state, alive, answered, later, keys, end, said, deadline, final = got
        text = f"`stop` at {inputs['begin']} ns, cut off from the registry"
        explain([state, alive], ["leaving", True], f"{text}: 200 ms later the state is {state!r} and alive "
            f"{alive}: nobody was told yet, and the lease lives: go on to answer")  # fmt: skip
        demand(
            answered > 10,
            f"{text}: {answered} tokens in the next 200 ms: it must go on to answer while its lease lives",
        )
        demand(end is not None, f"{text}: it does not end")
        explain([said, final], ["ok", "stopped"], f"{text}: it ended with {said}, state {final!r}")
        if inputs["healed"]:
            explain([later, keys], ["draining", 0], f"{text}, healed after 400 ms: the state is {later!r}, and {keys} "
                "keys are left")  # fmt: skip
        else:
            demand(end <= deadline, f"{text}: it ended at {end}, after its lease at {deadline}")


# Task 4


def progress_of(solution, prompt: list[int], most: int):
    return solution.module("cluster.migration").Progress(list(prompt), most)


@case(task=4)
class TheRestIsWhatIsMissing:
    """Prompt and tokens so far make the next prompt, and `max_tokens` shrinks: their sum is the same at each moment."""

    def inputs(rng):
        prompt, tokens = rng.integers(0, 900, int(rng.integers(1, 9))).tolist(), rng.integers(0, 900, 9).tolist()
        return {"prompt": prompt, "tokens": tokens, "stop": int(rng.integers(2, 9))}

    def observe(solution, inputs):
        whole, cut = progress_of(solution, inputs["prompt"], 9), progress_of(solution, inputs["prompt"], 9)
        seen = [[whole.request(), None, None]]
        for token in inputs["tokens"]:
            taken = whole.take({"token": token, "finish_reason": None})
            seen.append([error_of(whole.request), taken, whole.finish_reason])
        for i in range(inputs["stop"]):
            cut.take({"token": inputs["tokens"][i], "finish_reason": "stop" if i + 1 == inputs["stop"] else None})
        nothing = error_of(progress_of(solution, inputs["prompt"], 0).request)
        last = progress_of(solution, inputs["prompt"], 1)
        last.take({"token": 4, "finish_reason": "stop"})
        return [seen, cut.finish_reason, list(cut.tokens), error_of(cut.request), nothing, last.finish_reason]

    def verify(inputs, got):
        prompt, tokens = inputs["prompt"], inputs["tokens"]
        seen, stopped, taken, after_stop, nothing, last = got
        for n, (asked, token, reason) in enumerate(seen):
            text = f"a prompt of {len(prompt)}, max_tokens 9, {n} tokens so far"
            if n == 9:
                ends_as(asked, "ValueError", f"{text}: asking for more")
                explain(reason, "length", f"{text}: finish_reason is {reason!r}, expected 'length'")
                continue
            asked = asked if n == 0 else asked.get("value", asked)
            explain(asked, {"token_ids": prompt + tokens[:n], "max_tokens": 9 - n}, f"{text}: it asks for {asked}", {
                "the tokens so far belong to the prompt: without them the answer begins again":
                    {"token_ids": prompt, "max_tokens": 9 - n},
                "max_tokens shrinks by what was delivered": {"token_ids": prompt + tokens[:n], "max_tokens": 9},
                "the whole request was sent again": {"token_ids": prompt, "max_tokens": 9},
                "one token is asked for twice": {"token_ids": prompt + tokens[: n - 1], "max_tokens": 10 - n},
            })  # fmt: skip
            if n:
                explain(
                    [token, reason], [tokens[n - 1], None], f"{text}: `take` gave {token}, finish_reason {reason!r}"
                )
        explain(
            [stopped, taken], ["stop", tokens[: inputs["stop"]]], f"after a stop token finish_reason is {stopped!r}"
        )
        ends_as(after_stop, "ValueError", "asking for more after a stop token")
        ends_as(nothing, "ValueError", "asking for an answer of 0 tokens")
        explain(last, "stop", f"the last token is a stop token, and finish_reason is {last!r}: expected 'stop'")


def generated(solution, route, prompt: list[int], most: int, **options) -> list:
    """[tokens, how it ended, migrations, ns that it took] of one request."""

    async def main(scene):
        migration = scene.part("migration.Migration")(route, scene.clock(), **options)
        got = []
        said = await outcome(collect(migration.generate(prompt, most), got))
        return [got, said[:-1] if said[0] != "ok" else ["ok"], migration.migrations, scene.now]

    return Scene(solution).run(main)


@case(
    task=4, params=[{"deaths": deaths} for deaths in ([], [0], [1], [4], [11], [12], [0, 0, 0], [3, 0, 5], [1, 1, 1])]
)
class AnyTokenMayBeTheLast:
    """Wherever workers die, the answer is that of a worker that never fails, each token once; the limit is kept."""

    def inputs(rng, deaths):
        return {"deaths": deaths, "prompt": rng.integers(0, 900, 3).tolist(), "pause": int(rng.integers(0, 3)) * MS}

    def observe(solution, inputs):
        route, asked = fragile(inputs["deaths"])
        return [*generated(solution, route, inputs["prompt"], 12, limit=3, pause=inputs["pause"]), asked]

    def verify(inputs, got):
        tokens, said, migrations, took, asked = got
        deaths, prompt = inputs["deaths"], inputs["prompt"]
        want = alone(prompt, 12)
        done, again = 0, 0
        for dies in deaths:
            if done + dies >= 12:
                break
            done, again = done + dies, again + 1
        cuts = [sum(deaths[:n]) for n in range(again + 1)]
        twice = [
            token for at, end in zip(cuts, [*cuts[1:], 12], strict=True) for token in alone(prompt, 12)[: end - at]
        ]
        text = f"workers die after {deaths} tokens of 12"
        explain(tokens, want, f"{text}: the answer is {tokens}, expected {want}", {
            "tokens came twice: those that were delivered are part of the next prompt": twice,
            "too many tokens: max_tokens shrinks by what was delivered": want + alone(prompt + want, len(tokens) - 12),
            "the tokens so far were lost": want[done:],
        })  # fmt: skip
        explain(said, ["ok"], f"{text}, limit 3: it ended with {said[0]}")
        explain([migrations, len(asked)], [again, again + 1], f"{text}: {migrations} migrations counted, {len(asked)} "
            f"workers asked, expected {again} and {again + 1}", {
            "what breaks after the last token does not matter: the answer is there": [again + 1, len(asked)],
        })  # fmt: skip
        sums = {len(ids) + most for ids, most in asked}
        explain(sums, {15}, f"{text}: prompt and max_tokens add up to {sums} of what was asked, expected 15 each time")
        explain(took, again * inputs["pause"], f"{text}: {again} pauses of {inputs['pause']} ns took {took}")


@case(task=4, params=[{"limit": 0}, {"limit": 1}, {"limit": 4}])
class MigrationHasALimit:
    """After `limit` migrations the next loss is raised; what was delivered until then was right."""

    def inputs(rng, limit):
        pause = int(rng.integers(1, 9)) * MS
        return {"limit": limit, "prompt": rng.integers(0, 900, 4).tolist(), "deaths": [2] * 9, "pause": pause}

    def observe(solution, inputs):
        route, asked = fragile(inputs["deaths"])
        options = {"limit": inputs["limit"], "pause": inputs["pause"]}
        return [*generated(solution, route, inputs["prompt"], 40, **options), len(asked)]

    def verify(inputs, got):
        tokens, said, migrations, took, asked = got
        limit = inputs["limit"]
        explain(asked, limit + 1, f"limit {limit}: {asked} workers were asked, expected {limit + 1}", {
            "one too many: the first attempt is no migration": limit + 2,
            "one too few: the first attempt is no migration": limit,
            "the limit was not looked at": 10,
        })  # fmt: skip
        demand(
            "ConnectionError" in said, f"limit {limit}, nine workers die: it ended with {said[0]}, not ConnectionError"
        )
        explain(tokens, alone(inputs["prompt"], 2 * asked), f"limit {limit}: it delivered {tokens}")
        explain(migrations, limit, f"limit {limit}: {migrations} migrations were counted")
        explain(took, limit * inputs["pause"], f"limit {limit}, pauses of {inputs['pause']} ns: it took {took}", {
            "nothing is to be waited for before the error is raised": (limit + 1) * inputs["pause"],
        })  # fmt: skip


@case(task=4)
class EachRequestHasItsOwnLimit:
    """The limit is of a request: what others have lost does not count. `migrations` counts those of all."""

    def inputs(rng):
        return {"prompts": [rng.integers(0, 900, 3).tolist() for _ in range(3)], "limit": int(rng.integers(1, 4))}

    def observe(solution, inputs):
        async def main(scene):
            route, _ = fragile(([1] * inputs["limit"] + [99]) * 3)
            migration = scene.part("migration.Migration")(route, scene.clock(), limit=inputs["limit"])
            said = [await outcome(collect(migration.generate(prompt, 9))) for prompt in inputs["prompts"]]
            return [said, migration.migrations]

        return Scene(solution).run(main)

    def verify(inputs, got):
        said, migrations = got
        want = [["ok", alone(prompt, 9)] for prompt in inputs["prompts"]]
        text = f"three requests, each of which loses {inputs['limit']} workers, limit {inputs['limit']}"
        explain([one[0] for one in said], ["ok"] * 3, f"{text}: they ended with {[one[0] for one in said]}: the limit "
            "is that of one request")  # fmt: skip
        explain(said, want, f"{text}: the answers are {said}")
        explain(migrations, 3 * inputs["limit"], f"{text}: {migrations} migrations were counted")


@case(task=4)
class OnlyTheLostAreReplaced:
    """A handler that raises is no lost worker, so its error is raised; an answer without a last token is a loss."""

    def inputs(rng):
        return {"prompt": rng.integers(0, 900, 2).tolist(), "silent": int(rng.integers(0, 5))}

    def observe(solution, inputs):
        error = solution.module("cluster.rpc").RemoteError
        route, asked = fragile([3], error)
        failed = [*generated(solution, route, inputs["prompt"], 10), len(asked)]
        begun = []

        async def ends_early(body):
            begun.append(body)
            ids = list(body["token_ids"])
            for _ in range(inputs["silent"] if len(begun) == 1 else body["max_tokens"]):
                ids.append(next_token(ids))
                yield {"token": ids[-1], "finish_reason": None}

        return [failed, generated(solution, ends_early, inputs["prompt"], 10)]

    def verify(inputs, got):
        (tokens, said, _, _, asked), early = got
        demand(
            "RemoteError" in said, f"a handler raised RemoteError: it ended with {said[0]}. Another worker raises too"
        )
        explain([tokens, asked], [alone(inputs["prompt"], 3), 1], f"after RemoteError {asked} workers were asked")
        explain(early[:3], [alone(inputs["prompt"], 10), ["ok"], 1], f"a worker ended its answer after "
            f"{inputs['silent']} of 10 tokens, without a last: got {early[0]}, {early[1][0]}, {early[2]} migrations", {
            "an answer that just ends is taken for complete": [alone(inputs["prompt"], inputs["silent"]), ["ok"], 0],
        })  # fmt: skip


@case(task=4)
class AStopTokenEndsIt:
    """Once the last token was delivered, by length or by a stop token, nothing that breaks begins anything again."""

    def inputs(rng):
        return {
            "prompt": rng.integers(0, 900, 3).tolist(),
            "at": int(rng.integers(1, 8)),
            "die": int(rng.integers(0, 2)),
        }

    def observe(solution, inputs):
        stop = alone(inputs["prompt"], 10)[inputs["at"]]
        route, asked = fragile([inputs["at"] + inputs["die"]], stop=stop)
        return [*generated(solution, route, inputs["prompt"], 10), len(asked)]

    def verify(inputs, got):
        tokens, said, _, _, asked = got
        want = alone(inputs["prompt"], inputs["at"] + 1)
        want = alone(inputs["prompt"], 10, stop=want[-1])
        text = f"token {inputs['at']} ends the answer, the worker dies after {inputs['at'] + inputs['die']}"
        explain([tokens, said], [want, ["ok"]], f"{text}: got {tokens} and {said[0]}, expected {want}")
        demand(asked <= 2 - inputs["die"], f"{text}: {asked} workers were asked: the answer was complete")


@case(task=4, timeout=10.0)
class AWorkerIsKilledInTheMiddle:
    """A real worker is killed after a random token: the client's answer is whole, and no call is left behind."""

    def inputs(rng):
        return {"kills": sorted(rng.choice(24, 5, replace=False).tolist()), "prompt": rng.integers(0, 900, 3).tolist()}

    def observe(solution, inputs):
        return [self_healing(solution, inputs["prompt"], kill) for kill in inputs["kills"]]

    def verify(inputs, got):
        for kill, (tokens, migrations, inflight, left) in zip(inputs["kills"], got, strict=True):
            text = f"killed after {kill} of 25 tokens"
            explain(tokens, alone(inputs["prompt"], 25), f"{text}: the answer is {tokens}")
            explain([migrations, inflight, left], [1, {}, 0], f"{text}: {migrations} migrations, {inflight} in flight, "
                f"and {left} calls are left at the other workers")  # fmt: skip


def self_healing(solution, prompt: list[int], kill: int) -> list:
    """One request of 25 tokens whose worker is killed."""

    async def main(scene):
        await scene.open()
        workers, got = await workers_of(scene, 3), []
        client = await scene.client()
        migration = scene.part("migration.Migration")(client.call, scene.clock())
        async for token in migration.generate(prompt, 25):
            if len(got) == kill:
                busy = next(worker for worker in workers if worker.discovery.lease in client.inflight)
                scene.network.crash(busy.transport.name)
            got.append(token)
        left = sum(len(worker.server.active) for worker in workers if worker is not busy)
        return [got, migration.migrations, dict(client.inflight), left]

    return Scene(solution).run(main)


@case(task=4)
class WhoLeavesIsNotServed:
    """Leaving the answer in the middle ends the call at the worker: nobody computes for a reader who is gone."""

    def inputs(rng):
        return {"tokens": int(rng.integers(1, 9))}

    def observe(solution, inputs):
        async def main(scene):
            await scene.open()
            (worker,) = await workers_of(scene, 1)
            client = await scene.client()
            tokens = scene.part("migration.Migration")(client.call, scene.clock()).generate([5], 3000)
            for _ in range(inputs["tokens"]):
                await anext(tokens)
            await tokens.aclose()
            inflight = dict(client.inflight)
            await scene.wait(5 * MS)
            return [inflight, len(worker.server.active)]

        return Scene(solution).run(main)

    def verify(inputs, got):
        explain(got[0], {}, f"after `aclose` the client still counts {got[0]}: close what the route gave, too")
        explain(got[1], 0, "5 ms after the reader has left, the worker still computes")


@case(task=4, params=[{"worlds": 12}], timeout=20.0)
class WhateverHappens:
    """Crashes, partitions, blocked loops at random: no dead instance is seen or serves, and no token is lost."""

    def inputs(rng, worlds):
        return rng.integers(1 << 30, size=worlds).tolist()

    def observe(solution, inputs):
        found = []
        for seed in inputs:
            world = World(solution, seed)
            world.run()
            found.append(world.violations[:3])
        return found

    def verify(inputs, got):
        for seed, violations in zip(inputs, got, strict=True):
            text = "\n  ".join(violations)
            demand(not violations, f"schedule {seed} (pdm run soak cluster --seed {seed}):\n  {text}")
