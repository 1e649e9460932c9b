"""Each kind of bug is caught at its line, in every order of the threads; its correct twin is silent."""

import mlx.core as mx
import numpy as np
import pytest
from emulator.bugs import BUGS, MARK, Bug
from emulator.emulate import run

from course.emulator import metal_kernel as front

# Stacks overflow where a function begins, which for the kernel itself is no line of its body.
PLACELESS = {"output_not_written", "stack_overflow"}


def _run(body: str, bug: Bug, order: int, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str | int | bool]]:
    launch = front.launch
    monkeypatch.setattr(front, "launch", lambda *args, **options: launch(*args, **(options | {"order": order})))
    text = f"uint t = thread_index_in_threadgroup, i = thread_position_in_grid.x;\n{body}"
    output = ((bug.output,), getattr(mx, bug.dtype))
    x = mx.array(np.random.default_rng(0).standard_normal(128).astype(np.float32))
    _, findings, _ = run(text, {"x": x}, output, threads=bug.threads, init_value=bug.init_value, atomic=bug.atomic)
    return findings


@pytest.mark.parametrize("order", [0, -1, 7])
@pytest.mark.parametrize("name", BUGS)
def test_bug_is_caught_at_its_line(name: str, order: int, monkeypatch: pytest.MonkeyPatch):
    bug = BUGS[name]
    findings = _run(bug.wrong, bug, order, monkeypatch)
    assert findings, "nothing was found"
    lines = {n for n, line in enumerate(bug.wrong.splitlines(), 2) if MARK in line}
    for finding in findings:
        assert finding["kind"] in bug.kinds.split(), finding["message"]
        if finding["kind"] not in PLACELESS:
            assert finding["line"] in lines, f"not in {lines}: {finding['message']}"


@pytest.mark.parametrize("order", [0, -1, 7])
@pytest.mark.parametrize("name", BUGS)
def test_correct_twin_is_silent(name: str, order: int, monkeypatch: pytest.MonkeyPatch):
    bug = BUGS[name]
    findings = _run(bug.right, bug, order, monkeypatch)
    assert not findings, findings[0]["message"]
