"""What went wrong while the code under test ran, told through its own lines and never through the helper's."""

import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from course.codec import NotPlain
from course.guard import Forbidden
from course.paths import ROOT, SRC
from course.signals import signal_name
from course.stub import Stub, find_stub, stub_of

_MOST_FRAMES = 5
_MOST_TEXT = 2000
_FROM_CHILD = ("todo", "forbidden", "timeout", "stopped", "raised")
_SIGNALS = {
    "SIGSEGV": "it used memory that is not its own: look for an index past the end of an array, a dangling "
    "pointer, or an output that was given no memory",
    "SIGBUS": "it used memory that is not there: look for an index past the end of an array",
    "SIGABRT": "C++ gave up: look for memory written past its end, freed twice, or an exception that nobody catches",
    "SIGFPE": "an integer was divided by zero",
    "SIGILL": "this CPU lacks an instruction: was the C++ library built on another machine?",
}


@dataclass(frozen=True)
class Failure:
    """`kind`: "todo", "forbidden", "timeout", "died", "stopped" (no Exception), "raised", "limit" (of memory, processes
    or files), "not built", "not run" or "boundary" (the grader's own trouble)."""

    kind: str
    message: str
    lines: Sequence[str] = ()

    @property
    def stub(self) -> Stub | None:
        """The stub that was called, for kind "todo"."""
        return find_stub(self.message) if self.kind == "todo" else None

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  {line}" for line in self.lines)])

    def plain(self) -> dict[str, object]:
        """For the codec."""
        return asdict(self) | {"lines": list(self.lines)}

    def exception(self) -> BaseException:
        """What to raise in the grader: `Raised` can be shrunk by Hypothesis, `Stopped` ends the case at once."""
        return Raised(self) if self.kind == "raised" else Stopped(self)


class Raised(Exception):
    """The code under test raised an exception."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Stopped(BaseException):
    """The case cannot go on: a stub, a time-out, a crash, a forbidden name, an exit."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class TimedOut(BaseException):
    """The code under test took too long; the text names the limit."""


def from_child(value: object) -> Failure:
    """A failure as a process of learner code tells it, which may be anything. Raises ValueError."""
    match value:
        case {"kind": str(kind), "message": str(message), "lines": list(lines)} if kind in _FROM_CHILD:
            if not all(isinstance(line, str) for line in lines):
                raise ValueError("a line is no text")
            return Failure(kind, _cut(message), [_cut(line) for line in lines[:_MOST_FRAMES]])
    raise ValueError("it describes no failure")


def ending(code: int | None) -> str:
    """How a process ended, in words: its exit status, -number of a signal, or None if it only closed its pipes."""
    if code is None:
        return "it closed its pipes"
    if code >= 0:
        return f"exit status {code}"
    name = signal_name(-code)
    return f"signal {name}, {_SIGNALS[name]}" if name in _SIGNALS else f"signal {name}"


def describe(error: BaseException, package: Path) -> Failure:
    """Explain what `observe` raised; `package` is the folder of the package under test."""
    lines = own_lines(error, package)
    if isinstance(error, Forbidden):
        return Failure("forbidden", str(error), lines)
    if isinstance(error, TimedOut):
        return Failure("timeout", str(error), lines)
    if stub := stub_of(error):
        return Failure("todo", stub.text)
    if isinstance(error, NotPlain):
        return Failure("raised", f"the test cannot copy what your code returned: {error}", lines)
    if isinstance(error, SystemExit):
        return Failure("stopped", f"your code ended the program: sys.exit({error.code!r})", lines)
    if fix := _missing(error, package):
        lines = [*lines[1 - _MOST_FRAMES :], fix]
    return Failure("raised" if isinstance(error, Exception) else "stopped", one_line(error), lines)


def _missing(error: BaseException, package: Path) -> str:
    """What to do where a module of the package itself is not there."""
    if not isinstance(error, ModuleNotFoundError) or not (error.name or "").startswith(f"{package.name}."):
        return ""
    file = f"{SRC.name}/{error.name.replace('.', '/')}.py"
    return f"fix: if {file} is a file of the course, `pdm run reset --file {file}` brings it back as at the start"


def one_line(error: BaseException) -> str:
    """`ValueError: text`, cut where it is long."""
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:
        text = "(its text cannot be shown)"
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} ... ({len(text)} characters)"


def own_lines(error: BaseException, folder: Path) -> list[str]:
    """`file:line in function: source` for the innermost frames of `error` whose files are in `folder`."""
    places = [
        f"{_shown(frame.filename, folder)}:{frame.lineno} in {frame.name}: {frame.line}"
        for frame in traceback.extract_tb(error.__traceback__, limit=-200)
        if Path(frame.filename).is_relative_to(folder)
    ]
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_relative_to(folder):
        places.append(f"{_shown(error.filename, folder)}:{error.lineno}: {(error.text or '').strip()}")
    return places[-_MOST_FRAMES:]


def _shown(filename: str, folder: Path) -> str:
    """The path of a file of the package `folder` as its author knows it, also where a copy is graded."""
    path = Path(filename)
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else SRC.name / path.relative_to(folder.parent))
