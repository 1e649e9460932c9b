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
        "healthy_transfer_ms": sum(healthy) / len(healthy),
        "transfer_with_slow_nic_ms": sum(hurt) / len(hurt),
        "slowest_transfer_ms": max(took.values()),
    }
    return Outcome(numbers, {"transfer": ([start / SECOND for start in took], list(took.values()))})


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """Three of four NICs are left, and a little: transfers take about a third longer, not ten times as long."""
    assert repaired["transfer_with_slow_nic_ms"] < 2 * repaired["healthy_transfer_ms"]
    assert broken["transfer_with_slow_nic_ms"] > 8 * broken["healthy_transfer_ms"]
    assert abs(broken["healthy_transfer_ms"] - repaired["healthy_transfer_ms"]) < 1


SCENARIO = Scenario(
    title="One slow NIC of four",
    complaint="One of a node's NICs has dropped to a tenth of its rate. Nothing has failed, three of four are as fast"
    " as ever, and yet every transfer takes ten times as long (what Mooncake's slices are for).",
    broken="all slices are dealt out at the start",
    repaired="a NIC gets its next slice when one has arrived",
    play=play,
    check=check,
    x="second at which a transfer begins",
    y="ms that it takes",
)
