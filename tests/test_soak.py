"""`soak`: the short forms pass, and each kind of mistake is found, told, and replayed."""

import shutil
from pathlib import Path

import pytest
from serving_program import course

from course.paths import SRC
from course.soak.schedules import LOOPS, MEMORIES, SCHEDULERS, Schedule, ScheduleError, run_schedules
from course.soak.server import Figures, growth, leaks

COUNT = 1000


@pytest.fixture
def broken(tmp_path):
    """A function that makes a `tiny_llm` from the reference with one text replaced, and returns where to find it."""

    def make(file: str, old: str, new: str) -> Path:
        unwanted = shutil.ignore_patterns("__pycache__", "*.so", ".built*")
        shutil.copytree(SRC / "tiny_llm_ref", tmp_path / "tiny_llm", ignore=unwanted)
        path = tmp_path / "tiny_llm" / file
        text = path.read_text()
        assert text.count(old) == 1, (file, old)
        path.write_text(text.replace(old, new))
        return tmp_path

    return make


def test_many_random_schedules_leave_nothing_and_no_wrong_token():
    counts = run_schedules("tiny_llm_ref", range(COUNT))
    assert min(counts[name] for table in (SCHEDULERS, MEMORIES, LOOPS) for name in table) > COUNT / 5
    assert counts["aborts"] > COUNT
    assert counts["tokens"] > 10 * COUNT


def test_a_schedule_follows_from_its_seed():
    assert Schedule.of(7) == Schedule.of(7) != Schedule.of(8)


def test_the_command_tells_what_it_ran():
    done = course("soak", "schedules", "--count", "20")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"20 schedules" in done.stdout
    assert b"every token was right" in done.stdout


LEAK = (
    "serving/scheduler.py",
    "        if request.in_flight == 0 and request.row is not None:",
    "        if request.in_flight == 0 and request.row is not None"
    ' and (request.finish_reason != "abort" or request.uid % 8):',
)


def test_a_leak_is_found_and_replayed_by_its_seed(broken):
    path = broken(*LEAK)
    done = course("soak", "schedules", "--count", "200", "--solution", "tiny_llm", path=path)
    said = done.stderr.decode()
    assert done.returncode == 1, said
    assert "leak" in said or "never ended" in said  # for want of the pages that leaked
    seed = said.rpartition("--seed ")[2].strip()
    again = course("soak", "schedules", "--solution", "tiny_llm", "--seed", seed, path=path)
    assert again.returncode == 1
    assert again.stderr == done.stderr


def test_what_the_package_raises_is_told_with_its_line(broken):
    path = broken(
        "serving/paged_memory.py", "        self.table.append(request.row, prefix.pages)\n", "        1 / 0\n"
    )
    done = course("soak", "schedules", "--count", "50", "--solution", "tiny_llm", path=path)
    assert done.returncode == 1
    said = done.stderr.decode()
    assert "ZeroDivisionError" in said
    assert "paged_memory.py" in said
    assert "replay it" in said


def test_a_stub_is_no_wrong_token(broken):
    stub = 'raise NotImplementedError("Week 3 Day 1 Task 1: launch - see book/src/x.md#task-1")'
    old = "        if not 1 <= tokens <= self.extend_len:\n"
    path = broken("serving/request.py", old, f"        {stub}\n{old}")
    done = course("soak", "schedules", "--solution", "tiny_llm", path=path)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("error: Week 3 Day 1 Task 1: launch")


def test_an_endless_loop_is_ended(monkeypatch):
    def forever(*_, **__):
        while True:
            pass

    monkeypatch.setattr("course.soak.schedules.drive", forever)
    monkeypatch.setattr("course.soak.schedules.SECONDS", 0.2)
    with pytest.raises(ScheduleError, match="no result within"):
        run_schedules("tiny_llm_ref", range(1))


def test_mistakes_on_the_command_line_are_told():
    for arguments, part in (
        ((), "required"),
        (("schedules", "--count", "0"), "'0'"),
        (("serve", "--seconds", "x"), "x"),
    ):
        done = course("soak", *arguments)
        assert done.returncode == 2
        assert part in done.stderr.decode()
        assert done.stderr.decode().count("\n") == 1


def test_a_short_soak_of_the_server_finds_nothing():
    done = course("soak", "serve", "--seconds", "20")
    assert (done.returncode, done.stderr) == (0, b""), done
    said = done.stdout.decode()
    assert "nothing was left" in said
    assert "'used_pages': 0" in said
    assert "open 0" in said


def test_a_soak_of_a_server_that_leaks_finds_it(broken):
    path = broken(*LEAK)
    options = ("--solution", "tiny_llm", "--attention", "gather", "--rows", "40", "--max-len", "512")
    done = course("soak", "serve", "--seconds", "2", "--clients", "4", "--", *options, path=path)
    assert done.returncode == 1
    assert "pages leak" in done.stderr.decode()


def test_a_soak_of_a_server_that_lies_finds_it(broken):
    """One token of a batch in which somebody else is goes to the wrong request."""
    old = "        results = iter(results)\n"
    new = "        results = iter(results if len(results) < 2 else [*results[1::-1], *results[2:]])\n"
    path = broken("serving/scheduler.py", old, new)
    options = ("--solution", "tiny_llm", "--attention", "gather", "--rows", "8", "--max-len", "512")
    done = course("soak", "serve", "--seconds", "2", "--clients", "4", "--", *options, path=path)
    assert done.returncode == 1
    assert "alone" in done.stderr.decode()


def test_a_server_that_does_not_start_is_told():
    done = course("soak", "serve", "--seconds", "1", "--model", "huge")
    assert done.returncode == 2
    assert done.stderr.decode().startswith("error: the server did not start: no model 'huge'")


STATE = {
    "running": [],
    "waiting": [],
    "open": 0,
    "available": 10,
    "stats": {"pages": 10},
    "tree": {"locked": 1, "children": [{"locked": 0, "children": []}]},
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"running": [{"uid": 3}]}, "1 requests are still running: [3]"),
        ({"open": 2}, "2 entries are left"),
        ({"available": 9}, "1 of 10 pages leak"),
        ({"available": 11}, "-1 of 10 pages leak"),
        ({"tree": {"locked": 1, "children": [{"locked": 1, "children": []}]}}, "1 nodes of the prefix tree"),
    ],
)
def test_what_is_left_is_named(change, words):
    assert leaks(STATE) == []
    (said,) = leaks(STATE | change)
    assert words in said


def test_growth_is_named():
    steady = [Figures(100.0, 30, 8)] * 60
    assert growth(steady, print) == []
    (memory,) = growth([Figures(100.0 + 2 * i, 30, 8) for i in range(60)], print)
    assert "memory grows" in memory
    (files,) = growth([Figures(100.0, 30 + i, 8) for i in range(60)], print)
    assert "files leak" in files
    (threads,) = growth([Figures(100.0, 30, 8 + i // 2) for i in range(60)], print)
    assert "threads leak" in threads
