"""Which task watch is about: the first that is not done, until one passes and the learner goes on."""

from collections.abc import Sequence

from course.curriculum import Task
from course.loop.progress import Progress, next_task
from course.loop.sources import Sources


class Choice:
    """The current task among `tasks`."""

    def __init__(self, tasks: Sequence[Task], found: Progress) -> None:
        self.tasks = list(tasks)
        self.current = next_task(found, self.tasks) or self.tasks[-1]

    def back(self) -> bool:
        """Go to the task before, done or not; whether there is one."""
        index = self.tasks.index(self.current)
        if index:
            self.current = self.tasks[index - 1]
        return index > 0

    def following(self, found: Progress) -> Task | None:
        """The next one that is not done: after the current one if there is any, else from the start."""
        at = self.tasks.index(self.current)
        return next_task(found, self.tasks[at + 1 :] + self.tasks[:at])

    def follow(self, before: Sources, now: Sources) -> bool:
        """Go to the task whose own code was changed between `before` and `now`; whether there is another one.

        A change to the current task's code keeps it, and so does one to code that belongs to no task.
        """
        changed = [task for task in self.tasks if _own_changed(before, now, task)]
        if not changed or self.current in changed:
            return False
        self.current = changed[0]
        return True


def _own_changed(before: Sources, now: Sources, task: Task) -> bool:
    old, new = before.of(task).own, now.of(task).own
    return bool(old and new) and old != new
