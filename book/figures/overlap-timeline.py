"""Two timelines of the same two requests, each with a line for the CPU and one for the device. In the normal loop the
CPU prepares a batch, waits while the device runs it, and processes its results; the device is idle while the CPU works.
In the overlap loop the CPU prepares the next batch while the device runs, so the device is never idle, and the six
batches take about two thirds of the time. The fourth batch of the overlap loop holds request B once more, for nothing:
its stop token was read only after that batch had been launched.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, canvas
from course.serving_case.hash_model import next_token
from course.serving_case.oracle import alone
from tiny_llm_ref.serving.engine import Engine
from tiny_llm_ref.serving.memory import RowMemory
from tiny_llm_ref.serving.overlap import OverlapEngine
from tiny_llm_ref.serving.request import Request
from tiny_llm_ref.serving.scheduler import Scheduler
from tiny_llm_ref.serving.simulated import Costs, SimulatedRunner
from tiny_llm_ref.serving.streams import Device, Op

COSTS = Costs(prepare=300_000, process=200_000, forward=700_000, token=0, copy=10_000)
PROMPTS = {"A": [5, 6, 7], "B": [8, 9]}
TOKENS = 6
STOP_AT = 3  # B's third token is its stop token
LEFT, SCALE, BAR = 0.95, 0.78 / 1e6, 0.42


class Watched(SimulatedRunner):
    """Notes whose steps each batch holds, and who had been told to stop by the time it was launched."""

    def launch(self, batch):
        """Note it, then launch it."""
        self.batches.append("".join("AB"[step.request.uid] for step in batch.steps))
        return super().launch(batch)

    def __init__(self, device: Device, memory: RowMemory):
        super().__init__(device, memory, next_token, COSTS)
        self.batches: list[str] = []


def run(loop: type[Engine]) -> tuple[list[Op], list[str], list[str]]:
    """All ops, whose steps each batch holds, and who got a token from it."""
    device, memory = Device(), RowMemory(2, 32)
    runner = Watched(device, memory)
    engine = loop(Scheduler(memory), runner)
    stop = alone(PROMPTS["B"], TOKENS)[0][STOP_AT - 1]
    for uid, (name, ids) in enumerate(PROMPTS.items()):
        engine.add(Request(uid, list(ids), TOKENS, stop_tokens=frozenset({stop} if name == "B" else ())))
    given = []
    while engine.busy:
        if outputs := engine.step():
            given.append("".join(sorted("AB"[output.uid] for output in outputs)))
    return device.ops, runner.batches, given


def bar(axes: Axes, op: Op, y: float, text: str, color: str, theme: Theme) -> None:
    """One op."""
    x, width = LEFT + op.start * SCALE, (op.end - op.start) * SCALE
    axes.add_patch(Rectangle((x, y), width, BAR, facecolor=theme.soft, edgecolor=color, linewidth=1.4))
    axes.text(x + width / 2, y + BAR / 2, text, ha="center", va="center", fontsize=7.5, color=theme.ink)


def timeline(axes: Axes, title: str, loop: type[Engine], top: float, theme: Theme) -> float:
    """Both tracks of one loop. Returns when it ends."""
    ops, batches, given = run(loop)
    axes.text(LEFT, top, title, fontsize=10, va="bottom")
    for name, y in (("CPU", top - 0.6), ("device", top - 1.15)):
        axes.text(LEFT - 0.12, y + BAR / 2, name, ha="right", va="center", fontsize=9, color=theme.muted)
    for op in ops:
        kind, _, number = op.name.partition(" ")
        if kind in ("prepare", "process"):
            color = theme.series[0] if kind == "prepare" else theme.series[1]
            bar(axes, op, top - 0.6, f"{'+' if kind == 'prepare' else '='}{number}", color, theme)
        elif kind == "forward":
            holds, gave = batches[int(number) - 1], given[int(number) - 1]
            wasted = [name for name in holds if name not in gave]
            text = f"{number}: {holds}" if not wasted else f"{number}: {gave} ({''.join(wasted)})"
            bar(axes, op, top - 1.15, text, theme.series[4 if wasted else 2], theme)
    end = max(op.end for op in ops if op.track == "cpu")
    x = LEFT + end * SCALE
    axes.plot([x, x], [top - 1.2, top - 0.1], color=theme.muted, linewidth=1, linestyle=":")
    axes.text(x, top - 1.22, f"{end / 1e6:.2f} ms", ha="right", va="top", fontsize=8.5, color=theme.muted)
    return end


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(7.0, 3.55)
    timeline(axes, "normal: prepare, wait, process", Engine, 3.25, theme)
    timeline(axes, "overlap: launch N + 1, then read N", OverlapEngine, 1.6, theme)
    text = "+N: the CPU prepares batch N.  =N: it processes the results.  (B): run for nothing, B had ended"
    axes.text(LEFT, 0.02, text, fontsize=8, va="bottom", color=theme.muted)
    return figure
