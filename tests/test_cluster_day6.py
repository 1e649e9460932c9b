"""Links, transfers over several NICs, agents, and the object store: closed forms, brute force, random schedules."""

import contextlib
from collections import Counter
from fractions import Fraction
from math import ceil
from random import Random

import pytest

from tiny_llm_ref.cluster.agent import Agent, Blocks
from tiny_llm_ref.cluster.alarm import Alarm
from tiny_llm_ref.cluster.kernel import Simulation
from tiny_llm_ref.cluster.link import SECOND, Link, ring_all_reduce_ns, transfer_ns
from tiny_llm_ref.cluster.segment import Buffer, Segment, Space, runs
from tiny_llm_ref.cluster.store import Master
from tiny_llm_ref.cluster.store_object import StoreConfig, StoreError
from tiny_llm_ref.cluster.transfer import Op, Slice, Status, Topology, TransferRequest
from tiny_llm_ref.cluster.transfer_engine import TransferEngine

GIB = 1 << 30


def drain(link: Link) -> list[tuple[int, object]]:
    """(time, flow) of all arrivals."""
    arrived = []
    while (time := link.next_time()) is not None:
        arrived += [(time, flow) for flow in link.collect(time)]
    return arrived


# --- links


def test_alpha_beta():
    assert transfer_ns(0, 7, 10) == 7
    assert transfer_ns(3, 7, SECOND) == 10
    assert transfer_ns(1, 0, 3 * SECOND) == 1  # rounded up
    link = Link(SECOND, latency=7)
    link.start("a", 3, 0)
    assert drain(link) == [(10, "a")]
    assert ring_all_reduce_ns(GIB, 1, 5, 10) == 0
    assert ring_all_reduce_ns(8 * SECOND, 4, 5, SECOND) == 6 * 5 + 12 * SECOND


@pytest.mark.parametrize("k", [1, 2, 3, 7, 64])
def test_k_equal_flows_take_k_times_as_long(k):
    link = Link(SECOND)
    for flow in range(k):
        link.start(flow, 1000, 0)
    assert drain(link) == [(1000 * k, flow) for flow in range(k)]


def test_unequal_flows_have_exact_ends():
    sizes = [5, 1, 3, 1, 0, 8]
    link = Link(SECOND)
    for flow, size in enumerate(sizes):
        link.start(flow, size, 0)
    # The i-th shortest of n ends when all have got its size, and the shorter ones theirs.
    ends = [sum(min(other, size) for other in sizes) for size in sizes]
    assert sorted(drain(link)) == sorted((end, flow) for flow, end in enumerate(ends))


def test_a_late_flow_takes_its_part():
    link = Link(SECOND)
    link.start("a", 100, 0)
    link.start("b", 10, 50)
    assert drain(link) == [(70, "b"), (110, "a")]
    link.start("c", 9, 200)
    link.set_rate(0, 203)
    assert link.next_time() is None
    link.set_rate(2 * SECOND, 500)
    assert drain(link) == [(503, "c")]


def test_times_are_exact_where_shares_are_not_whole():
    link = Link(SECOND)
    for flow in range(3):
        link.start(flow, 100, flow)
    # At 1 the first has had 1, at 2 1.5 and the second 0.5.
    first = 2 + 3 * Fraction(197, 2)
    second = first + 2 * (100 - Fraction(1, 2) - Fraction(197, 2))
    assert drain(link) == [(ceil(first), 0), (ceil(second), 1), (300, 2)]
    assert not link.served


def brute_force(script: list[tuple], latency: int) -> dict[object, int]:
    """Arrivals by a simulation that gives each flow its share between any two times of interest."""
    left: dict[object, Fraction] = {}
    arrived, rate, now = {}, 0, Fraction(0)
    for time, action, flow, size in [*script, (10**15, "end", None, 0)]:
        while left and rate:
            span = min(left.values()) * len(left) * SECOND / rate
            if now + span > time:
                break
            now += span
            share = span * rate / len(left) / SECOND
            left = {each: rest - share for each, rest in left.items()}
            for each in [each for each, rest in left.items() if rest == 0]:
                del left[each]
                arrived[each] = ceil(now) + latency
        left = {each: rest - (time - now) * rate / len(left) / SECOND for each, rest in left.items()}
        now = Fraction(time)
        if action == "start":
            left[flow] = Fraction(size)
        elif action == "cancel" and flow in left:
            del left[flow]
        elif action == "cancel" and arrived.get(flow, 0) > time:
            del arrived[flow]
        elif action == "rate":
            rate = size
    return arrived


@pytest.mark.parametrize("seed", range(30))
def test_a_link_equals_brute_force(seed):
    rng = Random(seed)
    latency = rng.choice([0, 3, 100])
    script: list[tuple] = [(0, "rate", None, rng.randrange(1, 3 * SECOND))]
    time, flows = 0, 0
    for _ in range(60):
        time += rng.choice([0, 1, rng.randrange(40)])
        roll = rng.random()
        if roll < 0.75 or not flows:
            script.append((time, "start", flows, rng.randrange(1, 60)))
            flows += 1
        elif roll < 0.9:
            script.append((time, "cancel", rng.randrange(flows), 0))
        else:
            script.append((time, "rate", None, rng.randrange(3 * SECOND) * rng.randrange(2)))
    script.append((time, "rate", None, SECOND))
    link, arrived, told = Link(1, latency), {}, []
    for now, action, flow, size in script:
        if rng.random() < 0.5:  # else it is asked late: that changes nothing
            while (next_time := link.next_time()) is not None and next_time <= now:
                told += [(next_time, each) for each in link.collect(next_time)]
        if action == "start":
            link.start(flow, size, now)
        elif action == "cancel":
            told += [(now, each) for each in link.collect(now)]
            assert link.cancel(flow, now) == (flow not in {each for _, each in told} and flow not in arrived)
            arrived[flow] = None
        else:
            link.set_rate(size, now)
    told += drain(link)
    want = brute_force(script, latency)
    assert sorted(flow for _, flow in told) == sorted(want)
    assert [want[flow] for _, flow in told] == sorted(want.values())


def test_wrong_use_is_refused():
    link = Link(SECOND, latency=5)
    link.start("a", 10, 5)
    with pytest.raises(ValueError, match="already"):
        link.start("a", 10, 5)
    with pytest.raises(ValueError, match="already"):
        link.start("a", 10, 16)  # it has left, but not arrived
    with pytest.raises(ValueError, match="past"):
        link.start("b", 10, 4)
    assert link.cancel("a", 17)
    assert not link.cancel("a", 17)


def test_an_alarm_drives_a_link_in_virtual_time():
    sim, link, seen = Simulation(), Link(SECOND), []
    alarm = Alarm(sim, link.next_time, lambda now: seen.extend((now, flow) for flow in link.collect(now)))

    def start(flow: str, size: int) -> None:
        link.start(flow, size, sim.now)
        alarm.set()

    sim.at(0, 0, start, "a", 100)
    sim.at(50, 0, start, "b", 10)
    sim.run()
    assert seen == [(70, "b"), (110, "a")]


# --- transfers


class World:
    """Two processes with real bytes, and an engine between them."""

    def __init__(self, nics: int = 2, size: int = 4096, rate: int = SECOND, latency: int = 0, **options):
        self.links = {f"nic{i}": Link(rate, latency) for i in range(nics)}
        self.here, self.there = bytearray(size), bytearray(Random(0).randbytes(size))
        self.asked, self.slices = [], []
        names = list(self.links)
        topology = Topology({"cpu:0": names[: nics // 2 or 1]}, {"cpu:0": names[nics // 2 or 1 :]})
        options.setdefault("topology", topology)
        self.engine = TransferEngine(self.links, describe=self.describe, deliver=self.deliver, **options)
        self.engine.register(Buffer(0, size))

    def describe(self, name: str) -> Segment:
        self.asked.append(name)
        return Segment(name, (Buffer(0, len(self.there)),))

    def deliver(self, piece: Slice) -> None:
        self.slices.append(piece)
        request, start, length = piece
        here = slice(request.address + start, request.address + start + length)
        there = slice(request.offset + start, request.offset + start + length)
        if request.op is Op.READ:
            self.here[here] = self.there[there]
        else:
            self.there[there] = self.here[here]

    def run(self, until: int | None = None) -> int:
        """Returns the time of the last arrival."""
        now = 0
        while (time := self.engine.next_time()) is not None and (until is None or time <= until):
            now = time
            self.engine.advance(now)
        return now


ALL = {f"nic{i}": None for i in range(8)}


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_k_nics_are_k_times_as_fast(k):
    world = World(nics=k, size=GIB // 1024, topology=Topology({"cpu:0": list(ALL)[:k]}), slice_bytes=4096)
    batch = world.engine.allocate(1)
    world.engine.submit(batch, [TransferRequest(Op.READ, 0, "peer", 0, GIB // 1024)], 0)
    end = world.run()
    assert end == pytest.approx(GIB / 1024 / k, rel=0.02)
    assert world.engine.status(batch) == [Status.DONE]
    assert world.here == world.there
    assert len(world.slices) == 256


def test_a_nic_that_fails_halves_and_loses_nothing():
    def end(fail_at: int | None) -> int:
        world = World(size=100_000, topology=Topology({"cpu:0": ["nic0", "nic1"]}), slice_bytes=1000)
        batch = world.engine.allocate(1)
        world.engine.submit(batch, [TransferRequest(Op.WRITE, 0, "peer", 0, 100_000)], 0)
        if fail_at is not None:
            world.run(until=fail_at)
            world.engine.fail_nic("nic0", fail_at)
        last = world.run()
        assert world.engine.status(batch) == [Status.DONE]
        assert world.there == world.here
        assert Counter(piece.start for piece in world.slices) == Counter(range(0, 100_000, 1000))
        return last

    whole = end(None)
    assert whole == 50_000
    assert end(25_000) == pytest.approx(25_000 + 50_000, abs=4001)  # what nic0 carried goes again
    assert end(0) == 2 * whole


def test_a_slow_nic_carries_less():
    world = World(size=110_000, topology=Topology({"cpu:0": ["nic0", "nic1"]}), slice_bytes=100)
    world.links["nic1"].set_rate(SECOND // 10, 0)
    batch = world.engine.allocate(1)
    world.engine.submit(batch, [TransferRequest(Op.READ, 0, "peer", 0, 110_000)], 0)
    assert world.run() == pytest.approx(100_000, rel=0.05)


def test_transfers_share_a_nic_in_equal_parts():
    world = World(nics=1, size=20_000, slice_bytes=100)
    batch = world.engine.allocate(2)
    world.engine.submit(batch, [TransferRequest(Op.READ, 0, "peer", 0, 10_000)], 0)
    world.engine.submit(batch, [TransferRequest(Op.READ, 10_000, "peer", 10_000, 1000)], 0)
    world.engine.advance(2200)  # 2000, and its last slices are fewer than those of the other
    assert world.engine.status(batch) == [Status.WAITING, Status.DONE]
    assert world.run() == 11_000


@pytest.mark.parametrize("seed", range(30))
def test_random_failures_lose_nothing_and_status_is_monotone(seed):
    rng = Random(seed)
    world = World(nics=4, latency=rng.choice([0, 50]), slice_bytes=64, window=rng.choice([1, 3]), tries=10**6)
    requests = [
        TransferRequest(Op.READ, 256 * i, "peer", 256 * (15 - i), rng.randrange(257)) for i in range(16)
    ]  # some are empty
    batch, before, submitted, now = world.engine.allocate(16), [], 0, 0
    for _ in range(200):
        now += rng.randrange(60)
        roll = rng.random()
        if roll < 0.3 and submitted < 16:
            world.engine.submit(batch, requests[submitted : submitted + 1], now)
            submitted += 1
        elif roll < 0.4 and len(world.engine.down) < 3:
            world.engine.fail_nic(rng.choice([nic for nic in world.links if nic not in world.engine.down]), now)
        elif roll < 0.5 and world.engine.down:
            world.engine.repair_nic(next(iter(world.engine.down)), now)
        else:
            world.engine.advance(now)
        status = world.engine.status(batch)
        assert all(old in (Status.WAITING, new) for old, new in zip(before, status, strict=False))
        before = status
    world.run()
    assert world.engine.status(batch) == [Status.DONE] * submitted
    for request in requests[:submitted]:
        here = world.here[request.address : request.address + request.length]
        assert here == world.there[request.offset : request.offset + request.length]
    assert max(Counter((piece.request.address, piece.start) for piece in world.slices).values()) == 1
    world.engine.free(batch)
    assert not any(link.flows for link in world.links.values())
    assert world.asked == ["peer"]


def test_paths_and_failures():
    world = World(nics=2)  # nic0 preferred, nic1 for when it is down
    batch = world.engine.allocate(4)
    world.engine.submit(batch, [TransferRequest(Op.READ, 0, "peer", 0, 4096)], 0)
    assert (world.links["nic0"].flows, world.links["nic1"].flows) == (1, 0)
    world.engine.fail_nic("nic0", 10)
    assert (world.links["nic0"].flows, world.links["nic1"].flows) == (0, 1)
    with pytest.raises(ValueError, match="under way"):
        world.engine.free(batch)
    world.engine.fail_nic("nic1", 20)
    assert world.engine.status(batch) == [Status.FAILED]
    assert not world.links["nic1"].flows
    world.engine.repair_nic("nic1", 30)
    assert world.engine.status(batch) == [Status.FAILED]
    world.engine.submit(batch, [TransferRequest(Op.READ, 0, "peer", 0, 1)], 30)
    assert world.run() == 31
    assert world.engine.status(batch) == [Status.FAILED, Status.DONE]
    for address, offset, length, side in [(4000, 0, 200, "local"), (0, 4000, 200, "peer"), (0, -1, 2, "peer")]:
        with pytest.raises(ValueError, match=side):
            world.engine.submit(batch, [TransferRequest(Op.READ, address, "peer", offset, length)], 40)
    with pytest.raises(ValueError, match="do not fit"):
        world.engine.submit(batch, [TransferRequest(Op.READ, 0, "peer", 0, 1)] * 3, 40)
    with pytest.raises(ValueError, match="registered already"):
        world.engine.register(Buffer(100, 1))
    world.engine.free(batch)


def test_a_slice_that_is_lost_too_often_fails_its_transfer():
    path = Topology({"cpu:0": ["nic0", "nic1"]})
    world = World(nics=2, rate=1, tries=3, slice_bytes=1024, window=1, topology=path)
    batch = world.engine.allocate(1)
    world.engine.submit(batch, [TransferRequest(Op.READ, 0, "peer", 0, 4096)], 0)
    seen = []
    for now in (1, 3, 5):
        assert [link.flows for link in world.links.values()] == [1, 1]
        world.engine.fail_nic("nic0", now)
        seen += world.engine.status(batch)
        world.engine.repair_nic("nic0", now + 1)
    assert seen == [Status.WAITING, Status.WAITING, Status.FAILED]
    assert [link.flows for link in world.links.values()] == [0, 0]  # what the other one carried is dropped


# --- agents


def test_runs_of_blocks():
    assert runs([(0, 5), (1, 6), (2, 8), (3, 9), (9, 10)]) == [(0, 5, 2), (2, 8, 2), (9, 10, 1)]
    assert runs([]) == []
    assert runs([(1, 1), (0, 0)]) == [(1, 1, 1), (0, 0, 1)]


def test_agents_exchange_descriptors_once_and_notify_after_the_data():
    world, told = World(nics=1, size=1024), []
    agent = Agent(
        "me", fresh(world), Blocks(0, 64, 16), lambda name, text: told.append((name, text, len(world.slices)))
    )
    agent.add_remote(agent.metadata()._replace(name="peer"))
    handle = agent.prepare(Op.READ, [0, 1, 5], [8, 9, 3], "peer", "yours")
    assert [request.length for request in handle.requests] == [128, 64]
    for turn in (1, 2):  # a handle can be posted again
        agent.post(handle, now=1000 * turn)
        with pytest.raises(ValueError, match="one post at a time"):
            agent.post(handle, now=1000 * turn)
        agent.advance(1000 * turn + 100)
        assert len(told) == turn - 1
        agent.advance(1000 * turn + 200)
        assert (handle.status, len(told)) == (Status.DONE, turn)
    assert told == [("peer", "yours", 2), ("peer", "yours", 4)]
    assert world.here[:128] == world.there[512:640]
    assert world.asked == []  # nobody was asked: the descriptors came with the metadata
    with pytest.raises(ValueError, match="not one of 16"):
        agent.prepare(Op.READ, [0], [16], "peer")
    agent.invalidate("peer")
    with pytest.raises(KeyError):
        agent.post(handle, 5000)
    with pytest.raises(ValueError, match="bytes"):
        agent.add_remote(agent.metadata()._replace(blocks=Blocks(0, 32, 8)))


def fresh(world: World) -> TransferEngine:
    """An engine of the same world that has no memory registered."""
    return TransferEngine(world.links, Topology({"cpu:0": ["nic0"]}), world.describe, world.deliver, slice_bytes=128)


def test_a_failed_post_does_not_notify():
    world, told = World(nics=1, size=1024), []
    agent = Agent("me", fresh(world), Blocks(0, 64, 16), lambda *words: told.append(words))
    agent.add_remote(agent.metadata()._replace(name="peer"))
    handle = agent.prepare(Op.WRITE, [0], [0], "peer", "yours")
    agent.post(handle, 0)
    agent.engine.fail_nic("nic0", 10)
    agent.advance(10)
    assert (handle.status, told) == (Status.FAILED, [])


# --- space


@pytest.mark.parametrize("seed", range(10))
def test_space_is_never_given_twice_and_holes_join(seed):
    rng = Random(seed)
    space, held = Space(1000), {}
    for _ in range(400):
        if rng.random() < 0.55:
            size = rng.randrange(1, 200)
            offset = space.allocate(size)
            if offset is None:
                assert space.free < size or len(held) > 1  # at most one hole more than pieces
            else:
                assert all(offset + size <= o or o + s <= offset for o, s in held.items())
                assert 0 <= offset <= 1000 - size
                held[offset] = size
        elif held:
            offset = rng.choice(list(held))
            del held[offset]
            space.release(offset)
        assert space.free == 1000 - sum(held.values())
    for offset in held:
        space.release(offset)
    assert space.allocate(1000) == 0


# --- store

CONFIG = StoreConfig(lease=10, soft_pin=100, discard=30, release=200, heartbeat=10**9)


def master(capacity: int = 100, config: StoreConfig = CONFIG, segments: int = 1) -> Master:
    made = Master(Random(0), config)
    for n in range(segments):
        made.mount(f"s{n}", capacity, f"c{n}", 0)
    return made


def store(made: Master, key: object, size: int, now: int, **options) -> None:
    made.put_end(made.put_start(key, size, now, **options), now)


def test_an_object_is_there_from_its_end_on_and_never_changes():
    made = master()
    put = made.put_start("a", 10, 0)
    assert made.get("a", 1) is None
    assert not made.exists("a")
    with pytest.raises(StoreError, match="being put"):
        made.put_start("a", 10, 29)
    with pytest.raises(StoreError, match="being put"):
        made.remove("a", 1)
    made.put_end(put, 2)
    assert made.get("a", 3).replicas == put.replicas
    for refused in (lambda: made.put_start("a", 10, 99), lambda: made.put_end(put, 3), lambda: made.put_revoke(put)):
        with pytest.raises(StoreError):
            refused()
    again = made.put_start("b", 10, 0)
    made.put_revoke(again)
    assert made.pool.free == 90
    with pytest.raises(StoreError):
        made.put_end(again, 0)


def test_a_lease_keeps_an_object_and_tells_a_slow_reader():
    made = master()
    store(made, "a", 60, 0)
    grant = made.get("a", 5)
    assert (grant.holds(15), grant.holds(16)) == (True, False)
    with pytest.raises(StoreError, match="leased"):
        made.remove("a", 15)
    with pytest.raises(StoreError, match="do not fit"):
        made.put_start("b", 60, 15)
    assert made.put_start("b", 60, 16).replicas == grant.replicas  # what a slower read would find
    assert made.get("a", 16) is None
    store(made, "c", 10, 16)
    made.remove("c", 17)


def test_pins_and_recency_order_eviction():
    made = master()
    for key, options in [("hard", {"hard": True}), ("soft", {"soft": True}), ("old", {}), ("new", {})]:
        store(made, key, 24, 0, **options)
    assert made.get("old", 1).holds(11)
    made.tick(12)  # 96 of 100 are in use: more than 90
    assert list(made.objects) == ["hard", "soft", "old"]
    made.tick(12)
    assert len(made.objects) == 3
    store(made, "more", 28, 12)
    store(made, "next", 24, 12)
    assert list(made.objects) == ["hard", "soft", "more", "next"]  # old went: the soft pin holds until 100
    store(made, "last", 52, 13)
    assert list(made.objects) == ["hard", "soft", "last"]
    store(made, "end", 24, 101)
    assert list(made.objects) == ["hard", "last", "end"]  # a soft pin is over, and last was used later
    with pytest.raises(StoreError):
        made.put_start("huge", 80, 300)
    assert "hard" in made.objects


def test_a_put_that_can_never_fit_evicts_nothing():
    made = master(segments=2)
    store(made, "a", 60, 0)
    for size, replicas in [(101, 1), (10, 3)]:
        with pytest.raises(StoreError, match="do not fit"):
            made.put_start("b", size, 50, replicas=replicas)
    assert "a" in made.objects


def test_zombies_lose_their_key_early_and_their_space_late():
    made = master()
    zombie = made.put_start("a", 40, 0)
    new = made.put_start("a", 40, 30)
    assert new.replicas != zombie.replicas
    with pytest.raises(StoreError):
        made.put_end(zombie, 31)
    made.put_end(new, 32)
    made.tick(199)
    assert made.pool.free == 20
    made.tick(200)
    assert made.pool.free == 60
    forgotten = made.put_start("b", 10, 200)
    made.tick(400)
    assert made.pool.free == 60
    with pytest.raises(StoreError):
        made.put_end(forgotten, 401)


def test_segments_of_a_silent_client_are_gone():
    made = master(segments=2, config=StoreConfig(heartbeat=10))
    with pytest.raises(ValueError, match="mounted already"):
        made.mount("s1", 5, "c1", 0)
    store(made, "both", 10, 0, replicas=2)
    near = made.put_start("one", 10, 0, near="s0")
    made.heartbeat("c1", 5)
    made.tick(11)
    assert list(made.pool.segments) == ["s1"]
    assert [replica.segment for replica in made.get("both", 11).replicas] == ["s1"]
    assert near.replicas[0].segment in ("s0", "s1")
    made.heartbeat("c0", 12)  # unknown by now: it has to mount again
    made.mount("s0", 100, "c0", 12)
    made.tick(13)
    assert made.pool.capacity == 200


@pytest.mark.parametrize("seed", range(30))
def test_a_get_that_succeeds_returns_what_a_put_wrote(seed):
    """Clients that are slow, vanish in the middle, and write late, over real bytes."""
    rng = Random(seed)
    made = master(60, segments=3)
    memory = {f"s{n}": bytearray(60) for n in range(3)}
    written: dict[int, bytes] = {}
    started: dict[int, int] = {}
    puts, gets, leases, good, now = [], [], {}, 0, 0
    for _ in range(600):
        now += rng.randrange(4)
        roll, key = rng.random(), rng.randrange(12)
        if roll < 0.3:
            options = {"replicas": rng.choice([1, 1, 2]), "soft": rng.random() < 0.2, "hard": rng.random() < 0.005}
            try:
                puts.append(made.put_start(key, rng.randrange(1, 25), now, **options))
                written[puts[-1].version] = rng.randbytes(puts[-1].replicas[0].size)
                started[puts[-1].version] = now
            except StoreError:
                pass
        elif roll < 0.55 and puts:
            put = puts.pop(rng.randrange(len(puts)))
            if rng.random() < 0.15:
                continue  # the client is gone
            if now - started[put.version] >= CONFIG.release:
                continue  # its space may be used again, as it knows
            for segment, offset, size in put.replicas:  # perhaps for a key that another put has by now
                memory[segment][offset : offset + size] = written[put.version]
            with contextlib.suppress(StoreError):
                made.put_end(put, now) if rng.random() < 0.8 else made.put_revoke(put)
        elif roll < 0.75:
            if (grant := made.get(key, now)) is not None:
                gets.append(grant)
                leases[key] = grant
        elif roll < 0.9 and gets:
            grant = gets.pop(rng.randrange(max(0, len(gets) - 4), len(gets)))
            for segment, offset, size in grant.replicas:
                found = bytes(memory[segment][offset : offset + size])
                if grant.holds(now):
                    assert found == written[grant.version]
                    good += 1
        elif roll < 0.95:
            with contextlib.suppress(StoreError):
                made.remove(key, now)
        else:
            made.tick(now)
        for grant in leases.values():
            if grant.holds(now):
                assert made.objects[grant.key].put.version == grant.version
        pieces = [r for e in [*made.objects.values(), *made.zombies] for r in e.put.replicas]
        assert sum(r.size for r in pieces) + made.pool.free == made.pool.capacity == 180
        ends: dict[str, int] = {}
        for segment, offset, size in sorted(pieces):
            assert offset >= ends.get(segment, 0)
            ends[segment] = offset + size
    assert good > 10
