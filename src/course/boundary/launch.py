"""Starts a zygote in one of the modes, and ends it with all that it has started. Runs in the grader."""

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from course.boundary import sight
from course.boundary.disk import remove
from course.boundary.order import REPLY_SIZE, Order, Reply
from course.boundary.root import CACHE, SCRATCH, TREE
from course.boundary.settings import Boundary
from course.boundary.tree import MARK, kill_tree
from course.boundary.uids import clear_user, leased_uid
from course.paths import SRC, cache_folder
from course.pipe import send

_KEPT = ("PATH", "LANG", "TZ", "CC", "CXX", "TERM", "TINY_LLM_BLAS", "TINY_LLM_THREADS")
_KEPT_PREFIXES = ("LC_", "OPENBLAS_", "OMP_", "MKL_")
_START = 60.0
_END = 5.0
_MOMENT = 0.5
_UNSHARE = ("--mount", "--pid", "--net", "--ipc", "--uts", "--kill-child=SIGKILL")
_MOST_SAID = 2000


class NoStart(Exception):
    """The boundary cannot be set up; the text says what the programs that do it said."""


class Zygote:
    """A started zygote, and the grader's end of its control socket."""

    def __init__(self, boundary: Boundary, tests: Path, package: str, forbiddable: Sequence[str]) -> None:
        self._stack = ExitStack()
        self._process: subprocess.Popen | None = None
        self._mode, self._mark = boundary.mode, secrets.token_hex(16)
        self._said = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self.control, other = socket.socketpair()
        self._stack.callback(self.control.close)
        try:
            with other:
                order = self._order(boundary, tests, package, forbiddable)
                self.uid = order.uid
                self.places = [] if boundary.mode == "namespaces" else [Path(order.scratch), Path(order.cache)]
                self._start(other.fileno())
            send(self.control.fileno(), msgspec.json.encode(order))
            self.forks = bool(self.reply(time.monotonic() + _START).number)
        except BaseException as error:
            self.end()
            if isinstance(error, (OSError, TimeoutError, EOFError)):
                raise NoStart(self._last_words or str(error) or type(error).__name__) from None
            raise

    def reply(self, deadline: float) -> Reply:
        """The next reply. Raises TimeoutError, or EOFError if the zygote is gone."""
        data = b""
        while len(data) < REPLY_SIZE:
            self.control.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                part = self.control.recv(REPLY_SIZE - len(data))
            except ConnectionError:
                part = b""
            if not part:
                raise EOFError("the process that starts cases is gone")
            data += part
        return Reply.unpack(data)

    @property
    def pid(self) -> int:
        """Of the process that was started here; the zygote itself may be one below it."""
        return self._process.pid

    def exit_code(self) -> int | None:
        """How it ended by itself; None if it still runs."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(_MOMENT)
        return None

    def end(self) -> None:
        """Kill it and all that it has started."""
        if process := self._process:
            with suppress(TimeoutError):
                self._kill(process)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END)
        self._said.seek(0)
        self._last_words = self._said.read().decode(errors="replace").strip()[-_MOST_SAID:]
        self._stack.close()

    def _kill(self, process: subprocess.Popen) -> None:
        """In a namespace all dies with its first process, which dies with the one that started it."""
        if self._mode == "limits":
            kill_tree(process.pid, self._mark)
        process.kill()
        if self._mode == "user" and self.uid is not None:
            clear_user(self.uid)

    def _order(self, boundary: Boundary, tests: Path, package: str, forbiddable: Sequence[str]) -> Order:
        """What to tell the zygote. A uid and folders are taken for as long as it lives."""
        root = os.geteuid() == 0
        uid = self._stack.enter_context(leased_uid()) if root and boundary.mode != "limits" else None
        new_root = boundary.mode == "namespaces"
        scratch, cache = (SCRATCH, CACHE) if new_root else self._folders(uid)
        return Order(
            mode=boundary.mode,
            tests=str(tests),
            package=package,
            forbiddable=tuple(forbiddable),
            limits=boundary.limits,
            tree=TREE if new_root else boundary.tree,
            scratch=scratch,
            cache=cache,
            uid=uid,
            course=str(SRC),
            cache_home=_cache_home() or cache,
            visible=sight.visible(boundary, tests) if new_root else (),
            hidden=sight.hidden(boundary) if new_root else (),
            sources={TREE: boundary.tree} if new_root else {},
        )

    def _folders(self, uid: int | None) -> tuple[str, str]:
        """A scratch folder and a cache on the disk, of the user that runs learner code."""
        base = Path(tempfile.mkdtemp(prefix="tiny-llm-"))
        self._stack.callback(remove, base)
        base.chmod(0o711)
        for name in ("scratch", "cache"):
            (base / name).mkdir(mode=0o700)
            if uid is not None:
                os.chown(base / name, uid, uid)
        return str(base / "scratch"), str(base / "cache")

    def _start(self, control: int) -> None:
        command = [*_around(self._mode), sys.executable, "-u", "-P", "-s", "-m", "course.boundary.zygote", str(control)]
        environment = {name: value for name, value in os.environ.items() if _keeps(name)}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            env=environment | {"PYTHONPATH": str(SRC), "PYTHONDONTWRITEBYTECODE": "1", MARK: self._mark},
            pass_fds=(control,),
            cwd="/",
            start_new_session=True,
        )


def _cache_home() -> str | None:
    """Where this user's caches are; None for one without a home folder."""
    with suppress(RuntimeError):
        return str(cache_folder().parent)
    return None


def _around(mode: str) -> list[str]:
    """The program that starts the zygote in namespaces of its own."""
    if mode != "namespaces":
        return []
    user = () if os.geteuid() == 0 else ("--user", "--map-current-user", "--keep-caps")
    return ["unshare", *user, *_UNSHARE]


def _keeps(name: str) -> bool:
    return name in _KEPT or name.startswith(_KEPT_PREFIXES)
