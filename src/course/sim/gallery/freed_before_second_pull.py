"""A decode worker of two ranks: each reads its half of a prompt, and one of them is slow now and then."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from course.sim.gallery.runs import MS, SECOND, Cluster
from course.sim.gallery.scenario import Outcome, Scenario

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.connector import Copy, Order
    from tiny_llm_ref.cluster.handoff import Transfer
    from tiny_llm_ref.cluster.sender import Sender

PAGE, PAGES, PROMPT, HEADS, BYTES_PER_TOKEN = 64, 160, 2048, 8, 131_072
COUNT, EVERY, RATE, SLOW, SLOW_FOR, EXPIRY = 100, 250 * MS, 20 * 10**9, 10**8, 2 * SECOND, 480 * SECOND


def sender_of(cluster: Cluster, repaired: bool) -> type["Sender"]:
    """The prefill side of the connector."""
    sender = cluster("sender").Sender

    class FirstPull(sender):
        """Takes the first rank that has its half for the decode worker."""

        def settle(self, transfer: "Transfer", now: int) -> list["Order"]:
            """A copy has ended."""
            record = self.records[transfer]
            if record.sent and record.request is not None:
                self.memory.let_go(record.request)
                record.request = None
            return super().settle(transfer, now)

    return sender if repaired else FirstPull


class Prefill:
    """A prefill worker, from which both ranks of a decode worker read prompts.

    there: whose prompt stands in each page. waiting: prompts that came and found no pages. waits: how long each did.
    wrong: at each moment, how many pages were read that held another prompt. mixed: prompts with such pages.
    """

    def __init__(self, cluster: Cluster, repaired: bool):
        self.cluster, self.simulation = cluster, cluster("kernel").Simulation()
        self.memory = cluster("held_memory").HeldTraceMemory(1, PAGES * PAGE, PAGE, PAGES)
        self.sender = sender_of(cluster, repaired)(self.memory, kv_heads=HEADS)
        link, courier = cluster("link").Link, cluster("courier").Courier
        self.ranks = [courier(self.simulation, {"nic-0": link(RATE, 5_000)}) for _ in range(2)]
        self.there: dict[int, int] = {}
        self.waiting: deque[tuple[int, int]] = deque()
        self.waits: list[int] = []
        self.mixed: dict[int, None] = {}
        self.wrong: list[tuple[float, int]] = [(0.0, 0)]

    def arrive(self, uid: int) -> None:
        """A prompt comes."""
        self.waiting.append((uid, self.simulation.now))
        self.compute()

    def compute(self) -> None:
        """Compute prompts as long as there are pages, and let both ranks ask for them."""
        now, pages = self.simulation.now, tuple(range(PROMPT // PAGE))
        while self.waiting and self.memory.available > len(pages):
            uid, came = self.waiting.popleft()
            self.waits.append(now - came)
            transfer = self.cluster("handoff").Transfer(uid, uid)
            self.carry(self.prefill(uid, transfer))
            for rank in range(2):
                ask = self.cluster("connector").Ask(transfer, "prefill-0", rank, 2, pages, now + EXPIRY)
                self.carry(self.sender.ask(ask, now))

    def prefill(self, uid: int, transfer: "Transfer") -> list["Order"]:
        """Compute a prompt, as a scheduler would."""
        memory, request = self.memory, self.cluster("trace_request").TraceRequest(uid, PROMPT, 1)
        self.sender.accept(request, transfer)
        memory.open(request, memory.match(request))
        memory.grow(request, PROMPT)
        self.there.update(dict.fromkeys(memory.table.pages(request.row), uid))
        request.launch(PROMPT)
        request.in_flight -= 1
        request.finish_reason = request.append(self.cluster("trace_request").TOKEN)
        memory.close(request)
        return self.sender.ended(request, self.simulation.now)

    def carry(self, orders: Sequence["Order"]) -> None:
        """Let ranks read."""
        for copy in orders:
            size = len(copy.pages) * PAGE * BYTES_PER_TOKEN * copy.part.heads // HEADS
            read = self.cluster("transfer").Op.READ
            self.ranks[copy.part.target].move(read, "prefill-0", size, lambda ok, copy=copy: self.read(copy))

    def read(self, copy: "Copy") -> None:
        """A rank has read its half."""
        uid = copy.transfer.uid
        wrong = sum(self.there[source] != uid for source, _ in copy.pages)
        if wrong:
            self.mixed[uid] = None
        self.wrong.append((self.simulation.now / SECOND, self.wrong[-1][1] + wrong))
        self.carry(self.sender.moved(copy, True, self.simulation.now))
        self.compute()


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """Four prompts a second; every 6 s other traffic leaves rank 1 a 200th of its rate, for 2 s."""
    worker, phase = Prefill(cluster, repaired), cluster("kernel").Phase.ADMISSION
    for uid in range(COUNT):
        worker.simulation.at(uid * EVERY, phase, worker.arrive, uid)
    for start in range(4 * SECOND, COUNT * EVERY, 6 * SECOND):
        worker.simulation.at(start, phase, worker.ranks[1].set_rate, "nic-0", SLOW)
        worker.simulation.at(start + SLOW_FOR, phase, worker.ranks[1].set_rate, "nic-0", RATE)
    worker.simulation.run()
    numbers = {
        "wrong pages read": worker.wrong[-1][1],
        "prompts mixed with others": len(worker.mixed),
        "longest wait for pages, ms": max(worker.waits) / MS,
        "pages never freed": PAGES - worker.memory.available,
    }
    times, counts = zip(*worker.wrong, strict=True)
    return Outcome(numbers, {"pages": (times, counts)})


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """Both ranks get what they asked for; then the pages are free, and prompts have waited for them."""
    assert repaired["wrong pages read"] == repaired["prompts mixed with others"] == 0
    assert repaired["pages never freed"] == 0
    assert broken["prompts mixed with others"] > 5


SCENARIO = Scenario(
    title="Half of a prompt is another one's",
    complaint="One rank prefills and two decode: while the network is busy, some answers are nonsense",
    broken="pages are freed when a rank has read them",
    repaired="pages are freed when all ranks have read them",
    play=play,
    check=check,
    y="wrong pages read",
    kind="steps",
)
