"""Three flows on a link of 10 GB/s, as bands whose heights are their rates. A has the whole link until B comes at 100
ms; then both have a half, and with C from 200 ms on a third each. When C has left, A and B have halves again, and the
last one has the link alone. The area of a band is the size of its flow, and the link is never idle.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from tiny_llm_ref.cluster.link import Link

MS, MB, RATE = 10**6, 10**6, 10 * 10**9
FLOWS = {"A": (3000 * MB, 0), "B": (1500 * MB, 100 * MS), "C": (500 * MB, 200 * MS)}  # bytes, and when they begin


def bands() -> list[tuple[int, int, list[str]]]:
    """(from, to, flows under way), in ns."""
    link, spans, now, on = Link(RATE), [], 0, []
    starts = sorted((begin, name) for name, (_, begin) in FLOWS.items())
    while starts or link.flows:
        arrival = link.next_time()
        time = starts[0][0] if starts and (arrival is None or starts[0][0] < arrival) else arrival
        if time > now:
            spans.append((now, time, list(on)))
        now = time
        for name in link.collect(now):
            on.remove(name)
        while starts and starts[0][0] == now:
            _, name = starts.pop(0)
            link.start(name, FLOWS[name][0], now)
            on.append(name)
    return spans


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(7.2, 2.7), layout="constrained")
    axes = figure.subplots()
    colors = dict(zip(FLOWS, theme.series, strict=False))
    for start, end, on in bands():
        height = RATE / 1e9 / len(on)
        for place, name in enumerate(on):
            x, width = start / MS, (end - start) / MS
            axes.bar(
                x, height, width, place * height, align="edge", color=colors[name], edgecolor=theme.paper, alpha=0.8
            )
            axes.text(x + width / 2, (place + 0.5) * height, name, ha="center", va="center", color=theme.paper)
    ticks = sorted({time / MS for start, end, _ in bands() for time in (start, end)})
    axes.set(xlabel="ms", ylabel="GB/s", xticks=ticks, xlim=(0, ticks[-1]), ylim=(0, 10.5), yticks=[0, 5, 10])
    return figure
