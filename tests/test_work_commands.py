"""The commands that change the learner's files, as one types them: what they say, their exit status, their time."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from work_place import curriculum, solved, starter, tree

from course import cli
from course.loop.progress import Entry, assess
from course.loop.sources import Sources
from course.paths import ROOT, SRC
from course.release.archive import zipped
from course.starter import write
from course.state import update_state
from course.work.place import Place
from course.work.saved import saved_copies

COMMANDS = ("reset", "checkout", "restore", "solution", "update", "starter")
BASICS = "model/basics.py"
QUICK = 0.7
"""s of CPU for a reset, on a slow machine of others."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A finished course, with links to the reference of this repository."""
    place = Place.of(tmp_path)
    write(solved(), place.package)
    for name in ("tiny_llm_ref", "extensions_ref"):
        (tmp_path / "src" / name).symlink_to(SRC / name)
    for command in COMMANDS:
        monkeypatch.setattr(importlib.import_module(f"course.commands.{command}"), "HERE", place)
    return place


def said(capsys: pytest.CaptureFixture[str], line: str, status: int = 0) -> str:
    """What a command prints, to standard error for a mistake."""
    assert cli.main(line.split()) == status, capsys.readouterr()
    output = capsys.readouterr()
    assert "Traceback" not in output.err
    return output.err if status == 2 else output.out


def told(capsys: pytest.CaptureFixture[str], line: str) -> dict:
    """What it prints for programs."""
    return json.loads(said(capsys, f"{line} --json"))


def test_reset_says_what_it_did_and_how_to_go_back(place: Place, capsys: pytest.CaptureFixture[str]):
    text = said(capsys, "reset --week 1 --day 1 --task 1")
    (saved,) = saved_copies(place)
    assert text.splitlines() == [
        "Week 1 Day 1 Task 1: A stable softmax is as it was at the start, in src/tiny_llm/model/basics.py",
        f"your files are saved: pdm run restore {saved.name}",
    ]
    assert said(capsys, "reset --week 1 --day 1 --task 1").endswith("nothing to reset\n")
    place.file(BASICS).write_text("def softmax(")
    text = said(capsys, "reset --week 1 --day 1")
    assert "the whole of src/tiny_llm/model/basics.py was reset, because the file does not parse at line 1" in text
    assert "with it went" not in text
    place.file(BASICS).write_bytes(solved()[BASICS] + b"(")
    text = said(capsys, "reset --week 1 --day 1 --task 1")
    assert "with it went the code of Week 1 Day 1 Task 2 (" in text
    place.file(BASICS).write_bytes(solved()[BASICS] + b"(")
    assert told(capsys, "reset --week 1 --day 1 --task 1")["others"]
    place.file(BASICS).write_bytes(solved()[BASICS])
    text = said(capsys, f"reset --file {BASICS}")
    assert text.startswith("src/tiny_llm/model/basics.py is as it was at the start\n")
    done = told(capsys, f"reset --file {place.file('model/norm.py')}")
    assert done["changed"] == ["src/tiny_llm/model/norm.py"]
    assert done["saved"] == saved_copies(place)[0].name
    assert place.read("model/norm.py") == starter()["model/norm.py"]
    assert told(capsys, "reset --file extensions/src/qmv.cpp")["changed"] == ["src/extensions/src/qmv.cpp"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("reset --week 1", "what is to be reset? Use pdm run reset --week N --day D"),
        ("reset --week 99 --day 1", "week 99 does not exist"),
        ("reset --week 1 --day 1 --task 99", "week 1 day 1 has no task 99"),
        ("reset --file model/basics.py --week 1", "--file takes back a whole file"),
        ("reset --file README.md", "README.md is no file of the learner's"),
        ("restore latest --diff --json", "leave out --json"),
        ("restore --list --diff", "leave out --list"),
        ("reset --file model/none.py", "src/tiny_llm/model/none.py is no file of the course"),
        ("reset --file ../../etc/passwd", "../../etc/passwd is not in src/tiny_llm"),
        ("reset --file .", "'.' is no file of the learner's"),
        ("checkout --week 0", "week 0 does not exist"),
        ("checkout --week 1 --day 99", "week 1 has no day 99"),
        ("restore", "which copy?"),
        ("restore latest", "there is no saved copy"),
        ("solution --week 1 --day 1 --task 1", "Week 1 Day 1 Task 1 has not passed yet"),
        ("update", "where is the newer version?"),
        ("update --from nowhere", "--from nowhere does not exist"),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(
    place: Place, capsys: pytest.CaptureFixture[str], line: str, message: str
):
    text = said(capsys, line, 2)
    assert message in text
    assert text.count("\n") == 1
    assert tree(place) == solved()
    assert not place.saved.exists()


def test_checkout_and_restore(place: Place, capsys: pytest.CaptureFixture[str]):
    state = place.course / "state.json"
    update_state(lambda _: {"progress": {"tiny_llm": {"1.1.1": {"state": "done", "source": "x"}}}}, state)
    place.file("mine.py").write_bytes(b"mine\r\n")
    place.file(BASICS).unlink()
    before, progress = tree(place), state.read_bytes()
    text = said(capsys, "checkout --week 2")
    name = saved_copies(place)[0].name
    assert f"your earlier files are saved: pdm run restore {name}\n" in text
    assert "next: pdm run test --week 2 --day 1\n" in text
    found = assess(Sources(curriculum(), place.package), state)
    assert {task.week for task, seen in found.items() if seen.state == "given"} == {1}
    assert {seen.state for task, seen in found.items() if task.week > 1} == {"to do"}
    assert "nothing was changed" in said(capsys, "checkout --week 2")
    assert "nothing was changed" in said(capsys, "checkout --week 2 --keep")
    assert f"+++ src/tiny_llm/mine.py ({name})" not in said(capsys, f"restore {name} --diff")
    assert "-def softmax" in said(capsys, f"restore {name} --diff --file {BASICS}")
    assert "checkout" in name
    assert "earlier tasks come from the reference, and all others are stubs; " in text
    assert "files are as they were in" in said(capsys, f"restore {name}")
    assert (tree(place), state.read_bytes()) == (before, progress)
    assert "1 file is as it was in" in said(capsys, f"restore latest --file {BASICS}")
    said(capsys, "restore latest")
    assert "already: nothing was changed" in said(capsys, f"restore {name}")
    assert told(capsys, "restore latest")["changed"]
    assert place.read(BASICS) == solved()[BASICS]
    listed = said(capsys, "restore --list")
    assert all(saved.name in listed for saved in saved_copies(place))
    everything = json.loads(said(capsys, "restore --list --json"))
    assert [one["name"] for one in everything] == [saved.name for saved in saved_copies(place)]
    assert set(everything[0]) == {"name", "time", "reason", "files", "bytes", "differing"}


def test_solution_after_a_pass_and_anyway(place: Place, capsys: pytest.CaptureFixture[str]):
    task = curriculum().task(1, 1, 3)
    line = f"solution {task.options}"
    name = next(iter(task.symbols))
    text = place.file(name).read_text().replace("scale = 1.0 /", "scale = 2.0 /")
    place.file(name).write_text(text)
    difference = said(capsys, f"{line} --anyway")
    assert "--- src/tiny_llm/model/attention.py\n+++ src/tiny_llm_ref/model/attention.py\n" in difference
    assert "\n-    scale = 2.0 /" in difference
    assert "\n+    scale = 1.0 /" in difference
    source = Sources(curriculum(), place.package).of(task).whole
    entry = {"1.1.3": {"state": "done", "source": source, "when": ""}}
    assert Entry("done", source).source == source
    update_state(lambda _: {"progress": {"tiny_llm": entry}}, place.course / "state.json")
    assert said(capsys, line) == difference
    plain = said(capsys, f"{line} --plain")
    assert plain.startswith("# src/tiny_llm_ref/model/attention.py\n\nimport math\n")
    assert "def scaled_dot_product_attention" in plain
    assert "class MultiHeadAttention" not in plain
    place.file(name).write_text("(")
    cli.main(f"{line} --anyway".split())
    output = capsys.readouterr()
    assert "no readable functions of the task" in output.err
    assert "\n+def scaled_dot_product_attention(" in output.out


def test_every_solution_can_be_shown(place: Place):
    from course.work.solved import solved as parts

    for task in curriculum().tasks:
        for part in parts(curriculum(), task, place):
            assert part.mine == part.reference != "", f"{task.label} {part.name}"


def test_a_copy_without_the_reference(place: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    for name in ("tiny_llm_ref", "extensions_ref"):
        (tmp_path / "src" / name).unlink()
    for line in ("checkout --week 2", "checkout --week 2 --keep", "solution --week 1 --day 1 --task 1 --anyway"):
        text = said(capsys, line, 2)
        assert text.startswith("error: this copy of the course has no reference solution, which `")
        assert text.count("\n") == 1
    assert tree(place) == solved()
    place.starter_zip.parent.mkdir()
    place.starter_zip.write_bytes(zipped(starter()))
    assert "holds work that would be lost" in said(capsys, "starter", 2)
    assert "pdm run restore " in said(capsys, "starter --force")
    assert tree(place) == starter()
    assert "nothing to reset" in said(capsys, "reset --week 1 --day 1")
    assert said(capsys, "starter --check") == ""
    said(capsys, "restore latest")
    assert tree(place) == solved()
    assert told(capsys, "reset --week 1 --day 1 --task 1")["changed"] == ["src/tiny_llm/model/basics.py"]


def test_update_reports_and_restore_undoes_it(
    place: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    new = Place.of(tmp_path / "newer version")
    write({**starter(), "model/new.py": b"x = 1\n"}, new.package)
    for name in ("tiny_llm_ref", "extensions_ref", "course"):
        (new.root / "src" / name).symlink_to(SRC / name)
    (new.root / "curriculum").symlink_to(ROOT / "curriculum")
    (new.root / "CHANGELOG.md").write_text("- a line\n")
    (new.root / "pdm.lock").write_text("x")
    before = tree(place)
    line = ["update", "--from", str(new.root)]
    assert cli.main([*line, "--dry-run"]) == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert tree(place) == before
    assert cli.main([*line, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["fresh"] == ["src/tiny_llm/model/new.py"]
    assert done["news"] == ["- a line"]
    assert done["saved"] == saved_copies(place)[0].name
    assert tree(place) == before | {"model/new.py": b"x = 1\n"}
    assert cli.main(line) == 0
    assert capsys.readouterr().out == "this copy is up to date\n"
    said(capsys, "restore latest")
    assert tree(place) == before
    assert said(capsys, "update --settle") == "no merged files wait in .course/update\n"
    (place.course / "update/src/tiny_llm/model").mkdir(parents=True)
    (place.course / "update/src/tiny_llm/model/new.py").write_text("<<<<<<< your file\n")
    assert "still holds markers" in said(capsys, "update --settle", 1)


def test_an_update_with_conflicts_and_what_changed_since(
    place: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    new = Place.of(tmp_path / "newer")
    file = "model/basics.py"
    place.file(file).write_bytes(b"# mine\n" + starter()[file])
    write({**starter(), file: b"# new\n" + starter()[file]}, new.package)
    for name in ("tiny_llm_ref", "extensions_ref", "course"):
        (new.root / "src" / name).symlink_to(SRC / name)
    (new.root / "curriculum").symlink_to(ROOT / "curriculum")
    text = said(capsys, f"update --from {new.root} --dry-run", 1)
    assert "your file would stay" in text
    assert "--settle" not in text
    assert not (place.course / "update").exists()
    assert "then: pdm run update --settle" in said(capsys, f"update --from {new.root}", 1)
    (place.course / f"update/src/tiny_llm/{file}").write_text("# both\n")
    place.file(file).write_bytes(b"# later\n")
    assert f"src/tiny_llm/{file} was changed after its merged text was written" in said(capsys, "update --settle", 1)
    assert place.read(file) == b"# later\n"


@pytest.mark.parametrize("line", ["reset --week 1 --day 1", "restore --list", "solution --week 1 --day 1 --task 1"])
def test_quick_commands_import_nothing_heavy(line: str, tmp_path: Path):
    """Run on a copy: what they need is there, and time goes neither into MLX nor into the whole package."""
    write(starter(), tmp_path / "src/tiny_llm")
    for name in ("tiny_llm_ref", "extensions_ref"):
        (tmp_path / "src" / name).symlink_to(SRC / name)
    code = (
        "import sys, time, importlib; from pathlib import Path\n"
        "from course import cli; from course.work.place import Place\n"
        f"name = {line.split()[0]!r}\n"
        "importlib.import_module('course.commands.' + name).HERE = Place.of(Path(sys.argv[1]))\n"
        f"status = cli.main({line.split()!r})\n"
        "print(status, time.process_time(), *sys.modules, file=sys.stderr)"
    )
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=True)
    _, seconds, *modules = done.stderr.splitlines()[-1].split()
    assert not {"mlx", "numpy", "pytest", "psutil"}.intersection(modules)
    assert float(seconds) < QUICK
