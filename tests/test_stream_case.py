"""The stream programs of Day 6: the oracle by hand, and that every mistake shows and is named."""

import random

import pytest

from course.serving_case.overlap_case import Questions
from course.serving_case.stream_oracle import (
    HAZARD_MISTAKES,
    MISTAKES,
    Oracle,
    hazards_of,
    judge_hazards,
    judge_trace,
    log_of,
)
from course.serving_case.stream_pitfalls import PITFALLS
from course.serving_case.stream_programs import launch, program, random_program, record, synchronize, wait

PROGRAMS = [random_program(random.Random(seed)) for seed in range(40)]


def test_times_by_hand():
    made = program(
        launch("a", "x", 30, writes=["p"]),
        record("e", "a"),
        launch("a", "y", 40),
        wait("b", "e"),
        record("e", "a"),
        launch("b", "z", 5, ["p"]),
        synchronize("e"),
        launch_cost=2,
    )
    trace = Oracle(made).trace
    assert trace["ops"] == {"x": ["a", 2, 32], "y": ["a", 32, 72], "z": ["b", 32, 37]}
    assert [now for _, now in trace["calls"]] == [2, 2, 4, 4, 4, 6, 72]
    assert trace["seen"]["z"] == {"p": "x"}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_a_device_shows_and_is_named(mistake):
    traces = [(made, Oracle(made, mistake).trace) for made in PROGRAMS]
    made, wrong = next((made, trace) for made, trace in traces if trace != Oracle(made).trace)
    with pytest.raises(AssertionError, match=MISTAKES[mistake]):
        judge_trace(made, wrong)


@pytest.mark.parametrize("mistake", HAZARD_MISTAKES)
def test_a_mistake_of_a_detector_shows_and_is_named(mistake):
    logs = [(log_of(made), hazards_of(log_of(made), mistake)) for made in PROGRAMS]
    log, wrong = next((log, found) for log, found in logs if found != hazards_of(log))
    with pytest.raises(AssertionError, match=HAZARD_MISTAKES[mistake]):
        judge_hazards(log, wrong)


@pytest.mark.parametrize("name", PITFALLS)
def test_a_pitfall_has_its_hazard_and_a_wrong_value(name):
    broken, fixed, race = PITFALLS[name]
    assert [tuple(hazard[:2]) for hazard in hazards_of(log_of(broken))] == [race]
    assert not hazards_of(log_of(fixed))
    assert Oracle(broken).trace["seen"] != Oracle(fixed).trace["seen"]


def test_questions_are_noted_only_inside():
    import mlx.core as mx

    x = mx.array([1, 2])
    with Questions() as questions:
        x[0].item()
        mx.eval(x + 1)
    x.tolist()
    mx.eval(x + 2)
    assert questions.asked == ["mx.array.item", "mx.eval"]
