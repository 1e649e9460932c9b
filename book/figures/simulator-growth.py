"""CPU time of the simulator against the number of requests, from 8,000 on 8 engines to a million on 1,000 engines, from
`bench simulate`, both axes logarithmic. The measured points lie on a straight line, at the end below the dashed line of
n log n through the first point.
"""

import json

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme
from course.paths import ROOT

RESULTS = ROOT / "benches" / "results" / "simulate.json"


def draw(theme: Theme) -> Figure:
    """The figure."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["growth"]
    counts = np.array([row["requests"] for row in rows], float)
    seconds = np.array([row["seconds"] for row in rows])
    bound = counts * np.log(counts)
    figure = Figure(figsize=(5.6, 3.3), layout="constrained")
    axes = figure.add_subplot()
    axes.loglog(counts, seconds, "o-", color=theme.series[0])
    axes.loglog(counts, bound * seconds[0] / bound[0], "--", color=theme.series[1])
    axes.text(counts[3], seconds[3] * 0.45, "measured", color=theme.series[0])
    axes.text(counts[4], seconds[4] * 2.0, "n log n", color=theme.series[1], ha="right")
    axes.set(xlabel="requests, 1,000 for each engine", ylabel="seconds of CPU time")
    return figure
