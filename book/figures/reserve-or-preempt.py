"""Tokens per second over max_tokens, from 150 to 4,800, on a logarithmic axis, with a fixed memory and answers of 50 to
150 tokens. Worst-case reservation falls steadily from 1,632 to 269, while 32 requests run at first and 3 in the end.
Preemption is a flat line at 1,831 with 51 requests running, since it never looks at max_tokens.
"""

import json

from matplotlib.figure import Figure

from course.book.style import Theme
from course.paths import ROOT

RESULTS = ROOT / "benches" / "results" / "schedulers.json"
NAMES = {"chunked": "worst case reserved", "mixed": "first chunk, then preemption"}


def draw(theme: Theme) -> Figure:
    """The figure."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["reserve"]
    figure = Figure(figsize=(5.6, 3.4), layout="constrained")
    axes = figure.add_subplot()
    for color, marker, (kind, name) in zip(theme.series, "os", NAMES.items(), strict=False):
        mine = [row for row in rows if row["kind"] == kind]
        asked, rate = [r["max_tokens"] for r in mine], [r["rate"] for r in mine]
        axes.plot(asked, rate, marker=marker, color=color, label=name)
        for row in (mine[0], mine[-1]):
            text = f"{row['running']:.0f} run"
            below = -16 if kind == "chunked" else 8
            axes.annotate(text, (row["max_tokens"], row["rate"]), (0, below), textcoords="offset points",
                          ha="center", color=color, fontsize=9)  # fmt: skip
    axes.set(xscale="log", xlabel="max_tokens (answers have 50 to 150)", ylabel="tokens/s", ylim=(0, 2300))
    axes.set_xticks(asked, [f"{n:,}" for n in asked])
    axes.minorticks_off()
    axes.legend(fontsize=9, loc="lower left", bbox_to_anchor=(0, 0.08))
    return figure
