"""Two step curves over the moments of one run in which a task awaits another, ten deep, and the innermost waits once.
The depth of the task's own stack of suspended coroutines climbs to ten and falls again. The depth of Python's own
stack is six at every call and return, and zero during the wait: the trampoline sends to the innermost coroutine
only, and returns before the next one runs.
"""

import sys

from matplotlib.figure import Figure

from course.book.style import Theme
from tiny_llm_ref.cluster.awaitable import Ok, Suspend
from tiny_llm_ref.cluster.lazy import Lazy, Running

DEEP = 9


def python_depth() -> int:
    """Frames on Python's stack."""
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def run() -> list[tuple[str, int, int]]:
    """A real run: for each thing that happens, its name, the task's own stack, and Python's."""
    seen: list[tuple[str, int, int]] = []
    tasks: list[Running] = []
    resumes = []

    class Watched(Running):
        """Remembers itself."""

        def meet(self, awaited: object) -> None:
            """Note what is awaited."""
            tasks[:] = [self]
            super().meet(awaited)

    def note(name: str) -> None:
        depth = len(tasks[0].stack) if tasks else 1
        seen.append((name, depth, python_depth()))

    async def down(depth: int) -> int:
        note("call")
        if depth == 0:
            return await Suspend(lambda resume, _: resumes.append(resume))
        value = await Lazy(lambda: down(depth - 1))
        note("return")
        return value

    async def main() -> None:
        await Lazy(lambda: down(DEEP - 1))
        note("return")

    import tiny_llm_ref.cluster.lazy as module

    plain, module.Running = module.Running, Watched
    try:
        Lazy(main).start(lambda outcome: None)
        seen.append(("wait", len(tasks[0].stack), python_depth()))
        resumes.pop()(Ok(1))
    finally:
        module.Running = plain
    return seen


def draw(theme: Theme) -> Figure:
    """The figure."""
    seen = run()
    base = min(python for _, _, python in seen)
    figure = Figure(figsize=(7.2, 2.8), layout="constrained")
    axes = figure.subplots()
    steps = range(len(seen))
    axes.step(steps, [own for _, own, _ in seen], where="mid", color=theme.series[0], label="coroutines of the task")
    python = [depth - base for _, _, depth in seen]
    axes.step(steps, python, where="mid", color=theme.series[1], linestyle="--", label="frames on Python's stack")
    axes.set_xticks(steps, [name for name, _, _ in seen], rotation=45, ha="right", fontsize=8)
    axes.set(ylabel="depth", ylim=(-0.3, DEEP + 2.6))
    axes.legend(fontsize=9, loc="upper right", ncols=2)
    return figure
