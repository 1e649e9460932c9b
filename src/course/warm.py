"""Graded runs of pytest, forked from a process that has imported everything: each saves a quarter of a second.

A maintainer runs thousands of short ones (every mutant is one). The process never evaluates an array, because a fork
after that hangs. Where nobody has tried this (macOS), a run is a process started afresh.
"""

import atexit
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from course.paths import ROOT, SRC
from course.pipe import Closed, receive, send

TIMED_OUT = 124
_PLACES = "PYTHONPATH"  # the only variable in which runs from one process may differ
_IMPORTS = ("pytest_timeout", "hypothesis.strategies", "mlx.nn", "course.plugin")
_GRACE = 30.0
_POLL = 0.005
_local = threading.local()


def run_pytest(arguments: Sequence[str], environment: Mapping[str, str], timeout: float) -> tuple[int, str]:
    """Exit status (`TIMED_OUT` after `timeout` seconds) and output of pytest; what it started ends with it."""
    if sys.platform != "linux":
        return _run_afresh(arguments, environment, timeout)
    apart = {key: value for key, value in environment.items() if key != _PLACES}
    server = getattr(_local, "server", None)
    if server is None or server.environment != apart:
        if server:
            server.close()
        server = _local.server = _Server(apart)
    try:
        return server.run(arguments, environment[_PLACES], timeout)
    except BaseException:
        server.close()
        _local.server = None
        raise


class _Server:
    """The process that waits for work. It belongs to one thread."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        child_read, self._write = os.pipe()
        self._read, child_write = os.pipe()
        os.set_blocking(self._write, False)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "course.warm", str(child_read), str(child_write)],
                cwd=ROOT,
                env=self.environment | {_PLACES: str(SRC)},
                stdin=subprocess.DEVNULL,
                pass_fds=(child_read, child_write),
                start_new_session=True,
            )
        finally:
            os.close(child_read)
            os.close(child_write)
        atexit.register(self.close)

    def run(self, arguments: Sequence[str], places: str, timeout: float) -> tuple[int, str]:
        with tempfile.TemporaryDirectory(prefix="tiny-llm-") as folder:
            said = Path(folder) / "output.txt"
            request = {"arguments": list(arguments), "places": places, "timeout": timeout, "output": str(said)}
            deadline = time.monotonic() + timeout + _GRACE
            send(self._write, json.dumps(request).encode(), deadline)
            status = int(receive(self._read, deadline))
            output = f"killed after {timeout:g} s" if status == TIMED_OUT else said.read_text(errors="replace")
        return status, output

    def close(self) -> None:
        """End the process, and the run that it is in."""
        atexit.unregister(self.close)
        self._process.terminate()
        self._process.wait()
        for fd in (self._read, self._write):
            with suppress(OSError):
                os.close(fd)


def _run_afresh(arguments: Sequence[str], environment: Mapping[str, str], timeout: float) -> tuple[int, str]:
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            return TIMED_OUT, f"killed after {timeout:g} s"
        finally:
            _kill(process.pid)
            process.wait()
        said.seek(0)
        return status, said.read()


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def main(read: int, write: int) -> None:
    """Serve one run after another until the other end is gone."""
    import course.route  # noqa: F401 - before anything imports mlx.core

    for name in [*_IMPORTS, *sorted(f"course.{path.stem}" for path in Path(__file__).parent.glob("*_case*"))]:
        importlib.import_module(name)
    running: list[int] = []

    def end(number: int, frame: object) -> None:
        for pid in running:
            _kill(pid)
        os._exit(1)

    signal.signal(signal.SIGTERM, end)
    with suppress(Closed):
        while True:
            request = json.loads(receive(read))
            running[:] = [_start(request, (read, write))]
            status = _wait(running[0], request["timeout"])
            running.clear()
            send(write, str(status).encode())


def _start(request: dict, private: Sequence[int]) -> int:
    """Fork, and run pytest in the copy."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for fd in private:
        os.close(fd)
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    from course.limit import last_words

    for fd in (1, 2, last_words):
        os.dup2(output, fd)
    os.environ[_PLACES] = request["places"]
    sys.path[:0] = request["places"].split(os.pathsep)
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    status = 1
    try:
        import pytest

        status = int(pytest.main(request["arguments"]))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)  # at once: a thread that the code under test left may never end


def _wait(pid: int, timeout: float) -> int:
    deadline = time.monotonic() + timeout
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _kill(pid)
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            _kill(pid)
            os.waitpid(pid, 0)
            return TIMED_OUT
        time.sleep(_POLL)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
