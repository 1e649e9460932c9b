"""Saved copies: nothing changes without one, and one brings everything back byte for byte."""

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from course.errors import CourseError
from course.paths import SRC
from course.starter import write
from course.work.change import change
from course.work.lock import locked
from course.work.place import Place
from course.work.restore import restore
from course.work.saved import Saved, find, save, saved_copies

FILES = {
    "__init__.py": b'"""Mine."""\n',
    "model/basics.py": b"x = 1\r\n\xff\x00",
    "model/own.py": b"",
    "extensions/src/a.cpp": b"int x;",
    "notes.md": "\u00e9\n".encode("utf-16"),
}
IMPORTS = """
import sys
from pathlib import Path
from course.work.change import change
from course.work.lock import locked
from course.work.place import Place
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = tmp_path / "a copy"
    place = Place(root, root / "src/tiny_llm", root / "src/tiny_llm_ref")
    write(FILES, place.package)
    return place


def tree(place: Place) -> dict[str, bytes]:
    return {name: place.file(name).read_bytes() for name in place.names()}


def alter(place: Place, files: dict[str, bytes | None], reason: str = "test", keep: tuple[str, ...] = ()) -> Saved:
    with locked(place):
        saved = change(files, reason, place, keep)
    assert saved is not None
    return saved


def no_rubbish(place: Place) -> bool:
    """Whether no half-written file is left anywhere."""
    return not [path for path in place.root.rglob(".*") if path.name != ".course"]


def test_there_and_back_again(place: Place):
    """Random changes, each with its copy; going back through all of them passes every state again."""
    chance = random.Random(0)
    names = [*FILES, "model/new.py", "text/deep/er/new.py"]
    states, copies = [tree(place)], []
    for _ in range(12):
        files = {name: chance.choice([None, chance.randbytes(9)]) for name in chance.sample(names, 3)}
        if any(place.read(name) != content for name, content in files.items()):
            copies.append(alter(place, files, keep=tuple(FILES)))
            states.append(tree(place))
            assert all(place.read(name) == content for name, content in files.items())
    for saved, state in reversed(list(zip(copies, states[:-1], strict=True))):
        now = tree(place)
        undo = restore(saved, place)
        assert tree(place) == state
        restore(undo, place)
        assert tree(place) == now
        restore(saved, place)
    assert tree(place) == FILES
    assert no_rubbish(place)


def test_files_that_a_copy_does_not_name_stay(place: Place):
    saved = alter(place, {"model/basics.py": b"theirs"})
    place.file("later.py").write_bytes(b"later")
    place.file("model/own.py").write_bytes(b"own")
    restore(saved, place)
    assert tree(place) == FILES | {"later.py": b"later", "model/own.py": b"own"}


def test_one_file_of_a_copy(place: Place):
    saved = alter(place, {"model/basics.py": b"1", "notes.md": b"2"})
    restore(saved, place, ["notes.md"])
    assert tree(place) == FILES | {"model/basics.py": b"1"}
    with pytest.raises(CourseError, match=r"model/own\.py is not in the saved copy"):
        restore(saved, place, ["model/own.py"])


def test_nothing_to_change_makes_no_copy(place: Place):
    with locked(place):
        assert change(FILES, "test", place) is None
    assert saved_copies(place) == []


def test_modes_and_links_stay(place: Place, tmp_path: Path):
    real = tmp_path / "dotfiles.py"
    real.write_bytes(b"linked")
    place.file("linked.py").symlink_to(real)
    place.file("notes.md").chmod(0o755)
    saved = alter(place, {"linked.py": b"new", "notes.md": b"new"})
    assert place.file("linked.py").is_symlink()
    assert real.read_bytes() == b"new"
    assert place.file("notes.md").stat().st_mode & 0o777 == 0o755
    restore(saved, place)
    assert (real.read_bytes(), place.file("linked.py").is_symlink()) == (b"linked", True)
    old = os.umask(0o027)
    try:
        alter(place, {"fresh.py": b"x"})
    finally:
        os.umask(old)
    assert place.file("fresh.py").stat().st_mode & 0o777 == 0o640


def test_links_into_the_reference_and_folders_are_refused(place: Place):
    place.reference.mkdir(parents=True)
    (place.reference / "basics.py").write_bytes(b"reference")
    place.file("ref.py").symlink_to(place.reference / "basics.py")
    place.file("folder.py").mkdir()
    before = tree(place)
    with pytest.raises(CourseError, match=r"src/tiny_llm/ref\.py is a link into the reference"), locked(place):
        change({"notes.md": b"x", "ref.py": b"x"}, "test", place)
    with pytest.raises(CourseError, match=r"cannot read src/tiny_llm/folder\.py"), locked(place):
        change({"notes.md": b"x", "folder.py": b"x"}, "test", place)
    place.file("loop.py").symlink_to(place.file("loop.py"))
    with pytest.raises(CourseError, match=r"cannot read src/tiny_llm/loop\.py"), locked(place):
        change({"notes.md": b"x", "loop.py": b"x"}, "test", place)
    assert tree(place) == before
    assert (place.reference / "basics.py").read_bytes() == b"reference"


def fail_once(monkeypatch: pytest.MonkeyPatch, error: BaseException, after: int) -> None:
    """Raise `error` once, while a file is written: `after` that many files, saved or prepared, were."""
    left = [after]

    def failing(call: Callable) -> Callable:
        def called(*arguments: object) -> object:
            left[0] -= 1
            if left[0] == -1:
                raise error
            return call(*arguments)

        return called

    monkeypatch.setattr("course.work.change.os.fchmod", failing(os.fchmod))
    monkeypatch.setattr("course.work.saved.os.fstat", failing(os.fstat))


@pytest.mark.parametrize("after", range(6))
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_or_ctrl_c_at_any_moment_changes_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch, error: BaseException, after: int
):
    wanted = dict.fromkeys(["notes.md", "model/basics.py", "extensions/src/a.cpp"], b"new")
    with monkeypatch.context() as patch:
        fail_once(patch, error, after)
        with pytest.raises((CourseError, KeyboardInterrupt)) as problem, locked(place):
            change(wanted, "test", place)
    if isinstance(error, OSError):
        assert "No space left on device" in str(problem.value)
        assert "nothing was changed" in str(problem.value)
    assert tree(place) == FILES
    assert no_rubbish(place)
    assert saved_copies(place) == []


def test_a_failure_while_replacing_names_the_way_back(place: Place, monkeypatch: pytest.MonkeyPatch):
    replace, left = os.replace, [1]

    def failing(source: Path, target: Path) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.EIO, "Input/output error", str(target))
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("course.work.change.os.replace", failing)
        with pytest.raises(CourseError, match=r"stopped half-way at .*: `pdm run restore .*` brings all back"):
            alter(place, dict.fromkeys(FILES, b"new"))
    assert tree(place) != FILES
    assert no_rubbish(place)
    restore(find("latest", place), place)
    assert tree(place) == FILES


def test_a_read_only_folder_changes_nothing(place: Place):
    place.file("model").chmod(0o555)
    if os.access(place.file("model"), os.W_OK):
        pytest.skip("a root user may write everywhere")
    try:
        with pytest.raises(CourseError, match="Permission denied"):
            alter(place, {"notes.md": b"x", "model/basics.py": b"x"})
    finally:
        place.file("model").chmod(0o755)
    assert tree(place) == FILES


def test_a_course_folder_that_is_a_file(place: Place):
    place.course.write_text("")
    with pytest.raises(CourseError, match=r"cannot write .*work\.lock"):
        alter(place, {"notes.md": b"x"})


def test_a_damaged_copy_is_not_brought_back(place: Place):
    saved = alter(place, {"notes.md": b"x"})
    saved.path("notes.md").write_bytes(b"damaged")
    with pytest.raises(CourseError, match="was changed after it was saved"):
        restore(saved, place)
    saved.path("notes.md").unlink()
    with pytest.raises(CourseError, match="the saved copy is damaged"):
        restore(saved, place)
    assert place.read("notes.md") == b"x"


def test_names_of_copies(place: Place):
    with pytest.raises(CourseError, match="there is no saved copy"):
        find("latest", place)
    first, second = alter(place, {"notes.md": b"1"}, "reset 1/1"), alter(place, {"notes.md": b"2"}, "reset 1/1")
    third = alter(place, {"notes.md": b"3"}, "../..")
    assert first.name.endswith("-reset-1-1")
    assert third.folder.parent == place.saved
    assert len({first.name, second.name, third.name}) == 3
    assert find("latest", place) == third
    assert find(first.name, place) == first
    assert find(third.name[:-1], place) == third
    assert [saved.name for saved in saved_copies(place)] == [third.name, second.name, first.name]
    with pytest.raises(CourseError, match="'20' fits more than one saved copy"):
        find("20", place)
    with pytest.raises(CourseError, match="'x' is no saved copy: choose from"):
        find("x", place)
    (place.saved / "own folder").mkdir()
    (first.folder / "manifest.json").write_text("{}")
    assert [saved.name for saved in saved_copies(place)] == [third.name, second.name]


def test_what_differs_and_how_large(place: Place):
    saved = save("all", None, place)
    assert saved.differing(place) == []
    assert saved.size == sum(map(len, FILES.values()))
    place.file("notes.md").write_bytes(b"x")
    place.file("model/own.py").unlink()
    assert sorted(saved.differing(place)) == ["model/own.py", "notes.md"]


def test_odd_names_of_files(place: Place):
    """Names with blanks and accents are saved; one that is no text is left alone, because nothing can list it."""
    place.file("my caf\u00e9.txt").write_bytes(b"x")
    odd = os.fsencode(place.package) + b"/\xff.txt"
    try:
        with open(odd, "wb") as file:
            file.write(b"odd")
    except OSError:  # macOS has no such names
        pytest.skip("no such names here")
    saved = alter(place, {"my caf\u00e9.txt": b"y"}, keep=tuple(place.names()))
    assert set(saved.manifest.files) == {*FILES, "my caf\u00e9.txt"}
    restore(saved, place)
    assert place.read("my caf\u00e9.txt") == b"x"
    with pytest.raises(CourseError, match="your files cannot be saved"), locked(place):
        change({os.fsdecode(b"\xff.txt"): None}, "test", place)
    assert no_rubbish(place)


def test_one_command_at_a_time(place: Place):
    free = threading.Event()

    def hold() -> None:
        with locked(place):
            started.set()
            free.wait(20)

    started = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    started.wait(20)
    with pytest.raises(CourseError, match="another command is changing your files"), locked(place, patience=0.05):
        pass
    free.set()
    with locked(place):
        pass
    thread.join()


def test_many_processes_at_once_lose_nothing(place: Place):
    """Each process adds its line to one file; the lock makes every line arrive."""
    code = (
        IMPORTS + "place = Place(*map(Path, sys.argv[1:4]))\n"
        "for _ in range(5):\n"
        "    with locked(place): change({'log.py': (place.read('log.py') or b'') + b'x'}, 'add', place)\n"
    )
    command = [sys.executable, "-c", code, *map(str, (place.root, place.package, place.reference))]
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    processes = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert place.read("log.py") == b"x" * 15
    assert len(saved_copies(place)) == 15


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_command_leaves_a_tree_that_can_be_restored(place: Place, kind: signal.Signals):
    """Killed at random moments while it changes all files again and again: the newest copies lead back to the start."""
    code = (
        IMPORTS + "place = Place(*map(Path, sys.argv[1:4])); names = sorted(place.names())\n"
        "print(flush=True)\n"
        "for round in range(10**6):\n"
        "    with locked(place): change({name: b'%d' % round for name in names}, 'round', place)\n"
    )
    command = [sys.executable, "-c", code, *map(str, (place.root, place.package, place.reference))]
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.readline()
    time.sleep(random.uniform(0.05, 0.4))
    process.send_signal(kind)
    process.wait(20)
    process.stdout.close()
    if kind == signal.SIGINT:
        assert len({content for name, content in tree(place).items()}) == 1, "all files are of one round"
        assert no_rubbish(place)
    copies = saved_copies(place)
    assert copies
    restore(copies[-1], place)
    assert tree(place) == FILES
