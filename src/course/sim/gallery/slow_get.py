"""Gets that take longer than their leases, while puts use the space of what was evicted."""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

from course.sim.gallery.runs import MS, SECOND, Cluster
from course.sim.gallery.scenario import Outcome, Scenario

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.store_client import Reads
    from tiny_llm_ref.cluster.store_object import Grant

SIZE, ROOM, PUT_EVERY, PUTS = 256 * 10**6, 64, 250 * MS, 240
BATCH, GET_EVERY, RECENT = 8, 2 * SECOND, 40
RATE, SLOW, BEGIN, END = 2 * 10**9, 3 * 10**8, 15 * SECOND, 45 * SECOND
BAD = ("wrong bytes", "lease ran out")


def reads_of(cluster: Cluster, repaired: bool) -> type["Reads"]:
    """How a client gets a batch of objects."""
    reads = cluster("store_client").Reads

    class Unchecked(reads):
        """Takes whatever has come for the object, however long it took."""

        def done(self, key: int, now: int) -> None:
            """All bytes of an object have come."""
            self.results[key] = self.reading.pop(key) is not None
            self.begin(now)

    return reads if repaired else Unchecked


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """Four puts a second into a store for 64 objects; every 2 s a batch of 8 gets, by a NIC that is slow for 30 s."""
    kernel, op, make = cluster("kernel"), cluster("transfer").Op.READ, reads_of(cluster, repaired)
    simulation, phase, rng = kernel.Simulation(), kernel.Phase.ADMISSION, Random(1)
    courier = cluster("courier").Courier(simulation, {"nic-0": cluster("link").Link(RATE, 5_000)})
    master = cluster("store").Master(Random(2))
    master.mount("segment-0", SIZE * ROOM, "client-0", 0)
    there: dict[int, int] = {}
    ends: list[tuple[float, str]] = []

    def put(number: int) -> None:
        master.heartbeat("client-0", simulation.now)
        master.tick(simulation.now)
        new = master.put_start(number, SIZE, simulation.now)
        there[new.replicas[0].offset] = new.version
        master.put_end(new, simulation.now)

    def get(last: int) -> None:
        def read(grant: "Grant") -> None:
            courier.move(op, "client-0", SIZE, lambda ok: end(grant))

        def end(grant: "Grant") -> None:
            batch.done(grant.key, simulation.now)
            right = there[grant.replicas[0].offset] == grant.version
            bad = "lease ran out" if not batch.results[grant.key] else "wrong bytes" if not right else ""
            ends.append((simulation.now / SECOND, bad or "right"))

        batch = make(master, rng.sample(range(last - RECENT, last), BATCH), read)
        batch.begin(simulation.now)

    for number in range(PUTS):
        simulation.at(number * PUT_EVERY, phase, put, number)
        if number > RECENT and number * PUT_EVERY % GET_EVERY == 0:
            simulation.at(number * PUT_EVERY, phase, get, number)
    for time, rate in ((BEGIN, SLOW), (END, RATE)):
        simulation.at(time, phase, courier.set_rate, "nic-0", rate)
    simulation.run()
    return outcome(ends)


def outcome(ends: list[tuple[float, str]]) -> Outcome:
    """Counts, and how they grow."""
    counts = Counter(kind for _, kind in ends)
    numbers = {f"gets, {kind}": counts[kind] for kind in ("right", *BAD)}
    lines = {}
    for kind in BAD:
        times = [time for time, each in ends if each == kind]
        lines[kind] = [0.0, *times, 60.0], [*range(len(times) + 1), len(times)]
    return Outcome(numbers, lines)


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """A get that lasts too long fails; it never gives another object's bytes."""
    assert repaired["gets, wrong bytes"] == 0 < repaired["gets, lease ran out"]
    assert broken["gets, wrong bytes"] > 10


SCENARIO = Scenario(
    title="Gets succeed with another object's bytes",
    complaint="Mooncake 850: slow gets say success and return corrupt data; 4239: so does the batch get",
    broken="a get is good when its bytes have come",
    repaired="a get that ends after its lease has failed",
    play=play,
    check=check,
    y="gets so far",
    kind="steps",
)
