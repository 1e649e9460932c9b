"""The same program twice, each with a line for the CPU, the model's stream and the copy's stream. A forward ends, then
a copy brings its tokens to the host. On the left the event that the CPU waits for was recorded on the model's stream:
it is reached when the forward ends, and the CPU reads the host's buffer in the middle of the copy and finds nothing. On
the right the event was recorded on the copy's stream: the CPU waits for the copy and finds the tokens.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, arrow, canvas
from course.serving_case.stream_pitfalls import PITFALLS
from course.serving_case.stream_programs import run
from course.solution import Solution

SCALE, BAR = 2.35 / 70, 0.36
TRACKS = {"cpu": ("CPU", 1.75), "a": ("model", 1.2), "b": ("copy", 0.65)}


def side(axes: Axes, left: float, title: str, which: int, theme: Theme) -> None:
    """One run of the program."""
    program = PITFALLS["event on the wrong stream"][which]
    trace = run(Solution("tiny_llm_ref"), program)
    axes.text(left, 2.3, title, fontsize=9.5, va="bottom")
    for _, (name, y) in TRACKS.items():
        axes.text(left - 0.1, y + BAR / 2, name, ha="right", va="center", fontsize=9, color=theme.muted)
        axes.plot([left, left + 75 * SCALE], [y, y], color=theme.muted, linewidth=0.6)
    colors = {"forward": theme.series[2], "download": theme.series[0], "read": theme.series[4 if which == 0 else 1]}
    for name, (track, start, end) in trace["ops"].items():
        x, y, width = left + start * SCALE, TRACKS[track][1], (end - start) * SCALE
        axes.add_patch(Rectangle((x, y), width, BAR, facecolor=theme.soft, edgecolor=colors[name], linewidth=1.5))
        if name != "read":
            axes.text(x + width / 2, y + BAR / 2, name, ha="center", va="center", fontsize=8)
    waited, on = next(now for call, (_, now) in zip(program["calls"], trace["calls"], strict=True)
                      if call[0] == "synchronize"), program["calls"][4][2]  # fmt: skip
    x = left + waited * SCALE
    arrow(axes, (x, TRACKS[on][1] + BAR), (x, TRACKS["cpu"][1]), theme.ink, linewidth=1.2)
    found = trace["seen"]["read"]["host"]
    text = f"reads {'nothing' if found == 'nothing' else 'the tokens'}"
    axes.text(x - 0.1, TRACKS["cpu"][1] + BAR / 2, text, ha="right", va="center", fontsize=8.5, color=colors["read"])


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(7.2, 2.75)
    side(axes, 0.75, "event recorded on the model's stream", 0, theme)
    side(axes, 4.25, "event recorded on the copy's stream", 1, theme)
    axes.text(0.75, 0.2, "Arrow: the event that the CPU waits for is reached.", fontsize=8, color=theme.muted)
    return figure
