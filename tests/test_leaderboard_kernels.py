"""Leaderboard counters: the same in every run, behind a boundary too; a kernel that fails a case has no entry."""

import shutil
from pathlib import Path

import pytest

from course.boundary import Boundary, choose
from course.curriculum import load
from course.leaderboard import speed
from course.leaderboard.kernels import entries, kernels
from course.leaderboard.place import NoEntry, Place
from course.leaderboard.ways import Way
from course.paths import REFERENCE, extension_folder

CURRICULUM = load()


@pytest.fixture(scope="module")
def boundary(tmp_path_factory: pytest.TempPathFactory) -> Boundary:
    """A submission that is the reference, under the learner's name."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in (tree, *tree.parents):
        if folder.owner() == tree.owner() and folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    left = shutil.ignore_patterns("__pycache__", "build", "*.so", ".built*")
    shutil.copytree(REFERENCE, tree / "tiny_llm", ignore=left)
    shutil.copytree(extension_folder(REFERENCE), tree / "extensions", ignore=left)
    return Boundary(str(tree), choose(None))


def test_counters_are_the_same_in_every_run(boundary: Boundary) -> None:
    task, names = next(kernels(Place(None, CURRICULUM, "tiny_llm_ref")))
    plain = entries(Place(None, CURRICULUM, "tiny_llm_ref"), task, names)
    inside = entries(Place(boundary, CURRICULUM, "tiny_llm"), task, names)
    assert plain == inside
    assert [(entry.order, entry.unit) for entry in plain] == [("asc", "KiB moved")] * len(names)
    assert all(entry.value > 0 and "same on every machine" in entry.hardware for entry in plain)


def test_a_wrong_kernel_has_no_entry(boundary: Boundary) -> None:
    task, names = next(kernels(Place(None, CURRICULUM, "tiny_llm_ref")))
    file = Path(boundary.tree) / next(iter(task.symbols))
    right = file.read_text()
    try:
        file.write_text(right.replace(" + float(", " - float("))
        with pytest.raises(NoEntry, match="does not pass: "):
            entries(Place(boundary, CURRICULUM, "tiny_llm"), task, names)
    finally:
        file.write_text(right)


def test_a_stub_has_no_entry() -> None:
    task, names = next(kernels(Place(None, CURRICULUM, "tiny_llm")))
    with pytest.raises(NoEntry, match=task.label):
        entries(Place(None, CURRICULUM, "tiny_llm"), task, names)


def test_speeds_behind_the_boundary(boundary: Boundary, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("WAYS", (Way("python", "dense"),)), ("READINGS", 1), ("ANSWER", 8)):
        monkeypatch.setattr(speed, name, value)
    found = speed.fastest(Place(boundary, CURRICULUM, "tiny_llm"), speed.DECODE)
    assert found.value > 0
