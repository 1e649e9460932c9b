"""A session of watch: saves start runs, keys do the rest, and nothing is left behind when it ends."""

import contextlib
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from course.hints import next_level, remember
from course.loop import views
from course.loop.choice import Choice
from course.loop.hint_panel import print_hint
from course.loop.keyboard import Keyboard
from course.loop.progress import Progress, assess, record
from course.loop.run import Outcome
from course.loop.runner import Runner
from course.loop.saves import Saves, Tree
from course.loop.signals import ENDS, Signals
from course.loop.sources import Sources
from course.paths import ROOT
from course.solutions import LEARNER

if TYPE_CHECKING:
    from rich.console import Console

_SLOW = 2.0  # s: a run that takes longer says where it is
_COMMAND = 60.0


class Session:
    """Watches a package; `choice` says which task is current."""

    def __init__(self, console: "Console", sources: Sources, choice: Choice, once: bool) -> None:
        self.console, self.sources, self.choice, self.once = console, sources, choice, once
        self.package, self.curriculum = sources.package, sources.curriculum
        self.tree = Tree(self.curriculum, self.package)
        self.found: Progress = assess(sources)
        self.outcome: Outcome | None = None
        self.status: int | None = None
        self._asked: Callable[[], None] | None = None
        self._slow = ""

    def run(self) -> int:
        """Until it is told to end; returns the exit status. Raises OSError where nobody can read what it prints."""
        with Signals() as signals, Keyboard() as self.keyboard, Saves(self.tree) as self.saves:
            self.runner = Runner(self.curriculum, self.package.name)
            with contextlib.closing(self.runner):
                self._begin()
                while self.status is None:
                    self._step(signals)
        return self.status

    def _step(self, signals: Signals) -> None:
        """Wait for something to happen, and answer it."""
        run = self.runner.run
        sources = [signals, self.saves, *([self.keyboard] if self.keyboard.there else []), *([run] if run else [])]
        ready = select.select(sources, [], [], self.runner.patience)[0]
        if signals in ready:
            for number in signals.take():
                self._signal(number, signals)
        if self.keyboard in ready and self.status is None:
            self._keys(self.keyboard.read())
        if self.saves in ready and self.status is None:
            self._saved()
        if self.status is None and (outcome := self.runner.tick(self.runner.run is run and run in ready)):
            self._ended(outcome)
        elif self.runner.run and self.status is None:
            self._tell_where()

    def _begin(self, why: str = "") -> None:
        """Run the current task's tests."""
        task = self.choice.current
        self.outcome, self._slow = None, ""
        self._stamps = self.tree.stamps()  # before the process reads them: a save after this starts another run
        self.sources = Sources(self.curriculum, self.package, self.sources)
        self.runner.start(task)
        self.console.print(f"{why}testing {task.label} ...", style="dim", soft_wrap=True)

    def _ended(self, outcome: Outcome) -> None:
        if self.tree.stamps() != self._stamps and not self.once:
            self._begin("changed meanwhile: ")  # nobody told of that save, or not yet
            return
        record(outcome.results, self.sources)
        self.outcome, self.found = outcome, assess(self.sources)
        self._draw()
        if self.once:
            self.status = 0 if outcome.state == "done" else 1

    def _draw(self) -> None:
        """The outcome, from the top of the window."""
        if self.outcome is None:
            return
        task = self.choice.current
        self.console.clear()
        views.show_outcome(self.console, task, self.outcome, self.found, self.package)
        if self.outcome.state != "done":
            views.show_next(self.console, task, self.package, "go on with")
        elif following := self.choice.following(self.found):
            views.show_next(self.console, following, self.package, f"next: {following.label}: {following.title}")
        else:
            self.console.print("\nall is done here")
        self._show_keys()

    def _show_keys(self) -> None:
        if self.keyboard.there and not self.once:
            views.show_keys(self.console, self.found[self.choice.current].passed)

    def _tell_where(self) -> None:
        """Says of a slow run how far it is, a line for each place."""
        run = self.runner.run
        if run.seconds > _SLOW and run.where != self._slow:
            self._slow = run.where
            self.console.print(f"  {run.seconds:.0f} s: {self._slow}", style="dim", soft_wrap=True)

    def _saved(self) -> None:
        changed = self.saves.take()
        if self.saves.problem:
            self.console.print(f"saves cannot be seen ({self.saves.problem}): press a after a save")
            return
        if not any(map(self.tree.holds, changed)):
            self.runner.renew()
            return
        if self.runner.run and self.tree.stamps() == self._stamps:
            return  # the same save, told twice
        if self.outcome and self.outcome.state == "done":
            before, self.sources = self.sources, Sources(self.curriculum, self.package, self.sources)
            self.choice.follow(before, self.sources)
        names = sorted(path.name for path in changed if self.tree.holds(path))
        self._begin(f"{', '.join(names[:3])}{' ...' if len(names) > 3 else ''}: ")

    def _signal(self, number: int, signals: Signals) -> None:
        if number in ENDS:
            self.status = 128 + number
        elif number == signal.SIGTSTP:
            self.keyboard.give_back()
            signals.stop()
            self.keyboard.take()
        elif number == signal.SIGCONT:
            self.keyboard.take()
        elif number == signal.SIGWINCH:
            self._draw()

    def _keys(self, keys: str | None) -> None:
        if keys is None:
            self.status = 128 + signal.SIGHUP
        for key in keys or "":
            asked, self._asked = self._asked, None
            if asked:
                asked() if key in "yY" else self.console.print("nothing was changed")
            elif action := self._actions.get(key):
                action(self)

    def _hint(self) -> None:
        task = self.choice.current
        level = next_level(task)
        print_hint(self.console, task, level, remember(task, level))

    def _list(self) -> None:
        views.show_list(self.console, self.choice.tasks, self.found, self.choice.current)

    def _next(self) -> None:
        if following := self.choice.following(self.found):
            self.choice.current = following
            self._begin()
        else:
            self.console.print("there is no other task to do")

    def _previous(self) -> None:
        if self.choice.back():
            self._begin()
        else:
            self.console.print("this is the first task")

    def _reset(self) -> None:
        task = self.choice.current
        if self.package.name != LEARNER:
            self.console.print(f"only {LEARNER} can be reset")
            return
        self.console.print(f"reset {task.label}? What you wrote is kept. y: yes, any other key: no")
        self._asked = lambda: self._command("reset")

    def _solution(self) -> None:
        if self.package.name != LEARNER:
            self.console.print(f"this is {self.package.name} itself")
        elif self.found[self.choice.current].passed:
            self._command("solution")
        else:
            self.console.print("the solution can be seen once the task has passed")

    def _command(self, name: str) -> None:
        """Run a command of the course for the current task, at our terminal."""
        command = [sys.executable, "-m", "course", name, *self.choice.current.options.split()]
        self.keyboard.give_back()
        try:
            subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=_COMMAND, check=False)
        except subprocess.TimeoutExpired:
            self.console.print(f"{name} took longer than {_COMMAND:g} s: it was stopped")
        finally:
            self.keyboard.take()

    def _again(self) -> None:
        self._begin()

    def _quit(self) -> None:
        self.status = 0

    def _help(self) -> None:
        views.show_help(self.console)

    _actions = {  # noqa: RUF012 - a table of methods
        "h": _hint,
        "l": _list,
        "n": _next,
        "p": _previous,
        "r": _reset,
        "s": _solution,
        "a": _again,
        "q": _quit,
        "\x04": _quit,
        "?": _help,
    }
