"""The parts of a release that need no repository: points, weeks, house files, archives, the Classroom workflow."""

import tomllib
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
import yaml

from course import cli
from course.curriculum import Curriculum, Task, load
from course.errors import CourseError
from course.grading.course_file import Course, load_course
from course.paths import CURRICULUM, ROOT
from course.release import adapt
from course.release.archive import zipped
from course.release.graded import how_graded
from course.release.place import Plan, plan, write, write_file
from course.release.points import with_points
from course.release.selection import DESK, rules_for, select
from course.release.student import RECORD, STARTER_ZIP, record
from course.release.weeks import contents, week_of, without_later
from course.release.workflow import GRADER, REPORTER, whole_points, workflow
from course.starter.header import header


@pytest.fixture(scope="module")
def curriculum() -> Curriculum:
    return load()


def tasks_of(curriculum: Curriculum) -> list[Task]:
    return [task for day in curriculum.weeks[0].days for task in day.tasks]


def test_only_the_numbers_of_points_change(curriculum: Curriculum):
    text = (CURRICULUM / "week1.toml").read_text()
    tasks = tasks_of(curriculum)
    changed = with_points("week1.toml", text, {tasks[0]: 11.0, tasks[-1]: 7.25})
    pairs = list(zip(text.splitlines(), changed.splitlines(), strict=True))
    different = [pair for pair in pairs if pair[0] != pair[1]]
    assert [new for _, new in different] == ["points = 11", "points = 7.25"]
    assert all(old.startswith("points = ") for old, _ in different)
    assert changed.endswith(text[-20:])
    days = tomllib.loads(changed)["day"]
    assert (days[0]["task"][0]["points"], days[-1]["task"][-1]["points"]) == (11, 7.25)


@pytest.mark.parametrize("old", ["points = 5", "points=5", "points = 5  # easy\r"])
def test_what_stands_beside_points_stays(curriculum: Curriculum, old: str):
    text = f'week = 1\n[[day]]\n[[day.task]]  # one\ntitle = "points"\n{old}\n[[day.task]]\npoints = 1\n'
    changed = with_points("week1.toml", text, {tasks_of(curriculum)[0]: 20.0})
    assert changed == text.replace(old, old.replace("5", "20"), 1)


def test_points_in_the_text_of_a_hint_are_not_mistaken(curriculum: Curriculum):
    text = 'week = 1\n[[day]]\n[[day.task]]\nhint = """\npoints = 3\n"""\npoints = 5\n'
    with pytest.raises(CourseError, match="on a line of its own"):
        with_points("week1.toml", text, {tasks_of(curriculum)[0]: 20.0})


def test_a_task_without_points_is_named(curriculum: Curriculum):
    with pytest.raises(CourseError, match=r"^Week 1 Day 1 Task 1 has 0 points: .*\[graded\]$"):
        with_points("week1.toml", (CURRICULUM / "week1.toml").read_text(), {tasks_of(curriculum)[0]: 0.0})


@pytest.mark.parametrize(
    ("name", "week"),
    [
        ("curriculum/week3.toml", 3),
        ("tests_refsol/week_12/golden/x.npz", 12),
        ("book/src/week2-overview.md", 2),
        ("book/src/quizzes/week2-01.toml", 2),
        ("book/src/glossary.md", None),
        ("src/tiny_llm/serving/engine.py", None),
        ("book/figures/week3-map.py", None),
    ],
)
def test_files_belong_to_weeks(name: str, week: int | None):
    assert week_of(name) == week


def test_later_weeks_leave_the_table_of_contents():
    summary = (ROOT / "book/src/SUMMARY.md").read_text()
    names = _links(summary)
    files = {f"book/src/{name}": (ROOT / "book/src" / name).read_bytes() for name in names}
    kept = without_later(files | {"curriculum/week2.toml": b""}, 1)
    late = {"book/src/gallery.md", "book/src/simulator.md"}
    assert kept.keys() == {name for name in files if (week_of(name) or 0) <= 1} - late
    assert late <= without_later(files, 4).keys()
    left = contents(summary, kept)
    assert [f"book/src/{name}" for name in _links(left)] == list(kept)
    assert "# Week 2" not in left
    assert "# Week 1" in left
    assert contents(summary, files) == summary


def _links(text: str) -> list[str]:
    return [part.partition(")")[0] for part in text.split("](")[1:]]


def test_scripts_without_a_command_go_and_the_rest_stays():
    text = (ROOT / "pyproject.toml").read_text()
    scripts = tomllib.loads(text)["tool"]["pdm"]["scripts"]
    changed = adapt.pyproject(text, frozenset({"main", "test", "status", "build-ext"}))
    assert tomllib.loads(changed)["tool"]["pdm"]["scripts"].keys() == {"main", "test", "status", "build-ext"}
    assert tomllib.loads(changed)["project"] == tomllib.loads(text)["project"]
    assert set(changed.splitlines()) - set(text.splitlines()) == {'includes = ["src/course", "src/tiny_llm"]'}
    assert len(scripts) > 4


def test_house_files_of_another_shape_are_errors():
    with pytest.raises(CourseError, match="AGENTS"):
        adapt.agents("Nothing of the kind.\n")
    with pytest.raises(CourseError, match="as it was"):
        adapt.pyproject('[tool.pdm.scripts]\ntest-refsol = { cmd = "python -m course test" }\n', frozenset())


def test_the_instructors_files_stay_wherever_they_are(curriculum: Curriculum, tmp_path: Path):
    for name in ("curriculum/week1.toml", "curriculum/my [course].toml", "curriculum/secret.txt", "book/x.seeds"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('[hidden]\nfile = "secret.txt"\n')
    course = load_course(tmp_path / "curriculum/my [course].toml", curriculum)
    chosen = select(tmp_path, ("curriculum", "book"), rules_for(course, tmp_path))
    assert chosen.files.keys() == {"curriculum/week1.toml"}
    assert len(chosen.left_out[DESK.why]) == 3


@pytest.mark.parametrize("place", ["a file/x", "folder"])
def test_what_cannot_be_written_is_one_line_and_leaves_nothing(tmp_path: Path, place: str):
    (tmp_path / "a file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(CourseError, match=r"^cannot write .*: name another place$"):
        write_file(tmp_path / place, b"new")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a file", "folder"]


def test_archives_depend_on_contents_alone():
    files = {"b": b"2", "a/x.sh": b"1", "s": b"secret"}
    first = zipped(files, {"a/x.sh"}, {"s"})
    assert first == zipped(dict(reversed(files.items())), {"a/x.sh"}, {"s"})
    with zipfile.ZipFile(BytesIO(first)) as archive:
        modes = {entry.filename: oct(entry.external_attr >> 16 & 0o777) for entry in archive.infolist()}
        assert modes == {"a/x.sh": "0o755", "b": "0o644", "s": "0o600"}
        assert archive.read("s") == b"secret"


def test_the_workflow_has_a_step_per_graded_task_and_a_reporter(curriculum: Curriculum, tmp_path: Path):
    file = tmp_path / "course.toml"
    file.write_text('[graded]\ndays = ["1.2", "2.1"]\n[points]\n"1.2" = 10\n"2.1.1" = 2.5\n')
    course = load_course(file, curriculum)
    document = yaml.safe_load(workflow(course.days, course.points_of))
    assert document["on"] == ["push", "workflow_dispatch", "repository_dispatch"]
    assert document["permissions"] == {"checks": "write", "actions": "read", "contents": "read"}
    (job,) = document["jobs"].values()
    assert "github-classroom[bot]" in job["if"]
    steps = [step for step in job["steps"] if step.get("uses") == GRADER]
    assert [step["with"]["command"] for step in steps] == [f"./run test {task.options}" for task in course.tasks]
    wanted = list(whole_points(course.tasks, course.points_of).values())
    assert [step["with"]["max-score"] for step in steps] == wanted
    for step in steps:
        assert step["with"].keys() == {"test-name", "command", "timeout", "max-score"}
        assert 1 <= step["with"]["timeout"] <= 60
    _check_reporter(job["steps"][-1], [step["id"] for step in steps])


def _check_reporter(step: dict, ids: list[str]) -> None:
    """As the action reads it: `runners` are ids of steps, and each has its result in ID_RESULTS."""
    assert step["uses"] == REPORTER
    assert step["with"] == {"runners": ",".join(ids)}
    assert step["env"] == {f"{name.upper()}_RESULTS": f"${{{{steps.{name}.outputs.result}}}}" for name in ids}
    assert len(set(ids)) == len(ids)


def test_a_workflow_is_written_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "classroom.yml"
    assert cli.main(["release", "classroom", str(file)]) == 0
    assert cli.main(["release", "classroom", str(file), "--check"]) == 0
    capsys.readouterr()
    assert cli.main(["release", "classroom"]) == 0
    assert capsys.readouterr().out == file.read_text()
    file.write_text(file.read_text().replace("max-score: 10\n", "max-score: 99\n", 1))
    assert cli.main(["release", "classroom", str(file), "--check"]) == 1
    assert "out of date" in capsys.readouterr().out


def test_a_committed_workflow_is_fresh():
    committed = ROOT / ".github" / "workflows" / "classroom.yml"
    if committed.exists():
        assert cli.main(["release", "classroom", str(committed), "--check"]) == 0


def test_without_a_course_file_the_curriculum_counts(curriculum: Curriculum):
    course = Course(curriculum, days=curriculum.days)
    document = yaml.safe_load(workflow(course.days, course.points_of))
    (job,) = document["jobs"].values()
    scores = [step["with"]["max-score"] for step in job["steps"] if step.get("uses") == GRADER]
    assert sum(scores) == sum(task.points for task in curriculum.tasks)


def made(**texts: bytes) -> dict[str, bytes]:
    """A small release; the learner's file is in its archive, as it is."""
    files = {f"docs/{name}.md": text for name, text in texts.items() if name != "starter"}
    learner = {"src/tiny_llm/model/basics.py": texts["starter"]}
    archive = {STARTER_ZIP: zipped({"model/basics.py": texts["starter"]})}
    return files | learner | archive | {RECORD: record(files | archive)}


def test_a_new_starter_and_dropped_files_are_no_changes_by_hand(tmp_path: Path):
    first = made(starter=b"one\n", kept=b"a\n", dropped=b"b\n")
    write(tmp_path, first, {"docs/kept.md"}, plan(tmp_path, first))
    assert (tmp_path / "docs/kept.md").stat().st_mode & 0o777 == 0o755
    second = made(starter=b"two\n", kept=b"c\n")
    changes = plan(tmp_path, second)
    assert changes.lost == ()
    assert changes.removed == ("docs/dropped.md",)
    assert {"src/tiny_llm/model/basics.py", "docs/kept.md"} <= set(changes.changed)
    (tmp_path / "docs/dropped.md").write_text("mine\n")
    (tmp_path / "src/tiny_llm/model/basics.py").write_text("mine\n")
    assert plan(tmp_path, second).lost == ("docs/dropped.md", "src/tiny_llm/model/basics.py")
    write(tmp_path, second, (), plan(tmp_path, second))
    assert {p.name for p in (tmp_path / "docs").iterdir()} == {"kept.md"}
    assert plan(tmp_path, second) == Plan((), (), (), ())


def told(tmp_path: Path, curriculum: Curriculum, text: str, days: int = 100) -> str:
    (tmp_path / "course.toml").write_text(text)
    course = load_course(tmp_path / "course.toml", curriculum)
    return how_graded(course, course.days[:days])


def test_students_read_how_they_are_graded(curriculum: Curriculum, tmp_path: Path):
    text = """extra_files = ["model/helpers.py", "extensions/src/own.h"]
[graded]
weeks = [1]
days = ["2.1", "2.3"]
[points]
"1" = 60
"2.1" = 20
"2.3" = 20.5
[late]
deadline = 2027-02-28T23:59:00+01:00
free_days = 3
[hidden]
share = 0.25
[visibility]
default = "visible"
"1.2" = "after_due_date"
"""
    lines = told(tmp_path, curriculum, text).splitlines()
    assert "Week 1, Week 2 Days 1 and 3, 100.5 points in all." in lines[0]
    assert "first line, and `src/tiny_llm/model/helpers.py`, `src/extensions/src/own.h` if you" in lines[1]
    assert (
        "2027-02-28 23:59 (UTC+01:00), with 10 minutes of grace. Free late days: 3. Each one more costs 10 %"
        in lines[2]
    )
    assert "25 % of a task's points" in lines[3]
    assert lines[4].endswith("are shown at once or after the due date, by task.")
    assert lines[5].endswith("are shown once they are published.")
    assert len(lines) == 6
    first = told(tmp_path, curriculum, text, 1)
    assert "Week 1 Day 1, " in first
    assert "more days follow" in first


def test_what_the_course_file_leaves_open_is_not_told(curriculum: Curriculum, tmp_path: Path):
    lines = told(tmp_path, curriculum, "").splitlines()
    assert [line.partition("**:")[0] for line in lines] == ["- **What counts", "- **Graded files"]
    late = told(tmp_path, curriculum, "[late]\ndeadline = 2027-02-28T23:59:00Z\n")
    assert "(UTC+00:00), with 10 minutes of grace. Each late day costs 10 %" in late


def test_files_that_a_grader_takes_say_so_in_their_first_line(curriculum: Curriculum):
    for name, listed in curriculum.files.items():
        if listed.tasks:
            assert "This file is yours to edit" in header(listed).splitlines()[0], name


def test_steps_have_whole_points_that_add_up(curriculum: Curriculum, tmp_path: Path):
    (tmp_path / "course.toml").write_text('[graded]\nweeks = [1]\n[points]\n"1" = 100\n')
    course = load_course(tmp_path / "course.toml", curriculum)
    assert any(course.points_of(task) % 1 for task in course.tasks)
    document = yaml.safe_load(workflow(course.days, course.points_of))
    (job,) = document["jobs"].values()
    scores = [step["with"]["max-score"] for step in job["steps"] if step.get("uses") == GRADER]
    assert {type(score) for score in scores} == {int}
    assert sum(scores) == 100
    for task, score in zip(course.tasks, scores, strict=True):
        assert abs(score - course.points_of(task)) < 1


@pytest.mark.parametrize(
    ("points", "whole"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([1.4, 1.7, 1.9], [1, 2, 2]),
        ([0.5, 0.5], [1, 0]),
        ([2.25, 2.25], [3, 2]),
        ([0.1] * 3, [0] * 3),
    ],
)
def test_the_largest_remainders_go_up(curriculum: Curriculum, points: list[float], whole: list[int]):
    tasks = tasks_of(curriculum)[: len(points)]
    assert list(whole_points(tasks, dict(zip(tasks, points, strict=True)).__getitem__).values()) == whole
