"""A session of watch: saves start runs, keys do the rest, and nothing is left behind when it ends."""

import contextlib
import select
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from course.loop import views
from course.loop.broken import Broken
from course.loop.choice import Choice
from course.loop.keyboard import Keyboard
from course.loop.keys import Keys
from course.loop.progress import Progress, assess, next_task, record
from course.loop.run import Outcome
from course.loop.runner import Runner
from course.loop.saves import Saves, Tree
from course.loop.signals import ENDS, Signals
from course.loop.sources import Sources
from course.loop.wrapping import say

if TYPE_CHECKING:
    from rich.console import Console

_SLOW = 2.0  # s: a run that takes longer says where it is


class Session:
    """Watches a package; `choice` says which task is current."""

    def __init__(self, console: "Console", sources: Sources, choice: Choice, once: bool) -> None:
        self.console, self.sources, self.choice, self.once = console, sources, choice, once
        self.package, self.curriculum = sources.package, sources.curriculum
        self.tree = Tree(self.curriculum, self.package)
        self.found: Progress = assess(sources)
        self.outcome: Outcome | None = None
        self.status: int | None = None
        self._slow = self._unsaved = ""
        self._note: tuple[str, dict[Path, tuple[int, int]]] | None = None
        self._broken = Broken()
        self._keys = Keys(self)

    def run(self) -> int:
        """Until it is told to end; returns the exit status. Raises OSError where nobody can read what it prints."""
        with Signals() as signals, Keyboard() as self.keyboard, Saves(self.tree) as self.saves:
            self.runner = Runner(self.curriculum, self.package.name)
            with contextlib.closing(self.runner):
                self.begin()
                while self.status is None:
                    self._step(signals)
        return self.status

    def _step(self, signals: Signals) -> None:
        """Wait for something to happen, and answer it."""
        run = self.runner.run
        sources = [signals, self.saves, *([self.keyboard] if self.keyboard.there else []), *([run] if run else [])]
        self.keyboard.check()
        ready = select.select(sources, [], [], self.runner.patience)[0]
        if signals in ready:
            for number in signals.take():
                self._signal(number, signals)
        if self.keyboard in ready and self.status is None:
            keys = self.keyboard.read()
            self._keys.press(keys or "")
            self.status = 128 + signal.SIGHUP if keys is None else self.status
        if self.saves in ready and self.status is None:
            self._saved()
        if self.status is None and (outcome := self.runner.tick(self.runner.run is run and run in ready)):
            self._ended(outcome)
        elif self.runner.run and self.status is None:
            self._tell_where()

    def keep_note(self, text: str) -> None:
        """Show `text` below each outcome until the next save, or until `forget_note`."""
        self._note = text, self.tree.stamps()

    def forget_note(self) -> None:
        self._note = None

    def begin(self, why: str = "") -> None:
        """Run the current task's tests."""
        task = self.choice.current
        self.outcome, self._slow = None, ""
        self._stamps = self.tree.stamps()  # before the process reads them: a save after this starts another run
        self.sources = Sources(self.curriculum, self.package, self.sources)
        self.runner.start(task)
        say(self.console, f"{why}testing {task.label} ...", "dim")

    def _ended(self, outcome: Outcome) -> None:
        if self.tree.stamps() != self._stamps and not self.once:
            self.begin("changed meanwhile: ")  # nobody told of that save, or not yet
            return
        self._unsaved = record(outcome.results, self.sources)
        self.outcome, self.found = outcome, assess(self.sources)
        self._draw()
        if self.once:
            self.status = 0 if outcome.state == "done" else 1

    def _draw(self) -> None:
        """The outcome, from the top of the window."""
        if self.outcome is None:
            return
        task = self.choice.current
        if not self.once and self.console.color_system:
            self.console.clear()
        views.show_outcome(self.console, task, self.outcome, self.found, self.package)
        for line in self._broken.others(
            "\n".join([self.outcome.problem, *(result.text for result in self.outcome.results)])
        ):
            say(self.console, line, "bold red")
        if self.outcome.state != "done":
            self._keys.remind()
            views.show_next(self.console, task, self.package, "go on with")
        elif following := self.choice.following(self.found):
            views.show_next(self.console, following, self.package, f"next: {following.label}: {following.title}")
        else:
            self.show_end()
        if self._unsaved:
            print(self._unsaved, file=sys.stderr)
        if self._note and self._note[1] == self._stamps:
            say(self.console, f"\n{self._note[0]}")
        self.show_keys()

    def show_end(self) -> None:
        """Nothing is left to do here: where the course goes on."""
        everything = list(self.curriculum.tasks)
        at = everything.index(self.choice.tasks[-1]) + 1
        if task := next_task(self.found, everything[at:] + everything[:at]):
            views.show_next(self.console, task, self.package, f"all is done here; next: {task.label}: {task.title}")
            self.console.print(f"  watch  pdm run watch --week {task.week} --day {task.day}", soft_wrap=True)
        else:
            self.console.print("\nall is done, here and in the whole course so far")

    def show_keys(self) -> None:
        """The line with the keys, where there is somebody to press them."""
        if self.keyboard.there and not self.once:
            views.show_keys(self.console, self.found[self.choice.current].passed)

    def _tell_where(self) -> None:
        """Says of a slow run how far it is, a line for each place."""
        run = self.runner.run
        if run.seconds > _SLOW and run.where != self._slow:
            self._slow = run.where
            say(self.console, f"  {run.seconds:.0f} s: {self._slow}", "dim")

    def _saved(self) -> None:
        changed = self.saves.take()
        self._broken.look(path for path in changed if self.tree.holds(path))
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
        self.begin(f"{', '.join(names[:3])}{' ...' if len(names) > 3 else ''}: ")

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
