"""Every order in which launches, commits and an abort can come, tried out: one end, right tokens, nothing left."""

from collections import deque
from itertools import product

import pytest

from course.serving_case.drive import runner_for
from course.serving_case.interleave import orders
from course.serving_case.oracle import alone
from course.soak.schedules import MEMORIES, SCHEDULERS
from course.solution import Solution

IDS, TOKENS, IN_FLIGHT = [5, 6, 7, 8, 9], 3, 2


@pytest.fixture(scope="module")
def solution() -> Solution:
    return Solution("tiny_llm_ref")


def possible(order: tuple[str, ...]) -> bool:
    """Whether each commit has a launch before it, with at most two of them in flight."""
    flying = 0
    for name in order:
        flying += {"launch": 1, "commit": -1, "abort": 0}[name]
        if not 0 <= flying <= IN_FLIGHT:
            return False
    return True


@pytest.mark.parametrize(("scheduler", "memory"), list(product(SCHEDULERS, MEMORIES)))
def test_an_abort_at_every_moment(solution, scheduler, memory):
    """Two requests; one is aborted. Prompts of chunked schedulers take two batches."""
    tried = 0
    for order in filter(possible, orders({"launch": 5, "commit": 5, "abort": 1})):
        run(solution, scheduler, memory, order)
        tried += 1
    assert tried > 50


def run(solution: Solution, scheduler: str, memory: str, order: tuple[str, ...]) -> None:
    part = {**SCHEDULERS, **MEMORIES}
    make = {name: getattr(solution.module(part[name][0]), part[name][1]) for name in (scheduler, memory)}
    room = make[memory](2, 16, 2, 16)
    chosen = make[scheduler](room, 4 if scheduler != "fcfs" else 16)
    request = solution.module("serving.request").Request
    chosen.add(request(0, list(IDS), TOKENS))
    chosen.add(request(1, list(IDS), TOKENS))
    runner, flying, outputs = runner_for(room, 1009), deque(), []
    before = room.free_rows, room.available

    def launch() -> None:
        if (batch := chosen.next_batch()) is not None:
            flying.append((batch, runner.launch(batch)))

    def commit() -> None:
        if flying:
            batch, pending = flying.popleft()
            outputs.extend(chosen.commit(batch, pending.results()))

    def abort() -> None:
        if (output := chosen.abort(0)) is not None:
            outputs.append(output)

    ways = {"launch": launch, "commit": commit, "abort": abort}
    for name in order:
        ways[name]()
    for _ in range(40):
        commit()
        launch()
    while flying:
        commit()
    assert not chosen.requests, order
    assert (room.free_rows, room.available) == before, order
    assert runner.faults == [], order
    want = alone(IDS, TOKENS)[0]
    for uid in (0, 1):
        given = [output for output in outputs if output.uid == uid]
        tokens = [output.sampled.token for output in given if output.sampled]
        ends = [output.finish_reason for output in given if output.finish_reason]
        assert given[-1].finish_reason in (("abort", "length") if uid == 0 else ("length",)), order
        assert len(ends) == 1, order
        assert tokens == want[: len(tokens)], order
        assert len(tokens) == TOKENS or ends == ["abort"], order
