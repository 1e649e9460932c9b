"""The recorded trace: valid Chrome trace events whose slices nest, and the engine's behaviour is unchanged."""

import json
import logging
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from course.serving_case import judge
from course.serving_case.drive import drive
from course.serving_case.workload import request, script, workload
from course.solution import Solution
from course.trace import DEVICE, ENGINE, HOST, REQUESTS, TracedEngine
from course.trace_file import TraceFile


@pytest.fixture(scope="module")
def solution() -> Solution:
    return Solution("tiny_llm_ref")


def recorded(
    solution: Solution, path: Path, plan: dict, loop: str, scheduler: str = "chunked.Chunked", pages: int = 16
):
    """Events and kit trace of a script on a traced engine of the package."""
    file = TraceFile(path)
    kind = getattr(solution.module(f"serving.{loop}"), {"engine": "Engine", "overlap": "OverlapEngine"}[loop])
    module, name = scheduler.split(".")
    memory = solution.module("serving.prefix_memory").PrefixMemory(4, 48, 4, pages)
    chosen = getattr(solution.module(f"serving.{module}"), f"{name}Scheduler")(memory, 16)
    trace = drive(solution, chosen, plan, engine=lambda *parts: TracedEngine(kind(*parts), file))
    file.close()
    return json.loads(path.read_text()), trace


def tracks(events: list[dict]) -> dict[tuple[int, int], list[dict]]:
    """The slices of each track, in their order."""
    found = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            found[event["pid"], event["tid"]].append(event)
    return found


@pytest.mark.parametrize("loop", ["engine", "overlap"])
def test_events_are_valid_and_the_engine_does_the_same(solution, tmp_path, loop):
    for seed in range(6):
        plan = workload(seed)
        events, trace = recorded(solution, tmp_path / "trace.json", plan, loop)
        judge.verify(plan, trace)
        assert {event["ph"] for event in events} == {"M", "X", "i", "C"}
        for event in events:
            assert isinstance(event["name"], str)
            assert isinstance(event["pid"], int)
            assert event["ph"] == "M" or event["ts"] >= 0
            assert event["ph"] != "X" or event["dur"] >= 0
        for slices in tracks(events).values():
            slices.sort(key=lambda event: event["ts"])
            for a, b in pairwise(slices):
                assert a["ts"] + a["dur"] <= b["ts"] + 1e-6, (a, b)


def test_every_request_has_a_track_from_arrival_to_its_end(solution, tmp_path):
    plan = workload(3)
    events, trace = recorded(solution, tmp_path / "trace.json", plan, "overlap")
    accepted = {add["uid"] for add in plan["adds"]} - set(trace["refused"])
    names = {e["args"]["name"] for e in events if e["ph"] == "M" and e["pid"] == REQUESTS}
    assert names == {"requests", *(f"request {uid}" for uid in accepted)}
    ends = [(e["tid"], e["name"]) for e in events if e["ph"] == "i" and e["name"] in ("stop", "length", "abort")]
    assert sorted(ends) == sorted((uid, reason) for _, uid, _, reason in trace["outputs"] if reason)
    steps = [(e["tid"], e["args"]["start"], e["args"]["end"]) for e in events if e["name"] in ("prefill", "decode")]
    assert sorted(steps) == sorted((uid, start, end) for batch in trace["batches"] for uid, start, end, _ in batch)
    batches = tracks(events)[ENGINE, DEVICE]
    assert [e["args"]["tokens"] for e in batches] == [sum(e - s for _, s, e, _ in b) for b in trace["batches"]]
    assert len(tracks(events)[ENGINE, HOST]) == 2 * len(batches)


def test_prefix_hits_and_pages_are_counted(solution, tmp_path):
    ids = list(range(20))
    plan = script(request(0, ids, 3), request(1, ids, 3, at=15))
    events, _ = recorded(solution, tmp_path / "trace.json", plan, "engine")
    assert [(e["tid"], e["name"]) for e in events if "prefix hit" in e["name"]] == [(1, "prefix hit: 16 tokens")]
    counters = {e["name"]: e["args"] for e in events if e["ph"] == "C"}
    assert counters["pages"]["in_use"] == 0
    assert counters["pages"]["cached"] > 0
    assert sum(counters["pages"].values()) == 16
    assert counters["prompt tokens"] == {"computed": 24, "hits": 16}
    assert counters["requests"] == {"running": 0, "waiting": 0}


def test_preemptions_are_marked(solution, tmp_path):
    plan = script(*(request(uid, range(uid, uid + 8), 30) for uid in range(3)))
    events, trace = recorded(solution, tmp_path / "trace.json", plan, "engine", "mixed.Mixed", pages=13)
    judge.verify(plan, trace)
    assert any(event["name"] == "preempted" for event in events)


def test_a_trace_without_its_end_can_be_read(tmp_path):
    """As viewers do: the closing bracket may be missing."""
    file = TraceFile(tmp_path / "trace.json")
    file.instant("a", ENGINE, HOST)
    file.file.flush()
    assert [event["name"] for event in json.loads((tmp_path / "trace.json").read_text() + "]")] == ["a"]
    file.close()


def test_a_full_disk_ends_the_trace_only(caplog):
    path = Path("/dev/full")
    if not path.exists():
        pytest.skip("needs /dev/full")
    file = TraceFile(path)
    with caplog.at_level(logging.WARNING):
        for _ in range(10_000):
            file.instant("a", ENGINE, HOST)
        file.close()
    assert "the trace ends here" in caplog.text
