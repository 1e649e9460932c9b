"""Compiled kernels on disk: found again, made anew after a change, safe for several processes, never waited for."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course.emulator import cache, compiler, process
from course.emulator.errors import KernelError

SOURCE = """#include <metal_stdlib>
#line 1 "a.metal"
kernel void k(device float* o [[buffer(0)]]) { o[0] = %s; }
"""
OWN = frozenset(["a.metal"])


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_a_kernel_is_compiled_once(monkeypatch: pytest.MonkeyPatch):
    first = cache.build(SOURCE % 1, False, OWN)
    monkeypatch.setattr(compiler, "compile_to", lambda *arguments: pytest.fail("compiled again"))
    monkeypatch.setattr(cache, "preprocess", lambda *arguments: pytest.fail("preprocessed again"))
    assert cache.build(SOURCE % 1, False, OWN) == first
    assert sorted(path.suffix for path in first.parent.iterdir()) == [".so"], "nothing is left behind"


def test_source_and_mode_make_another_kernel():
    paths = {cache.build(SOURCE % value, mode, OWN) for value, mode in ((1, False), (1, True), (2, False))}
    assert len(paths) == 3


def test_the_compiler_and_its_flags_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch):
    before = cache._key(SOURCE, False)
    monkeypatch.setattr(compiler, "flags", lambda path, checked: ["-O3"])
    assert cache._key(SOURCE, False) != before
    monkeypatch.setattr(cache, "_tools", lambda: "another translator")
    assert len({before, cache._key(SOURCE, False)}) == 2


def test_a_failed_build_leaves_nothing():
    with pytest.raises(KernelError):
        cache.build(SOURCE % "unknown", False, OWN)
    assert list(cache.folder().iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(KernelError, match=r"cannot keep compiled kernels in .*file.*set XDG_CACHE_HOME"):
        cache.build(SOURCE % 1, False, OWN)


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch):
    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(KernelError, match=r"kernels \(No space left on device\): make room"):
        cache.build(SOURCE % 1, False, OWN)


def test_several_processes_may_build_the_same_kernel(tmp_path: Path):
    code = f"from course.emulator import cache\nprint(cache.build({SOURCE % 3!r}, False, frozenset(['a.metal'])))"
    runs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    paths = {run.communicate(timeout=60)[0].strip() for run in runs}
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert len(paths) == 1
    assert Path(paths.pop()).exists()


def test_the_folder_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache, "KEEP", 2)
    for age in (40, 30, 20):
        old = cache.folder() / f"{age}.so"
        old.write_bytes(b"")
        os.utime(old, (age, age))
    built = cache.build(SOURCE % 1, False, OWN)
    assert sorted(path.name for path in cache.folder().iterdir()) == sorted(["40.so", built.name])


def test_a_compiler_that_hangs_is_stopped(tmp_path: Path):
    with pytest.raises(KernelError, match=r"did not finish within 0\.2 s"):
        process.run(["sh", "-c", "sleep 60 & wait"], 0.2)


def test_a_missing_compiler_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    compiler.compiler.cache_clear()
    try:
        with pytest.raises(KernelError, match="no-such-compiler not on PATH"):
            compiler.compiler()
    finally:
        monkeypatch.undo()
        compiler.compiler.cache_clear()


def test_the_line_in_a_header_is_told_at_the_line_that_led_there():
    messages = (
        "/x/include/msl/math.h: In instantiation of 'T f(T) [with T = int*]':\n"
        "a.metal:7:12:   required from here\n"
        "/x/include/msl/math.h:3:10: error: invalid operands\n"
    )
    assert [str(problem) for problem in compiler.problems(messages, OWN)] == ["a.metal:7: invalid operands"]
