"""The slices of one transfer on two NICs; nic1 has a quarter of the rate. Top: each NIC was given half of the bytes:
nic0 is done early, and the transfer lasts as long as nic1 needs. Middle: each NIC takes the next slice when it has sent
one; both are busy to the end. Bottom: nic0 fails in the middle, and nic1 carries the rest, with the one slice once more
that was lost.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course.book.style import Theme
from tiny_llm_ref.cluster.link import Link
from tiny_llm_ref.cluster.segment import Buffer, Segment
from tiny_llm_ref.cluster.transfer import Op, Topology, TransferRequest
from tiny_llm_ref.cluster.transfer_engine import TransferEngine

MS, MB = 10**6, 10**6
RATES = {"nic0": 10 * 10**9, "nic1": 25 * 10**8}
SIZE, SLICE, FAILS = 1000 * MB, 50 * MB, 57 * MS
MEMORY = Buffer(0, SIZE)


class Watched(Link):
    """Notes when each slice started, and whether it was lost."""

    def __init__(self, rate: int):
        super().__init__(rate)
        self.bars: dict[object, list[int]] = {}
        self.lost: list[list[int]] = []

    def start(self, flow, size: int, now: int) -> None:
        """Note it."""
        super().start(flow, size, now)
        self.bars[flow] = [now, now + size * 10**9 // self.bytes_per_s]

    def cancel(self, flow, now: int) -> bool:
        """Note it."""
        self.lost.append([self.bars.pop(flow)[0], now])
        return super().cancel(flow, now)


def run(shares: dict[str, int], fails: int | None = None) -> dict[str, Watched]:
    """One transfer for each share: a NIC's own bytes, or all bytes over all NICs ("")."""
    nics = {name: Watched(rate) for name, rate in RATES.items()}
    for name, size in shares.items():
        used = {name: nics[name]} if name else nics
        topology = Topology({MEMORY.location: list(used)})
        engine = TransferEngine(used, topology, lambda peer: Segment(peer, (MEMORY,)), slice_bytes=SLICE, window=1)
        engine.register(MEMORY)
        batch = engine.allocate(1)
        engine.submit(batch, [TransferRequest(Op.WRITE, 0, "peer", 0, size)], 0)
        while (time := engine.next_time()) is not None:
            if fails is not None and time > fails:
                engine.fail_nic("nic0", fails)
                fails = None
            else:
                engine.advance(time)
    return nics


def panel(axes: Axes, title: str, nics: dict[str, Watched], theme: Theme) -> None:
    """One run."""
    end = 0
    for row, link in enumerate(reversed(nics.values())):
        for bars, color in ((link.bars.values(), theme.series[row]), (link.lost, theme.series[4])):
            for start, stop in bars:
                place = (start / MS, row + 0.1)
                size = ((stop - start) / MS, 0.8)
                axes.add_patch(Rectangle(place, *size, facecolor=theme.soft, edgecolor=color, linewidth=1.4))
                end = max(end, stop)
    axes.set(xlim=(0, 215), ylim=(0, 2), yticks=[0.5, 1.5], yticklabels=list(reversed(nics)))
    axes.set_title(f"{title}: {end / MS:.0f} ms", fontsize=10, loc="left")
    axes.axvline(end / MS, color=theme.muted, linewidth=1, linestyle=":")


def draw(theme: Theme) -> Figure:
    """The figure."""
    figure = Figure(figsize=(7.2, 3.9), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True)
    panel(top, "half of the bytes each", run({"nic0": SIZE // 2, "nic1": SIZE // 2}), theme)
    panel(middle, "the next slice to whoever is free", run({"": SIZE}), theme)
    panel(bottom, f"nic0 fails after {FAILS // MS} ms", run({"": SIZE}, FAILS), theme)
    bottom.set_xlabel("ms")
    return figure
