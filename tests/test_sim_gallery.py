"""Every scenario of the gallery shows its complaint with one policy, and not with the other."""

from pathlib import Path

import pytest

from course.cli import main
from course.sim.gallery.scenario import find, names
from course.sim.package import Package

PACKAGE = Package("tiny_llm_ref")


@pytest.mark.parametrize("name", names())
def test_the_repair_helps(name: str) -> None:
    scenario = find(name)
    broken, repaired = (scenario.play(PACKAGE.module, mended) for mended in (False, True))
    assert broken.numbers.keys() == repaired.numbers.keys()
    scenario.check(broken.numbers, repaired.numbers)
    assert broken.lines.keys() == repaired.lines.keys()
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
