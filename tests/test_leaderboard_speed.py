"""Leaderboard speeds: only right output has an entry, the best way counts, and the grader's clock decides."""

from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from course.case import Case
from course.curriculum import load
from course.leaderboard import NAMES, Entry, measured, speed
from course.leaderboard.place import NoEntry, Place
from course.leaderboard.ways import WAYS, Way, oracle

SHORT = 3  # tokens: the oracle writes them
PLAIN = Way("python", "dense")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PROMPT", 5), ("ANSWER", SHORT), ("PROMPTS", 2), ("LENGTH", 9)):
        monkeypatch.setattr(speed, name, value)


class Answers:
    """Stands for a place: each way has an answer, or a reason, and a time."""

    def __init__(self, answers: dict[str, tuple[Callable[[dict], object], float]]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, float]] = []
        self.curriculum = load()

    def build(self, part: str) -> None:
        """All is built."""

    def timed(self, case: Case, inputs: dict, seconds: float) -> tuple[object, float]:
        self.asked.append((inputs["ops"], seconds))
        if inputs["ops"] not in self.answers:
            raise NoEntry("Week 2 Day 3 Task 1: pack - see book/x.md#1")
        answer, took = self.answers[inputs["ops"]]
        return answer(inputs), took


def likely(inputs: dict) -> list[int]:
    """What a right submission answers, token by token."""
    row = list(inputs["prompt"])
    for _ in range(SHORT):
        row.append(int(oracle(inputs["packed"]).logits(np.array([row]))[0, -1].argmax()))
    return row[len(inputs["prompt"]) :]


def right_logits(inputs: dict) -> list[mx.array]:
    want = oracle(inputs["packed"]).logits(np.array(inputs["prompts"]))[:, -1]
    return [mx.array(row[None]).astype(mx.float32) for row in want]


def decoded(answer: object) -> str:
    """What is wrong with an answer to a prompt."""
    inputs = speed._decode_inputs(np.random.default_rng(1), 2048) | PLAIN.plain()
    return speed._decode_wrong(PLAIN, inputs, answer(inputs) if callable(answer) else answer)


def test_the_best_right_way_counts() -> None:
    place = Answers({"flash": (likely, 2.0), "packed": (lambda inputs: [0] * SHORT, 0.001), "python": (likely, 1.0)})
    found = speed.fastest(
        place, speed.Workload("decode", speed.Decode, SHORT, speed._decode_inputs, speed._decode_wrong)
    )
    assert (found.name, found.value, found.order, found.unit) == ("decode", SHORT / 1.0, "desc", "tokens/s")
    assert "cores" in found.hardware
    limits = [limit for ops, limit in place.asked if ops == "python"]
    assert limits[0] == 5.0, "who takes much longer than the best so far is not waited for"
    assert len(limits) == speed.READINGS


def test_no_right_way_tells_the_simplest_one() -> None:
    with pytest.raises(NoEntry, match="--ops python --cache none: Week 2 Day 3 Task 1: pack"):
        speed.fastest(Answers({}), speed.DECODE)


def test_each_way_is_judged_by_its_own_weights() -> None:
    assert {way.folder.name for way in WAYS} == {"tiny", "tiny-4bit"}
    for way in (PLAIN, Way("packed", "dense")):
        inputs = speed._decode_inputs(np.random.default_rng(0), 2048) | way.plain()
        assert speed._decode_wrong(way, inputs, likely(inputs)) == ""
        logits = speed._prefill_inputs(np.random.default_rng(0), 2048) | way.plain()
        assert speed._prefill_wrong(way, logits, right_logits(logits)) == ""


def test_prompts_are_new_each_time() -> None:
    place = Answers({"python": (likely, 1.0)})
    seen: list[tuple[int, ...]] = []
    workload = speed.Workload(
        "decode",
        speed.Decode,
        SHORT,
        speed._decode_inputs,
        lambda way, inputs, got: seen.append(tuple(inputs["prompt"])) or "",
    )
    speed.fastest(place, workload)
    assert len(set(seen)) == speed.READINGS


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda inputs: [*likely(inputs)[:-1], 7], f"token {SHORT} is not the most likely one"),
        (lambda inputs: likely(inputs)[:-1], f"{SHORT - 1} tokens instead of {SHORT}"),
        ([1e9] * SHORT, "no token of the vocabulary"),
        ([-1] * SHORT, "no token of the vocabulary"),
        ([True] * SHORT, "no token of the vocabulary"),
        (None, f"no tokens instead of {SHORT}"),
    ],
)
def test_wrong_tokens_have_no_entry(answer: object, said: str) -> None:
    assert said in decoded(answer)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: [rows[0], rows[1] * float("nan")], "the logits of prompt 2 are wrong"),
        (lambda rows: [rows[0] + 0.1 * mx.max(rows[0]), rows[1]], "the logits of prompt 1 are wrong"),
        (lambda rows: rows[:1], "1 answers instead of 2"),
        (lambda rows: [rows[0][0], rows[1]], "the logits of prompt 1 have another shape"),
        (lambda rows: [None, rows[1]], "the logits of prompt 1 have another shape"),
        (lambda rows: {"a": 1}, "no answers instead of 2"),
    ],
)
def test_wrong_logits_have_no_entry(change: Callable[[list], object], said: str) -> None:
    inputs = speed._prefill_inputs(np.random.default_rng(1), 2048) | PLAIN.plain()
    assert speed._prefill_wrong(PLAIN, inputs, change(right_logits(inputs))) == said


def test_values_that_nobody_expects_are_a_reason() -> None:
    place = Answers({"python": (lambda inputs: [[1]] * SHORT, 1.0)})
    with pytest.raises(NoEntry, match="no token of the vocabulary"):
        speed.fastest(place, speed.DECODE)


def test_unknown_workloads_are_told() -> None:
    class Asked:
        leaderboard = ("nothing",)

    found = measured(None, load(), Asked())
    assert found.entries == ()
    assert found.skipped[0].reason == f"no such workload: choose from {', '.join(NAMES)}"


def test_the_reference_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real model in a real process, without a boundary."""
    monkeypatch.setattr(speed, "WAYS", (PLAIN,))
    monkeypatch.setattr(speed, "READINGS", 1)
    place = Place(None, load(), "tiny_llm_ref")
    for workload in (speed.DECODE, speed.PREFILL):
        found = speed.fastest(place, workload)
        assert isinstance(found, Entry)
        assert found.value > 0


def test_the_starter_has_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "WAYS", (PLAIN,))
    with pytest.raises(NoEntry, match="--ops python --cache dense: Week 1 Day"):
        speed.fastest(Place(None, load(), "tiny_llm"), speed.DECODE)


def test_forbidden_names_stay_forbidden() -> None:
    forbidden = Place(None, load(), "tiny_llm").forbidden()
    registered = {name for day in load().days for name in day.forbidden}
    assert forbidden.keys() == registered
    assert all(isinstance(file, str) for files in forbidden.values() for file in files)
    assert Path("model/basics.py").as_posix() not in forbidden["nn"]
