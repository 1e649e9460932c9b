"""One request with a prompt of three tokens, after seven events. A launch of the prompt moves cached_len to 3 and
device_len to 4: the device will know a fourth token, the host does not. Its commit tells the host. Then two steps are
launched before one is committed: the host misses two tokens, and the lengths are right all the same.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme, canvas
from tiny_llm_ref.serving.request import Request

CELL, LEFT = 0.5, 1.75
EVENTS = ["added", "launch", "commit", "launch", "launch", "commit", "commit"]


def after(request: Request, event: str, words: list[str]) -> None:
    """Do it to a real request; `words` holds what stands for its ids."""
    if event == "launch":
        request.launch(request.extend_len)
    elif event == "commit":
        request.append(len(words))
        words.append(["cat", "sat", "on"][len(words) - 3])


def state(axes: Axes, y: float, event: str, request: Request, words: list[str], theme: Theme) -> None:
    """Positions as cells: computed, still to compute, and those whose token the host does not know."""
    axes.text(LEFT - 0.15, y + CELL / 2, event, ha="right", va="center", fontsize=9)
    for position in range(request.device_len):
        computed = position < request.cached_len
        color = theme.series[0] if computed else theme.series[1]
        shape = Rectangle((LEFT + position * CELL, y), CELL - 0.05, CELL - 0.05, edgecolor=color, linewidth=1.6)
        shape.set(facecolor=theme.soft, linestyle="-" if computed else ":")
        axes.add_patch(shape)
        word = words[position] if position < len(request.ids) else "?"
        place = (LEFT + position * CELL + CELL / 2 - 0.025, y + CELL / 2 - 0.025)
        axes.text(*place, word, ha="center", va="center", fontsize=8.5, color=theme.ink)
    text = f"cached {request.cached_len}   device {request.device_len}   ids {len(request.ids)}"
    axes.text(LEFT + 6.4 * CELL, y + CELL / 2, text, va="center", fontsize=8.5, color=theme.muted)


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure, axes = canvas(7.6, 4.75)
    request, words = Request(0, [0, 1, 2], 9), ["The", "old", "grey"]
    for i, event in enumerate(EVENTS):
        after(request, event, words)
        name = {1: "launch the prompt", 3: "launch a token"}.get(i, "launch one more" if event == "launch" else event)
        state(axes, 4.15 - 0.6 * i, name, request, words, theme)
    axes.text(LEFT, 0.15, "solid: launched", fontsize=9, color=theme.series[0], va="center")
    axes.text(LEFT + 1.45, 0.15, "dotted: runs next", fontsize=9, color=theme.series[1], va="center")
    axes.text(LEFT + 3.1, 0.15, "?: the host does not know it yet", fontsize=9, va="center")
    return figure
