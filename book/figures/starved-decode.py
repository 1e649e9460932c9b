"""Tokens of one chat over time, a line for each scheduler, while five prompts of 2,000 tokens come each second for ten
seconds. With mixed batches the line rises evenly, 180 tokens in ten seconds. With prefill first it rises to 20 and then
is flat for twelve seconds, until all prompts have been computed; then both rise steeply.
"""

import json

from matplotlib.figure import Figure

from course.book.style import Theme
from course.paths import ROOT

RESULTS = ROOT / "benches" / "results" / "schedulers.json"
NAMES = {"chunked": "prefill first", "mixed": "mixed batches"}


def draw(theme: Theme) -> Figure:
    """The figure."""
    rows = {r["kind"]: r for r in json.loads(RESULTS.read_text(encoding="utf-8"))["starve"] if r["every"] == 0.2}
    figure = Figure(figsize=(5.6, 3.2), layout="constrained")
    axes = figure.add_subplot()
    for color, (kind, name) in zip(theme.series, NAMES.items(), strict=False):
        times = rows[kind]["times"]
        axes.step(times, range(1, len(times) + 1), where="post", color=color, label=name)
    axes.axvspan(0.2, 10, color=theme.soft, zorder=0)
    axes.text(5.1, 260, "prompts come", ha="center", color=theme.muted, fontsize=9)
    axes.set(xlabel="seconds", ylabel="tokens of the chat", xlim=(0, 16), ylim=(0, 500))
    axes.legend(fontsize=9, loc="upper left")
    return figure
