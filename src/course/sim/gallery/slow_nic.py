"""Four NICs, one of which goes on at a tenth of its rate for a while."""

from collections.abc import Mapping

from course.sim.gallery.runs import MS, SECOND, Cluster
from course.sim.gallery.scenario import Outcome, Scenario

RATE, SLOW, NICS, SIZE, SLICE = 25 * 10**9, 25 * 10**8, 4, 10**9, 4 * 10**6
BEGIN, END, PAUSE, TRANSFERS = 2 * SECOND, 4 * SECOND, 200 * MS, 30


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """A prompt's KV goes to a decode worker every 200 ms; NIC 0 is slow from 2 s to 4 s."""
    kernel = cluster("kernel")
    simulation, write = kernel.Simulation(), cluster("transfer").Op.WRITE
    nics = {f"nic-{number}": cluster("link").Link(RATE, 5_000) for number in range(NICS)}
    courier = cluster("courier").Courier(simulation, nics, SLICE, window=1 if repaired else 10**9)
    took: dict[int, float] = {}

    def move(start: int) -> None:
        courier.move(write, "decode-0", SIZE, lambda ok: took.update({start: (simulation.now - start) / MS}))

    for number in range(TRANSFERS):
        simulation.at(number * PAUSE, kernel.Phase.ADMISSION, move, number * PAUSE)
    for time, rate in ((BEGIN, SLOW), (END, RATE)):
        simulation.at(time - PAUSE // 2, kernel.Phase.ADMISSION, courier.set_rate, "nic-0", rate)
    simulation.run()
    healthy = [ms for start, ms in took.items() if start < BEGIN]
    hurt = [ms for start, ms in took.items() if BEGIN <= start < END]
    numbers = {
        "transfer before, mean ms": sum(healthy) / len(healthy),
        "transfer with a slow NIC, mean ms": sum(hurt) / len(hurt),
        "slowest transfer, ms": max(took.values()),
    }
    return Outcome(numbers, {"transfer": ([start / SECOND for start in took], list(took.values()))})


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """Three of four NICs are left, and a little: transfers take about a third longer, not ten times as long."""
    assert repaired["transfer with a slow NIC, mean ms"] < 2 * repaired["transfer before, mean ms"]
    assert broken["transfer with a slow NIC, mean ms"] > 8 * broken["transfer before, mean ms"]
    assert abs(broken["transfer before, mean ms"] - repaired["transfer before, mean ms"]) < 1


SCENARIO = Scenario(
    title="One slow NIC makes all transfers slow",
    complaint="One NIC of four drops to a tenth of its rate, nothing fails, and each transfer takes ten times as long",
    broken="all slices are dealt out at the start",
    repaired="a NIC gets its next slice when one has arrived",
    play=play,
    check=check,
    x="second at which a transfer begins",
    y="ms that it takes",
)
