"""Tokens per second of all requests together against the number of requests at once, 1 to 32, on the embedded model,
from `bench engine`. Our engine's line rises steeply at first and then less, from under 1,000 to over 2,000; the line of
mlx-lm's batch generator runs below it.
"""

import json

from matplotlib.figure import Figure

from course.book.style import Theme
from course.paths import ROOT

RESULTS = ROOT / "benches" / "results" / "engine-tiny.json"


def draw(theme: Theme) -> Figure:
    """The figure."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))["results"]
    counts = [result["concurrency"] for result in results]
    figure = Figure(figsize=(5.6, 3.3), layout="constrained")
    axes = figure.add_subplot()
    for i, (name, label) in enumerate((("ours", "this week's engine"), ("mlx-lm", "mlx-lm's batch generator"))):
        speeds = [result[name]["median"] for result in results]
        axes.plot(counts, speeds, "o-", color=theme.series[i])
        axes.text(
            counts[-2],
            speeds[-2] + (140 if i == 0 else -320),
            label,
            ha="right" if i == 0 else "left",
            color=theme.series[i],
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.set(xlabel="requests at once", ylabel="tokens per second, all together", ylim=(0, 3000))
    return figure
