"""Runs one check in a process of its own, with a time limit: one that hangs or crashes is a line of the report."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress

from course.errors import CourseError
from course.group import tied
from course.paths import ROOT, SRC

_MOST = 1 << 20  # bytes that a check may print


def ask(name: str, seconds: float, full: bool = False) -> dict[str, object]:
    """What the check `name` says. Raises CourseError, in one line, for one that says nothing in time."""
    path = os.pathsep.join([str(SRC), *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "course.doctor.probe", name, "1" if full else "0"]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                tied(command),
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            raise CourseError(f"the check cannot be started: {error.strerror}") from None
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise CourseError(f"no answer within {seconds:g} s: is the machine busy?") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdin.close()
        if status:
            raise CourseError(f"the check failed: {_why(status, _text(err))}")
        return _last(_text(out))


def _text(file: "tempfile._TemporaryFileWrapper[bytes]") -> str:
    file.seek(0)
    return file.read(_MOST).decode(errors="replace")


def _last(text: str) -> dict[str, object]:
    try:
        value = json.loads(text.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise CourseError("the check said nothing that can be read") from None
    if not isinstance(value, dict):
        raise CourseError("the check said nothing that can be read")
    return value


def _why(status: int, said: str) -> str:
    if status < 0:
        with suppress(ValueError):
            return f"it was ended by {signal.Signals(-status).name}"
        return f"it was ended by signal {-status}"
    lines = [line.strip() for line in said.strip().splitlines() if line.strip()]
    return lines[-1].removeprefix("course.errors.CourseError: ")[:300] if lines else f"exit status {status}"
