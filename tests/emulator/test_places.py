"""From addresses in a compiled kernel to lines of its source."""

from pathlib import Path

import pytest

from course.emulator import places

OWN = frozenset(["rms_norm.metal"])


def test_lines_follow_the_markers():
    source = 'a\n#line 7 "one.metal"\n  b\nc\n#line 1 "generated end"\nd'
    lines = places.source_lines(source)
    assert lines == {("kernel", 1): "a", ("one.metal", 7): "b", ("one.metal", 8): "c", ("generated end", 1): "d"}
    assert places.last_own_lines(lines, frozenset(["one.metal"])) == {"generated end": ("one.metal", 8)}


@pytest.mark.parametrize(
    ("platform", "output"),
    [
        (
            "linux",
            "0x0000000000001233\n/x/include/msl/scalar.h:3\n/tmp/build/rms_norm.metal:12 (discriminator 2)\n"
            "/tmp/build/rms_norm.metal:40\n",
        ),
        (
            "darwin",
            "operator float (in k.so) (scalar.h:3)\nhelper (in k.so) (rms_norm.metal:12)\n"
            "rms_norm (in k.so) (rms_norm.metal:40)\n",
        ),
    ],
)
def test_an_inlined_call_is_told_at_the_authors_innermost_line(
    platform: str, output: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(places.sys, "platform", platform)
    monkeypatch.setattr(places, "_output", lambda command: output)
    assert places.locate(Path("k.so"), [0x1234, 0], OWN) == {0x1234: ("rms_norm.metal", 12)}


def test_a_missing_tool_leaves_the_lines_out(monkeypatch: pytest.MonkeyPatch):
    def fail(command: list[str]) -> str:
        raise FileNotFoundError(command[0])

    monkeypatch.setattr(places, "_output", fail)
    assert places.locate(Path("k.so"), [0x1234], OWN) == {}
