"""The checks of `doctor`, one by one: each sees what is wrong, says what mends it, and stops the right days."""

import json
import os
import stat
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from course.doctor import checks, child, diagnosis, needs
from course.doctor.finding import Finding
from course.doctor.probes import (
    clock,
    compiler,
    cores,
    disk,
    extension,
    folders,
    git,
    limits,
    memory,
    models,
    packages,
    pair,
    python,
    starter,
    system,
    terminal,
    tests,
    tools,
)
from course.errors import CourseError


def without_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CXX", raising=False)


def test_every_check_is_a_module_and_every_module_a_check() -> None:
    folder = Path(checks.__file__).with_name("probes")
    assert {path.stem for path in folder.glob("[!_]*.py")} == {check.name for check in checks.CHECKS}


def test_this_machine_is_fit() -> None:
    for probe in (system, python, pair, compiler, tools, memory, disk, git, models, extension, clock, limits):
        found = probe.probe(False)
        assert found.state != "fail", f"{probe.__name__}: {found}"


def test_a_machine_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    without_programs(monkeypatch)
    found = compiler.probe(False)
    assert (found.state, found.stops) == ("fail", ("library", "emulator"))
    assert found.fixes == {"debian": "apt install g++", "macos": "xcode-select --install"}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 1", "--version fails"),
        ('[ "$1" = --version ] && echo toy 1.0 && exit 0; echo "error: no C++20" >&2; exit 1', "no C++20 program"),
        (
            '[ "$1" = --version ] && echo toy && exit 0; printf "#!/bin/sh\\nexit 3" > "$3"; chmod +x "$3"',
            "does not run",
        ),
    ],
)
def test_a_compiler_that_is_no_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str) -> None:
    program = tmp_path / "c++"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    found = compiler.probe(False)
    assert found.state == "fail"
    assert said in found.found


def test_a_wrong_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair, "version_of", {"mlx": "0.32.4", "nanobind": "2.13"}.__getitem__)
    found = pair.probe(False)
    assert (found.state, found.stops) == ("fail", ("library", "emulator"))
    assert "2.13" in found.found
    monkeypatch.setattr(pair, "version_of", {"mlx": "9.9", "nanobind": "9.9"}.__getitem__)
    assert pair.probe(False).state == "warn"


def test_packages_missing_broken_and_other_than_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["numpy", "no-such-package", "msgspec", "rich"]
    monkeypatch.setattr(packages, "_wanted", lambda: wanted)
    monkeypatch.setattr(packages, "_problem", lambda name, module: "ImportError: boom" if name == "msgspec" else "")
    locked = packages._locked()
    monkeypatch.setattr(packages, "_locked", lambda: locked | {"rich": "0.1"})
    found = packages.probe(False)
    assert found.state == "fail"
    for text in ("missing: no-such-package", "broken: msgspec (ImportError: boom)", "instead of 0.1"):
        assert text in found.found
    assert set(found.stops) == {"module:no_such_package", "everything"}
    assert "--reinstall" in found.fix
    monkeypatch.setattr(packages, "_wanted", lambda: ["rich"])
    assert packages.probe(False).state == "warn"


def test_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        total, free = 1 << 40, 100 << 20

    monkeypatch.setattr(disk.shutil, "disk_usage", lambda path: Usage)
    assert disk.probe(False).stops == ("library", "emulator")
    Usage.free = 1 << 30
    assert disk.probe(False).state == "warn"


@pytest.mark.parametrize(
    ("total", "free", "state", "stops"),
    [
        (0.5, 0.4, "fail", ("everything",)),
        (8, 0.5, "fail", ("library", "emulator")),
        (2, 2, "warn", ()),
        (8, 8, "ok", ()),
    ],
)
def test_memory(monkeypatch: pytest.MonkeyPatch, total: float, free: float, state: str, stops: tuple) -> None:
    monkeypatch.setattr(memory, "total_memory", lambda: int(total * 2**30))
    monkeypatch.setattr(memory, "available_memory", lambda: int(free * 2**30))
    found = memory.probe(False)
    assert (found.state, found.stops) == (state, stops)


def test_cores_and_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (100.0, 0.0, 0.0))
    assert "busy" in cores.probe(False).found
    monkeypatch.setattr(limits.resource, "getrlimit", lambda which: (64, 64))
    assert limits.probe(False).fix == "ulimit -n 1024"


def test_a_damaged_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  a\n{'0' * 64}  b\n")
    monkeypatch.setattr(models, "MODELS", tmp_path)
    monkeypatch.setattr(models, "SUMS", tmp_path / "SHA256SUMS")
    found = models.probe(False)
    assert "a is another file, b is missing" in found.found
    assert found.fix == "git checkout models"


def test_models_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = tmp_path / "hub" / "models--Qwen--Qwen3-0.6B" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").touch()
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    assert models.probe(False).found.endswith("in the cache: 0.6b")


def test_no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    without_programs(monkeypatch)
    assert git.probe(False).state == "warn"
    assert tests.probe(False).state == "ok"


def test_missing_tests_stop_their_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("course.curriculum.TESTS", tmp_path)
    monkeypatch.setattr(tests, "ROOT", tmp_path)
    found = tests.probe(False)
    assert found.state == "fail"
    assert "day:1.1" in found.stops


def test_the_learners_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "src"
    monkeypatch.setattr(starter, "SRC", source)
    assert starter.probe(False).stops == ("everything",)
    names = ["model/basics.py", "extensions/src/qmv.cpp"]
    monkeypatch.setattr(starter, "load", lambda: SimpleNamespace(files=dict.fromkeys(names)))
    (source / "tiny_llm" / "model").mkdir(parents=True)
    basics = source / "tiny_llm" / "model" / "basics.py"
    basics.write_text("x = 1\n")
    found = starter.probe(False)
    assert found.stops == ("file:extensions/src/qmv.cpp",)
    assert found.fix.startswith("pdm run reset --file src/extensions/src/qmv.cpp (")
    (source / "extensions" / "src").mkdir(parents=True)
    (source / "extensions" / "src" / "qmv.cpp").write_text("int x;\n")
    assert starter.probe(False).state == "ok"
    basics.write_bytes(b"x = 1\r\n")
    assert "CRLF" in starter.probe(False).found
    access = os.access
    monkeypatch.setattr(starter.os, "access", lambda path, mode: mode != os.W_OK and access(path, mode))
    assert "read-only: model/basics.py" in starter.probe(False).found


def test_folders_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "ROOT", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    found = folders.probe(False)
    assert (found.state, found.fix) == ("warn", "export XDG_CACHE_HOME=/tmp/cache")
    (tmp_path / ".course").rmdir()
    (tmp_path / ".course").write_text("a file, not a folder")
    assert folders.probe(False).stops == ("library", "emulator")


def test_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(folders, "ROOT", tmp_path)
    for module in (folders, disk):
        monkeypatch.setattr(module, "cache_folder", no_home)
    assert "no home folder" in folders.probe(False).found
    assert disk.probe(False).state in ("ok", "warn")


def test_a_clock_that_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1e9)
    assert clock.probe(False).state == "warn"


@pytest.mark.parametrize(
    ("seen", "state", "said"),
    [
        ("", "ok", "no terminal"),
        ("120 utf-8", "ok", "120 columns"),
        ("60 utf-8", "warn", "60"),
        ("80 ascii", "warn", "signs"),
    ],
)
def test_terminals(monkeypatch: pytest.MonkeyPatch, seen: str, state: str, said: str) -> None:
    monkeypatch.setenv(terminal.SEEN, seen)
    found = terminal.probe(False)
    assert found.state == state
    assert said in found.found


def test_days_need_what_their_tests_import() -> None:
    """Driven by the registry: a day in C++ needs a library, a day of HTTP needs its packages, the first day neither."""
    days = {f"{w['week']}.{d['day']}": set(d["needs"]) for w in needs.weeks() for d in w["days"]}
    kinds = {"library", "emulator", "module:starlette"}
    assert not days["1.1"] & kinds
    assert {"module:mlx", "module:numpy", "module:msgspec", "module:pytest"} <= days["1.1"]
    assert any("emulator" in need for need in days.values())
    assert any("module:starlette" in need for need in days.values())
    assert all("everything" in need for need in days.values())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import time; time.sleep(60)", "no answer within 2 s"),
        ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("import os; os._exit(0)", "nothing that can be read"),
        ("raise RuntimeError('broken')", "RuntimeError: broken"),
        ("print('[]')\n    import os; import sys; sys.stdout.flush(); os._exit(0)", "nothing that can be read"),
    ],
)
def test_a_check_that_dies_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str) -> None:
    package = tmp_path / "course" / "doctor"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("")
    (package / "probe.py").write_text(f"if __name__ == '__main__':\n    {body}\n")
    monkeypatch.setattr(child, "SRC", tmp_path)
    with pytest.raises(CourseError, match=said):
        child.ask("git", 2.0)


def test_a_dead_check_stops_what_it_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(name: str, seconds: float, full: bool = False) -> dict[str, object]:
        if name == "needs":
            return {"weeks": [{"week": 9, "title": "T", "days": [{"day": 1, "needs": ["everything", "library"]}]}]}
        raise CourseError(f"the check failed: {name}")

    monkeypatch.setattr(diagnosis, "ask", dies)
    found = diagnosis.examine()
    states = {check.name: (check.state, check.days) for check in found.checks}
    assert states["mlx"] == ("fail", ("9.1",))
    assert states["git"] == ("warn", ())
    assert not found.possible
    with pytest.raises(CourseError, match="week 3 does not exist: choose from 9"):
        diagnosis.examine(3)


def test_findings_cross_processes() -> None:
    found = Finding.fail("text", debian="a", macos="b", stops=("library",))
    assert Finding.again(json.loads(json.dumps(found.plain()))) == found
    assert found.fix == ("b" if sys.platform == "darwin" else "a")


def test_an_unreadable_file_of_the_learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starter, "SRC", tmp_path)
    monkeypatch.setattr(starter, "load", lambda: SimpleNamespace(files={"a.py": None}))
    (tmp_path / "tiny_llm").mkdir()
    file = tmp_path / "tiny_llm" / "a.py"
    file.write_text("")
    file.chmod(stat.S_IWUSR)
    access = os.access
    monkeypatch.setattr(starter.os, "access", lambda path, mode: mode != os.R_OK and access(path, mode))
    found = starter.probe(False)
    assert found.stops == ("file:a.py",)
    assert found.fix.startswith("chmod u+rw")
