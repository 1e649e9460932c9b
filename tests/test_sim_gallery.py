"""Every scenario of the gallery shows its complaint with one policy, and not with the other."""

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from course.cli import main
from course.sim.gallery.scenario import find, names
from course.sim.gallery_table import one
from course.sim.package import Package

PACKAGE = Package("tiny_llm_ref")
BOOK = Path(__file__).parents[1] / "book" / "src" / "gallery"


def shown(thing: RenderableType) -> str:
    """What the command prints."""
    console = Console(width=1000, highlight=False)
    with console.capture() as text:
        console.print(thing)
    return text.get()


@pytest.mark.parametrize("name", names())
def test_the_repair_helps(name: str) -> None:
    scenario = find(name)
    broken, repaired = (scenario.play(PACKAGE.module, mended) for mended in (False, True))
    assert broken.numbers.keys() == repaired.numbers.keys()
    scenario.check(broken.numbers, repaired.numbers)
    assert broken.lines.keys() == repaired.lines.keys()
    command = f"run sim gallery {name} > book/src/gallery/{name}.txt"
    assert shown(one(scenario, broken, repaired)) == (BOOK / f"{name}.txt").read_text(), command
    again = scenario.play(PACKAGE.module, False)
    assert (again.numbers, again.lines) == (broken.numbers, broken.lines), "it differs from run to run"
    with pytest.raises(AssertionError):
        scenario.check(repaired.numbers, broken.numbers)


def test_there_are_fifteen() -> None:
    assert len(names()) == 15


def test_a_scenario_is_shown_and_drawn(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["sim", "gallery"]) == 0
    listed = capfd.readouterr().out
    assert all(name in listed for name in names())
    assert main(["sim", "gallery", names()[0], "--plots", str(tmp_path)]) == 0
    assert "<svg" in (tmp_path / f"{names()[0]}.svg").read_text()
    assert main(["sim", "gallery", "nothing"]) == 2
    assert "choose from" in capfd.readouterr().err
    assert main(["sim", "gallery", "--plots", str(tmp_path)]) == 2
    assert "--all" in capfd.readouterr().err


def test_all_are_one_table(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("course.sim.gallery.scenario.names", lambda: ["hot-prefix", "large-chunks"])
    assert main(["sim", "gallery", "--all"]) == 0
    listed = capfd.readouterr().out
    assert "hot-prefix" in listed
    assert "large-chunks" in listed
    assert all(len(line) <= 80 for line in listed.splitlines())


def test_a_repair_that_does_not_help_is_said(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = find("large-chunks")
    upside_down = replace(scenario, play=lambda cluster, mended: scenario.play(cluster, not mended))
    monkeypatch.setattr("course.sim.gallery.scenario.find", lambda name: upside_down)
    assert main(["sim", "gallery", "large-chunks"]) == 2
    assert "does not help" in capfd.readouterr().err
