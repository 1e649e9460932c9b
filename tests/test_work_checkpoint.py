"""Checkpoints of the whole course: chosen tasks done by the reference, with just the helpers and imports they need."""

import ast
import random
from pathlib import Path

import pytest
from work_place import curriculum, make_place, solved, starter, tree, undefined_names

from course.curriculum import Task
from course.errors import CourseError
from course.paths import REFERENCE
from course.release.archive import zipped
from course.starter import read_package, render_file
from course.work.checkout import checkout, fill
from course.work.checkpoint import before, render_checkpoint
from course.work.place import Place
from course.work.pristine import has_reference, pristine, pristine_file
from course.work.source import unwritten

TASKS = curriculum().tasks
MIDDLE = curriculum().days[len(curriculum().days) // 2]


def test_with_all_tasks_done_each_file_is_the_reference_below_its_header():
    for name, content in read_package(REFERENCE).items():
        head, found, rest = solved()[name].partition(content)
        assert found == content, name
        assert rest == b"", name
        assert all(line.startswith((b"#", b"//")) for line in head.splitlines() if line.strip()), name


@pytest.mark.parametrize("share", [0.15, 0.5, 0.85])
def test_some_tasks_done_need_nothing_that_is_gone_and_leave_nothing_behind(share: float, tmp_path: Path):
    chance = random.Random(f"tasks {share}")
    done = {task for task in TASKS if chance.random() < share}
    place = make_place(tmp_path, render_checkpoint(curriculum(), done.__contains__))
    assert undefined_names(tmp_path, "F821,F401,E9") == ""
    for task in TASKS:
        assert bool(unwritten(task, place)) == (task not in done), task.label


def test_one_file_is_rendered_as_in_the_whole_package():
    done = before(2, 3)
    files = render_checkpoint(curriculum(), done)
    for name in random.Random(0).sample(sorted(files), 30):
        assert render_file(curriculum(), REFERENCE, name, done) == files[name]


def test_a_checkout_is_done_before_its_day_and_a_stub_from_then_on(tmp_path: Path):
    place = make_place(tmp_path, starter())
    (place.package / "notes.md").write_text("mine")
    done = checkout(curriculum(), before(MIDDLE.week, MIDDLE.day), place)
    assert done.saved is not None
    assert set(done.filled) == {task for task in TASKS if (task.week, task.day) < (MIDDLE.week, MIDDLE.day)}
    for task in TASKS:
        left = unwritten(task, place)
        assert (left == ()) == (task in done.filled), task.label
    assert (place.package / "notes.md").read_text() == "mine"
    assert undefined_names(tmp_path) == ""
    assert checkout(curriculum(), before(MIDDLE.week, MIDDLE.day), place).saved is None


def written(task: Task, place: Place) -> None:
    """Put the reference's code of one task into the learner's files, each function with a mark of its own."""
    for name in task.symbols:
        content = render_file(curriculum(), REFERENCE, name, lambda other: other is task)
        place.file(name).write_bytes(content)


def test_keep_fills_the_gaps_around_own_work(tmp_path: Path):
    place = make_place(tmp_path, starter())
    first, last = TASKS[0], TASKS[-1]
    for task in (first, last):
        written(task, place)
    (name,) = first.symbols
    mine = place.file(name).read_bytes().replace(b'"""', b'"""MINE: ', 1) + b"\n\ndef my_own():\n    return 1\n"
    place.file(name).write_bytes(mine)
    kept = place.file(next(iter(last.symbols))).read_bytes()
    done = fill(curriculum(), before(MIDDLE.week, MIDDLE.day), place)
    assert done.whole == {}
    assert first not in done.filled
    for task in TASKS:
        assert (unwritten(task, place) == ()) == (task in (*done.filled, first, last)), task.label
    text = place.file(name).read_text()
    assert "MINE: " in text
    assert "def my_own" in text
    assert place.file(next(iter(last.symbols))).read_bytes() == kept
    assert undefined_names(tmp_path) == ""
    ast.parse(text)


def test_keep_takes_the_whole_file_where_a_helper_of_ones_own_has_the_name_of_another(tmp_path: Path):
    place = make_place(tmp_path, starter())
    name = "model/checkpoint.py"
    helper = next(n for n in ast.parse(solved()[name]).body if getattr(n, "name", "x").startswith("_"))
    assert f"def {helper.name}(" not in starter()[name].decode()
    place.file(name).write_bytes(starter()[name] + f"\n\ndef {helper.name}():\n    return 'mine'\n".encode())
    before_it = place.file(name).read_bytes()
    done = fill(curriculum(), before(2), place)
    assert f"your {helper.name} is not the one" in done.whole[name]
    assert place.file(name).read_bytes() == solved()[name]
    assert done.saved.read(name) == before_it


def test_a_copy_without_reference_has_a_starter_but_no_checkpoints(tmp_path: Path):
    place = Place(tmp_path, tmp_path / "src/tiny_llm", tmp_path / "src/tiny_llm_ref")
    assert not has_reference(place)
    with pytest.raises(CourseError, match=r"curriculum/starter\.zip is missing"):
        pristine(curriculum(), place)
    place.starter_zip.parent.mkdir()
    first = zipped(starter())
    place.starter_zip.write_bytes(first)
    assert pristine(curriculum(), place) == starter()
    assert pristine_file(curriculum(), "model/basics.py", place) == starter()["model/basics.py"]
    for name in ("model/none.py", "model", "../run"):
        with pytest.raises(CourseError, match="is no file of the course"):
            pristine_file(curriculum(), name, place)
    for act in (checkout, fill):
        with pytest.raises(CourseError, match=r"^this copy of the course has no reference solution, which"):
            act(curriculum(), before(2), place)
    place.starter_zip.write_bytes(first[:1000])
    with pytest.raises(CourseError, match=r"curriculum/starter\.zip cannot be read"):
        pristine(curriculum(), place)
    assert tree(place) == {}
