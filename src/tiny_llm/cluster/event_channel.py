"""How KV events reach a router of a simulated deployment: at once, late, or not at all."""

from collections.abc import Callable
from random import Random
from typing import TypeVar

from .events import Answer, Event, EventFeed, Question
from .kernel import Phase, Simulation
from .worker import Worker

T = TypeVar("T")


class EventChannel:
    """Events of all workers of a pool, `kind`, to the feed of one router, its questions back, and their answers.

    delay: ns, each way; 0 applies events at once. losses: the share of its events that a worker loses, by its number.
    """

    def __init__(
        self, simulation: Simulation, kind: str, feed: EventFeed, delay: int, losses: dict[int, float], rng: Random
    ):
        self.kind = kind
        self.simulation, self.feed, self.delay, self.losses, self.rng = simulation, feed, delay, losses, rng

    def send(self, worker: Worker, event: Event) -> None:
        """A worker's cache has changed."""
        if (loss := self.losses.get(worker.number)) and self.rng.random() < loss:
            return
        silent = worker.silent_until > self.simulation.now
        if self.delay or silent:
            self.later(worker, self.receive, event)
        else:
            self.receive(worker, event)

    def receive(self, worker: Worker, event: Event) -> None:
        """An event is here."""
        self.ask(worker, self.feed.receive(worker.number, event))

    def tell(self, worker: Worker) -> None:
        """A worker tells its newest number, so that the loss of the last event is seen too."""
        if worker.kind == self.kind:
            self.later(worker, self.heard, worker.log.last)

    def heard(self, worker: Worker, number: int) -> None:
        """That number is here."""
        self.ask(worker, self.feed.hear(worker.number, number))

    def ask(self, worker: Worker, question: Question | None) -> None:
        """Send what the feed asks."""
        if question is not None:
            self.later(worker, self.answer, question)

    def answer(self, worker: Worker, question: Question) -> None:
        """A question is at the worker."""
        if worker.alive:
            worker.replica.settle()
            self.later(worker, self.recover, worker.log.answer(question))

    def recover(self, worker: Worker, answer: Answer) -> None:
        """An answer is back."""
        self.ask(worker, self.feed.recover(worker.number, answer))

    def later(self, worker: Worker, call: Callable[[Worker, T], object], message: T) -> None:
        """Deliver a message after the delay, or when the worker can be reached again."""
        time = max(self.simulation.now + self.delay, worker.silent_until)
        self.simulation.at(time, Phase.ADMISSION, call, worker, message)
