"""A headless Chromium that looks at the built book, driven through chromedriver's HTTP interface."""

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
_WAIT = 30.0


def available() -> bool:
    """Whether Chromium and its driver are installed."""
    return _chromium() is not None and shutil.which("chromedriver") is not None


def _chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("google-chrome")


class Browser:
    """One browser window."""

    def __init__(self, port: int, profile: str) -> None:
        self._base = f"http://127.0.0.1:{port}"
        options = {"binary": _chromium(), "args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        reply = self._post("/session", {"capabilities": {"alwaysMatch": wanted}})
        assert isinstance(reply, dict)
        self._base += f"/session/{reply['sessionId']}"

    def open(self, url: str) -> None:
        """Load a page and wait until it is complete."""
        self._post("/url", {"url": url})

    def run(self, script: str) -> object:
        """The value that a JavaScript function body returns."""
        return self._post("/execute/sync", {"script": script, "args": []})

    def resize(self, width: int, height: int) -> None:
        """Set the size of the viewport in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._devtools("Emulation.setDeviceMetricsOverride", metrics)

    def screenshot(self, path: Path) -> None:
        """Write the whole page as PNG."""
        reply = self._devtools("Page.captureScreenshot", {"captureBeyondViewport": True})
        assert isinstance(reply, dict)
        path.write_bytes(base64.b64decode(reply["data"]))

    def errors(self) -> list[str]:
        """Errors and warnings on the console since the last call."""
        entries = self._post("/se/log", {"type": "browser"})
        assert isinstance(entries, list)
        return [e["message"] for e in entries if e["level"] in ("SEVERE", "WARNING")]

    def close(self) -> None:
        """End the session, and the browser with it."""
        urllib.request.urlopen(urllib.request.Request(self._base, method="DELETE"), timeout=_WAIT).close()

    def _devtools(self, command: str, parameters: dict[str, object]) -> object:
        return self._post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def _post(self, path: str, body: dict[str, object]) -> object:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._base + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=_WAIT) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from error


@contextmanager
def browser() -> Iterator[Browser]:
    """A fresh browser with an empty profile; it and its driver end with the block."""
    port = _free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        driver = subprocess.Popen(["chromedriver", f"--port={port}"], **quiet)
        try:
            _wait_for(port)
            window = Browser(port, profile)
            try:
                yield window
            finally:
                window.close()
        finally:
            driver.terminate()
            driver.wait(timeout=_WAIT)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder on a local port; gives its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test's output is not an access log."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _WAIT
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"chromedriver did not answer on port {port} within {_WAIT:g} s")
