"""One request in two hand-offs, in time. The prefill worker computes for 49 ms, the copy takes 47, and a question takes
20 to get to it. By pull the decode worker asks when the prompt is computed: it holds its pages for 67 ms and decodes at
116 ms. By push or bootstrap it asks at once: it holds them for 96 ms and decodes at 96 ms.
"""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme
from tiny_llm_ref.cluster.cost import Mocker
from tiny_llm_ref.cluster.deployment import Deployment, Handoff, Pool, Transport
from tiny_llm_ref.cluster.record import Record
from tiny_llm_ref.cluster.simulator import simulate
from tiny_llm_ref.cluster.workload import Arrival, OpenLoop

MS = 10**6
KINDS: dict[Handoff, str] = {"pull": "pull", "push": "push, bootstrap"}


def run(kind: Handoff) -> Record:
    """One request, its time stamps."""
    pool = Pool(Mocker(16_384 * 64))
    slow = Transport(latency=20 * MS, bytes_per_s=10 * 10**9)
    workload = OpenLoop([Arrival(0, 2048, 4)], 64)
    return simulate(Deployment(pool, prefill=pool, handoff=kind, transport=slow), workload).records[0]


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.subplots()
    rows = ("prefill worker", "copy", "pages held at\nthe decode worker", "decode worker")
    ticks = []
    for panel, (kind, label) in enumerate(KINDS.items()):
        record, top = run(kind), 9.0 - 5 * panel
        asked = record.prefill_end if kind == "pull" else record.arrival
        bars = (
            (record.prefill_start, record.prefill_end, theme.series[0]),
            (record.transfer_start, record.transfer_end, theme.series[1]),
            (asked, record.decode_start, theme.muted),
            (record.decode_start, record.done, theme.series[2]),
        )
        for row, (start, end, color) in enumerate(bars):
            place = (start / MS, top - row - 0.7)
            axes.add_patch(
                Rectangle(place, (end - start) / MS, 0.7, facecolor=theme.soft, edgecolor=color, linewidth=1.6)
            )
            if end - start > 20 * MS:
                text = f"{(end - start) / MS:.0f} ms"
                axes.text((start + end) / 2 / MS, top - row - 0.36, text, ha="center", va="center", fontsize=9)
            ticks.append((top - row - 0.35, rows[row]))
        axes.text(138, top - 0.4, label, ha="right", va="center", fontsize=12)
    axes.set(xlim=(0, 140), ylim=(0, 9.3), xlabel="ms", yticks=[y for y, _ in ticks])
    axes.set_yticklabels([name for _, name in ticks], fontsize=9)
    return figure
