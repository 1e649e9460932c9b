"""A server in a process of its own for the time of a soak, and what must be true of it at the end: nothing is left.

Reads the process's figures where the system has /proc.
"""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import NamedTuple, TextIO

import httpx

from course.errors import CourseError
from course.soak.clients import Clients
from course.soak.questions import ask_all

START_SECONDS, END_SECONDS = 300, 60
IDLE_SECONDS = 15.0
"""After the last client has gone, for the engine to notice."""
GROWTH = 48.0
"""MiB of memory between the first third of a soak and its end, beside 5 %: a server's memory is not a straight line."""


class Figures(NamedTuple):
    """Of a process. memory: MiB that are resident."""

    memory: float
    files: int
    threads: int


@contextmanager
def server(model: str, options: Sequence[str]) -> Iterator[tuple[subprocess.Popen, str, TextIO]]:
    """`serve` on a free port: its process, its URL, and what it says on standard error. Raises CourseError."""
    command = [sys.executable, "-m", "course", "serve", "--model", model, "--port", "0", *options]
    with TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            found = re.match(r"(http://\S+) ", process.stdout.readline())
            if found is None:
                process.wait(END_SECONDS)
                log.seek(0)
                raise CourseError(f"the server did not start: {log.read().strip().removeprefix('error: ')}")
            yield process, found[1], log
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()


def figures(pid: int) -> Figures | None:
    """Those of a process now, None where there is no /proc."""
    folder = Path(f"/proc/{pid}")
    if not folder.exists():
        return None
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
    files = sum(1 for _ in (folder / "fd").iterdir())
    return Figures(int(status["VmRSS"].split()[0]) / 1024, files, int(status["Threads"]))


async def soak(
    url: str, model: str, pid: int, seconds: float, clients: int, seed: int, say: Callable[[str], None]
) -> Clients:
    """Have so many clients ask for so long. Returns them: their `problems` are empty if all was well."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=None, limits=limits, trust_env=False) as client:
        asked = Clients(client, model, await ask_all(client, model, seed), seed)
        end = time.monotonic() + seconds
        seen: list[Figures] = []
        watch = asyncio.create_task(_watch(pid, seen))
        await asyncio.gather(*(asked.work(lambda: time.monotonic() > end) for _ in range(clients)))
        watch.cancel()
        state = await _idle_state(client)
        asked.problems += leaks(state)
        asked.problems += growth(seen, say)
        text = (await client.get("/metrics")).text
        say(f"engine at the end: {state['stats']}, open {state['open']}")
        say("prefix cache: " + ", ".join(re.findall(r"^tiny_llm_prefix_cache_hit_rate .*", text, re.M)))
    return asked


async def _watch(pid: int, seen: list[Figures]) -> None:
    while (now := figures(pid)) is not None:
        seen.append(now)
        await asyncio.sleep(0.5)


async def _idle_state(client: httpx.AsyncClient) -> dict:
    """The state of the engine once nobody asks it for anything, or when it should have been so."""
    deadline = time.monotonic() + IDLE_SECONDS
    while True:
        state = (await client.get("/state")).json()
        if not leaks(state) or time.monotonic() > deadline:
            return state
        await asyncio.sleep(0.1)


def leaks(state: dict) -> list[str]:
    """What is left in an engine that nobody uses, in words."""
    stats, found = state["stats"], []
    for name in ("running", "waiting"):
        if state[name]:
            found.append(f"{len(state[name])} requests are still {name}: {[r['uid'] for r in state[name][:5]]}")
    if state["open"]:
        found.append(f"{state['open']} entries are left in the map of requests")
    if state["available"] != stats["pages"]:
        found.append(f"{stats['pages'] - state['available']} of {stats['pages']} pages leak")
    waiting = [state["tree"]] if state["tree"] else []
    locked = 0
    while waiting:
        node = waiting.pop()
        locked += sum(child["locked"] > 0 for child in node["children"])
        waiting += node["children"]
    return [*found, f"{locked} nodes of the prefix tree are still locked"] if locked else found


def growth(seen: Sequence[Figures], say: Callable[[str], None]) -> list[str]:
    """Whether memory, files or threads have grown between the first third of the soak and its end, in words."""
    if len(seen) < 6:
        return []
    part = len(seen) // 6
    early = [median(column) for column in zip(*seen[part : 3 * part], strict=True)]
    late = [median(column) for column in zip(*seen[-part:], strict=True)]
    named = list(zip(Figures._fields, early, late, strict=True))
    say("process: " + ", ".join(f"{name} {before:.0f} -> {after:.0f}" for name, before, after in named))
    found = []
    if late[0] - early[0] > GROWTH + 0.05 * early[0]:
        found.append(f"memory grows: {early[0]:.0f} MiB in the first third, {late[0]:.0f} MiB at the end")
    if late[1] > early[1] + 16:
        found.append(f"files leak: {early[1]:.0f} open in the first third, {late[1]:.0f} at the end")
    if late[2] > early[2] + 8:
        found.append(f"threads leak: {early[2]:.0f} in the first third, {late[2]:.0f} at the end")
    return found


def ended(process: subprocess.Popen, log: TextIO) -> list[str]:
    """Ask the server to end. Returns what was wrong with that, in words."""
    process.terminate()
    try:
        status = process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        return [f"the server did not end within {END_SECONDS} s after SIGTERM"]
    log.seek(0)
    said = log.read().strip()
    found = [f"the server ended with status {status}"] if status else []
    return [*found, f"the server said: {said[-1000:]}"] if said else found
