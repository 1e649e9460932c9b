"""How figures look: two themes, their colours, and the few shapes that several figures draw."""

from dataclasses import dataclass

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch


@dataclass(frozen=True)
class Theme:
    """Colours of one theme. `series` are told apart by lightness too, for readers who do not see colour."""

    name: str
    ink: str
    muted: str
    paper: str
    soft: str
    series: tuple[str, ...]


LIGHT = Theme(
    "light", "#1c2330", "#647084", "#ffffff", "#eef1f6", ("#0b5fa5", "#d1660a", "#1b7f5c", "#8a3fb0", "#b3261e")
)
DARK = Theme(
    "dark", "#e6e9f0", "#9aa6ba", "#161923", "#262c3b", ("#6db7f2", "#f5a55a", "#5fcf9f", "#c999ea", "#f28b82")
)
THEMES = (LIGHT, DARK)


def settings(theme: Theme) -> rc_context:
    """Matplotlib's settings for one theme; the fixed hash salt makes the SVG the same on every run."""
    return rc_context(
        {
            "svg.hashsalt": "tiny-llm",
            "svg.fonttype": "path",
            "font.family": "DejaVu Sans",
            "font.size": 11,
            "text.color": theme.ink,
            "axes.edgecolor": theme.muted,
            "axes.labelcolor": theme.ink,
            "axes.titlesize": 12,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "xtick.color": theme.muted,
            "ytick.color": theme.muted,
            "xtick.labelcolor": theme.ink,
            "ytick.labelcolor": theme.ink,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "legend.frameon": False,
            "lines.linewidth": 2,
            "path.simplify_threshold": 0.5,
        }
    )


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty drawing of `width` x `height` inches whose coordinates are inches."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return figure, axes


def box(
    axes: Axes, x: float, y: float, w: float, h: float, text: str, theme: Theme, color: str, **font: object
) -> None:
    """A rounded box with centred text; (x, y) is its lower left corner."""
    shape = FancyBboxPatch((x, y), w, h, boxstyle="round,pad=0,rounding_size=0.06")
    shape.set(facecolor=theme.soft, edgecolor=color, linewidth=1.6)
    axes.add_patch(shape)
    axes.text(x + w / 2, y + h / 2, text, ha="center", va="center", **font)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], color: str, **how: object) -> None:
    """An arrow from start to end."""
    options = {"arrowstyle": "-|>", "mutation_scale": 12, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0} | how
    axes.add_patch(FancyArrowPatch(start, end, color=color, **options))
