"""A file that a learner adds and a task file imports is told, because a grader does not take it."""

from pathlib import Path

import pytest
from work_place import curriculum, make_place, starter

from course.commands import status
from course.release.archive import zipped
from course.work import strangers as module
from course.work.place import Place
from course.work.strangers import EXTRA_FILES, strangers

USER = "model/attention.py"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = make_place(tmp_path, starter())
    (place.package / "model/util.py").write_text("from . import other\n\ndef scale(x):\n    return x\n")
    (place.package / "model/other.py").write_text("")
    return place


def use(place: Place, line: str) -> None:
    place.file(USER).write_bytes(starter()[USER] + f"\n\n{line}\n".encode())


@pytest.mark.parametrize(
    "line",
    [
        "from .util import scale",
        "from . import util",
        "from ..model import util as mine",
        "from tiny_llm.model.util import scale",
        "import tiny_llm.model.util",
        "def late():\n    from .util import scale",
    ],
)
def test_a_file_of_their_own_that_a_task_file_imports_is_told_in_one_line(place: Place, line: str):
    use(place, line)
    (told,) = strangers(curriculum(), place)
    assert told == (
        "src/tiny_llm/model/util.py is no file of the course: a grader does not take it; "
        "put its code into src/tiny_llm/model/attention.py, which imports it"
    )


@pytest.mark.parametrize(
    "line", ["", "import util", "from .basics import softmax", "from util.model import x", "def ("]
)
def test_files_that_no_task_file_imports_and_broken_files_are_not_told(place: Place, line: str):
    use(place, line)
    assert strangers(curriculum(), place) == []


def test_a_copy_without_reference_knows_its_starter_and_what_its_grader_takes(place: Place):
    use(place, "from .util import scale")
    place = Place.of(place.root)
    assert strangers(curriculum(), place) == []  # nothing to compare with
    place.starter_zip.parent.mkdir()
    place.starter_zip.write_bytes(zipped(starter()))
    assert len(strangers(curriculum(), place)) == 1
    (place.root / EXTRA_FILES).write_text("model/other.py\nmodel/util.py\n")
    assert strangers(curriculum(), place) == []


def test_status_tells_it_on_standard_error(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    use(place, "from .util import scale")
    monkeypatch.setattr(module, "strangers", lambda curriculum: strangers(curriculum, place))
    parser = status.argparse.ArgumentParser()
    status.add_arguments(parser)
    assert status.run(parser.parse_args(["--json"])) == 0
    said = capsys.readouterr()
    assert said.out.startswith("{")
    assert said.err.count("\n") == 1
    assert "a grader does not take it" in said.err
