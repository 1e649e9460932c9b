"""`update`: the course's files are replaced, the learner's are merged, and nothing of the learner's is lost."""

import random
import subprocess
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from course.curriculum import load
from course.errors import CourseError
from course.release.archive import zipped
from course.starter import generate
from course.work.fingerprints import FINGERPRINTS
from course.work.lock import locked
from course.work.merge import merge
from course.work.newer import default_source, is_older, newer_version
from course.work.owned import RELEASED, changed_by_user, owned_files, record_of
from course.work.pending import settle
from course.work.place import Place
from course.work.pristine import pristine
from course.work.restore import restore
from course.work.saved import Saved
from course.work.update import Update, carry_out, plan

REGISTRY = """
week = 1
title = "Sums"
[[day]]
day = 1
title = "One"
chapter = "week1-01-one.md"
hours = 1
[[day.task]]
title = "First"
points = 1
hints = ["a", "b", "c"]
[day.task.symbols]
"model/basics.py" = ["first", "second"]
[[day.task]]
title = "Kernel"
points = 1
hints = ["a", "b", "c"]
[day.task.symbols]
"extensions/src/add.cpp" = ["add", "twice"]
"""
BASICS = '''"""Sums."""

import math


def first(x: int) -> int:
    """Add one."""
    return x + _one()


def _one() -> int:
    return math.floor(1.5)


def second(x: int) -> int:
    """Add two."""
    return x + 2
'''
CPP = """#include <stdexcept>

int add(int a) {
  // begin task: add
  return a + 1;
  // end task: add
}

int twice(int a) {
  // begin task: twice
  return 2 * a;
  // end task: twice
}
"""
MINE = '    raise NotImplementedError("Week 1 Day 1 Task 1: first - see book/src/week1-01-one.md#task-1")\n'


@dataclass(frozen=True)
class Version:
    """A version of a small course, to be written into a folder."""

    number: str = "1.0"
    registry: str = REGISTRY
    basics: str = BASICS
    cpp: str = CPP
    given: str = "LIMIT = 1\n"
    others: dict[str, str] = field(default_factory=lambda: {"README.md": "one\n", "src/course/__init__.py": ""})

    def write(self, root: Path) -> Place:
        place = Place.of(root)
        files = {
            "pyproject.toml": f'[project]\nversion = "{self.number}"\n',
            "run": "#!/bin/sh\n",
            "curriculum/week1.toml": self.registry,
            "CHANGELOG.md": f"# Changelog\n- the same\n- news of {self.number}\n",
            "src/tiny_llm_ref/model/basics.py": self.basics,
            "src/tiny_llm_ref/model/given.py": self.given,
            "src/extensions_ref/src/add.cpp": self.cpp,
            "src/course/old.py": "old",
        }
        for name, text in (files | self.others).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (root / "run").chmod(0o755)
        generate(load(root / "curriculum"), place.reference, place.package)
        return place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Version().write(tmp_path / "mine")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return tmp_path / "new"


def update(place: Place, source: Path | str, branch: str | None = None) -> tuple[Update, Saved | None]:
    with newer_version(str(source), branch) as root, locked(place):
        todo = plan(load(place.root / "curriculum"), root, place)
        return todo, carry_out(todo, place)


def everything(root: Path) -> dict[str, bytes]:
    kept = (path for path in root.rglob("*") if path.is_file() and ".course" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in kept}


def edit(place: Place, name: str, old: str, new: str) -> None:
    text = place.file(name).read_text()
    assert old in text
    place.file(name).write_text(text.replace(old, new))


def test_the_same_version_changes_nothing(place: Place, new: Path):
    Version().write(new)
    edit(place, "model/basics.py", MINE, "    return x + 1\n")
    before = everything(place.root)
    todo, saved = update(place, new)
    assert (todo.files, saved) == ({}, None)
    assert everything(place.root) == before


def test_an_untouched_copy_becomes_the_new_version(place: Place, new: Path):
    others = {"README.md": "two\n", "src/course/__init__.py": "", "tools/go": "#!/bin/sh\n"}
    Version("1.1", basics=BASICS.replace("Add one", "Add 1"), given="LIMIT = 2\n", others=others).write(new)
    (new / "tools/go").chmod(0o755)
    (new / "src/course/old.py").unlink()
    before = everything(place.root)
    todo, saved = update(place, new)
    assert {**everything(new), "src/course/old.py": b"old"} == everything(place.root)
    assert sorted(todo.fresh) == ["model/basics.py", "model/given.py"]
    assert todo.unknown == ["/src/course/old.py"]
    assert (todo.merged, todo.conflicts, todo.edited) == ([], [], [])
    assert todo.news == ["- news of 1.1"]
    assert (place.root / "tools/go").stat().st_mode & 0o100
    assert (place.root / "run").stat().st_mode & 0o100
    restore(saved, place)
    assert everything(place.root) == before


def test_work_and_news_are_both_kept(place: Place, new: Path):
    """News around a function, next to it and in its signature; work in the bodies, and helpers between them."""
    basics = BASICS.replace('"""Add one."""', '"""Add one to a number."""').replace("x: int", "number: int")
    cpp = CPP.replace("int add(int a) {", "int add(int a, int b) {  // two")
    Version("1.1", basics=basics, cpp=cpp, given="LIMIT = 2\n").write(new)
    edit(place, "model/basics.py", MINE, "    # mine\n    return helper(x)\n\n\ndef helper(x):\n    return x + 1\n")
    cpp_stub = next(
        line for line in place.file("extensions/src/add.cpp").read_text().splitlines() if "Task 2: add" in line
    )
    edit(place, "extensions/src/add.cpp", cpp_stub, "  return 1 + a;  // mine")
    place.file("model/own.py").write_text("own")
    todo, _ = update(place, new)
    assert sorted(todo.merged) == ["extensions/src/add.cpp", "model/basics.py"]
    assert todo.conflicts == []
    assert todo.reshaped == ["src/tiny_llm/model/basics.py: first"]
    text = place.file("model/basics.py").read_text()
    assert '"""Add one to a number."""\n    # mine\n    return helper(x)' in text
    assert "def helper(x):\n    return x + 1" in text
    assert "def first(number: int)" in text
    assert "Week 1 Day 1 Task 1: second" in text
    kernel = place.file("extensions/src/add.cpp").read_text()
    assert "int add(int a, int b) {  // two" in kernel
    assert "return 1 + a;  // mine" in kernel
    assert "Task 2: twice" in kernel
    assert place.file("model/own.py").read_text() == "own"
    assert place.file("model/given.py").read_text() == "LIMIT = 2\n"


def test_a_conflict_leaves_the_file_and_waits(place: Place, new: Path):
    Version("1.1", basics=BASICS.replace('"""Sums."""', '"""Sums and more."""')).write(new)
    edit(place, "model/basics.py", '"""Sums."""', '"""My sums."""')
    mine = place.file("model/basics.py").read_bytes()
    todo, _ = update(place, new)
    assert todo.conflicts == ["model/basics.py"]
    assert place.file("model/basics.py").read_bytes() == mine
    waiting = place.course / "update/src/tiny_llm/model/basics.py"
    assert '<<<<<<< your file\n"""My sums."""\n=======\n"""Sums and more."""\n>>>>>>>' in waiting.read_text()
    assert settle(place).open == ("src/tiny_llm/model/basics.py",)
    waiting.write_text('"""Settled."""\n')
    done = settle(place)
    assert done.taken == ("src/tiny_llm/model/basics.py",)
    assert place.file("model/basics.py").read_text() == '"""Settled."""\n'
    assert done.saved.read("model/basics.py") == mine
    assert settle(place) == ((), (), (), None)
    assert not (place.course / "update").exists()
    assert not place.file(FINGERPRINTS).exists()


def test_work_after_the_merge_is_not_overwritten(place: Place, new: Path):
    Version("1.1", basics=BASICS.replace('"""Sums."""', '"""Sums and more."""')).write(new)
    edit(place, "model/basics.py", '"""Sums."""', '"""My sums."""')
    update(place, new)
    waiting = place.course / "update/src/tiny_llm/model/basics.py"
    waiting.write_text('"""Settled."""\n')
    edit(place, "model/basics.py", MINE, "    return x + 1  # later\n")
    later = place.file("model/basics.py").read_bytes()
    for record in (place.read(FINGERPRINTS), b"damaged"):
        place.file(FINGERPRINTS).write_bytes(record)
        assert settle(place) == ((), (), ("src/tiny_llm/model/basics.py",), None)
        assert place.file("model/basics.py").read_bytes() == later
        assert waiting.read_text() == '"""Settled."""\n'
    place.file("model/basics.py").write_bytes(waiting.read_bytes())
    assert settle(place).taken == ("src/tiny_llm/model/basics.py",)
    assert not waiting.exists()


def test_files_that_come_and_go(place: Place, new: Path):
    """New in both, gone in the new one (untouched and changed), deleted by the learner."""
    other = REGISTRY.replace("model/basics.py", "model/sums.py").replace('"First"', '"The first"')
    newer = Version("1.1", given="LIMIT = 2\n").write(new)
    (newer.reference / "model/basics.py").rename(newer.reference / "model/sums.py")
    (new / "curriculum/week1.toml").write_text(other)
    generate(load(new / "curriculum"), newer.reference, newer.package)
    newer.file("model/basics.py").unlink()
    edit(place, "model/basics.py", MINE, "    return 1\n")
    place.file("model/given.py").unlink()
    place.file("model/sums.py").write_text("my own sums\n")
    todo, _ = update(place, new)
    assert todo.left == ["model/basics.py"]
    assert "return 1" in place.file("model/basics.py").read_text()
    assert todo.fresh == ["model/given.py"]
    assert place.file("model/given.py").read_text() == "LIMIT = 2\n"
    assert todo.conflicts == ["model/sums.py"]
    assert place.file("model/sums.py").read_text() == "my own sums\n"
    assert todo.tasks == ["Week 1 Day 1 Task 1: The first"]


def test_files_of_the_course_that_the_user_changed(place: Place, new: Path):
    place.file(RELEASED).write_bytes(record_of(owned_files(place.root)))
    Version("1.1", others={"README.md": "two\n", "src/course/__init__.py": ""}).write(new)
    (new / "src/course/old.py").unlink()
    (place.root / "README.md").write_text("my notes\n")
    (place.root / "own.txt").write_text("own\n")
    todo, saved = update(place, new)
    assert todo.edited == ["/README.md"]
    assert todo.dropped == ["/src/course/old.py"]
    assert todo.unknown == []
    assert not (place.root / "src/course/old.py").exists()
    assert (place.root / "own.txt").read_text() == "own\n"
    assert saved.read("/README.md") == b"my notes\n"
    assert (place.root / "README.md").read_text() == "two\n"
    again, _ = update(place, replace_version(new, "1.2"))
    assert again.edited == []


def replace_version(root: Path, number: str) -> Path:
    (root / "pyproject.toml").write_text(f'[project]\nversion = "{number}"\n')
    return root


def test_changed_files_of_the_course_stay_when_they_go_in_the_new_version(place: Place, new: Path):
    place.file(RELEASED).write_bytes(record_of(owned_files(place.root)))
    Version("1.1").write(new)
    (new / "src/course/old.py").unlink()
    (place.root / "src/course/old.py").write_text("mine")
    todo, _ = update(place, new)
    assert todo.dropped == []
    assert (place.root / "src/course/old.py").read_text() == "mine"


def test_what_is_refused(place: Place, new: Path, tmp_path: Path):
    Version("0.9").write(new)
    before = everything(place.root)
    with pytest.raises(CourseError, match=r"^version 0\.9 is older than this one, 1\.0"):
        update(place, new)
    Version("0.10.5").write(new)
    with pytest.raises(CourseError, match="is older"):
        update(place, new)
    with pytest.raises(CourseError, match="is this copy of the course itself"):
        update(place, place.root)
    replace_version(new, "1.1")
    (new / "src/tiny_llm_ref").rename(tmp_path / "reference")
    with pytest.raises(CourseError, match="that version has no reference solution"):
        update(place, new)
    (tmp_path / "reference").rename(new / "src/tiny_llm_ref")
    (place.root / "src/tiny_llm_ref").rename(tmp_path / "reference")
    with pytest.raises(CourseError, match="that version holds the reference solution"):
        update(place, new)
    (tmp_path / "reference").rename(place.root / "src/tiny_llm_ref")
    for source, message in {"nowhere": "does not exist", str(tmp_path / "empty"): "holds no course"}.items():
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(CourseError, match=message):
            update(place, source)
    with pytest.raises(CourseError, match="--branch main needs a git repository"):
        update(place, new, "main")
    (tmp_path / "a.zip").write_text("no archive")
    with pytest.raises(CourseError, match="cannot be unpacked"):
        update(place, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("bomb", bytes(1000))
    with pytest.raises(CourseError, match="zip it with ordinary compression"):
        update(place, tmp_path / "a.zip")
    with pytest.raises(CourseError, match="Say --from FOLDER"):
        default_source(place.root)
    assert everything(place.root) == before


def test_an_archive_with_a_folder_in_it(place: Place, new: Path, tmp_path: Path):
    Version("1.1", given="LIMIT = 2\n").write(new)
    with zipfile.ZipFile(tmp_path / "course.zip", "w") as archive:
        for path in sorted(new.rglob("*")):
            archive.write(path, Path("course-1.1") / path.relative_to(new))
        archive.writestr("course-1.1/../../../../evil.py", "x")
    (place.root / "run").unlink()
    update(place, tmp_path / "course.zip")
    assert list(tmp_path.parent.rglob("evil.py")) == [place.root / "evil.py"]
    assert place.read("model/given.py") == b"LIMIT = 2\n"
    assert (place.root / "run").stat().st_mode & 0o100


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True, timeout=30)


def test_a_repository_gives_what_is_committed(place: Place, new: Path):
    Version("1.1", given="LIMIT = 2\n").write(new)
    for line in ("init", "add -A", "commit -m one", "checkout -b next"):
        git(new, *line.split())
    (new / "src/tiny_llm/model/given.py").write_text("LIMIT = 3\n")
    (new / "src/tiny_llm_ref/model/given.py").write_text("LIMIT = 3\n")
    git(new, "commit", "-a", "-m", "two")
    git(new, "checkout", "main")
    (new / "src/tiny_llm/model/given.py").write_text("not committed\n")
    update(place, new, "main")
    assert place.read("model/given.py") == b"LIMIT = 2\n"
    update(place, new.as_uri(), "next")
    assert place.read("model/given.py") == b"LIMIT = 3\n"
    with pytest.raises(CourseError, match=r"git clone .* failed"):
        update(place, new, "no-branch")
    git(place.root, "init")
    git(place.root, "remote", "add", "origin", str(new))
    assert default_source(place.root) == str(new)
    git(place.root, "add", "-A")
    git(place.root, "commit", "-m", "mine")
    (place.root / "README.md").write_text("edited\n")
    (place.course / "owned.json").unlink()
    assert changed_by_user(["/README.md", "/run"], place) == ["/README.md"]


def test_a_student_repository(place: Place, new: Path, tmp_path: Path):
    """Without a reference, the archives tell both starters; the package in the new version may hold work."""
    newer = Version("1.1", given="LIMIT = 2\n").write(new)
    for one in (place, newer):
        one.starter_zip.write_bytes(zipped(pristine(load(one.root / "curriculum"), one)))
        for folder in ("tiny_llm_ref", "extensions_ref"):
            (one.root / "src" / folder).rename(tmp_path / f"{one.root.name}-{folder}")
    newer.file("model/given.py").write_text("somebody's work\n")
    edit(place, "model/basics.py", MINE, "    return 1\n")
    todo, _ = update(place, new)
    assert todo.fresh == ["model/given.py"]
    assert place.read("model/given.py") == b"LIMIT = 2\n"
    assert b"return 1" in place.read("model/basics.py")


def test_links_and_rubbish_are_not_of_the_course(place: Place, tmp_path: Path):
    (place.root / "link").symlink_to("/etc/passwd")
    for name in (".venv/x.py", ".git/config", "src/course/__pycache__/a.pyc", "build/x", ".course/state.json"):
        (place.root / name).parent.mkdir(parents=True, exist_ok=True)
        (place.root / name).write_text("x")
    (place.root / ".gitignore").write_text("x")
    names = owned_files(place.root)
    assert "/.gitignore" in names
    assert "/src/course/__init__.py" in names
    assert not [name for name in names if name.split("/")[1] in ("link", ".venv", ".git", "build", ".course")]
    assert not [name for name in names if "/src/tiny_llm/" in name or "/src/extensions/" in name or "pyc" in name]


def lines(*numbers: int) -> bytes:
    return b"".join(b"line %d\n" % number for number in numbers)


def test_line_ends_and_encodings_of_the_learner_stay():
    base, theirs = lines(1, 2, 3, 4, 5, 6, 7), lines(1, 2, 3, 4, 5, 6, 8)
    mine = (b"# caf\xe9\n" + base).replace(b"\n", b"\r\n")
    result = merge("extensions/src/a.cpp", mine, base, theirs)
    assert (result.conflicts, result.content) == (0, (b"# caf\xe9\n" + theirs).replace(b"\n", b"\r\n"))
    assert merge("model/a.py", b"\xff\xfe\x00", base, theirs).conflicts


def test_a_merge_that_no_longer_parses_is_a_conflict():
    """Each side is right and the lines do not touch, but a bracket that one side closes is no longer open."""
    lines = "f(\n    1,\n    2,\n    3,\n    4,\n    5,\n    6,\n)\n"
    mine, theirs = lines.replace("f(", "f[").replace(")", "]"), lines.replace("    4,", ")\nf(\n    4,")
    result = merge("model/a.py", mine.encode(), lines.encode(), theirs.encode())
    assert b"<<<<<<<" not in result.content
    assert result.conflicts == 1
    broken = mine.replace("f[", "f[[")
    assert merge("model/a.py", broken.encode(), lines.encode(), theirs.encode()).conflicts == 0


def test_another_text_of_the_stubs_does_not_touch_what_is_written(place: Place, new: Path):
    Version("1.1", registry=REGISTRY.replace("week1-01-one.md", "week1-01-sums.md")).write(new)
    edit(place, "model/basics.py", MINE, "    return x + 1  # mine\n")
    kernel = place.file("extensions/src/add.cpp")
    (stub,) = [line for line in kernel.read_text().splitlines() if "Task 2: twice" in line]
    edit(place, "extensions/src/add.cpp", stub, "  return a + a;  // mine")
    todo, _ = update(place, new)
    assert todo.conflicts == []
    for name, mine in {
        "model/basics.py": "return x + 1  # mine",
        "extensions/src/add.cpp": "return a + a;  // mine",
    }.items():
        text = place.file(name).read_text()
        assert mine in text
        assert "week1-01-sums.md#task-" in text
        assert "week1-01-one.md" not in text


def test_versions_are_compared_by_their_numbers():
    assert is_older("1.9", "1.10")
    assert not is_older("1.10", "1.9")
    assert not is_older("2.0", "2.0")


@pytest.mark.parametrize("seed", range(8))
def test_random_edits_of_both_sides_are_both_there_or_in_conflict(seed: int):
    chance = random.Random(seed)
    base = [f"line {n}\n" for n in range(40)]

    def edited(mark: str) -> tuple[bytes, set[str]]:
        copy = list(base)
        new = {f"{mark} {n}\n" for n in chance.sample(range(40), 4)}
        for line in new:
            copy[int(line.split()[1])] = line
        return "".join(copy).encode(), new

    (mine, own), (theirs, news) = edited("mine"), edited("theirs")
    result = merge("extensions/src/a.cpp", mine, "".join(base).encode(), theirs)
    text = result.content.decode()
    assert all(line in text for line in own | news)
    assert result.conflicts or "<<<<<<<" not in text
