"""When submissions came, what lateness costs, and that times without a zone are never guessed."""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from classroom import Class

from course.classroom import commit
from course.classroom.clock import moment, told, zone
from course.classroom.commit import commit_time
from course.classroom.entry import Entry
from course.classroom.handed import Times, read_times
from course.classroom.late import FREE, Lateness, lateness
from course.classroom.student import Student
from course.errors import CourseError
from course.grading.course_file import LateTable

DEADLINE = datetime(2026, 10, 5, 23, 59, tzinfo=zone("Europe/Berlin"))
RULE = LateTable(grace_minutes=10, free_days=1, percent_per_day=20.0, most_days=4)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (-100 * HOUR, Lateness()),
        (timedelta(minutes=10), Lateness()),
        (timedelta(minutes=10, seconds=1), Lateness(1, 0, 1.0)),
        (24 * HOUR, Lateness(1, 0, 1.0)),
        (24 * HOUR + timedelta(seconds=1), Lateness(2, 1, 0.8)),
        (95 * HOUR, Lateness(4, 3, 0.4)),
        (97 * HOUR, Lateness(5, 4, 0.0)),
        (9999 * HOUR, Lateness(417, 416, 0.0)),
    ],
)
def test_each_day_begun_after_the_free_ones_costs_its_share(after: timedelta, expected: Lateness) -> None:
    found = lateness(DEADLINE + after, DEADLINE, RULE)
    assert (found.days, found.charged) == (expected.days, expected.charged)
    assert found.kept == pytest.approx(expected.kept)
    assert lateness((DEADLINE + after).astimezone(UTC), DEADLINE, RULE) == found


def test_without_a_rule_late_days_are_told_and_cost_nothing() -> None:
    assert lateness(DEADLINE + 1000 * HOUR, DEADLINE, FREE).kept == 1.0
    assert lateness(DEADLINE + 1000 * HOUR, DEADLINE, FREE).days == 42


def test_a_share_is_never_negative() -> None:
    rule = LateTable(grace_minutes=0, percent_per_day=60.0, most_days=9)
    assert lateness(DEADLINE + 48 * HOUR, DEADLINE, rule).kept == 0.0


def test_days_are_24_hours_also_when_clocks_change() -> None:
    berlin = zone("Europe/Berlin")
    deadline = datetime(2026, 10, 24, 23, 59, tzinfo=berlin)  # the night when clocks go back an hour
    rule = LateTable(grace_minutes=0)
    assert lateness(datetime(2026, 10, 25, 22, 59, tzinfo=berlin), deadline, rule).days == 1
    assert lateness(datetime(2026, 10, 25, 23, 30, tzinfo=berlin), deadline, rule).days == 2


def test_a_time_needs_a_zone() -> None:
    assert moment("2026-10-05T23:59+02:00", None, "x") == DEADLINE
    assert moment("2026-10-05 21:59:00 UTC", None, "x") == DEADLINE
    assert moment("2026-10-05T21:59Z", zone("Asia/Tokyo"), "x") == DEADLINE
    assert moment(" 2026-10-05 23:59", zone("Europe/Berlin"), "x") == DEADLINE
    assert told(DEADLINE, None) == "2026-10-05 21:59+00:00"
    assert told(DEADLINE, zone("Europe/Berlin")) == "2026-10-05 23:59+02:00"
    with pytest.raises(CourseError, match="no time zone"):
        moment("2026-10-05 23:59", None, "x")
    for text in ("", "tomorrow", "5.10.2026"):
        with pytest.raises(CourseError, match="not a time"):
            moment(text, None, "x")


SIGNATURE = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n"


def _git(folder: Path, *arguments: str, text: str = "") -> str:
    who = {f"GIT_{role}_{what}": "a > 1 +0000" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {"GIT_COMMITTER_DATE": "2026-10-05T23:00:00+05:30", "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z"}
    environment = dict(os.environ) | who | when
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment, input=text, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("packed", [False, True])
def test_a_commit_tells_its_time_and_its_repository_runs_nothing(tmp_path: Path, packed: bool) -> None:
    repository = tmp_path / "week 1-ada"
    repository.mkdir()
    _git(repository, "init", "-b", "main")
    (repository / "x.py").write_text("")
    _git(repository, "add", ".")
    _git(repository, "commit", "-m", "committer a <a> 1 +0000")
    head, _, message = _git(repository, "cat-file", "commit", "HEAD").partition("\n\n")
    signed = _git(repository, "hash-object", "-t", "commit", "-w", "--stdin", text=f"{head}\n{SIGNATURE}\n{message}\n")
    _git(repository, "update-ref", "refs/heads/main", signed)
    if packed:
        _git(repository, "gc")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\n")
    trap.chmod(0o755)
    for setting in ("core.fsmonitor", "gpg.program", "core.pager", "core.sshCommand", "uploadpack.packObjectsHook"):
        _git(repository, "config", setting, str(trap))
    _git(repository, "config", "log.showSignature", "true")
    assert commit_time(repository) == datetime(2026, 10, 5, 17, 30, tzinfo=UTC)
    assert not (tmp_path / "sprung").exists()
    assert Times({}, {}).of(Entry("week 1-ada", repository), []).source == "git commit"


def test_a_huge_commit_tells_no_time_and_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "_MOST_BYTES", str(1 << 20))
    _git(tmp_path, "init", "-b", "main")
    for size, expected in ((1 << 10, datetime(2026, 10, 5, 17, 30, tzinfo=UTC)), (2 << 20, None)):
        _git(tmp_path, "commit", "--allow-empty", "--file", "-", text="x" * size)
        assert commit_time(tmp_path) == expected


@pytest.mark.parametrize("head", ["ref: refs/heads/../../../etc/passwd", "ref: refs/heads/none", "0" * 40, "\0", ""])
def test_a_broken_repository_tells_no_time(tmp_path: Path, head: str) -> None:
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text(head)
    assert commit_time(tmp_path) is None


def test_the_list_of_times_comes_before_all_other_signs(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("Email;Submitted\nADA@x.org;2026-10-05 23:59\nb@x.org;\n", encoding="utf-8")
    listed = read_times(path, zone("Europe/Berlin"))
    ada, ben = Student("1", "Ada", "ada@x.org"), Student("2", "Ben", "b@x.org")
    entry = Entry("submission_1", tmp_path)
    times = Times(listed, {"submission_1": DEADLINE + HOUR})
    assert (times.of(entry, [ada]).when, times.of(entry, [ada]).source) == (DEADLINE, "the list of times")
    assert times.of(entry, [ben]).source == "Gradescope"
    assert Times({}, {}).of(entry, [ben]).source == "time of the files"
    assert Times({}, {}).of(Entry("gone", tmp_path / "gone"), [ben]) is None
    with pytest.raises(CourseError, match=r"row 2: time .* no time zone"):
        read_times(path, None)


def test_late_days_show_in_the_result(tmp_path: Path) -> None:
    room = Class(tmp_path)
    for name in ("punctual", "late", "extended", "generous", "over"):
        room.submit(name, "points 10 10")
    room.write(
        "roster.csv",
        "id,name,deadline,free days\npunctual,,,\nlate,,,\nextended,,2026-10-09T12:00Z,\ngenerous,,,5\nover,,,\n",
    )
    room.write(
        "times.csv",
        "id,time\npunctual,2026-10-05 23:59\nlate,2026-10-07 12:00\nextended,2026-10-07 12:00\n"
        "generous,2026-10-07 12:00\nover,2026-10-30 12:00\n",
    )
    room.write("course.toml", "[late]\ngrace_minutes = 0\nfree_days = 1\npercent_per_day = 25.0\nmost_days = 5\n")
    done = room.run(
        *("--deadline", "2026-10-05T23:59", "--zone", "Europe/Berlin", "--course", tmp_path / "course.toml"),
        *("--roster", tmp_path / "roster.csv", "--times", tmp_path / "times.csv"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = (room.out / "students/late/final.md").read_text("utf-8")
    assert "## late: 15 of 20 points\n\n- earned: 20 points\n- handed in: 2026-10-07 12:00+02:00 (the list" in told
    assert "- deadline: 2026-10-05 23:59+02:00\n- late: 2 days, 1 of them charged: 5 points taken off\n" in told
    assert "20 of 20 points" in (extended := (room.out / "students/extended/final.md").read_text("utf-8"))
    assert "- late: no\n" in extended
    lines = room.lines
    shown = ("days_late", "days_charged", "points", "final")
    assert {name: tuple(line[key] for key in shown) for name, line in lines.items()} == {
        "punctual": (0, 0, 20.0, 20.0),
        "late": (2, 1, 20.0, 15.0),
        "extended": (0, 0, 20.0, 20.0),
        "generous": (2, 0, 20.0, 20.0),
        "over": (25, 24, 20.0, 0.0),
    }
    assert lines["late"]["submitted"] == "2026-10-07 12:00+02:00"
    assert lines["extended"]["deadline"] == "2026-10-09 14:00+02:00"
    assert "submission times from: the list of times" in " ".join(room.report["notes"])
