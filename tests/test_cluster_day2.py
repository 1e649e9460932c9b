"""Workloads, metrics, lazy tasks and the virtual loop: what must hold of each, by examples and by statistics."""

import asyncio
import threading
from itertools import pairwise

import numpy as np
import pytest

from course.drills.facade import call
from course.drills.two_stage import TwoStageClient
from tiny_llm_ref.cluster.awaitable import Context, Err, Ok, Suspend, reschedule
from tiny_llm_ref.cluster.busy import BusyTime, utilisation
from tiny_llm_ref.cluster.closed_loop import ClosedLoop, Conversations
from tiny_llm_ref.cluster.collect import collect_all, collect_any
from tiny_llm_ref.cluster.executor import RunQueue
from tiny_llm_ref.cluster.goodput import Objective, attainment, goodput, highest_rate
from tiny_llm_ref.cluster.kernel import Phase, Simulation
from tiny_llm_ref.cluster.lazy import Lazy, lazy, sync_await
from tiny_llm_ref.cluster.metrics import hit_rates, mean_in_system, summarise
from tiny_llm_ref.cluster.record import InvariantError, Record, check_conserved
from tiny_llm_ref.cluster.recorder import Recorder
from tiny_llm_ref.cluster.replica import Replica
from tiny_llm_ref.cluster.signal import Signal
from tiny_llm_ref.cluster.trace_request import TraceRequest
from tiny_llm_ref.cluster.virtual_loop import VirtualLoop
from tiny_llm_ref.cluster.virtual_run import run
from tiny_llm_ref.cluster.waiting import DeadlockError, LivelockError
from tiny_llm_ref.cluster.window import Window, steady_state, whole_run
from tiny_llm_ref.cluster.workload import (
    SECOND,
    Arrival,
    Lengths,
    OpenLoop,
    SharedPrefixes,
    arrival_times,
    generate,
    speed_up,
    zipf,
)
from tiny_llm_ref.serving.memory import RowMemory
from tiny_llm_ref.serving.scheduler import Scheduler


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# Workloads


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_arrivals_have_their_rate_and_their_burstiness(burstiness):
    times = arrival_times(rng(), 50.0, 40_000, burstiness)
    gaps = np.diff(times) / SECOND
    assert times.dtype == np.int64
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(1 / 50, rel=0.04)
    assert gaps.std() / gaps.mean() == pytest.approx(burstiness**-0.5, rel=0.04)


def test_poisson_counts_have_equal_mean_and_variance():
    times = arrival_times(rng(1), 20.0, 40_000)
    counts = np.bincount(times // SECOND)[:-1]
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.1)


def test_an_infinite_burstiness_is_a_metronome():
    assert arrival_times(rng(), 4.0, 3, np.inf).tolist() == [SECOND // 4, SECOND // 2, 3 * SECOND // 4]


def test_zipf_follows_its_law():
    kinds = np.bincount(zipf(rng(), 5, 1.0, 60_000), minlength=5) / 60_000
    expected = 1 / np.arange(1, 6)
    np.testing.assert_allclose(kinds, expected / expected.sum(), atol=0.01)


def test_lengths_have_their_mean_and_spread():
    lengths = Lengths(300, 0.7).sample(rng(), 40_000)
    assert lengths.mean() == pytest.approx(300, rel=0.02)
    assert lengths.std() / lengths.mean() == pytest.approx(0.7, rel=0.05)
    assert Lengths(17).sample(rng(), 4).tolist() == [17] * 4
    capped = Lengths(300, 2.0, most=400).sample(rng(), 1000)
    assert capped.max() == 400
    assert capped.min() >= 1


def test_shared_prefixes_share_whole_blocks_only():
    arrivals = generate(rng(), np.arange(200), Lengths(100, 0.5), Lengths(5), SharedPrefixes(3, 70), block_tokens=32)
    assert {arrival.hash_ids[:2] for arrival in arrivals} == {(0, 1), (2, 3), (4, 5)}
    own = [i for arrival in arrivals for i in arrival.hash_ids[2:]]
    assert len(own) == len(set(own))
    assert min(own) == 6
    assert all(len(arrival.hash_ids) == -(-arrival.input_length // 32) for arrival in arrivals)
    assert all(arrival.input_length > 70 for arrival in arrivals)


def test_workloads_repeat():
    def make(seed):
        r = rng(seed)
        return generate(r, arrival_times(r, 3.0, 50), Lengths(900, 1), Lengths(40, 1), SharedPrefixes(4, 1024))

    assert make(7) == make(7) != make(8)
    assert all(type(field) is int for field in make(7)[0][:3]), "NumPy integers would reach the kernel"


def test_an_open_loop_is_in_order_and_can_be_sped_up():
    arrivals = [Arrival(30, 1, 1), Arrival(10, 2, 1)]
    assert [arrival.time_ns for arrival in OpenLoop(speed_up(arrivals, 2)).initial()] == [5, 15]
    assert OpenLoop(arrivals).after(arrivals[0], 99) is None


def drive(workload, service):
    """Everybody is served at once, for `service` ns."""
    simulation, seen = Simulation(), []

    def arrive(arrival):
        seen.append((arrival, simulation.now))
        simulation.after(service, Phase.STEP_DONE, done, arrival)

    def done(arrival):
        after = workload.after(arrival, simulation.now)
        if after is not None:
            simulation.at(after.time_ns, Phase.ADMISSION, arrive, after)

    for arrival in workload.initial():
        simulation.at(arrival.time_ns, Phase.ADMISSION, arrive, arrival)
    simulation.run()
    return seen


def people(users, requests, inputs, outputs, think=0.0):
    return ClosedLoop(rng=rng(), users=users, requests=requests, inputs=inputs, outputs=outputs, think=think)


def test_a_closed_loop_has_so_many_users_and_the_throughput_of_littles_law():
    seen = drive(
        ClosedLoop(rng=rng(), users=5, requests=4000, inputs=Lengths(100), outputs=Lengths(10), think=0.3), SECOND // 5
    )
    assert len(seen) == 4000
    span = seen[-1][1] / SECOND
    assert 4000 / span == pytest.approx(5 / (0.2 + 0.3), rel=0.05)
    changes = sorted([(t, 1) for _, t in seen] + [(t + SECOND // 5, -1) for _, t in seen])
    assert max(np.cumsum([change for _, change in changes])) <= 5


def test_a_turn_waits_for_the_one_before_and_repeats_its_blocks():
    turns = Conversations(
        rng=rng(),
        times=np.array([0, 500]),
        turns=Lengths(4),
        inputs=Lengths(100, 0.4),
        outputs=Lengths(30, 0.5),
        block_tokens=32,
    )
    seen = drive(turns, 1000)
    assert len(seen) == 8
    for session in (0, 1):
        mine = [(arrival, time) for arrival, time in seen if arrival.session == session]
        for (one, then), (two, now) in pairwise(mine):
            assert now >= then + 1000
            assert two.input_length > one.input_length + one.output_length
            whole = one.input_length // 32
            assert two.hash_ids[:whole] == one.hash_ids[:whole]
            assert not set(two.hash_ids[whole:]) & set(one.hash_ids)
            assert len(two.hash_ids) == -(-two.input_length // 32)


# Metrics


def record(uid, arrival, tokens, done=None, **fields):
    fields = {"finish_reason": "length", "input_length": 10, **fields}
    return Record(uid, arrival=arrival, spans=[list(tokens)], done=tokens[-1] if done is None else done, **fields)


def test_latencies_by_hand():
    one = record(1, 100, [150, 160, 190, 200], done=210)
    assert (one.ttft, one.e2e, one.output_length) == (50, 110, 4)
    assert one.tpot == (110 - 50) / 3
    assert record(2, 0, [7]).tpot is None, "with one token there is no gap to average"
    two = Record(3, 10, 0, spans=[[5], np.array([6, 9])], done=9)
    assert two.token_times.tolist() == [5, 6, 9]
    assert two.first_token == 5
    waiting = Record(4, 10, 0)
    assert (waiting.ttft, waiting.tpot, waiting.e2e, waiting.output_length) == (None, None, None, 0)


def test_gaps_are_pooled_while_tpot_is_one_per_request():
    records = [record(1, 0, [10, 20]), record(2, 0, [10, 11, 12, 13, 14])]
    summary = summarise(records, whole_run(records))
    assert summary.itl.count == 5
    assert summary.itl.mean == 14 / 5
    assert summary.tpot.count == 2
    assert summary.tpot.mean == (10 + 1) / 2
    assert summary.ttft.p50 == 10
    assert summary.e2e.most == 20


def test_throughput_counts_what_leaves_in_the_window():
    records = [record(1, 0, [SECOND, 3 * SECOND]), record(2, SECOND, [2 * SECOND, 5 * SECOND])]
    summary = summarise(records, Window(0, 4 * SECOND))
    assert summary.requests_per_second == 1 / 4
    assert summary.tokens_per_second == 3 / 4
    assert summary.e2e.count == 2, "a request that ends after the window counts: else the slow ones are left out"


def test_warm_up_and_drain_are_dropped():
    records = [record(uid, uid * 10, [uid * 10 + 100]) for uid in range(10)]
    assert steady_state(records, 30) == (30, 90)
    assert summarise(records, steady_state(records, 30)).ttft.count == 6
    with pytest.raises(ValueError, match="measure longer"):
        steady_state(records, 90)


def test_three_hit_rates_differ():
    records = [
        Record(1, 100, 0, hit_tokens=50, blocks=10, hit_blocks=5),
        Record(2, 900, 0, hit_tokens=90, blocks=90, hit_blocks=9),
    ]
    assert hit_rates(records) == (14 / 100, 140 / 1000, (0.5 + 0.1) / 2)


def test_goodput_needs_all_objectives():
    records = [record(1, 0, [10, 20]), record(2, 0, [30, 31]), record(3, 0, [10, 60]), record(4, 0, [9])]
    rejected = Record(5, 10, 0, done=0, finish_reason="rejected")
    objective, window = Objective(ttft=20, tpot=15), Window(0, SECOND)
    assert attainment([*records, rejected], objective, window) == 2 / 5
    assert goodput([*records, rejected], objective, window) == 2
    assert attainment([], objective, window) == 1.0


def test_the_highest_rate_is_bisected():
    asked = []

    def attained(rate):
        asked.append(rate)
        return 1.0 if rate <= 7.3 else 0.5

    assert highest_rate(attained, 1, 64) == pytest.approx(7.3, rel=0.01)
    assert len(asked) < 14
    assert highest_rate(lambda rate: 0.9 if rate <= 7.3 else 0.5, 1, 64) == pytest.approx(7.3, rel=0.01)
    assert highest_rate(attained, 8, 64) == 0
    assert highest_rate(attained, 1, 5) == 5
    with pytest.raises(ValueError, match="0 < low < high"):
        highest_rate(attained, 5, 5)


@pytest.mark.parametrize("seed", range(5))
def test_littles_law(seed):
    r = rng(seed)
    arrivals = arrival_times(r, 100.0, 500)
    service = r.integers(1, SECOND // 20, 500)
    records = [record(i, int(a), [int(a + s)]) for i, (a, s) in enumerate(zip(arrivals, service, strict=True))]
    window = Window(0, max(one.done for one in records))
    changes = sorted([(one.arrival, 1) for one in records] + [(one.done, -1) for one in records])
    area, inside, before = 0, 0, 0
    for time, change in changes:
        area, inside, before = area + inside * (time - before), inside + change, time
    little = len(records) / window.end * np.mean([one.e2e for one in records])
    assert mean_in_system(records, window) == pytest.approx(area / window.end, rel=1e-12)
    assert mean_in_system(records, window) == pytest.approx(little, rel=1e-12)


def test_utilisation_of_a_window():
    busy = BusyTime()
    for start, end in [(0, 10), (10, 20), (30, 40)]:
        busy.add(start, end)
    assert busy.starts == [0, 30], "steps that touch are one interval"
    assert busy.within(Window(5, 35)) == 20
    assert utilisation([busy, BusyTime()], Window(0, 40)) == 30 / 80
    with pytest.raises(InvariantError):
        busy.add(39, 50)


@pytest.mark.parametrize(
    "fields",
    [
        {"prefill_start": 90},
        {"prefill_start": 120, "prefill_end": 110},
        {"prefill_end": 130, "transfer_start": 120},
        {"transfer_start": 140, "transfer_end": 130},
        {"transfer_end": 170, "decode_start": 160},
        {"decode_start": 300},
        {"hit_tokens": 11},
        {"done": 199},
        {"spans": [[150, 149]]},
        {"spans": [[99]]},
    ],
)
def test_a_record_that_contradicts_itself_is_found(fields):
    good = {"prefill_start": 110, "prefill_end": 150, "transfer_start": 150, "transfer_end": 160, "decode_start": 170}
    make = {"input_length": 10, "arrival": 100, "done": 200, "spans": [[150, 200]], **good}
    Record(1, **make).check()
    with pytest.raises(InvariantError, match="request 1"):
        Record(1, **{**make, **fields}).check()


def test_requests_are_conserved():
    check_conserved(10, 4, 3, 2, 1)
    with pytest.raises(InvariantError, match="9 in all"):
        check_conserved(10, 4, 3, 2, 0)


# Lazy tasks


def test_creation_runs_nothing():
    ran = []

    @lazy
    async def work(value):
        ran.append(value)
        return value + 1

    task = work(1)
    assert ran == []
    assert sync_await(task) == 2
    assert ran == [1]
    with pytest.raises(RuntimeError, match="runs once"):
        sync_await(task)


def test_awaits_do_not_nest_on_the_stack():
    @lazy
    async def down(depth):
        return 0 if depth == 0 else 1 + await down(depth - 1)

    assert sync_await(down(100_000)) == 100_000


def test_many_waits_that_end_at_once_do_not_nest():
    @lazy
    async def work():
        for _ in range(100_000):
            await Suspend(lambda resume, _: resume(Ok(None)))
        return "done"

    assert sync_await(work()) == "done"


def test_a_body_may_be_a_generator():
    def body():
        value = yield lazy_value(20)
        return value + (yield lazy_value(1))

    @lazy
    async def lazy_value(value):
        return value

    assert sync_await(Lazy(body)) == 21


def test_exceptions_go_up_to_who_awaits():
    @lazy
    async def fail():
        raise KeyError("gone")

    @lazy
    async def above():
        try:
            await fail()
        except KeyError as error:
            return error.args[0]

    assert sync_await(above()) == "gone"
    with pytest.raises(KeyError):
        sync_await(fail())
    outcome = sync_await(fail().attempt())
    assert isinstance(outcome, Err)
    assert isinstance(outcome.error, KeyError)
    with pytest.raises(KeyError):
        outcome.get()
    seen = []
    fail().start(seen.append)
    assert isinstance(seen[0].error, KeyError)


def test_a_wait_without_an_end_is_an_error():
    with pytest.raises(RuntimeError, match="never end"):
        sync_await(Lazy(lambda: wait_for_ever()))


async def wait_for_ever():
    await Suspend(lambda *_: None)


def test_only_lazy_things_can_be_awaited():
    async def body():
        await asyncio.sleep(0)

    with pytest.raises(TypeError, match="Lazy and Suspend"):
        sync_await(Lazy(body))


def trail(n, rounds):
    """Tasks that take turns, and where they were when."""
    log = []

    @lazy
    async def work(name):
        for step in range(rounds):
            log.append((name, step))
            await reschedule()
        return name

    return log, [work(name) for name in range(n)]


def test_collect_all_is_serial_without_an_executor_and_takes_turns_with_one():
    log, tasks = trail(3, 2)
    assert sync_await(collect_all(tasks)) == [Ok(0), Ok(1), Ok(2)]
    assert log == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    log, tasks = trail(3, 2)
    assert sync_await(collect_all(tasks), RunQueue()) == [Ok(0), Ok(1), Ok(2)]
    assert log == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


@pytest.mark.parametrize("window", [1, 3, 10])
def test_a_window_bounds_how_many_run(window):
    inside, most = 0, 0

    @lazy
    async def work(name):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for _ in range(name % 3 + 1):
            await reschedule()
        inside -= 1
        if name == 2:
            raise ValueError(name)
        return name

    outcomes = sync_await(collect_all([work(name) for name in range(7)], window), RunQueue())
    assert most == min(window, 7)
    assert inside == 0
    assert [o.value if isinstance(o, Ok) else str(o.error) for o in outcomes] == [0, 1, "2", 3, 4, 5, 6]


def test_a_long_window_does_not_nest():
    @lazy
    async def work(name):
        return name

    assert len(sync_await(collect_all([work(i) for i in range(50_000)], 1))) == 50_000
    assert sync_await(collect_all([])) == []
    with pytest.raises(ValueError, match="window of 0"):
        collect_all([], 0)


def race(cancel):
    """Three tasks reserve something for some rounds. Returns the winner, and what is reserved then and at the end."""
    reserved = []

    @lazy
    async def work(name, rounds):
        reserved.append(name)
        try:
            for _ in range(rounds):
                await reschedule()
        finally:
            reserved.remove(name)
        return name

    async def body():
        index, outcome = await collect_any([work("a", 9), work("b", 2), work("c", 5)], Signal() if cancel else None)
        return index, outcome.get()

    queue = RunQueue()
    won = sync_await(Lazy(body), queue)
    queue.run(lambda: cancel and not reserved)
    return won, list(reserved)


def test_collect_any_takes_the_first_and_its_signal_stops_the_others():
    assert race(True) == ((1, "b"), [])
    assert race(False) == ((1, "b"), [])
    with pytest.raises(ValueError, match="nothing would ever end"):
        collect_any([])


def test_losers_run_on_unless_they_are_told():
    held, waits = [], []

    async def hold():
        held.append(1)
        try:
            await Suspend(lambda resume, _: waits.append(resume))
        finally:
            held.pop()

    @lazy
    async def quick():
        return 7

    assert sync_await(collect_any([Lazy(hold), quick()]))[1] == Ok(7)
    assert held == [1]
    waits[0](Ok(None))
    assert held == []
    assert sync_await(collect_any([Lazy(hold), quick()], Signal()))[1] == Ok(7)
    assert held == []


def test_a_signal_ends_waits_and_is_structured():
    signal, ends, resumes = Signal(), [], []

    async def child(name):
        try:
            await Suspend(lambda resume, _: resumes.append(resume))
        except asyncio.CancelledError:
            ends.append(name)
            raise

    async def parent():
        outcomes = await collect_all([Lazy(lambda: child("a")), Lazy(lambda: child("b"))])
        ends.append(sum(isinstance(outcome, Err) for outcome in outcomes))
        await reschedule()

    seen = []
    Lazy(parent).start(seen.append, Context(signal=signal))
    assert ends == []
    assert seen == []
    signal.emit()
    assert ends == ["a", "b", 2], "the parent waits for its children, then ends at its own next wait"
    assert isinstance(seen[0].error, asyncio.CancelledError)
    resumes[0](Ok(None))
    assert len(seen) == 1, "a late resume is ignored"


def test_an_executor_is_inherited_and_kept():
    one, two, where = RunQueue(), RunQueue(), []

    def current():
        return "one" if one.running else "two" if two.running else "none"

    async def leaf():
        where.append(current())
        await reschedule()
        where.append(current())

    async def body():
        await Lazy(leaf)
        await Lazy(leaf).via(two)
        where.append(current())

    seen = []
    Lazy(body).via(one).start(seen.append)
    while not seen:
        one.run(lambda: False)
        two.run(lambda: False)
    assert where == ["one", "one", "two", "two", "one"]


def test_a_sync_wait_inside_its_own_executor_is_an_error():
    queue = RunQueue()

    async def body():
        return sync_await(Lazy(wait_for_ever), queue)

    with pytest.raises(RuntimeError, match="would wait for itself"):
        sync_await(Lazy(body), queue)


# The virtual loop


def test_sleep_takes_virtual_time_only():
    simulation, log, tasks = Simulation(), [], []

    async def main():
        for name, delay in [("b", 3600.0), ("a", 0.5)]:
            tasks.append(asyncio.create_task(tick(name, delay)))
        await asyncio.sleep(10_000)
        return asyncio.get_running_loop().time()

    async def tick(name, delay):
        await asyncio.sleep(delay)
        log.append((name, simulation.now))

    assert run(main(), simulation) == 10_000.0
    assert log == [("a", SECOND // 2), ("b", 3600 * SECOND)]


def busy_program(seed):
    """Queues, locks, time-outs and groups, all at once. Returns what happened when."""
    simulation, log = Simulation(), []

    async def main():
        random = np.random.default_rng(seed)
        queue, lock = asyncio.Queue(3), asyncio.Lock()

        async def producer(name):
            for item in range(5):
                await asyncio.sleep(float(random.integers(1, 50)) / 1000)
                await queue.put((name, item))

        async def consumer(name):
            while True:
                try:
                    async with asyncio.timeout(0.06):
                        item = await queue.get()
                except TimeoutError:
                    log.append((simulation.now, name, asyncio.current_task().get_name(), "nothing"))
                    continue
                async with lock:
                    await asyncio.sleep(0.002)
                log.append((simulation.now, name, item))
                queue.task_done()

        consumers = [asyncio.create_task(consumer(name)) for name in "xyz"]
        async with asyncio.TaskGroup() as group:
            for name in "ab":
                group.create_task(producer(name))
        await queue.join()
        for task in consumers:
            task.cancel()
        return await asyncio.gather(*consumers, return_exceptions=True)

    outcomes = run(main(), simulation)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    return log


def test_runs_repeat_and_differ_with_the_seed():
    assert busy_program(1) == busy_program(1) != busy_program(2)
    assert sum(len(entry) == 3 for entry in busy_program(1)) == 10


def test_async_code_and_events_share_the_time():
    simulation = Simulation()

    async def main():
        loop = asyncio.get_running_loop()
        event = asyncio.Event()
        simulation.after(700, Phase.TRANSFER_DONE, loop.call_soon, event.set)
        await event.wait()
        return simulation.now

    assert run(main(), simulation) == 700


def test_a_deadlock_names_who_waits():
    async def main():
        queue = asyncio.Queue()

        async def reader():
            await queue.get()

        task = asyncio.create_task(reader(), name="decode worker")
        await task

    with pytest.raises(DeadlockError) as caught:
        run(main())
    text = str(caught.value)
    assert "decode worker" in text
    assert "Queue.get" in text
    assert "main-1" in text


def test_a_loop_in_which_time_stands_still_is_an_error():
    async def main():
        while True:
            await asyncio.sleep(0)

    with pytest.raises(LivelockError, match="main-1 in"):
        run(main())


def test_errors_end_the_run():
    async def main():
        asyncio.get_running_loop().call_later(1, broken)
        await asyncio.sleep(5)

    def broken():
        raise InvariantError("seen")

    with pytest.raises(InvariantError, match="seen"):
        run(main())
    with pytest.raises(ZeroDivisionError):
        run(divide())


async def divide():
    return 1 // 0


def test_a_cancelled_timer_takes_no_time():
    simulation = Simulation()

    async def main():
        async with asyncio.timeout(1000):
            await asyncio.sleep(1)

    run(main(), simulation)
    simulation.run()
    assert simulation.now == SECOND


def test_a_blocked_process_is_late_and_others_are_not():
    simulation = Simulation()
    one = VirtualLoop(simulation, "one")
    two, log = one.process("two"), []

    async def ticks(name, loop):
        for _ in range(4):
            await asyncio.sleep(1)
            log.append((name, loop.now // SECOND))

    async def blocker():
        await asyncio.sleep(1.5)
        one.block(2 * SECOND)
        log.append(("blocked", one.now / SECOND))

    two.create_task(ticks("two", two))
    one.create_task(blocker())
    one.run_until_complete(ticks("one", one))
    assert [time for name, time in log if name == "one"] == [1, 3, 4, 5]
    assert [time for name, time in log if name == "two"] == [1, 2, 3, 4]
    assert ("blocked", 3.5) in log


def test_a_process_that_is_blocked_from_outside_is_late():
    simulation = Simulation()
    loop, log = VirtualLoop(simulation, "worker"), []
    for due in (1, 2):
        loop.call_later(due, lambda: log.append(simulation.now))
    simulation.at(SECOND, Phase.ADMISSION, loop.block, SECOND // 2)  # between due and run
    simulation.at(2 * SECOND, Phase.STEP_DONE, loop.block, SECOND)
    loop.run_until_complete(asyncio.sleep(9))
    assert log == [3 * SECOND // 2, 3 * SECOND]


def test_a_crashed_process_runs_nothing_more():
    simulation = Simulation()
    one = VirtualLoop(simulation, "one")
    two, log = one.process("two"), []

    async def work():
        try:
            while True:
                await asyncio.sleep(1)
                log.append(simulation.now // SECOND)
        finally:
            asyncio.get_running_loop().call_soon(log.append, "farewell")
            await asyncio.sleep(0)
            log.append("and another")

    task = two.create_task(work())
    simulation.at(2 * SECOND + 1, Phase.TELEMETRY, two.crash)
    one.run_until_complete(asyncio.sleep(10))
    assert log == [1, 2]
    assert not task.done()


def test_who_awaits_a_process_that_crashes_is_told():
    loop = VirtualLoop(Simulation(), "worker")
    loop.simulation.at(SECOND, Phase.TELEMETRY, loop.crash)
    with pytest.raises(RuntimeError, match="worker crashed"):
        loop.run_until_complete(asyncio.sleep(2))


def test_a_loop_inside_a_loop_is_an_error():
    async def main():
        pointless = divide()
        try:
            run(pointless)
        finally:
            pointless.close()

    with pytest.raises(RuntimeError, match="wait for itself"):
        run(main())


def test_leftover_tasks_are_cancelled():
    log = []

    async def forever():
        try:
            await asyncio.Event().wait()
        finally:
            log.append("cleaned")

    async def main():
        left = asyncio.create_task(forever())
        await asyncio.sleep(0)
        assert not left.done()

    run(main())
    assert log == ["cleaned"]


# A run


class FlatCost:
    """10 ns a step, and 1 ns a token."""

    def step_time(self, shape) -> int:
        return 10 + shape.prefill_tokens + shape.n_decode

    def step_times(self, shape, steps) -> np.ndarray:
        return np.full(steps, self.step_time(shape))


def replay(workload, rows=8, max_steps=4096):
    """One replica serves a workload. Returns the records, checked, and the replica."""
    simulation, recorder, arrivals = Simulation(), Recorder(), {}
    scheduler, sink = Scheduler(RowMemory(rows, 4096), token_budget=512), recorder.sink("workers")
    replica = Replica(
        simulation, scheduler, FlatCost(), lambda request: arrivals[request.uid].output_length, sink, max_steps
    )

    def arrive(arrival):
        uid = len(arrivals)
        arrivals[uid] = arrival
        recorder.arrived(uid, arrival.input_length, simulation.now)
        replica.add(TraceRequest(uid, arrival.input_length, 1000, arrival.hash_ids))

    ended = sink.ended

    def end(request, time):
        ended(request, time)
        after = workload.after(arrivals[request.uid], time)
        if after is not None:
            simulation.at(after.time_ns, Phase.ADMISSION, arrive, after)

    sink.ended = end
    for arrival in workload.initial():
        simulation.at(arrival.time_ns, Phase.ADMISSION, arrive, arrival)
    simulation.run()
    assert not scheduler.requests
    return list(recorder.records.values()), recorder.pools


def test_a_request_alone_has_the_times_of_its_steps():
    (one,), _ = replay(OpenLoop([Arrival(1000, 100, 5, ())]))
    assert (one.prefill_start, one.prefill_end, one.decode_start, one.done) == (1000, 1110, 1110, 1110 + 4 * 11)
    assert (one.ttft, one.tpot, one.e2e, one.output_length) == (110, 11, 154, 5)
    assert one.token_times.tolist() == [1110, 1121, 1132, 1143, 1154]


def test_tokens_after_an_abort_do_not_count():
    simulation, recorder = Simulation(), Recorder()
    scheduler = Scheduler(RowMemory(2, 512))
    replica = Replica(simulation, scheduler, FlatCost(), lambda request: 50, recorder.sink("workers"))
    for uid in range(2):
        recorder.arrived(uid, 10, 0)
        simulation.at(0, Phase.ADMISSION, replica.add, TraceRequest(uid, 10, 100))
    simulation.at(95, Phase.TELEMETRY, replica.abort, 0)  # in the middle of a step
    simulation.run()
    aborted, other = recorder.records.values()
    assert (aborted.done, aborted.finish_reason, aborted.complete) == (95, "abort", False)
    assert aborted.token_times.tolist() == [30, 42, 54, 66, 78, 90]
    assert (other.output_length, other.complete) == (50, True)
    assert attainment([aborted, other], Objective(), Window(0, 1000)) == 1 / 2


@pytest.mark.parametrize("seed", range(3))
def test_fast_forward_records_the_same(seed):
    r = rng(seed)
    arrivals = generate(r, arrival_times(r, 2e6, 60), Lengths(50, 1, most=400), Lengths(30, 1, most=200))
    records, _ = replay(OpenLoop(arrivals))
    single, _ = replay(OpenLoop(arrivals), max_steps=1)
    for one, other in zip(records, single, strict=True):
        assert one.token_times.tolist() == other.token_times.tolist()
        assert one.output_length == arrivals[one.uid].output_length
        assert (one.prefill_end, one.decode_start, one.done) == (other.prefill_end, other.decode_start, other.done)
    assert summarise(records, whole_run(records)) == summarise(single, whole_run(single))


def test_users_who_wait_slow_themselves():
    records, pools = replay(
        ClosedLoop(rng=rng(), users=4, requests=200, inputs=Lengths(20, 0.3), outputs=Lengths(9, 0.3))
    )
    window = whole_run(records)
    assert len(records) == 200
    assert mean_in_system(records, window) == pytest.approx(4, rel=0.05)
    summary = summarise(records, window, pools)
    assert summary.utilisation["workers"] == pytest.approx(1, rel=0.01), "without thinking it never idles"
    assert summary.saturated == ["workers"]


# Calls in two stages


class Echo:
    """A `Connection` to a server that answers each call after its body's seconds. Sending takes a second."""

    def __init__(self):
        self.inbox, self.broken, self.sending = asyncio.Queue(), False, 0
        self.most = 0

    async def send(self, message):
        if self.broken:
            raise ConnectionResetError("broken")
        self.sending += 1
        self.most = max(self.most, self.sending)
        await asyncio.sleep(1)
        self.sending -= 1
        loop = asyncio.get_running_loop()
        loop.call_later(message[1], self.inbox.put_nowait, message)

    async def receive(self):
        message = await self.inbox.get()
        if message is None:
            raise ConnectionResetError("broken")
        return message

    def close(self):
        self.broken = True
        self.inbox.put_nowait(None)


def two_stage(size):
    made = []

    async def connect():
        made.append(Echo())
        return made[-1]

    return TwoStageClient(connect, size), made


def test_waiting_for_replies_holds_no_connection():
    async def main():
        client, made = two_stage(2)
        replies = await asyncio.gather(*(client.submit(100) for _ in range(10)))
        assert asyncio.get_running_loop().time() == 5, "ten submissions of a second on two connections"
        assert [await reply.wait() for reply in replies] == [100] * 10
        assert asyncio.get_running_loop().time() == 105, "all ten wait at once"
        assert (len(made), [each.most for each in made]) == (2, [1, 1])

    run(main())


def test_a_late_reply_is_dropped_and_a_break_fails_all_calls():
    async def main():
        client, made = two_stage(1)
        late, other = await client.submit(10), await client.submit(20)
        with pytest.raises(TimeoutError):
            await late.wait(2)
        assert await other.wait() == 20
        assert not other.wire.pending
        replies = [await client.submit(30) for _ in range(3)]
        made[0].close()
        for reply in replies:
            with pytest.raises(ConnectionResetError):
                await reply.wait()
        assert await (await client.submit(1)).wait() == 1
        assert len(made) == 2, "a broken connection is replaced"

    run(main())


# From a thread


def test_a_plain_thread_can_call_async_code_but_not_the_loops_own():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def double(value):
        await asyncio.sleep(0.001)
        return 2 * value

    async def drill():
        return call(loop, double(1))

    try:
        assert call(loop, double(21), 10) == 42
        with pytest.raises(ZeroDivisionError):
            call(loop, divide(), 10)
        with pytest.raises(RuntimeError, match="use await"):
            call(loop, drill(), 10)
        with pytest.raises(TimeoutError):
            call(loop, asyncio.sleep(60), 0.01)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
