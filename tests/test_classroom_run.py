"""Grading a class from the command line: many at once, faults of one, interruptions, and what a second run does."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from classroom import Class
from terminal import Terminal

from course.classroom import job


@pytest.fixture
def room(tmp_path: Path) -> Class:
    return Class(tmp_path)


def test_ten_submissions_are_graded_and_a_second_run_grades_only_what_changed(room: Class) -> None:
    for number in range(8):
        room.submit(f"s{number}", f"points 10 {number}")
    room.submit("Jörg Müller-Lüdenscheidt", "points 10 10")
    room.submit_zip("ada l.zip", "points 0 3")
    done = room.run("--jobs", "4")
    assert (done.returncode, done.stderr) == (0, "")
    assert {name: line["points"] for name, line in room.lines.items()} == {
        **{f"s{number}": 10.0 + number for number in range(8)},
        "Jörg Müller-Lüdenscheidt": 20.0,
        "ada l": 3.0,
    }
    assert len(room.calls()) == 10

    again = room.run()
    assert again.returncode == 0
    assert room.calls() == []
    room.submit("s3", "points 10 9")
    (room.root / "submissions" / "s4" / "notes.txt").write_text("not a file of the course")
    room.submit("new", "points 1 1")
    assert room.run().returncode == 0
    assert room.calls() == ["new", "s3"]
    (room.root / "submissions/s5/src/tiny_llm/own_util.py").write_text("")
    assert "s5: 1 file not graded: own_util.py\n" in room.run().stdout
    assert room.calls() == ["s5"]
    assert ",1 file not graded: own_util.py," in (room.out / "class.csv").read_text("utf-8")
    assert room.lines["s3"]["points"] == 19.0
    assert room.run("--again", "--week", "1").returncode == 0
    assert len(room.calls()) == 11
    assert room.run("--week", "1", "--day", "1").returncode == 0
    assert len(room.calls()) == 11, "other options, other grades"


def test_what_hangs_crashes_or_cannot_be_read_is_zero_with_a_reason_and_stops_nobody(room: Class) -> None:
    for name in ("hang", "crash", "mistake"):
        room.submit(name, name)
    room.submit("empty", "points 1 1").joinpath("src/tiny_llm/model/basics.py").unlink()
    room.submit("good", "points 10 10")
    room.write("submissions/broken.zip", b"PK\x03\x04 no archive")
    done = room.run("--limit", "4", "--jobs", "3")
    assert done.returncode == 1, done.stderr
    lines = room.lines
    assert {name: (line["final"], line["ended"]) for name, line in lines.items()} == {
        "hang": (0.0, "time limit"),
        "crash": (0.0, "failed"),
        "mistake": (0.0, "failed"),
        "empty": (0.0, "unreadable"),
        "broken": (0.0, "unreadable"),
        "good": (20.0, "graded"),
    }
    assert "stopped after 4 s" in lines["hang"]["problem"]
    assert "signal 6" in lines["crash"]["problem"]
    assert "error: nothing works here" in lines["mistake"]["problem"]
    assert "no archive" in lines["broken"]["problem"]
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "61.5"]]

    room.calls()
    assert room.run("--limit", "4").returncode == 1
    assert room.calls() == ["crash", "mistake"], "the grader's own failures are tried again, and nothing else"
    room.submit("crash", "points 2 2")
    room.submit("mistake", "points 2 2")
    assert room.run("--limit", "5").returncode == 0
    assert room.calls() == ["crash", "hang", "mistake"], "a larger limit is a new chance"


def test_other_points_and_late_days_run_no_test_again(room: Class) -> None:
    room.submit("ada", "points 10 5")

    def final(text: str) -> tuple[float, float, list[str]]:
        room.write("course.toml", f"[graded]\ndays = ['1.1']\n{text}")
        done = room.run("--course", room.root / "course.toml", "--deadline", "2001-01-01T00:00Z")
        assert (done.returncode, done.stderr) == (0, "")
        return room.lines["ada"]["points"], room.lines["ada"]["final"], list(room.calls())

    assert final("") == (15.0, 15.0, ["ada"])
    assert final("[late]\nmost_days = 1\n") == (15.0, 0.0, [])
    assert final("[points]\n'1.1.1' = 8\n'1.1.2' = 3\n") == (8.0, 8.0, [])
    assert "8 of 11 points" in (room.out / "students/ada/report.md").read_text()
    assert final("[limits]\nday_seconds = 99\n")[2] == ["ada"]
    assert final("[points]\n'1.1.1' = 8\n[limits]\nday_seconds = 99\n")[2] == []


def test_a_half_written_result_is_graded_again(room: Class) -> None:
    for name in ("a", "b", "c"):
        room.submit(name, "points 1 2")
    room.run()
    room.calls()
    result = room.out / "students" / "a" / "result.json"
    result.write_bytes(result.read_bytes()[:100])
    (room.out / "students" / "b" / "graded.json").unlink()
    (room.out / "students" / ".c~left").mkdir()
    assert room.run().returncode == 0
    assert room.calls() == ["a", "b"]
    assert [line["points"] for line in room.lines.values()] == [3.0] * 3
    room.submit("c", "points 1 3")
    result.write_text(result.read_text().replace('"state": "failing"', '"state": "not graded"'))  # the boundary failed
    assert room.run().returncode == 0
    assert room.calls() == ["a", "c"]
    assert sorted(path.name for path in (room.out / "students").iterdir()) == ["a", "b", "c"]


def _wait_for(something: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not something():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _processes(word: str) -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if any(word in part for part in p.info["cmdline"] or [])]


@pytest.mark.parametrize(("number", "count"), [(signal.SIGINT, 50), (signal.SIGTERM, 20)])
def test_fifty_submissions_go_on_after_an_interruption(room: Class, number: signal.Signals, count: int) -> None:
    for index in range(count):
        room.submit(f"s{index:02}", f"slow 0.1 10 {index % 11}")
    process = subprocess.Popen(room.command("--jobs", "4"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _wait_for(lambda: len(list(room.out.glob("students/s*/graded.json"))) >= 12)
    process.send_signal(number)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (128 + number, "")
    assert "same command goes on" in output
    assert not _processes(str(room.root / "grader.py")), "no grader outlives the run"
    assert not list(room.out.glob("students/.*")), "nothing half-written is left"
    first = room.calls()
    finished = len(list(room.out.glob("students/*/graded.json")))
    assert 12 <= finished < count

    assert room.run("--jobs", "4").returncode == 0
    assert len(room.calls()) == count - finished >= count - len(first)
    assert [line["points"] for line in room.lines.values()] == [10.0 + index % 11 for index in range(count)]


def test_a_grader_that_does_not_stop_when_asked_is_killed_with_all_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "PATIENCE", 0.5)
    child = "import subprocess, time; subprocess.Popen(['sleep', '62.5'], start_new_session=True); time.sleep(60)"
    program = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {child}"
    work = job.Work((sys.executable, "-c", program), tmp_path / "students" / "a", "x", 1.0)
    running, outcomes = job.Job(work), []
    _wait_for(lambda: outcomes.append(running.poll()) or outcomes[-1])
    outcome = outcomes[-1]
    assert (outcome.record.ended, outcome.grade) == ("time limit", None)
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "62.5"]]


def test_one_run_at_a_time_writes_into_a_folder(room: Class) -> None:
    room.submit("slow", "hang")
    with subprocess.Popen(room.command(), stdout=subprocess.DEVNULL) as first:
        try:
            _wait_for(lambda: list(room.out.glob("students/.slow~*")))
            second = room.run()
        finally:
            first.terminate()
    assert (second.returncode, first.returncode) == (2, 128 + signal.SIGTERM)
    assert "another run grades into" in second.stderr
    assert second.stderr.count("\n") == 1


@pytest.mark.parametrize("kind", ["dumb", "xterm"])
def test_a_terminal_shows_what_runs_and_ctrl_c_stops_it(room: Class, kind: str) -> None:
    room.submit("first", "points 1 1")
    room.submit("second one", "hang")
    command = ["/usr/bin/env", f"TERM={kind}", *room.command("--jobs", "1")]
    terminal = Terminal(command, {"COLUMNS": "80", "LINES": "24", "PATH": "/usr/bin:/bin"})
    try:
        terminal.wait_for("first: 2 of 20 points", 60)
        if kind == "xterm":
            terminal.wait_for("second one", 60)
            terminal.wait_for("1/2", 60)
        terminal.type("\x03")
        assert terminal.exit_status(30) == 130, terminal.output
    finally:
        terminal.close()
    assert "goes on from there" in terminal.output
    assert "Traceback" not in terminal.output


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--jobs", "0"], "--jobs 0"),
        (["--limit", "-1"], "--limit -1"),
        (["--day", "1"], "needs --week"),
        (["--week", "99"], "week 99 does not exist"),
        (["--deadline", "2026-10-05 23:59"], "no time zone"),
        (["--deadline", "soon"], "not a time"),
        (["--zone", "Mars/Olympus"], "--zone Mars/Olympus"),
        (["--roster", "missing.csv"], "missing.csv"),
        (["--times", "missing.csv"], "missing.csv"),
        (["--output", "submissions/results"], "lies among the submissions"),
        (["--boundary", "glass"], "glass"),
        (["--course", "missing.toml"], "missing.toml"),
        (["--course", "course.toml", "--week", "2"], "does not grade Week 2 Day 1"),
    ],
)
def test_an_instructors_mistake_is_one_line(
    room: Class, options: list[str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.submit("a", "points 1 1")
    room.write("course.toml", "[graded]\nweeks = [1]\n")
    monkeypatch.chdir(room.root)
    done = room.run(*options)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (room.root / "submissions" / "results").exists()


def test_a_wrong_roster_is_told_before_missing_submissions(room: Class) -> None:
    (room.root / "submissions").mkdir()
    done = room.run("--roster", room.write("roster.csv", "first,second\n1,2\n"))
    assert "lacks the columns id and name" in done.stderr


def test_no_submission_at_all_is_a_mistake_too(room: Class) -> None:
    assert "name the folder of the submissions" in room.run().stderr
    room.write("x.txt", "")
    (room.root / "submissions").mkdir()
    assert "holds no submission" in room.run().stderr
