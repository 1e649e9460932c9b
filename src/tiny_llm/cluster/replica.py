# This file is yours to edit. Read book/src/week4-01-virtual-time.md.
"""One engine under virtual time: Week 3's scheduler and memory, and a step-time model in the place of a device.

Knows when steps end; chooses nothing itself. A batch of decodes goes on unchanged until something ends, comes from
outside, or misses pages. Those steps are one event, and give what they give one by one.
"""

from collections.abc import Callable, Sequence

from ..serving.request import Batch, Request, Sampled
from ..serving.scheduler import Scheduler
from .cost import StepCost, StepShape
from .fast_forward import runs, steady
from .flight import Flight
from .kernel import Phase, Simulation
from .sink import Sink
from .trace_request import STOP, TOKEN


class Replica:
    """A simulated engine.

    scheduler: any that is first come, first served, and chooses a batch of decodes again while nothing changes.
    finish: how many tokens a request will still have when it is added; nobody else may ask. max_steps: that one event
    may stand for, 1 to go step by step.
    flight: what runs, None while idle. busy_time: ns that steps took; steps: how many.

    Change it (`add`, `abort`, `crash`, `wake`) in events of a later phase than STEP_DONE, else ValueError: at the same
    time, steps end first, and the next batch is launched last.
    """

    def __init__(
        self,
        simulation: Simulation,
        scheduler: Scheduler,
        cost: StepCost,
        finish: Callable[[Request], int],
        sink: Sink,
        max_steps: int = 4096,
    ):
        self.simulation = simulation
        self.scheduler = scheduler
        self.cost = cost
        self.finish = finish
        self.sink = sink
        self.max_steps = max_steps
        self.flight: Flight | None = None
        self.busy_time = self.steps = 0
        self._launching = False
        self._last: dict[Request, int] = {}  # the length of each that has not ended, when it will choose STOP

    def add(self, request: Request) -> None:
        """Accept a request now. Raises ValueError as `Scheduler.add` does, and where it would have no token."""
        self.check()
        tokens = self.finish(request)
        if tokens < 1:
            raise ValueError(f"request {request.uid} would end after {tokens} tokens: expected at least 1")
        blocked = self.scheduler.waiting or not self.scheduler.memory.free_rows
        self.scheduler.add(request)
        self._last[request] = request.prompt_len + tokens
        if not (blocked and self.flight):  # else the next batch is the same
            self.wake()

    def abort(self, uid: int) -> bool:
        """End a request now. Returns False where it is not here (any more)."""
        self.wake()
        request = self.scheduler.requests.get(uid)
        if request is None:
            return False
        self.scheduler.abort(uid)
        self.end(request)
        return True

    def crash(self) -> None:
        """End all requests now, with "error". The step that runs is lost, and with it what it would have computed."""
        self.wake()
        if self.flight is not None:
            self.simulation.cancel(self.flight.done)
            self.scheduler.fail(self.flight.batch)
            self.flight = None
        for request in list(self._last):
            if request.finish_reason is None:
                self.scheduler.end(request, "error")
            self.end(request)

    def wake(self) -> None:
        """Something changes that the next batch may depend on: choose it as soon as no step runs."""
        self.check()
        self.settle()
        self.choose()

    def check(self) -> None:
        """Raise ValueError while a step ends: another replica's may end at the same time and see this one before."""
        if self.simulation.phase is Phase.STEP_DONE:
            raise ValueError("a step ends: change a replica in a later phase of the same time")

    def choose(self) -> None:
        """See that a batch is launched when all else of this time has happened."""
        if self.flight is None and not self._launching and self.scheduler.requests:
            self._launching = True
            self.simulation.at(self.simulation.now, Phase.LAUNCH, self.turn)

    def turn(self) -> None:
        """All else of this time has happened."""
        self._launching = False
        self.launch()

    def launch(self) -> None:
        """Launch the next batch, if any, and the same one as often as nothing can change."""
        raise NotImplementedError("Week 4 Day 1 Task 4: Replica.launch - see book/src/week4-01-virtual-time.md#task-4")

    def fly(self, batch: Batch, start: int, ends: Sequence[int]) -> None:
        """Wait for the last of `ends`, ns."""
        done = self.simulation.at(int(ends[-1]), Phase.STEP_DONE, self.done)
        self.flight = Flight(batch, start, ends, done)

    # ANCHOR: repeats
    def repeats(self, batch: Batch, shape: StepShape, waiting: int) -> int:
        """How often this launched batch runs before anything can change.

        1 where the next may be another. waiting: requests that waited before it
        was chosen.
        """
        if self.max_steps == 1 or not steady(self.scheduler, shape, waiting):
            return 1
        left = min([min(self._last[r], r.max_device_len) - r.device_len for r, *_ in batch.steps]) + 1
        return runs(self.scheduler.memory, batch, min(left, self.max_steps), self.spare())
        # ANCHOR_END: repeats

    def spare(self) -> int:
        """Pages that steps may take late, when the last of many ends: all that can be had.

        Where others follow evictions, which come late then, a subclass gives the free ones.
        """
        return self.scheduler.memory.available

    def settle(self) -> None:
        """Make everything as if each step until now had been an event: of many steps, those to come are given up.

        The one that runs now goes on. Whoever looks at the scheduler or the memory settles first.
        """
        raise NotImplementedError("Week 4 Day 1 Task 5: Replica.settle - see book/src/week4-01-virtual-time.md#task-5")

    def done(self) -> None:
        """The last step of the flight ends."""
        batch, start, ends, _ = self.flight
        self.conclude(batch, start, ends)
        self.choose()

    def conclude(self, batch: Batch, start: int, ends: Sequence[int]) -> None:
        """The launched batch has run until each of `ends`: take its results."""
        raise NotImplementedError(
            "Week 4 Day 1 Task 4: Replica.conclude - see book/src/week4-01-virtual-time.md#task-4"
        )

    def report(self, batch: Batch, start: int, ends: Sequence[int]) -> None:
        """Tell what ran."""
        self.busy_time += int(ends[-1]) - start
        self.steps += len(ends)
        self.sink.ran(batch, start, ends)

    def result(self, request: Request) -> Sampled:
        """The token that a step has chosen: the one that ends the request, if it is the last."""
        return LAST if len(request.ids) + 1 == self._last.get(request) else NEXT

    def end(self, request: Request) -> None:
        """Report the end of a request, once."""
        if self._last.pop(request, None) is not None:
            self.sink.ended(request, self.simulation.now)


NEXT, LAST = Sampled(TOKEN), Sampled(STOP)
