"""What the graded tests of Week 4 Day 6 leave out: longer random runs, memory, alarms, couriers, and the chapter."""

from random import Random

import numpy as np
import pytest
from reference import Reference

from course.cluster_case.links import KINDS, arrivals, play, random_script
from course.cluster_case.stores import Model, bytes_run, play_store, store_script
from course.cluster_case.transfers import Bytes
from tiny_llm_ref.cluster.alarm import Alarm
from tiny_llm_ref.cluster.courier import Courier
from tiny_llm_ref.cluster.kernel import Phase, Simulation
from tiny_llm_ref.cluster.link import SECOND, Link, fit_link
from tiny_llm_ref.cluster.segment import Buffer, Space
from tiny_llm_ref.cluster.transfer import Op

REFERENCE = Reference()
MB = 10**6


@pytest.mark.parametrize("kind", KINDS)
def test_long_scripts_on_a_link_end_as_fractions_say(kind):
    for seed in range(12):
        rng = Random(seed)
        latency = rng.choice([0, 3, 1000])
        script = random_script(rng, kind, 60)
        link = Link(1, latency)
        told = play(link, script)["told"]
        assert {flow: time for time, flow in told} == arrivals(script, latency)
        assert not link.served  # an idle link counts from 0 again: its numbers do not grow


def test_many_flows_cost_little_each():
    link, flows = Link(SECOND), 3000
    for flow in range(flows):
        link.start(flow, 1 + flow * 7919 % 100_003, 3 * flow)
    told = 0
    while (time := link.next_time()) is not None:
        told += len(link.collect(time))
    assert told == flows
    assert time is None


def test_the_chapters_numbers_of_the_fit():
    measured = {128: 0.54, 256: 0.61, 512: 0.92, 1024: 1.5, 2048: 2.51, 4096: 4.75, 8192: 8.84, 16384: 16.43,
                32768: 31.65}  # fmt: skip
    samples = [(tokens * 147_456 + (2 << 20), round(ms * 1e6)) for tokens, ms in measured.items()]
    latency, rate = fit_link(samples)
    assert (latency, rate) == (379_971, 146_073_246_720)
    errors = [abs((latency + size * SECOND / rate) / time - 1) for size, time in samples]
    assert max(errors) == pytest.approx(0.070, abs=0.0005)
    assert latency * rate / SECOND / MB == pytest.approx(55.5, abs=0.1)  # half of the time is latency
    sizes, times = np.array(samples, float).T
    slope, start = np.polyfit(sizes, times, 1)  # errors in ns
    assert max(abs((start + slope * sizes) / times - 1)) == pytest.approx(0.36, abs=0.005)


def test_an_alarm_drives_a_link_in_virtual_time():
    sim, link, seen = Simulation(), Link(SECOND), []
    alarm = Alarm(sim, link.next_time, lambda now: seen.extend((now, flow) for flow in link.collect(now)))

    def start(flow: str, size: int) -> None:
        link.start(flow, size, sim.now)
        alarm.set()

    sim.at(0, Phase.ADMISSION, start, "a", 100)
    sim.at(50, Phase.ADMISSION, start, "b", 10)
    assert sim.run() == 4
    assert seen == [(70, "b"), (110, "a")]


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


def test_the_engine_refuses_what_is_not_registered_or_does_not_fit():
    world = Bytes(REFERENCE, 4096, [SECOND, SECOND])
    engine = world.engine
    engine.register(Buffer(0, 4096))
    batch = engine.allocate(2)
    for address, offset, length, side in [(4000, 0, 200, "local"), (0, 4000, 200, "peer"), (0, -1, 2, "peer")]:
        with pytest.raises(ValueError, match=side):
            engine.submit(batch, [world.request(address, offset, length)], 0)
    with pytest.raises(ValueError, match="do not fit"):
        engine.submit(batch, [world.request(0, 0, 1)] * 3, 0)
    with pytest.raises(ValueError, match="registered already"):
        engine.register(Buffer(100, 1))
    engine.submit(batch, [world.request(0, 0, 4096)], 0)
    with pytest.raises(ValueError, match="under way"):
        engine.free(batch)
    for nic in world.nics:
        engine.fail_nic(nic, 10)
    assert [status.value for status in engine.status(batch)] == ["failed"]
    engine.repair_nic("nic1", 20)
    engine.submit(batch, [world.request(0, 0, 1)], 20)
    assert world.run(engine.advance) == 21
    assert [status.value for status in engine.status(batch)] == ["failed", "done"]
    engine.free(batch)


def test_long_runs_of_a_store_are_those_of_the_model():
    for seed in range(20):
        script = store_script(Random(seed), 400)
        limits = 100, 10, 0.9, (0.05, 0.2)[seed % 2]
        assert play_store(REFERENCE, script, *limits) == Model(*limits).run(script)


def test_reads_within_their_lease_find_what_was_put():
    held = 0
    for seed in range(30):
        run = bytes_run(REFERENCE, seed, 600)
        assert not run["broken"]
        assert all(right for _, holds, right in run["reads"] if holds)
        held += sum(holds for _, holds, _ in run["reads"])
    assert held > 300


# --- couriers


class Moves:
    """A courier in a simulation, and what it called back: [ns, name, whether it arrived]."""

    def __init__(self, rates: list[int], latency: int = 0, **options: int):
        self.sim = Simulation()
        self.courier = Courier(self.sim, {f"nic{i}": Link(rate, latency) for i, rate in enumerate(rates)}, **options)
        self.told: list[tuple[int, str, bool]] = []

    def move(self, time: int, name: str, size: int) -> None:
        """Begin a transfer at `time`."""
        done = lambda ok: self.told.append((self.sim.now, name, ok))  # noqa: E731
        self.sim.at(time, Phase.ADMISSION, self.courier.move, Op.WRITE, "peer", size, done)

    def at(self, time: int, what: str, *args: object) -> None:
        """Something happens to a NIC."""
        self.sim.at(time, Phase.TELEMETRY, getattr(self.courier, what), *args)


def test_a_transfer_is_one_event_however_long():
    moves = Moves([SECOND], latency=7)
    for i in range(5):
        moves.move(10**12 * i, str(i), 10**11)
    assert moves.sim.run() == 10
    assert moves.told == [(10**12 * i + 10**11 + 7, str(i), True) for i in range(5)]


def test_transfers_share_a_nic_exactly_and_none_is_told_within_a_call():
    moves = Moves([SECOND])
    moves.move(0, "long", 100)
    moves.move(50, "short", 10)
    moves.move(60, "empty", 0)
    moves.sim.run()
    assert moves.told == [(60, "empty", True), (70, "short", True), (110, "long", True)]


def test_faults_of_nics_reach_the_transfers():
    moves = Moves([SECOND])
    moves.move(0, "slow", 100)
    moves.at(50, "set_rate", "nic0", SECOND // 10)
    moves.at(150, "set_rate", "nic0", 0)
    moves.at(1000, "set_rate", "nic0", SECOND)
    moves.move(2000, "lost", 100)
    moves.at(2010, "fail_nic", "nic0")
    moves.move(2020, "refused", 100)
    moves.at(2030, "repair_nic", "nic0")
    moves.move(2040, "fine", 10)
    moves.sim.run()
    assert moves.told == [(1040, "slow", True), (2010, "lost", False), (2020, "refused", False), (2050, "fine", True)]


def test_a_small_window_keeps_a_slow_nic_from_being_waited_for():
    ends = []
    for window in (1, 10**9):
        moves = Moves([10 * SECOND, SECOND], slice_bytes=10**6, window=window)
        moves.move(0, "kv", 110 * 10**6)
        moves.sim.run()
        ends.append(moves.told[0][0])
    assert ends == [pytest.approx(10**7, rel=0.05), pytest.approx(55 * 10**6, rel=0.05)]


def test_a_callback_may_begin_the_next_transfer():
    moves = Moves([SECOND])
    sim, courier, told = moves.sim, moves.courier, []

    def again(ok: bool) -> None:
        told.append((sim.now, ok))
        if len(told) < 3:
            courier.move(Op.READ, "peer", 100, again)

    sim.at(0, Phase.ADMISSION, courier.move, Op.READ, "peer", 100, again)
    sim.run()
    assert told == [(100, True), (200, True), (300, True)]
