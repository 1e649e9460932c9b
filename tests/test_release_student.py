"""A class's repository holds no solution, is the same each time, can be updated, and its commands work there."""

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
from released import COURSE, files_of, git, make_released

from course import cli
from course.curriculum import Curriculum, load
from course.grading.course_file import load_course
from course.paths import ROOT, SRC
from course.release.place import Plan, plan, write
from course.release.student import STARTER_ZIP, student
from course.work.place import HERE, Place
from course.work.pristine import pristine
from course.work.strangers import EXTRA_FILES


@pytest.fixture(scope="module")
def curriculum() -> Curriculum:
    return load()


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tests read it."""
    return make_released(tmp_path_factory.mktemp("class"))


@pytest.fixture
def course_file(released: Path) -> Path:
    return released.with_name("course.toml")


@pytest.fixture
def copy(released: Path, tmp_path: Path) -> Path:
    """One to write in."""
    return Path(shutil.copytree(released, tmp_path / "a copy", symlinks=True))


def test_it_holds_no_solution_and_nothing_of_the_instructor(released: Path):
    names = files_of(released)
    parts = {part for name in names for part in Path(name).parts}
    assert not parts & {"tiny_llm_ref", "extensions_ref", "mutants", "alternatives", "tests", "course.toml", "release"}
    secret = [SRC / "tiny_llm_ref", SRC / "extensions_ref", *ROOT.glob("tests_refsol/*/mutants")]
    solutions = {digest(p.read_bytes()): p.name for folder in secret for p in folder.rglob("*.*") if p.is_file()}
    given = {digest(content) for content in pristine(load(), HERE).values()}
    found = {name: solutions.get(digest((released / name).read_bytes())) for name in names}
    assert not {name for name, of in found.items() if of and digest((released / name).read_bytes()) not in given}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_the_learners_files_are_the_untouched_starter_also_in_the_archive(released: Path, curriculum: Curriculum):
    starter = pristine(curriculum, HERE)
    with zipfile.ZipFile(released / STARTER_ZIP) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == starter
    package = {name: (released / "src/tiny_llm" / name) for name in starter if not name.startswith("extensions/")}
    assert all(path.read_bytes() == starter[name] for name, path in package.items())
    assert files_of(released / "src/tiny_llm") == package.keys()
    assert len(files_of(released / "src/extensions")) == len(starter) - len(package)


def test_later_weeks_and_own_points(released: Path):
    given = {"week1.toml", "starter.zip", "files.json", "extra_files.txt"}
    assert {p.name for p in (released / "curriculum").iterdir()} == given
    assert (released / EXTRA_FILES).read_text() == "model/mine.py\n"
    assert {p.name for p in (released / "tests_refsol").iterdir()} == {"week_1"}
    assert not list((released / "book/src").rglob("week[2-9]*.md"))
    assert not list((released / "book/src/quizzes").glob("week[2-9]*"))
    week = tomllib.loads((released / "curriculum/week1.toml").read_text())
    points = [[task["points"] for task in day["task"]] for day in week["day"]]
    assert points[0][0] == 42
    assert sum(points[1]) == pytest.approx(10)
    graded = (released / ".github/workflows/classroom.yml").read_text()
    assert "max-score: 42\n" in graded
    assert "--week 2" not in graded


def test_every_import_inside_the_course_is_there(released: Path):
    """What is left out is needed by nothing that is kept, wherever in a file the import stands."""
    missing = []
    for path in (released / "src/course").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                place = released / "src" / module.replace(".", "/")
                if module.split(".")[0] == "course" and not (place.is_dir() or place.with_suffix(".py").is_file()):
                    missing.append(f"{path.name}: {module}")
    assert missing == []


def test_the_same_input_gives_the_same_bytes(course_file: Path, curriculum: Curriculum, tmp_path: Path):
    course, frozen = load_course(course_file, curriculum), Place.of(tmp_path / "course")
    shutil.copytree(ROOT, frozen.root, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.so", "build"))
    for name in (".gitignore", ".devcontainer"):
        subprocess.run(["cp", "-r", ROOT / name, frozen.root], check=True, timeout=60)
    first, second = student(course, place=frozen), student(course, place=frozen)
    assert first.files == second.files
    assert {"run"} <= first.executable
    assert list(first.files) == sorted(first.files)
    write(tmp_path / "class", first.files, first.executable, plan(tmp_path / "class", first.files))
    assert files_of(tmp_path / "class") == first.files.keys()
    assert plan(tmp_path / "class", second.files) == Plan((), (), (), ())


def test_it_is_one_commit_of_everything(released: Path):
    assert git(released, "log", "--format=%s").splitlines() == ["Begin with the course"]
    assert git(released, "status", "--porcelain", "--ignored") == ""
    assert os.access(released / "run", os.X_OK)
    assert set(git(released, "ls-files", "-z").split("\0")) - {""} == files_of(released)


def test_house_files_name_only_what_is_there(released: Path):
    readme = (released / "README.md").read_text()
    assert readme.startswith("# Serving, spring\n")
    assert "`src/tiny_llm/model/mine.py`" in readme.partition("## How you are graded")[2]
    scripts = tomllib.loads((released / "pyproject.toml").read_text())["tool"]["pdm"]["scripts"]
    commands = {path.stem.replace("_", "-") for path in (released / "src/course/commands").glob("*.py")}
    assert {line.split()[3] for line in scripts.values()} <= commands
    named = [word for line in readme.splitlines() for word in line.split("./run ")[1:]]
    assert {word.split()[0].strip("`.,") for word in named if not word.startswith("NAME")} <= scripts.keys()
    assert json.loads((released / ".devcontainer/devcontainer.json").read_text())["postCreateCommand"] == "./run status"
    for file in ("README.md", "AGENTS.md"):
        text = (released / file).read_text()
        links = [part.partition(")")[0] for part in text.split("](")[1:]]
        assert all(link.startswith("http") or (released / link).exists() for link in links)
        assert "CONTRIBUTING" not in text


def test_an_update_in_place_keeps_what_is_not_the_releases(copy: Path, course_file: Path):
    (copy / "syllabus.md").write_text("Mondays\n")
    other = course_file.with_name("second.toml")
    other.write_text(COURSE.replace("= 42", "= 43"))
    assert cli.main(["release", "student", str(copy), "--course", str(other), "--weeks", "1", "2"]) == 0
    assert (copy / "syllabus.md").read_text() == "Mondays\n"
    assert (copy / "tests_refsol/week_2/test_day_1.py").is_file()
    assert "points = 43\n" in (copy / "curriculum/week1.toml").read_text()
    assert cli.main(["release", "student", str(copy), "--course", str(course_file)]) == 0
    assert not (copy / "tests_refsol/week_2").exists()
    assert git(copy, "log", "--format=%s").splitlines() == [*["Update the course"] * 2, "Begin with the course"]
    assert git(copy, "status", "--porcelain").splitlines() == ["?? syllabus.md"]


def test_changes_by_hand_stop_an_update(copy: Path, course_file: Path, capsys: pytest.CaptureFixture[str]):
    written = copy / "src/tiny_llm/model/basics.py"
    written.write_text("# mine\n")
    (copy / "README.md").unlink()
    command = ["release", "student", str(copy), "--course", str(course_file)]
    assert cli.main(command) == 2
    assert "src/tiny_llm/model/basics.py changed by hand" in capsys.readouterr().err
    assert written.read_text() == "# mine\n"
    assert not (copy / "README.md").exists()
    assert cli.main([*command, "--force", "--no-git"]) == 0
    assert "is still to be" in written.read_text() or "NotImplementedError" in written.read_text()
    assert (copy / "README.md").is_file()


def test_folders_with_something_else_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "thesis.txt").write_text("all of it")
    (tmp_path / "file").write_text("")
    for folder, message in [
        (tmp_path, "not empty"),
        (tmp_path / "file", "is a file"),
        (ROOT / "new", "is in this repository"),
        (ROOT.parent, "is in this repository, or around it"),
    ]:
        assert cli.main(["release", "student", str(folder), "--no-git"]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    assert {p.name for p in tmp_path.iterdir()} == {"thesis.txt", "file"}


def test_a_dry_run_writes_nothing_and_tells_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["release", "student", str(tmp_path / "new"), "--dry-run", "--json", "--weeks", "1"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "new").exists()
    assert (told["dry_run"], told["weeks"], told["changed"], told["committed"]) == (True, [1], [], False)
    assert "src/tiny_llm/model/basics.py" in told["added"]
    assert any(name.startswith("src/tiny_llm_ref/") for name in told["left_out"]["the reference solution"])


def test_pages_for_everybody_name_no_reference(released: Path):
    for name in ("README.md", "AGENTS.md", "book/src/setup.md", "book/src/preface.md"):
        text = (released / name).read_text()
        assert not re.search(r"test-refsol|tiny_llm_ref|extensions_ref|run solution|teaching\.md|<!--", text), name
    setup = (released / "book/src/setup.md").read_text()
    assert setup.split("```bash\n")[1].startswith("./run doctor\n")
    assert (ROOT / "book/src/setup.md").read_text().split("```bash\n")[1].startswith("./run main\n")
    for path in (released / "book/src").glob("*.md"):
        assert ("tiny_llm_ref" in path.read_text()) == ("> This copy of the course has no" in path.read_text()), path
