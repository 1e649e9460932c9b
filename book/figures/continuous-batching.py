"""Seven requests on three rows of memory, twice, a column per step. With static batching three are prefilled together,
and their rows stay empty as the short ones end, until the longest has ended; then the next three begin. With
continuous batching the next request is prefilled as soon as a row is free. The others stand still in that step, but all
ends much earlier.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, canvas
from tiny_llm_ref.serving.memory import RowMemory
from tiny_llm_ref.serving.request import Request, Sampled, Step
from tiny_llm_ref.serving.scheduler import Scheduler

ANSWERS = {"A": 3, "B": 9, "C": 2, "D": 5, "E": 3, "F": 8, "G": 4}
ROWS, CELL, LEFT = 3, 0.42, 0.75


class Static(Scheduler):
    """Nobody joins while somebody runs."""

    def prefill(self) -> list[Step]:
        """Only into an empty batch."""
        return [] if self.running else super().prefill()


def columns(kind: type[Scheduler]) -> list[dict[int, tuple[str, bool]]]:
    """A real run: for each step, which request is in which row, and whether its prompt runs."""
    scheduler = kind(RowMemory(ROWS, 32))
    for uid, tokens in enumerate(ANSWERS.values()):
        scheduler.add(Request(uid, [1, 2, 3], tokens))
    steps = []
    while scheduler.requests:
        batch = scheduler.next_batch()
        steps.append({step.request.row: ("ABCDEFG"[step.request.uid], step.start == 0) for step in batch.steps})
        scheduler.commit(batch, [Sampled(7) for _ in batch.sampling])
    return steps


def panel(axes: Axes, y: float, title: str, steps: list[dict[int, tuple[str, bool]]], theme: Theme) -> None:
    """The steps of one kind, a row of cells for each row of memory; row 0 is on top."""
    axes.text(0.1, y + ROWS * CELL + 0.2, f"{title}: {len(steps)} steps", va="center", fontsize=10)
    for row in range(ROWS):
        bottom = y + (ROWS - 1 - row) * CELL
        axes.text(LEFT - 0.1, bottom + CELL / 2, f"row {row}", ha="right", va="center", fontsize=8, color=theme.muted)
        for i, step in enumerate(steps):
            name, prefill = step.get(row, ("", False))
            color = theme.series["ABCDEFG".index(name) % 5] if name else theme.muted
            shape = Rectangle((LEFT + i * CELL, bottom), CELL - 0.05, CELL - 0.05, edgecolor=color, linewidth=1.4)
            shape.set(facecolor=color if prefill else theme.soft if name else "none", linestyle="-" if name else ":")
            axes.add_patch(shape)
            place = (LEFT + i * CELL + CELL / 2 - 0.025, bottom + CELL / 2 - 0.025)
            axes.text(*place, name, ha="center", va="center", fontsize=9, color=theme.paper if prefill else theme.ink)


def draw(theme: Theme) -> Figure:
    """The figure."""
    static, continuous = columns(Static), columns(Scheduler)
    figure, axes = canvas(LEFT + max(len(static), len(continuous)) * CELL + 0.1, 4.0)
    panel(axes, 2.15, "static", static, theme)
    panel(axes, 0.35, "continuous", continuous, theme)
    axes.text(LEFT, 0.12, "filled: the prompt runs   light: one token   dotted: nothing", fontsize=8, va="center")
    return figure
