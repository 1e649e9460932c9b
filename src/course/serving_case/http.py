"""A real server of the package under test on a loopback port, and clients for it. Nothing waits without a limit."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import httpx
from tokenizers import Tokenizer

from course.solution import Solution

from .bridge import build_engine
from .scripted import END, ScriptedRunner
from .watch import Watch

START = 5.0
PATIENCE = 2.0
"""s: for an answer, and for what should happen at once."""
MODEL = "scripted"


class Served:
    """A running server. url: where. engine: its AsyncEngine. watch: errors it logged."""

    def __init__(self, engine: object, server: object, watch: Watch, port: int, runner: ScriptedRunner):
        self.engine, self.server, self.watch, self.runner = engine, server, watch, runner
        self.port = port
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE, trust_env=False, verify=False)

    def post(self, path: str, body: Mapping[str, object] | bytes) -> dict[str, object]:
        """Ask, and wait for the answer: {"status", and "json" or "events"}, or {"status": 0, "error"} without one."""
        content = body if isinstance(body, bytes) else json.dumps({"model": MODEL, **body})
        try:
            response = self.client.post(path, content=content, headers={"content-type": "application/json"})
        except httpx.HTTPError as error:
            return {"status": 0, "error": type(error).__name__}
        return _plain(response)

    def complete(self, **body: object) -> dict[str, object]:
        """POST /v1/completions."""
        return self.post("/v1/completions", body)

    def chat(self, text: str, **body: object) -> dict[str, object]:
        """POST /v1/chat/completions with one message."""
        return self.post("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], **body})

    def get(self, path: str) -> dict[str, object]:
        """GET: {"status", "json"}."""
        try:
            return _plain(self.client.get(path))
        except httpx.HTTPError as error:
            return {"status": 0, "error": type(error).__name__}

    def metrics(self) -> dict[str, float]:
        """The samples of /metrics by name and labels."""
        lines = self.client.get("/metrics").text.splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}

    def finished(self, count: int) -> dict[str, int]:
        """How many choices have ended, by reason. The last bytes of an answer may come before it is counted."""

        def now() -> dict[str, int]:
            name = 'tiny_llm_requests_finished_total{reason="'
            return {k[len(name) : -2]: int(v) for k, v in self.metrics().items() if k.startswith(name)}

        self.until(lambda: sum(now().values()) >= count, 0.5)
        return now()

    def stream(self, path: str, body: Mapping[str, object]) -> "Stream":
        """Ask for a stream, and read it event by event."""
        return Stream(self.port, path, {"model": MODEL, "stream": True, **body})

    def until(self, holds: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        """Wait until `holds()`; False where that does not come true in time."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def idle(self, seconds: float = PATIENCE) -> bool:
        """Whether the engine becomes idle in time: no request in it, and every page free."""

        def holds() -> bool:
            stats = self.engine.stats
            return not (stats.running or stats.waiting or stats.used_pages)

        return self.until(holds, seconds)


class Stream:
    """One request over a socket of its own, that can be closed at any moment."""

    def __init__(self, port: int, path: str, body: Mapping[str, object]):
        data = json.dumps(body).encode()
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        self.socket.sendall(head.encode() + data)
        self.received = b""

    def read(self, events: int | None = None) -> list[object]:
        """Wait for that many events in all, or for the end. Returns those that came, perhaps fewer."""
        try:
            while events is None or len(events_of(self.received.decode(errors="replace"))) < events:
                part = self.socket.recv(65536)
                if not part:
                    break
                self.received += part
                if self.received.endswith(b"\r\n0\r\n\r\n"):
                    break
        except (TimeoutError, ConnectionError):
            pass
        return events_of(self.received.decode(errors="replace"))

    @property
    def status(self) -> int:
        """The HTTP status, 0 before it came."""
        words = self.received.split(b" ", 2)
        return int(words[1]) if len(words) > 2 else 0

    def close(self) -> None:
        """Leave, without a word."""
        self.socket.close()


def events_of(text: str) -> list[object]:
    """The complete events of a stream: parsed JSON, or the text where it is none."""
    lines = [line[6:].rstrip("\r") for line in text.split("\n")[:-1] if line.startswith("data: ")]
    return [_parsed(line) for line in lines]


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return line


def _plain(response: httpx.Response) -> dict[str, object]:
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        return {"status": response.status_code, "events": events_of(response.text)}
    return {"status": response.status_code, "json": _parsed(response.text)}


@contextmanager
def served(
    solution: Solution,
    tokenizer: Tokenizer,
    runner: ScriptedRunner,
    rows: int = 4,
    max_len: int = 256,
    limit: int = 16,
    limits: Mapping[str, float] | None = None,
    build: Callable[[], object] | None = None,
) -> Iterator[Served]:
    """Serve `runner` while the body runs. limits: fields of the package's Limits. build: makes another engine."""
    make = build or (lambda: build_engine(solution, runner, rows, max_len))
    engine = solution.module("serving.async_engine").AsyncEngine(make, limit)
    allowed = solution.module("serving.limits").Limits(**{"drain_seconds": 1.0, **(limits or {})})
    app = solution.module("serving.server").create_app(engine, tokenizer, MODEL, frozenset({END}), allowed)
    http_server = solution.module("serving.http_server")
    server = http_server.HttpServer(app, engine, allowed.drain_seconds, "127.0.0.1", 0)
    # uvicorn has given its loggers handlers of its own by now.
    with Watch(solution.package) as watch, socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        running = Served(engine, server, watch, listener.getsockname()[1], runner)
        try:
            started = running.until(lambda: server.started or not thread.is_alive(), START) and server.started
            if watch.stub is not None:
                raise watch.stub
            assert started, f"the server did not start: {watch.errors}"
            yield running
        finally:
            runner.release()
            running.client.close()
            server.should_exit = True
            thread.join(START)
        if watch.stub is None:
            assert not thread.is_alive(), f"the server did not stop within {START} s"
