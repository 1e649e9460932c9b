"""What each key of watch does."""

import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.hints import next_level, remember
from course.loop import views
from course.loop.hint_panel import print_hint, print_reminder
from course.loop.wrapping import say
from course.paths import ROOT
from course.solutions import LEARNER

if TYPE_CHECKING:
    from course.curriculum import Task
    from course.loop.session import Session

_COMMAND = 60.0  # s


class Keys:
    """Answers keys for a session; a question that is open takes the next key for its answer."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._choice, self._console = session.choice, session.console
        self._asked: Callable[[], None] | None = None
        self._hinted: tuple[Task, int] | None = None

    def press(self, keys: str) -> None:
        """Answer each key; after one that means nothing, say which do."""
        unknown = False
        self._session.forget_note()
        for key in keys:
            asked, self._asked = self._asked, None
            if asked:
                asked() if key in "yY" else self._console.print("nothing was changed")
            elif action := _ACTIONS.get(key):
                action(self)
            else:
                unknown = True
        if unknown:
            self._session.show_keys()

    def remind(self) -> None:
        """The beginning of the hint of this task that was asked for last, until the task is done."""
        task, level = self._hinted or (None, 0)
        if task is self._choice.current:
            print_reminder(self._console, task, level)

    def hint(self) -> None:
        task = self._choice.current
        self._hinted = task, next_level(task)
        print_hint(self._console, task, self._hinted[1], remember(task, self._hinted[1]))
        self._session.show_keys()

    def list(self) -> None:
        views.show_list(self._console, self._choice.tasks, self._session.found, self._choice.current)
        self._session.show_keys()

    def next(self) -> None:
        if following := self._choice.following(self._session.found):
            self._choice.current = following
            self._session.begin()
        else:
            self._session.show_end()

    def back(self) -> None:
        if self._choice.back():
            self._session.begin()
        else:
            self._console.print("this is the first task")

    def reset(self) -> None:
        if self._session.package.name != LEARNER:
            self._console.print(f"only {LEARNER} can be reset")
            return
        from course.work.reset import whole_files

        task = self._choice.current
        try:
            whole = whole_files(self._session.curriculum, task)
        except CourseError as error:
            self._console.print(f"this cannot be reset: {error}")
            return
        views.show_reset(self._console, task, whole, self._session.package)
        self._asked = self._reset

    def solution(self) -> None:
        if self._session.package.name != LEARNER:
            self._console.print(f"this is {self._session.package.name} itself")
        elif self._session.found[self._choice.current].passed:
            self._command("solution")
        else:
            self._console.print("the solution can be seen once the task has passed")
        self._session.show_keys()

    def again(self) -> None:
        self._session.begin()

    def quit(self) -> None:
        self._session.status = 0

    def help(self) -> None:
        views.show_help(self._console)
        self._session.show_keys()

    def _reset(self) -> None:
        """What it says is shown again below the next outcome, for it tells how to get the files back."""
        said = self._command("reset", subprocess.PIPE)
        say(self._console, said.rstrip())
        self._session.keep_note(said.rstrip())

    def _command(self, name: str, to: int | None = None) -> str:
        """Run a command of the course for the current task, at our terminal or into a pipe; returns what went there."""
        command = [sys.executable, "-m", "course", name, *self._choice.current.options.split()]
        self._session.keyboard.give_back()
        err = subprocess.STDOUT if to else None
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=to,
                stderr=err,
                timeout=_COMMAND,
                check=False,
                text=True,
            )
            return done.stdout or ""
        except subprocess.TimeoutExpired:
            self._console.print(f"{name} took longer than {_COMMAND:g} s: it was stopped")
            return ""
        finally:
            self._session.keyboard.take()


_ACTIONS: dict[str, Callable[[Keys], None]] = {
    "h": Keys.hint,
    "l": Keys.list,
    "n": Keys.next,
    "p": Keys.back,
    "r": Keys.reset,
    "s": Keys.solution,
    "a": Keys.again,
    "q": Keys.quit,
    "\x04": Keys.quit,
    "?": Keys.help,
}
