"""Three requests on one simulated engine, twice. Above, one event for each of 30 steps. Below, the same steps at the
same times in 10 events: a batch with a prompt is one step, and a run of decode steps is one event that is cut where a
request arrives and ends where one ends. The step that runs when somebody arrives goes on to its end.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, canvas
from tiny_llm_ref.cluster.cost import Linear
from tiny_llm_ref.cluster.kernel import Phase, Simulation
from tiny_llm_ref.cluster.replica import Replica
from tiny_llm_ref.cluster.trace_request import TraceRequest
from tiny_llm_ref.serving.memory import RowMemory
from tiny_llm_ref.serving.mixed import MixedScheduler

COST = Linear((1.0, 0.02, 0.0), (0.5, 0.0, 0.1))
REQUESTS = {"A": (0, 100, 30), "B": (7_350_000, 60, 8), "C": (16_200_000, 40, 7)}
LEFT, SCALE = 0.95, 0.236


class Pieces:
    """A sink that keeps what it is told of: (start, ends, who)."""

    def __init__(self) -> None:
        self.pieces: list[tuple[int, list[int], str]] = []

    def ran(self, batch, start, ends) -> None:
        """One event, or the part of one that has happened."""
        names = "".join("ABC"[step.request.uid] for step in batch.steps)
        self.pieces.append((start, [int(end) for end in ends], names))

    def ended(self, request, time) -> None:
        """Not shown."""


def run(max_steps: int) -> list[tuple[int, list[int], str]]:
    """What one engine did."""
    simulation, pieces = Simulation(), Pieces()
    answers = [answer for *_, answer in REQUESTS.values()]
    scheduler = MixedScheduler(RowMemory(4, 500))
    replica = Replica(simulation, scheduler, COST, lambda request: answers[request.uid], pieces, max_steps)
    for uid, (time, prompt, answer) in enumerate(REQUESTS.values()):
        simulation.at(time, Phase.ADMISSION, replica.add, TraceRequest(uid, prompt, answer))
    simulation.run()
    return pieces.pieces


def lane(axes: Axes, pieces: list[tuple[int, list[int], str]], y: float, title: str, theme: Theme) -> None:
    """Steps as boxes, events as marks below them."""
    axes.text(LEFT, y + 0.62, title, fontsize=10, va="bottom")
    for number, (start, ends, names) in enumerate(pieces):
        color = theme.series[0 if names == "A" else 2 if len(names) == 2 else 3]
        for end in ends:
            x, width = LEFT + start / 1e6 * SCALE, (end - start) / 1e6 * SCALE
            axes.add_patch(Rectangle((x, y), width, 0.5, facecolor=theme.soft, edgecolor=color, linewidth=1.1))
            start = end
        if len(ends) > 1 or ends[-1] - pieces[number][0] > 1.5e6:
            x = LEFT + (pieces[number][0] + ends[-1]) / 2e6 * SCALE
            axes.text(x, y + 0.25, names, ha="center", va="center", fontsize=8.5, color=theme.ink)
        axes.plot([LEFT + ends[-1] / 1e6 * SCALE], [y - 0.13], "^", color=theme.series[4], markersize=5)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(7.2, 3.2)
    single, fast = run(1), run(4096)
    lane(axes, single, 1.95, f"step by step: {len(single)} events", theme)
    lane(axes, fast, 0.7, f"fast-forward: {len(fast)} events, the same {len(single)} steps", theme)
    for name, (time, prompt, answer) in REQUESTS.items():
        x = LEFT + time / 1e6 * SCALE
        axes.plot([x, x], [0.25, 2.6], color=theme.muted, linewidth=1, linestyle=":")
        text = f"{name}: {prompt} + {answer} tokens"
        axes.text(x + 0.05, 0.18, text, fontsize=8.5, color=theme.muted, va="center", ha="left")
    for y, text in ((2.2, "steps"), (1.82, "events"), (0.95, "steps"), (0.57, "events")):
        axes.text(LEFT - 0.12, y, text, ha="right", va="center", fontsize=9, color=theme.muted)
    return figure
