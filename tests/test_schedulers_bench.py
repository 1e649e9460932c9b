"""Schedulers in virtual time: the arithmetic of a replay by hand, and the bar for what a scheduler's step costs."""

import argparse

import pytest
from benches import schedulers
from benches.common.replay import Arrival, StepTime, replay

import tiny_llm_ref.serving.request as requests
from tiny_llm_ref.serving.memory import RowMemory
from tiny_llm_ref.serving.mixed import MixedScheduler

STEP = StepTime(base=1.0, per_token=0.1)


def measured(*parts: str) -> dict[str, object]:
    parser = argparse.ArgumentParser()
    schedulers.add_arguments(parser)
    return schedulers.measure(parser.parse_args(["--solution", "tiny_llm_ref", "--only", *parts]))[0]


def test_times_of_a_replay_by_hand():
    arrivals = [Arrival(2.0, 10, 3, 5), Arrival(2.5, 4, 1, 1)]
    run = replay(requests, MixedScheduler(RowMemory(2, 32)), arrivals, STEP)
    first, second = 2 + 1 + 1.0, 4 + 1 + 0.1 * (1 + 4)
    assert run.times == {0: pytest.approx([first, second, second + 1.1]), 1: pytest.approx([second])}
    assert run.longest_gap() == pytest.approx(1.5)
    assert run.ttft() == pytest.approx((2.0 + 3.0) / 2)
    assert run.running == [1, 2, 1]
    assert run.preemptions == run.recomputed == 0


def test_what_is_computed_again_is_counted():
    run = replay(requests, MixedScheduler(RowMemory(2, 8, 1, 8)), [Arrival(0.0, 3, 5, 5)] * 2, STEP)
    assert [len(times) for times in run.times.values()] == [5, 5]
    assert run.preemptions == 1
    assert run.recomputed == 4


def test_virtual_times_are_the_same_in_every_run():
    assert measured("starve", "block") == measured("starve", "block")


def test_a_step_of_a_scheduler_is_cheap():
    for row in measured("cost")["cost"]:
        assert row["min"] < row["limit"], row
