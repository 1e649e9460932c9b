"""A router that joins late, asks for a worker's whole cache, and takes what it gets for numbered events."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from course.sim.gallery.runs import MS, SECOND, Cluster
from course.sim.gallery.scenario import Outcome, Scenario

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.events import Answer, EventFeed, Question

PROMPTS, BLOCKS, ROOM, KEPT, EVERY = 400, 10, 1_000, 64, 25 * MS
JOIN, ROUND_TRIP, END = 5 * SECOND, 100 * MS, 20 * SECOND


def feed_of(cluster: Cluster, repaired: bool) -> "EventFeed":
    """The router's end."""
    events, indexer = cluster("events"), cluster("indexer")

    class Synthetic(events.EventFeed):
        """Numbers the changes of a dump from 0 on, as if they were the worker's first events."""

        def recover(self, worker: str, answer: "Answer") -> "Question | None":
            """Take an answer."""
            if isinstance(answer, events.Dump):
                self.index.apply(worker, indexer.Cleared())
                self.cursors[worker].last = -1
                answer = events.Events(tuple(map(events.Event, range(len(answer.changes)), answer.changes)))
            return super().recover(worker, answer)

    return (events.EventFeed if repaired else Synthetic)(indexer.PrefixIndex())


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """400 prompts of ten blocks enter a cache with room for 1,000, in 10 s. The router joins after 5 s."""
    kernel, cache, events = cluster("kernel"), cluster("worker_cache"), cluster("events")
    simulation, phase = kernel.Simulation(), kernel.Phase.ADMISSION
    feed = feed_of(cluster, repaired)
    tree = cache.TellingTree(lambda change: ask(feed.receive("worker-0", log.publish(change))))
    log = events.EventLog(KEPT, tree.dump)
    asked: list[float] = []
    dumped: list[int] = []

    def store(number: int) -> None:
        blocks = range(BLOCKS * number, BLOCKS * (number + 1))
        tree.insert(blocks, blocks)
        if tree.evictable > ROOM:
            tree.evict(tree.evictable - ROOM)

    def ask(question: "Question | None") -> None:
        if question is not None:
            asked.append(simulation.now / SECOND)
            simulation.after(ROUND_TRIP, phase, answer, question)

    def answer(question: "Question") -> None:
        told = log.answer(question)
        if isinstance(told, events.Dump):
            dumped.append(sum(len(change.blocks) for change in told.changes))
        ask(feed.recover("worker-0", told))

    for number in range(PROMPTS):
        simulation.at(number * EVERY, phase, store, number)
    simulation.at(JOIN, phase, feed.add_worker, "worker-0")
    simulation.run(until=END)
    numbers = {
        "questions": len(asked),
        "questions after the last event": sum(time > PROMPTS * EVERY / SECOND for time in asked),
        "blocks dumped": sum(dumped),
        "blocks missing in the index": len(tree.names) - len(feed.index.blocks["worker-0"]),
    }
    counts = [*range(len(asked) + 1), len(asked)]
    return Outcome(numbers, {"questions": ([0.0, *asked, END / SECOND], counts)})


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """One question and one answer, and then silence."""
    assert repaired["questions"] <= 3
    assert repaired["questions after the last event"] == repaired["blocks missing in the index"] == 0
    assert broken["questions after the last event"] > 50


SCENARIO = Scenario(
    title="A router asks for a cache again and again",
    complaint="Dynamo PR 7072: a router that recovers from a gap finds another gap, and recovers, without end",
    broken="the blocks of a dump get numbers from 0 on",
    repaired="a dump says up to which event it reaches",
    play=play,
    check=check,
    y="questions asked",
    kind="steps",
)
