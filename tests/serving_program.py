"""A program of the serving engine as a process of its own: started, talked to, and ended, always."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 120
SIZES = ("--rows", "8", "--pages", "300")


def environment(path: Path | None = None) -> dict[str, str]:
    """One thread is plenty for these models. `path` comes before the course's own packages."""
    return os.environ | {"OPENBLAS_NUM_THREADS": "1"} | ({"PYTHONPATH": str(path)} if path else {})


def course(*arguments: str, path: Path | None = None, stdin: bytes = b"") -> subprocess.CompletedProcess:
    """A command of the course, to its end. One that takes too long is killed, and whatever it has started."""
    command = [sys.executable, "-m", "course", *arguments]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, env=environment(path), start_new_session=True, **pipes) as process:
        try:
            out, err = process.communicate(stdin, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


class Server:
    """A running `serve`."""

    def __init__(self, process: subprocess.Popen, url: str):
        self.process, self.url = process, url

    def ask(self, path: str, body: object = None) -> tuple[int, dict]:
        """Status and JSON of an answer. body: None for GET."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal. Returns the exit status and what was said on standard error."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, said


@contextmanager
def serving(*options: str, model: object = "tiny", path: Path | None = None) -> Iterator[Server]:
    """`serve` on a free port, from when it says where it is."""
    command = [sys.executable, "-m", "course", "serve", "--port", "0", "--model", str(model), *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(path)
    )
    try:
        line = process.stdout.readline()
        found = re.match(r"(http://\S+) is a web page", line)
        assert found, f"said {line!r} and {process.stderr.read()}"
        yield Server(process, found[1])
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
