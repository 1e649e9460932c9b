"""The test kit of the serving engine: it passes what is right, and names each classic mistake."""

import asyncio
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from course.codec import pack, unpack
from course.serving_case import judge
from course.serving_case.drive import drive
from course.serving_case.hash_model import HashRunner, next_token
from course.serving_case.interleave import Clock, Deadlock, interleave, orders, run
from course.serving_case.oracle import alone
from course.serving_case.workload import request, script, workload
from course.solution import Solution

MAX_LEN, PAGE = 48, 4


@pytest.fixture(scope="module")
def solution() -> Solution:
    return Solution("tiny_llm_ref")


def rows(solution: Solution, page_size: int = 1, pages: int | None = None) -> object:
    return solution.module("serving.memory").RowMemory(4, MAX_LEN, page_size, pages)


def paged(solution: Solution, pages: int = 48) -> object:
    return solution.module("serving.paged_memory").PagedMemory(4, MAX_LEN, PAGE, pages)


def prefix(solution: Solution, pages: int = 16) -> object:
    return solution.module("serving.prefix_memory").PrefixMemory(4, MAX_LEN, PAGE, pages)


def scheduler(solution: Solution, memory: object, budget: int = 16, **changes: object) -> object:
    """The reference's chunked scheduler, or one with methods that make a mistake."""
    kind = solution.module("serving.chunked").ChunkedScheduler
    return type("Changed", (kind,), changes)(memory, budget)


def play(solution: Solution, memory: object, plan: dict, depth: int = 1, **changes: object) -> dict:
    """The trace as a graded test sees it: it crossed to another process."""
    return unpack(pack(drive(solution, scheduler(solution, memory, **changes), plan, depth=depth)))


PLAN = script(request(0, range(10), 6), request(1, range(20, 29), 5, at=1), request(2, range(40, 43), 9, at=2))


@pytest.mark.parametrize(("memory", "depth"), list(itertools.product((rows, paged, prefix), (1, 2, 3))))
def test_right_engines_pass_random_workloads(solution, memory, depth):
    for seed in range(12):
        plan = workload(seed, max_len=MAX_LEN, page_size=PAGE)
        trace = play(solution, memory(solution), plan, depth)
        judge.verify(plan, trace)
        judge.assert_budget(trace, 16)


def test_engines_of_the_package_are_driven_too(solution):
    plan = workload(5, penalties=0.5)
    engine = solution.module("serving.engine").Engine
    judge.verify(plan, drive(solution, scheduler(solution, paged(solution)), plan, engine=engine))


def test_workloads_are_repeatable_and_hold_every_shape():
    assert workload(3) == workload(3) != workload(4)
    assert unpack(pack(workload(3))) == workload(3)
    plans = [workload(seed, page_size=PAGE, penalties=0.2) for seed in range(30)]
    adds = [add for plan in plans for add in plan["adds"]]
    lengths = {len(add["ids"]) % PAGE for add in adds}
    assert lengths == set(range(PAGE))
    assert any(add["stop"] for add in adds)
    assert any(add["penalty"] for add in adds)
    assert any(a["ids"] == b["ids"] for plan in plans for a, b in itertools.combinations(plan["adds"], 2))
    assert {abort["between"] for plan in plans for abort in plan["aborts"]} == {True, False}
    assert all(1 <= len(add["ids"]) < MAX_LEN for add in adds)


def test_alone_stops_where_it_should():
    tokens, reason = alone([1, 2, 3], 8)
    assert (len(tokens), reason) == (8, "length")
    assert alone([1, 2, 3], 8, stop=[tokens[2]]) == (tokens[:3], "stop")
    assert alone([1, 2, 3, tokens[0]], 7)[0] == tokens[1:]
    assert alone([1, 2, 3], 8, penalty=True)[0] != tokens


def test_a_model_that_reads_a_stale_history_says_something_else():
    ids = [4, 5, 6]
    assert next_token(ids, history=ids) != next_token(ids, history=ids[:-1])


def wrong(solution: Solution, memory: object, plan: dict = PLAN, depth: int = 1, **changes: object) -> str:
    """What the judge says to a mistake."""
    trace = play(solution, memory, plan, depth, **changes)
    with pytest.raises(AssertionError) as failure:
        judge.verify(plan, trace)
    return str(failure.value)


def test_a_skipped_position_is_named(solution):
    memory = rows(solution)
    opened = memory.open

    def skips(request, match):
        opened(request, match)
        request.cached_len = 1

    memory.open = skips
    assert "reads position 0 from row 0, where nothing was written: a position was skipped" in wrong(solution, memory)


def test_results_of_other_requests_are_named(solution):
    def swapped(self, batch, results):
        return kind.commit(self, batch, results[::-1])

    kind = solution.module("serving.scheduler").Scheduler
    plan = script(request(0, range(5), 6), request(1, range(20, 25), 6))
    assert "it got a result of request 1" in wrong(solution, rows(solution), plan, commit=swapped)


def test_pages_in_the_wrong_order_are_named(solution):
    memory = paged(solution)
    grow = memory.grow

    def shuffles(request, length):
        grow(request, length)
        if length == 13:
            memory.table.replace(request.row, 0, memory.table.pages(request.row)[:2][::-1])

    memory.grow = shuffles
    assert "the row's pages are in the wrong order" in wrong(solution, memory)


def test_a_row_without_a_page_is_named(solution):
    memory = paged(solution)
    memory.grow = lambda request, length: None
    assert "its row has no page for 0" in wrong(solution, memory)


class ByHand:
    """Steps launched by hand on rows of a page table: what no scheduler would do."""

    def __init__(self, *entries):
        table = SimpleNamespace(entries=np.array(entries, np.int32), dummy_page=9)
        self.runner = HashRunner(table, page_size=2)
        self.sampling = SimpleNamespace(repetition_penalty=1.0)

    def step(self, uid, ids, start, end):
        made = SimpleNamespace(uid=uid, row=uid, ids=ids, sampling=self.sampling)
        (result,) = self.runner.launch(SimpleNamespace(steps=((made, start, end, True),))).results()
        return result.token


def test_a_page_that_was_freed_too_early_is_named():
    hand = ByHand([3, 4, 9], [4, 9, 9])
    assert hand.step(0, [1, 2, 3], 0, 3) == next_token([1, 2, 3])
    assert hand.step(1, [7], 0, 1) == next_token([7])
    assert hand.step(0, [1, 2, 3, 5], 3, 4) != next_token([1, 2, 3, 5])
    assert "page 4, which holds position 0 of request 1: two requests have one page" in hand.runner.faults[0]


def test_a_shared_page_is_read_as_ones_own():
    hand = ByHand([3, 4, 9], [3, 5, 9])
    hand.step(0, [1, 2, 3], 0, 3)
    assert hand.step(1, [1, 2, 8, 9], 2, 4) == next_token([1, 2, 8, 9])
    assert not hand.runner.faults


def test_keys_computed_after_other_tokens_are_named():
    """A page whose tokens and places fit, but that follows others: what a flat map of page contents would find."""
    hand = ByHand([3, 4, 9], [5, 4, 6])
    hand.step(0, [1, 2, 3, 4], 0, 4)
    hand.step(1, [7, 7], 0, 2)
    assert hand.step(1, [7, 7, 3, 4, 5], 4, 5) != next_token([7, 7, 3, 4, 5])
    assert "position 2 from page 4, which request 0 computed after other tokens" in hand.runner.faults[0]


def test_own_keys_that_are_stale_are_named():
    hand = ByHand([3, 4, 9])
    hand.step(0, [1, 2, 3], 0, 3)
    assert hand.step(0, [9, 2, 3, 4], 0, 1) == next_token([9])
    assert hand.step(0, [9, 2, 3, 4], 3, 4) != next_token([9, 2, 3, 4])
    assert hand.runner.faults == [
        "request 0 reads position 1 from page 3, which was computed after other tokens than those before it now"
    ]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda outputs: outputs.append([9, 0, None, "length"]), "request 0 ended 2 times"),
        (lambda outputs: outputs.append([9, 1, 7, None]), "gave 1 outputs after its end"),
        (lambda outputs: outputs.append([9, 77, 7, "stop"]), "requests \\[77\\], which were never accepted"),
        (lambda outputs: outputs.pop(), "never ended"),
        (lambda outputs: outputs.__delitem__(2), "was lost"),
        (lambda outputs: outputs.insert(3, list(outputs[2])), "appended twice|went on"),
    ],
)
def test_a_spoiled_trace_is_named(solution, spoil, message):
    plan = script(request(0, range(10), 6), request(1, range(20, 29), 5, at=20))
    trace = play(solution, rows(solution), plan)
    judge.verify(plan, trace)
    spoil(trace["outputs"])
    with pytest.raises(AssertionError, match=message):
        judge.verify(plan, trace)


def test_leaks_and_double_frees_are_named(solution):
    memory = paged(solution)
    memory.close = lambda request: setattr(request, "row", None)
    assert "3 of 4 rows leak" in wrong(solution, memory)
    trace = play(solution, rows(solution), PLAN)
    trace["end"]["pages"] += 1
    with pytest.raises(AssertionError, match="some were given back twice"):
        judge.assert_idle(trace)
    trace["end"] |= {"running": 2}
    with pytest.raises(AssertionError, match="2 in running"):
        judge.assert_idle(trace)


def test_memory_given_back_in_flight_is_named(solution):
    def frees_at_once(self, uid):
        output = kind.abort(self, uid)
        for held in [r for r in seen if r.uid == uid and r.row is not None]:
            self.memory.close(held)
        return output

    seen = []
    kind = solution.module("serving.scheduler").Scheduler
    memory = rows(solution)
    opened = memory.open
    memory.open = lambda request, match: (seen.append(request), opened(request, match))
    plan = script(request(0, range(10), 6), aborts=[{"at": 2, "uid": 0, "between": True}])
    trace = play(solution, memory, plan, abort=frees_at_once)
    assert any("gave back its row 0 while a step of it was in flight" in fault for fault in trace["faults"])
    with pytest.raises(AssertionError, match="the device still writes there"):
        judge.verify(plan, trace)


def test_requests_that_wait_for_ever_are_named(solution):
    assert "request 0 never ended" in wrong(solution, rows(solution), next_batch=lambda self: None)


def test_an_abort_that_gives_nothing_is_named(solution):
    plan = script(request(0, range(10), 6), aborts=[{"at": 2, "uid": 0, "between": False}])
    assert "gave no output, although it had not ended" in wrong(solution, rows(solution), plan, abort=lambda *_: None)


def test_prompts_that_do_not_fit_are_refused(solution):
    plan = script(request(0, range(MAX_LEN), 6), request(1, range(MAX_LEN - 1), 6))
    trace = play(solution, rows(solution), plan)
    judge.verify(plan, trace)
    assert list(trace["refused"]) == [0]
    with pytest.raises(AssertionError, match="was accepted: its prompt of 48 tokens leaves no room"):
        judge.verify(plan, trace | {"refused": {}})
    with pytest.raises(AssertionError, match="a prompt of 47 tokens, was refused: no"):
        judge.verify(plan, trace | {"refused": {1: "no"}})


def test_stubs_that_an_engine_catches_are_stubs(solution):
    class Raises(HashRunner):
        def launch(self, batch):
            raise NotImplementedError(text)

    text = "Week 3 Day 1 Task 1: launch - see book/src/x.md#task-1"
    engine = solution.module("serving.engine").Engine
    with pytest.raises(NotImplementedError, match="Task 1"):
        drive(solution, scheduler(solution, rows(solution)), PLAN, engine=engine, runner=Raises())
    text = "the pool is on fire"
    trace = drive(solution, scheduler(solution, rows(solution)), PLAN, engine=engine, runner=Raises())
    with pytest.raises(AssertionError, match="NotImplementedError: the pool is on fire"):
        judge.verify(PLAN, trace)


def test_a_batch_over_the_budget_is_named(solution):
    trace = play(solution, rows(solution), PLAN)
    with pytest.raises(AssertionError, match="the budget is 4"):
        judge.assert_budget(trace, 4)


def test_interleavings_are_those_of_the_seed():
    def process(name, log):
        for i in range(3):
            log.append((name, i))
            yield

    logs = []
    for seed in (1, 1, 2):
        log: list[tuple[str, int]] = []
        order = interleave(seed, {name: process(name, log) for name in "abc"})
        assert [name for name, _ in log] == order
        logs.append(log)
    assert logs[0] == logs[1] != logs[2]
    assert sorted(orders({"a": 2, "b": 1})) == [("a", "a", "b"), ("a", "b", "a"), ("b", "a", "a")]


def test_virtual_time_takes_none_and_finds_deadlocks():
    clock = Clock()

    async def sleeps():
        await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(7200))
        return asyncio.get_running_loop().time()

    assert run(sleeps(), clock) == pytest.approx(7200)
    assert clock() == pytest.approx(7200)

    async def waits():
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        run(waits())
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)
