"""The files of `batch`: lines of requests in, lines of answers out. Knows OpenAI's batch format, nothing of engines.

A line asks as {"custom_id", "url", "body"}, or just as a body: {"prompt": ...} or {"messages": [...]}. A line without
custom_id is called by its number, "line-7".
"""

import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from course.errors import CourseError

URLS = ("/v1/completions", "/v1/chat/completions")
Json = dict[str, object]


@dataclass(frozen=True)
class Line:
    """One request. number: of its line, from 1. error: why it is none, in words; url and body then mean nothing."""

    number: int
    custom_id: str
    url: str = ""
    body: Json | None = None
    error: str | None = None


def read_lines(path: Path, model: str) -> Iterator[Line]:
    """The requests of a file, blank lines left out; what is no request has an error. model: for bodies without one.

    Raises CourseError for a file that cannot be read, or not twice.
    """
    seen: dict[str, int] = {}
    try:
        _check_regular(path)
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                if text.strip():
                    yield _unique(_line(number, text, model), seen)
    except OSError as error:
        raise CourseError(f"cannot read {path}: {error.strerror}") from None


def _check_regular(path: Path) -> None:
    """Raise CourseError for what is no plain file, and OSError where there is nothing."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise CourseError(f"cannot read {path}: it is a folder, a pipe or a device: give a file on the disk")


def _unique(line: Line, seen: dict[str, int]) -> Line:
    first = seen.setdefault(line.custom_id, line.number)
    if first == line.number:
        return line
    error = f"custom_id {line.custom_id!r} is that of line {first}: give each line its own"
    return Line(line.number, f"line-{line.number}", error=error)


def _line(number: int, text: bytes, model: str) -> Line:
    name = f"line-{number}"
    try:
        asked = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Line(number, name, error=f"no JSON: {error}")
    if not isinstance(asked, dict):
        return Line(number, name, error="no JSON object")
    custom = asked.pop("custom_id", name)
    if not isinstance(custom, str) or not custom:
        return Line(number, name, error=f"custom_id {custom!r} is no text: write a string")
    method, url, body = asked.pop("method", "POST"), asked.pop("url", None), asked.pop("body", None)
    if body is None:
        body, url = asked, url or URLS["messages" in asked]
    problem = _problem(method, url, body)
    return Line(number, custom, error=problem) if problem else Line(number, custom, url, {"model": model, **body})


def _problem(method: object, url: object, body: object) -> str | None:
    if method != "POST":
        return f"method {method!r}: only POST is possible"
    if url not in URLS:
        return f"url {url!r}: choose {' or '.join(URLS)}"
    if not isinstance(body, dict) or not {"prompt", "messages"} & set(body):
        return 'there is neither a "prompt" nor "messages"'
    if body.get("stream"):
        return '"stream" is not possible in a batch: leave it out'
    return None


def answer_line(line: Line, status: int, body: Json) -> Json:
    """What the output file says to a line that was asked."""
    response = {"status_code": status, "body": body}
    return {"custom_id": line.custom_id, "line": line.number, "response": response, "error": None}


def error_line(line: Line, message: str) -> Json:
    """What the output file says to a line that is no request."""
    error = {"code": "invalid_line", "message": message}
    return {"custom_id": line.custom_id, "line": line.number, "response": None, "error": error}


class Results:
    """The output file: each answer is on the disk before it counts as done.

    An earlier run may have left one: its answers are kept, lines that failed or were cut are asked again. done: the
    custom_ids of the answers in it. Raises CourseError for a file that cannot be written, or that is something else.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            kept = list(self._kept()) if path.exists() else []
            self.done = {answer["custom_id"] for answer in kept}
            if path.exists():
                self._replace(kept)
            self.file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise CourseError(f"cannot write {path}: {error.strerror}") from None

    def _kept(self) -> Iterator[Json]:
        _check_regular(self.path)
        lines = self.path.read_bytes().split(b"\n")
        for number, text in enumerate(lines, 1):
            answer = _answer(text)
            was_cut = number == len(lines) and text[: len(_BEGIN)] == _BEGIN[: len(text)]
            if answer is None and text.strip() and not was_cut:
                raise CourseError(f"{self.path}, line {number}, is no answer of a batch: choose another --out")
            if answer is not None and answer["response"] and answer["response"].get("status_code") == 200:
                yield answer

    def _replace(self, kept: Iterable[Json]) -> None:
        """The file with `kept` alone, at once: a crash leaves either the old or the new one."""
        beside = self.path.with_name(self.path.name + ".new")
        with beside.open("w", encoding="utf-8") as file:
            file.writelines(_text(answer) for answer in kept)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)

    def write(self, answer: Json) -> None:
        """Append an answer. Raises CourseError where the disk is full."""
        try:
            self.file.write(_text(answer))
            self.file.flush()
        except OSError as error:
            raise CourseError(f"cannot write {self.path}: {error.strerror}: run the same command again later") from None

    def close(self) -> None:
        """No more answers. What does not fit on a full disk was told before."""
        try:
            self.file.close()
        except OSError as error:
            raise CourseError(f"cannot write {self.path}: {error.strerror}") from None


_BEGIN = b'{"custom_id": "'
"""Of every line that `Results` writes: the last line of another file is no answer that was cut."""


def _text(answer: Json) -> str:
    return json.dumps(answer) + "\n"  # in ASCII: what some programs take for the end of a line is escaped


def _answer(text: bytes) -> Json | None:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict) or not {"custom_id", "response", "error"} <= set(answer):
        return None
    fits = isinstance(answer["custom_id"], str) and isinstance(answer["response"], dict | None)
    return answer if fits else None
