"""Starts runs one at a time, stops them, and keeps the process for the next one ready."""

from course.curriculum import Curriculum, Task
from course.loop.run import Outcome, Run

_TICK = 0.5
_SPARE_AFTER = 0.3  # s: until then a run has the processor to itself


class Runner:
    """At most one run, and at most one process that waits for the next."""

    def __init__(self, curriculum: Curriculum, solution: str) -> None:
        self._curriculum, self._solution = curriculum, solution
        self._spare: Run | None = Run()
        self.run: Run | None = None
        self._retired: Run | None = None  # over, and ended when there is time

    @property
    def patience(self) -> float:
        """s: after how long at most to `tick`."""
        return 0.0 if self._retired or (self._spare is None and self.run is None) else _TICK

    def start(self, task: Task) -> None:
        """Run a task's tests; a run that is going on is stopped."""
        self.stop()
        if self._spare and not self._spare.alive:
            self.renew()
        self.run, self._spare = self._spare or Run(), None
        self.run.start(task, self._curriculum, self._solution)

    def tick(self, readable: bool) -> Outcome | None:
        """What the run said, once it is over."""
        if self.run and self.run.over(readable):
            outcome, self._retired, self.run = self.run.outcome(), self.run, None
            return outcome
        if self._retired:
            self._retired.close()
            self._retired = None
        if self._spare is None and (self.run is None or self.run.seconds > _SPARE_AFTER):
            self._spare = Run()
        return None

    def stop(self) -> None:
        """End the run, if there is one."""
        for run in filter(None, (self.run, self._retired)):
            run.close()
        self.run = self._retired = None

    def renew(self) -> None:
        """End the process that waits, because the course itself has changed, say."""
        spare, self._spare = self._spare, None
        if spare:
            spare.close()

    def close(self) -> None:
        """End everything."""
        self.stop()
        self.renew()
