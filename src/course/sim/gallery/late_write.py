"""A decode worker whose clients leave while their prompts are on their way."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

from course.sim.gallery.runs import MS, SECOND, Cluster
from course.sim.gallery.scenario import Outcome, Scenario

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.connector import Ask, Order
    from tiny_llm_ref.cluster.receiver import Receiver
    from tiny_llm_ref.cluster.trace_request import TraceRequest

PAGE, PAGES, PROMPTS, BYTES_PER_TOKEN, RATE = 64, 400, (512, 512, 512, 8192), 131_072, 4 * 10**9
COUNT, EVERY, ANSWER, LEAVERS, LONGEST = 300, 100 * MS, 300 * MS, 0.2, 400 * MS


def receiver_of(cluster: Cluster, repaired: bool) -> type["Receiver"]:
    """The decode side of the connector."""
    receiver = cluster("receiver").Receiver

    class Hasty(receiver):
        """Frees the pages of a client that leaves at once."""

        def abort(self, request: "TraceRequest", now: int) -> list["Order"]:
            """The client has left."""
            orders = super().abort(request, now)
            for transfer in [name for name, record in self.records.items() if record.request is request]:
                del self.records[transfer]
                self.memory.let_go(request)
            return orders + self.retry(now)

    return receiver if repaired else Hasty


class Decode:
    """A decode worker, to which prompts are copied.

    owner: of each page, the request that had it last; there: whose prompt stands in it. wrong: requests that ran on
    pages of which one held another's. overwritten: at each moment, how many pages of others were written.
    """

    def __init__(self, cluster: Cluster, repaired: bool):
        self.cluster, self.simulation = cluster, cluster("kernel").Simulation()
        self.memory = cluster("held_memory").HeldTraceMemory(COUNT, PAGES * PAGE, PAGE, PAGES)
        self.receiver = receiver_of(cluster, repaired)(self.memory)
        link = cluster("link").Link(RATE, 5_000)
        self.courier = cluster("courier").Courier(self.simulation, {"nic-0": link})
        self.owner: dict[int, int] = {}
        self.there: dict[int, int] = {}
        self.answers, self.wrong = 0, 0
        self.overwritten: list[tuple[float, int]] = [(0.0, 0)]

    def arrive(self, uid: int, tokens: int, stays: int | None) -> None:
        """A request comes, whose prompt a prefill worker has. stays: ns until its client leaves."""
        request = self.cluster("trace_request").TraceRequest(uid, tokens, 64)
        self.cluster("receiver").handed_over(request, self.cluster("trace_request").TOKEN)
        handoff = self.cluster("handoff")
        ticket = handoff.Ticket(handoff.Transfer(uid, uid), "prefill-0")
        self.carry(self.receiver.begin(request, ticket, self.simulation.now))
        if stays is not None:
            self.after(stays, self.leave, request)

    def after(self, delay: int, *call: object) -> None:
        """Do something in `delay` ns."""
        self.simulation.after(delay, self.cluster("kernel").Phase.ADMISSION, *call)

    def leave(self, request: "TraceRequest") -> None:
        """Its client leaves, unless the answer has begun."""
        self.carry(self.receiver.abort(request, self.simulation.now))

    def carry(self, orders: Sequence["Order"]) -> None:
        """Carry out what the connector orders. A copy that was begun is not stopped by a release."""
        for order in orders:
            if isinstance(order, self.cluster("connector").Ask):
                self.owner.update(dict.fromkeys(order.pages, order.transfer.uid))
                size, write = len(order.pages) * PAGE * BYTES_PER_TOKEN, self.cluster("transfer").Op.WRITE
                self.courier.move(write, "decode-0", size, lambda ok, ask=order: self.landed(ask))
            elif isinstance(order, self.cluster("connector").Start):
                self.memory.open(order.request, self.memory.match(order.request))
                self.after(ANSWER, self.answered, order.request, self.memory.table.pages(order.request.row))

    def landed(self, ask: "Ask") -> None:
        """The bytes of a prompt have come."""
        connector, uid = self.cluster("connector"), ask.transfer.uid
        late = sum(self.owner[page] != uid for page in ask.pages)
        self.overwritten.append((self.simulation.now / SECOND, self.overwritten[-1][1] + late))
        self.there.update(dict.fromkeys(ask.pages, uid))
        pairs = tuple((page, page) for page in ask.pages)
        copy = connector.Copy(ask.transfer, connector.Part(0, 0, 0, 8), pairs, ask.until)
        self.carry(self.receiver.moved(copy, len(pairs), self.simulation.now))

    def answered(self, request: "TraceRequest", pages: Sequence[int]) -> None:
        """An answer has ended. It was computed from these pages, all through."""
        prompt = pages[: -(-request.prompt_len // PAGE)]
        self.answers += 1
        self.wrong += any(self.there[page] != request.uid for page in prompt)
        request.finish_reason = "length"
        self.memory.close(request)
        self.carry(self.receiver.retry(self.simulation.now))


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """Ten prompts a second, each fourth of them long; one client in five leaves within 0.4 s."""
    worker, rng = Decode(cluster, repaired), Random(1)
    for uid in range(COUNT):
        stays = rng.randrange(LONGEST) if rng.random() < LEAVERS else None
        worker.after(uid * EVERY, worker.arrive, uid, rng.choice(PROMPTS), stays)
    worker.simulation.run()
    numbers = {
        "pages overwritten": worker.overwritten[-1][1],
        "answers from another prompt": worker.wrong,
        "answers": worker.answers,
        "pages never freed": PAGES - worker.memory.available,
    }
    times, counts = zip(*worker.overwritten, strict=True)
    return Outcome(numbers, {"pages": (times, counts)})


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """Nobody writes to pages of others, and no page is lost."""
    assert repaired["pages overwritten"] == repaired["answers from another prompt"] == 0
    assert repaired["pages never freed"] == 0 < repaired["answers"]
    assert broken["pages overwritten"] > 0 < broken["answers from another prompt"]


SCENARIO = Scenario(
    title="One user's prompt in another one's answer",
    complaint="vLLM 32255: where clients abort, another request's data appears in answers",
    broken="pages are freed when the client leaves",
    repaired="pages are freed when the last copy has ended",
    play=play,
    check=check,
    y="pages overwritten",
    kind="steps",
)
