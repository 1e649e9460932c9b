"""A server that runs for the time of a measurement, in a process of its own."""

import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from socket import create_server
from typing import TextIO

import httpx

from course.errors import CourseError
from course.soak.server import server

START_SECONDS = 180


@contextmanager
def our_server(model: str, options: Sequence[str] = (), url: str | None = None) -> Iterator[str]:
    """The URL of `pdm run serve --model model`, started here; or just `url`, where one is given."""
    if url is not None:
        yield url.rstrip("/")
        return
    with server(model, options) as (_, started, _):
        yield started


@contextmanager
def running(command: Sequence[str], url: str, ready: str) -> Iterator[str]:
    """`command` as a process, from when GET `url` + `ready` answers 200. It is asked to end, then made to."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        try:
            wait_until_ready(process, url + ready, log)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until_ready(process: subprocess.Popen, url: str, log: TextIO) -> None:
    """Raises CourseError for a server that ends, or does not answer in time."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            log.seek(0)
            raise CourseError(f"the server did not start: {log.read().strip()[-500:]}")
        try:
            if httpx.get(url, timeout=1, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise CourseError(f"the server did not answer at {url} within {START_SECONDS} s")


def free_port() -> int:
    """A port that nobody listens to now."""
    with create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
