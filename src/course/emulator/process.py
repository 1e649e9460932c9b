"""A compiler run in a process of its own that ends when its time is over."""

import os
import signal
import subprocess
from dataclasses import dataclass

from course.emulator.errors import KernelError


@dataclass(frozen=True)
class Result:
    """How a command ended and what it printed."""

    status: int
    stdout: str
    stderr: str


def run(command: list[str], timeout: float, stdin: str = "") -> Result:
    """Run `command`; after `timeout` seconds it and its children are killed.

    Raises KernelError for a command that cannot be started or did not end in time.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
    except OSError as error:
        raise KernelError(f"cannot run {command[0]}: {error.strerror}: install g++ or clang++") from None
    try:
        out, err = process.communicate(stdin.encode("utf-8", "surrogateescape"), timeout)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise KernelError(
            f"{command[0]} did not finish within {timeout:g} s: the kernel is too large or its templates never end"
        ) from None
    except BaseException:
        _kill(process)
        raise
    return Result(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
