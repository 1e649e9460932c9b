"""The Gradescope zip runs in Gradescope's layout, and a result is there whatever the submission or the autograder is.

The packages of this environment stand in for those that `setup.sh` installs.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from course import cli
from course.curriculum import load
from course.paths import SRC
from course.release import requirements
from course.work.pristine import pristine

SECRET = "a secret of more than sixteen characters"


@pytest.fixture(scope="module")
def autograder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Gradescope makes of the zip: /autograder, with the folder source and no submission."""
    root = tmp_path_factory.mktemp("gradescope")
    root.chmod(0o755)  # as in a container: the submission's user finds its own files
    (root / "seeds").write_text(SECRET)
    (root / "seeds").chmod(0o600)
    file, seeds = root / "autograder.zip", root / "seeds"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requirements, "_pdm", lambda: _locked(root))
        assert cli.main(["release", "gradescope", str(file), "--week", "1", "--day", "1", "--seeds", str(seeds)]) == 0
    subprocess.run(["unzip", "-q", str(file), "-d", str(root / "source")], check=True, timeout=60)
    shutil.copy(root / "source/run_autograder", root / "run_autograder")
    (root / "source/secret").chmod(0o700)
    return root


def _locked(root: Path) -> Path:
    """Stands in for PDM, which need not be installed where tests run."""
    script = root / "pdm"
    script.write_text("#!/bin/sh\necho 'numpy==2.0 --hash=sha256:00'\n")
    script.chmod(0o755)
    return script


def run(root: Path, **environment: str) -> tuple[dict, str]:
    """results.json and what instructors see."""
    shutil.rmtree(root / "results", ignore_errors=True)
    (root / "submission").mkdir(exist_ok=True)
    settings = os.environ | {"AUTOGRADER": str(root), "PYTHON": sys.executable} | environment
    done = subprocess.run(
        [root / "run_autograder"], cwd="/", env=settings, capture_output=True, text=True, timeout=240, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert {path.name for path in (root / "results").iterdir()} == {"results.json"}
    assert SECRET not in said + (root / "results/results.json").read_text()
    return json.loads((root / "results/results.json").read_text()), said


def submit(root: Path, files: dict[str, bytes]) -> None:
    """Put files into /autograder/submission, as an upload has them."""
    shutil.rmtree(root / "submission", ignore_errors=True)
    for name, content in files.items():
        path = root / "submission" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def starter() -> dict[str, bytes]:
    files = pristine(load()).items()
    return {f"src/tiny_llm/{name}": content for name, content in files if not name.startswith("extensions/")}


def solution() -> dict[str, bytes]:
    folder = SRC / "tiny_llm_ref"
    return {f"src/tiny_llm/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*.py")}


def test_the_zip_holds_no_solution_and_its_secret_is_private(autograder: Path):
    with zipfile.ZipFile(autograder / "autograder.zip") as archive:
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
    parts = {part for name in modes for part in name.split("/")}
    assert not parts & {"tiny_llm_ref", "extensions_ref", "mutants", "alternatives", "tests", "release", "tiny_llm"}
    assert {name for name, mode in modes.items() if not mode & 0o077} == {"secret/seeds"}
    assert {name for name in modes if "/" not in name} >= {"setup.sh", "run_autograder", "requirements.txt"}
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    assert stat.S_IMODE((autograder / "autograder.zip").stat().st_mode) == 0o600


@pytest.mark.parametrize("script", ["setup.sh", "run_autograder"])
def test_the_scripts_parse(autograder: Path, script: str):
    subprocess.run(["bash", "-n", autograder / "source" / script], check=True, timeout=60)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", autograder / "source" / script], check=True, timeout=60)


def test_a_full_solution_gets_all_points(autograder: Path):
    submit(autograder, solution())
    results, said = run(autograder)
    points = sum(task.points for task in load().day(1, 1).tasks)
    assert results["score"] == points, said
    assert sum(test["max_score"] for test in results["tests"]) == points
    assert any("hidden" in test["name"] for test in results["tests"])


def test_the_untouched_starter_gets_none(autograder: Path):
    submit(autograder, starter())
    results, said = run(autograder)
    assert results["score"] == 0
    assert {test["status"] for test in results["tests"]} == {"failed"}, said


@pytest.mark.parametrize(
    "files",
    [{}, {"essay.txt": b"hello"}, {"src/tiny_llm/model/basics.py": b"raise SystemExit(0)\n"}],
    ids=["nothing", "something else", "broken"],
)
def test_other_submissions_get_a_result_too(autograder: Path, files: dict[str, bytes]):
    submit(autograder, files)
    results, said = run(autograder)
    assert results["score"] == 0, said
    assert results["output"]


def test_a_broken_autograder_tells_both_sides(autograder: Path):
    submit(autograder, starter())
    results, said = run(autograder, PYTHON="/nowhere/python")
    assert results["score"] == 0
    assert "tell your instructor" in results["output"]
    assert results["stdout_visibility"] == "hidden"
    assert "INSTRUCTOR: nothing was graded" in said


def test_a_submission_that_never_ends_is_graded_so_far(autograder: Path):
    settings = autograder / "source/settings.sh"
    before = settings.read_text()
    settings.write_text(before.replace("limit=540", "limit=8"))
    submit(autograder, solution() | {"src/tiny_llm/model/basics.py": b"while True:\n    pass\n"})
    try:
        results, said = run(autograder)
    finally:
        settings.write_text(before)
    assert results["score"] == 0
    assert "is the limit of 8 s" in said


@pytest.mark.parametrize("options", [["--week", "9"], ["--day", "1"], ["--limit", "5"], ["--seeds", "/nowhere/s"]])
def test_mistakes_are_one_line_and_write_nothing(options: list[str], tmp_path: Path, capsys):
    assert cli.main(["release", "gradescope", str(tmp_path / "a.zip"), *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
