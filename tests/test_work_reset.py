"""`reset` puts stubs back function by function, and leaves everything else in the learner's files as it is."""

import ast
import random
from pathlib import Path

import msgspec
import pytest
from work_place import curriculum, make_place, solved, starter, tree, undefined_names

from course.curriculum import FileSymbols
from course.errors import CourseError
from course.paths import REFERENCE, is_extension
from course.starter import render_file
from course.work.functions import functions, task_functions
from course.work.place import Place
from course.work.reset import Whole, reset_files, reset_tasks
from course.work.source import task_source, unwritten

TASKS = curriculum().tasks
SOFTMAX = curriculum().task(1, 1, 1)
BASICS = "model/basics.py"
KERNEL = curriculum().task(2, 4, 1)
CPP = "extensions/src/quantized_matmul.cpp"


def bodies(content: bytes) -> dict[object, str]:
    return {key: ast.dump(node) for key, node in functions(ast.parse(content)).items()}


def test_each_task_alone(tmp_path: Path):
    """Of a finished course, only the functions of that task become stubs, in the form that the generator gives."""
    place = make_place(tmp_path, solved())
    for task in TASKS:
        done = reset_tasks(curriculum(), [task], "reset", place)
        assert done.whole == ()
        assert sorted(done.changed) == sorted(task.symbols)
        for name in task.symbols:
            mine = place.file(name).read_bytes()
            wanted = render_file(curriculum(), REFERENCE, name, lambda other, task=task: other is not task)
            if is_extension(name):
                assert mine == wanted
                continue
            after = bodies(mine)
            assert bodies(wanted).items() <= after.items()
            assert {key: after[key] for key in bodies(solved()[name])} == after
            place.file(name).write_bytes(solved()[name])
        for name in task.symbols:
            place.file(name).write_bytes(solved()[name])
    assert tree(place) == solved()


def test_all_tasks_of_the_course_at_once(tmp_path: Path):
    place = make_place(tmp_path, solved())
    assert reset_tasks(curriculum(), TASKS, "reset", place).whole == ()
    assert all(set(unwritten(task, place)) == {s for names in task.symbols.values() for s in names} for task in TASKS)
    for name in curriculum().files:
        if is_extension(name):
            assert place.read(name) == starter()[name]
        else:
            assert bodies(starter()[name]).items() <= bodies(place.read(name)).items()
    assert undefined_names(tmp_path) == ""


def test_an_untouched_starter_is_left_alone(tmp_path: Path):
    place = make_place(tmp_path, starter())
    done = reset_tasks(curriculum(), TASKS, "reset", place)
    assert done == ((), (), None)
    assert tree(place) == starter()
    assert not place.saved.exists()


@pytest.fixture(scope="module")
def few() -> dict[str, bytes]:
    """The files of two tasks, done."""
    return {name: solved()[name] for name in (BASICS, *KERNEL.symbols)}


@pytest.fixture
def place(tmp_path: Path, few: dict[str, bytes]) -> Place:
    return make_place(tmp_path, few)


def reset_softmax(place: Place, content: bytes) -> tuple[bytes, dict[str, str]]:
    """The file after a reset of softmax, and the files that were reset as a whole."""
    place.file(BASICS).write_bytes(content)
    done = reset_tasks(curriculum(), [SOFTMAX], "reset", place)
    assert done.saved.read(BASICS) == content
    return place.file(BASICS).read_bytes(), {file.name: file.why for file in done.whole}


def test_own_code_around_the_task_stays(place: Place, few: dict[str, bytes]):
    own = few[BASICS].decode()
    own = own.replace("import mlx.core as mx\n", "import os, sys  # mine\nimport mlx.core as mx\n\n_MINE = 3\n")
    own = own.replace("def linear(", "@staticmethod\ndef helper(a,b): return  a+b\n\n\ndef linear(") + "x = 1 # end"
    after, whole = reset_softmax(place, own.encode())
    text = after.decode()
    assert whole == {}
    for kept in ("import os, sys  # mine", "_MINE = 3", "def helper(a,b): return  a+b", "x = 1 # end"):
        assert kept in text
    stub = task_source(curriculum(), SOFTMAX, BASICS, starter()[BASICS].decode())["softmax"]
    mine = task_source(curriculum(), SOFTMAX, BASICS, own)["softmax"]
    assert text.rstrip("\n") == own.replace(mine, stub).rstrip("\n")


def mangled(text: str, change: str) -> bytes:
    """A learner's file in an unusual form."""
    match change:
        case "CRLF":
            return text.replace("\n", "\r\n").encode()
        case "mixed ends":
            return text.replace("\n", "\r\n", 5).encode()
        case "UTF-8 mark":
            return b"\xef\xbb\xbf" + text.encode()
        case "latin-1":
            return ("# -*- coding: latin-1 -*-\n# \u00e9\n" + text).encode("latin-1")
        case "form feed":
            return text.replace("\n\n\ndef", "\n\n\f\ndef").encode()
        case "tabs":
            return text.replace("    ", "\t").encode()
        case "another signature":
            return text.replace("def softmax(x: mx.array, axis: int = -1)", "def softmax(*a, **k)").encode()
        case "a second definition":
            return (text + "\n\ndef softmax(x):\n    return 7\n").encode()
        case "under a condition":
            lines = text[text.index("def softmax") : text.index("def linear")].splitlines()
            inner = "".join(f"    {line}\n" if line else "\n" for line in lines)
            return text.replace("\n".join(lines), "if True:\n" + inner).encode()
    raise AssertionError(change)


@pytest.mark.parametrize(
    "change",
    [
        "CRLF",
        "mixed ends",
        "UTF-8 mark",
        "latin-1",
        "form feed",
        "tabs",
        "another signature",
        "a second definition",
        "under a condition",
    ],
)
def test_unusual_files_are_reset_function_by_function(place: Place, few: dict[str, bytes], change: str):
    content = mangled(few[BASICS].decode(), change)
    after, whole = reset_softmax(place, content)
    assert whole == {}
    compile(after, BASICS, "exec")
    assert after.count(b"Week 1 Day 1 Task 1: softmax") == 1
    assert b"mx.exp" not in after
    assert b"return 7" not in after
    linear = content[content.index(b"def linear") :].split(b"def softmax")[0].rstrip()
    assert linear in after
    assert (b"\r\n" in after) == (b"\r\n" in content)
    if change == "CRLF":
        assert after.count(b"\n") == after.count(b"\r\n")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"def softmax(:\n", "the file does not parse at line 1"),
        (b"def linear(x): return x\n", "softmax is not in the file"),
        (b"", "softmax is not in the file"),
        (b"softmax = 3\n\n\ndef softmax(x):\n    return x\n", "softmax is more than a function"),
        (b"\xff\xfe\x00d\x00e\x00f", "the file is no text"),
        (b"def softmax(x):\n    return '\x00'\n", "the file does not parse"),
        (b"x = 1\rdef softmax(x):\r    return 1\r", "carriage return alone"),
        (b"(" * 10_000, "the file does not parse"),
    ],
)
def test_a_file_that_cannot_be_taken_apart_is_reset_as_a_whole(place: Place, content: bytes, why: str):
    after, whole = reset_softmax(place, content)
    assert why in whole[BASICS]
    assert after == starter()[BASICS]


def test_lines_that_were_counted_wrongly_are_noticed(
    place: Place, few: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
):
    """Should an editor's line ends ever be counted in another way, no other function is damaged."""
    monkeypatch.setattr("course.work.graft.last_line", lambda lines, node: node.end_lineno + 4)
    after, whole = reset_softmax(place, few[BASICS])
    assert whole == {BASICS: "the file cannot be taken apart function by function"}
    assert after == starter()[BASICS]


def test_a_missing_file_is_written_anew(place: Place):
    place.file(BASICS).unlink()
    done = reset_tasks(curriculum(), [SOFTMAX], "reset", place)
    assert done.whole == (Whole(BASICS, "it was missing", ()),)
    assert place.read(BASICS) == starter()[BASICS]


def test_an_import_that_the_stub_needs_comes_back(place: Place, few: dict[str, bytes]):
    bare = few[BASICS].replace(b"import mlx.core as mx\n", b"").replace(b"mx.array", b"object")
    after, whole = reset_softmax(place, bare)
    assert whole == {}
    assert after.count(b"import mlx.core as mx\n") == 1
    compile(after, BASICS, "exec")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"// begin task:", b"// starts task:", "do not pair"),
        (b"// begin task: QuantizedMatmul.eval_cpu", b"// begin task: other", "do not pair"),
        (b"task: QuantizedMatmul.eval_cpu", b"task: other", "the comments around the task QuantizedMatmul.eval_cpu"),
        (b"// end task:", b"// the end task", "begin task: NAME"),
        (b"\n", b"\r\n", ""),
        (b"// begin", b"// caf\xe9\n// begin", ""),
    ],
)
def test_regions_of_kernels(place: Place, few: dict[str, bytes], old: bytes, new: bytes, why: str):
    content = few[CPP].replace(old, new)
    place.file(CPP).write_bytes(content)
    done = reset_tasks(curriculum(), [KERNEL], "reset", place)
    after = place.file(CPP).read_bytes()
    assert b"Week 2 Day 4 Task 1" in after
    if why:
        assert why in done.whole[0].why
        assert after == starter()[CPP]
    else:
        assert done.whole == ()
        assert after == starter()[CPP].replace(old, new)


def test_a_whole_file_and_one_that_is_not_of_the_course(place: Place):
    given = "model/config.py"
    place.file(given).write_bytes(b"broken(")
    assert reset_files(curriculum(), [given], "reset", place).changed == (given,)
    assert place.read(given) == starter()[given]
    with pytest.raises(CourseError, match=r"model/mine\.py is no file of the course"):
        reset_files(curriculum(), ["model/mine.py"], "reset", place)


CLASS = """\
class Table:
    size = 1

    def row(self, n):
        return self._find(n)

    def _find(self, n):
        return n

    def empty(self):
        ...

    def given(self):
        return 0
"""


def test_a_class_as_task_is_its_public_methods(tmp_path: Path):
    """Helpers of one's own in the class are no part of the task, nor are methods that are given or do nothing."""
    task = msgspec.structs.replace(SOFTMAX, symbols={"model/table.py": ("Table",)})
    listed = FileSymbols({"Table": task}, {"Table.given"})
    assert set(task_functions(ast.parse(CLASS), listed, [task])) == {("Table.row", 0)}
    place = make_place(tmp_path, {"model/table.py": CLASS.encode()})
    assert unwritten(task, place) == ()
    place.file("model/table.py").write_text(
        CLASS.replace("return n", f'raise NotImplementedError("{task.stub("Table.row")}")')
    )
    assert unwritten(task, place) == ("Table",)
    place.file("model/table.py").unlink()
    assert unwritten(task, place) == ("Table",)


def test_random_damage_never_breaks_a_file(place: Place, few: dict[str, bytes]):
    """After any reset the file parses and its stub is there; what it held is in the saved copy."""
    chance = random.Random(1)
    for _ in range(60):
        content = bytearray(few[BASICS])
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(content))
            content[at : at + chance.choice([0, 1, 40])] = chance.choice([b"", b"\n", b"(", b'"""', b"\r", b"\t", b"#"])
        if bytes(content) == starter()[BASICS]:
            continue
        after, _ = reset_softmax(place, bytes(content))
        compile(after, BASICS, "exec")
        assert b"Week 1 Day 1 Task 1: softmax" in after
