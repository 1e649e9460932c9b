"""Workloads, metrics, lazy tasks and the virtual loop: what must hold of each, by examples and by statistics."""

import asyncio
import threading

import numpy as np
import pytest

from course.drills.facade import call
from course.drills.one_replica import OneReplica
from course.drills.two_stage import TwoStageClient
from tiny_llm_ref.cluster.busy import BusyTime, utilisation
from tiny_llm_ref.cluster.closed_loop import ClosedLoop
from tiny_llm_ref.cluster.goodput import Objective, attainment
from tiny_llm_ref.cluster.kernel import Phase, Simulation
from tiny_llm_ref.cluster.lazy import Lazy, lazy, sync_await
from tiny_llm_ref.cluster.metrics import mean_in_system, summarise
from tiny_llm_ref.cluster.record import InvariantError, Record, check_conserved
from tiny_llm_ref.cluster.recorder import Recorder
from tiny_llm_ref.cluster.replica import Replica
from tiny_llm_ref.cluster.trace_request import TraceRequest
from tiny_llm_ref.cluster.virtual_run import run
from tiny_llm_ref.cluster.window import Window, whole_run
from tiny_llm_ref.cluster.workload import (
    SECOND,
    Arrival,
    Lengths,
    OpenLoop,
    SharedPrefixes,
    arrival_times,
    generate,
    speed_up,
)
from tiny_llm_ref.serving.memory import RowMemory
from tiny_llm_ref.serving.scheduler import Scheduler


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# Workloads


def test_poisson_counts_have_equal_mean_and_variance():
    times = arrival_times(rng(1), 20.0, 40_000)
    counts = np.bincount(times // SECOND)[:-1]
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.1)


def test_lengths_have_their_mean_and_spread():
    lengths = Lengths(300, 0.7).sample(rng(), 40_000)
    assert lengths.mean() == pytest.approx(300, rel=0.02)
    assert lengths.std() / lengths.mean() == pytest.approx(0.7, rel=0.05)
    assert Lengths(17).sample(rng(), 4).tolist() == [17] * 4
    capped = Lengths(300, 2.0, most=400).sample(rng(), 1000)
    assert capped.max() == 400
    assert capped.min() >= 1


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
    seen = drive(people(5, 4000, Lengths(100), Lengths(10), 0.3), SECOND // 5)
    assert len(seen) == 4000
    span = seen[-1][1] / SECOND
    assert 4000 / span == pytest.approx(5 / (0.2 + 0.3), rel=0.05)
    changes = sorted([(t, 1) for _, t in seen] + [(t + SECOND // 5, -1) for _, t in seen])
    assert max(np.cumsum([change for _, change in changes])) <= 5


# Metrics


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


def test_a_body_may_be_a_generator():
    def body():
        value = yield lazy_value(20)
        return value + (yield lazy_value(1))

    @lazy
    async def lazy_value(value):
        return value

    assert sync_await(Lazy(body)) == 21


# The virtual loop


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


async def divide():
    return 1 // 0


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
    records, pools = replay(people(4, 200, Lengths(20, 0.3), Lengths(9, 0.3)))
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


def test_a_replica_that_is_asked_for_too_much_serves_more_and_pleases_fewer():
    def good(rate):
        r = rng()
        arrivals = generate(r, arrival_times(r, rate, 150), Lengths(500, 0.8, most=2000), Lengths(100, 0.8, most=400))
        records = OneReplica("tiny_llm_ref", pages=4096).serve(OpenLoop(arrivals))
        window = whole_run(records)
        objective = Objective(ttft=400_000_000, tpot=80_000_000)
        return summarise(records, window).tokens_per_second, attainment(records, objective, window)

    (slow, pleased), (fast, annoyed) = good(2.0), good(30.0)
    assert fast > 2 * slow
    assert pleased > 0.95
    assert annoyed < 0.1
