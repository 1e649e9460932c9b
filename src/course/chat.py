"""The conversation between a person (or a pipe) and an assistant: history, Ctrl-C, and what is said when it goes wrong.

Knows turns and terminals. The assistant and everything else that computes lives in a worker thread.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace

from course.assistant import Assistant, Meter, Settings
from course.errors import CourseError
from course.stats import describe
from course.worker import Worker

SLASH = re.compile(r"/\w*(\s|$)")  # not a path such as /usr/bin
BANNER = "Type a message. /clear forgets the conversation, Ctrl-D or /quit leaves, Ctrl-C stops a reply."


class Chat:
    """One conversation. `system` is the system message, if any; `show_stats` reports on stderr after each reply."""

    def __init__(self, worker: Worker, assistant: Assistant, settings: Settings, system: str | None, show_stats: bool):
        self.worker, self.assistant, self.settings = worker, assistant, settings
        self.show_stats = show_stats
        self.opening = [("system", system)] if system else []
        self.messages = list(self.opening)

    def clear(self) -> None:
        """Forget everything but the system message."""
        self.messages = list(self.opening)

    def say(self, text: str) -> None:
        """Answer `text` on standard output. A KeyboardInterrupt ends the reply; what was said stays in the history."""
        messages = [*self.messages, ("user", text)]
        prompt = self.worker.call(lambda: self._encode(messages, text))
        if len(prompt) >= self.assistant.context:
            raise CourseError(
                f"{len(prompt)} tokens do not fit in the model's context of {self.assistant.context}: shorten the "
                "prompt, or start a new conversation (/clear)"
            )
        turn = sum(role == "user" for role, _ in messages)
        settings = replace(self.settings, seed=self.settings.seed + turn - 1)
        meter = Meter(len(prompt))
        said: list[str] = []
        try:
            for piece in self.worker.stream(lambda: self.assistant.reply(prompt, settings, meter)):
                said.append(piece)
                print(piece, end="", flush=True)
        finally:
            meter.cancelled = True
            self.messages = [*messages, ("assistant", "".join(said))]
            if said:
                print(flush=True)
        if not said:
            print(flush=True)  # an empty reply is an empty line; a failed one is none
        if self.show_stats:
            print(self.worker.call(lambda: describe(self.assistant, self.settings, meter)), file=sys.stderr, flush=True)

    def _encode(self, messages: list[tuple[str, str]], text: str) -> list[int]:
        if self.settings.raw:
            return self.assistant.encode(text)
        return self.assistant.encode_chat(messages, self.settings.think)


def converse(chat: Chat) -> None:
    """Answer line after line of standard input until it ends. Ctrl-C at the prompt raises KeyboardInterrupt."""
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if at_terminal:
        import readline  # noqa: F401 - gives input() line editing

        print(BANNER)
    for line in _lines(at_terminal):
        if line == "/quit":
            return
        if line == "/clear":
            chat.clear()
        elif at_terminal:
            _say_patiently(chat, line)
        else:
            _say(chat, line)


def _say(chat: Chat, line: str) -> None:
    if SLASH.match(line):
        raise CourseError(f"no command {line.split()[0]}: there are /clear and /quit")
    chat.say(line)


def _say_patiently(chat: Chat, line: str) -> None:
    """At a terminal neither a stopped reply nor a mistake ends the conversation."""
    try:
        _say(chat, line)
    except KeyboardInterrupt:
        print("(stopped; Ctrl-C again leaves)", file=sys.stderr)
    except CourseError as error:
        print(f"error: {error}", file=sys.stderr)


def _lines(at_terminal: bool) -> Iterator[str]:
    while True:
        try:
            line = input("> ") if at_terminal else sys.stdin.readline()
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            raise
        if not line and not at_terminal:
            return
        if line.strip():
            yield line.strip()
