"""Two panels over the token budget of a batch, 64 to 8,192, both axes logarithmic, a line for each scheduler. Left: the
median time to the first token of prompts of 8,000 tokens falls from about six seconds to under one for both. Right: the
longest gap between two tokens of a chat. With mixed batches it grows from 0.02 s to 0.8 s with the budget; with prefill
first it never falls below 0.8 s, and at small budgets it exceeds eight seconds.
"""

import json

from matplotlib.figure import Figure

from course.book.style import Theme
from course.paths import ROOT

RESULTS = ROOT / "benches" / "results" / "schedulers.json"
NAMES = {"chunked": "prefill first", "mixed": "mixed batches"}
PANELS = {"ttft": "TTFT of prompts of 8,000 tokens, s", "gap": "longest gap of a chat, s"}


def draw(theme: Theme) -> Figure:
    """The figure."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["chunk"]
    figure = Figure(figsize=(7.2, 3.3), layout="constrained")
    for axes, (key, label) in zip(figure.subplots(1, 2), PANELS.items(), strict=True):
        for color, marker, (kind, name) in zip(theme.series, "os", NAMES.items(), strict=False):
            mine = [row for row in rows if row["kind"] == kind]
            axes.plot([r["budget"] for r in mine], [r[key] for r in mine], marker=marker, color=color, label=name)
        axes.set(xscale="log", yscale="log", xlabel="tokens per batch", ylabel=label, ylim=(0.01, 30))
        axes.set_xticks([64, 256, 1024, 4096], ["64", "256", "1,024", "4,096"])
        axes.minorticks_off()
        axes.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    axes.legend(fontsize=9, loc="lower right")
    return figure
