"""One place in a store over 30 seconds. It holds object A until the lease of its last reader is over; then A is evicted
and B is written there. The first reader needs 7 of the 10 seconds of its lease and has read A. The second needs 14: its
last bytes are B's, and it ends after its lease, so it has failed.
"""

from random import Random

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme
from tiny_llm_ref.cluster.store import Master
from tiny_llm_ref.cluster.store_object import SECOND, Grant, NoSpaceError

READERS = {"reader 1": (2, 7), "reader 2": (8, 14)}  # when they ask, and how long they read, in seconds
PUT_B = 12


def run() -> tuple[int, list[Grant]]:
    """When B gets A's place, in seconds, and what the readers were told."""
    master = Master(Random(0))
    master.mount("s0", 100, "c0", 0)
    master.put_end(master.put_start("A", 100, 0), 0)
    grants = [master.get("A", asked * SECOND) for asked, _ in READERS.values()]
    for second in range(PUT_B, 60):
        try:
            master.put_start("B", 100, second * SECOND)
        except NoSpaceError:
            continue
        return second, grants
    raise AssertionError("B found no space")


def draw(theme: Theme) -> Figure:
    """The figure."""
    evicted, grants = run()
    figure = Figure(figsize=(7.2, 2.6), layout="constrained")
    axes = figure.subplots()

    def bar(row: float, start: float, end: float, color: str, text: str, height: float = 0.7) -> None:
        axes.add_patch(
            Rectangle((start, row), end - start, height, facecolor=theme.soft, edgecolor=color, linewidth=1.6)
        )
        axes.text((start + end) / 2, row + height / 2, text, ha="center", va="center", fontsize=9)

    bar(2.15, 0, evicted, theme.series[0], "A")
    bar(2.15, evicted, 30, theme.series[1], "B is written")
    for row, ((asked, took), grant) in zip((1.15, 0.15), zip(READERS.values(), grants, strict=True), strict=True):
        until, end = grant.until / SECOND, asked + took
        good = grant.holds(end * SECOND)
        bar(row + 0.36, asked, until, theme.muted, "lease", 0.34)
        bar(row, asked, end, theme.series[2 if good else 4], "read A" if good else "read A, then B: failed", 0.34)
    axes.axvline(evicted, color=theme.muted, linewidth=1, linestyle=":")
    axes.set(xlim=(0, 30), ylim=(0, 3), xlabel="s", yticks=[0.5, 1.5, 2.5])
    axes.set_yticklabels([*reversed(READERS), "the place"])
    return figure
