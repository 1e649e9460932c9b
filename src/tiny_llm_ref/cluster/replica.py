"""One engine under virtual time: Week 3's scheduler and memory, and a step-time model in the place of a device.

Knows when steps end; chooses nothing itself. A batch of decodes goes on unchanged until something ends, comes from
outside, or misses pages. Those steps are one event, and give what they give one by one.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np

from ..serving.request import Batch, Request, Sampled
from ..serving.scheduler import Scheduler
from .cost import StepCost, StepShape, shape_of
from .fast_forward import advance, runs, steady
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
        waiting = len(self.scheduler.waiting)
        batch = self.scheduler.next_batch()
        if batch is None:
            return
        now, shape = self.simulation.now, shape_of(batch.steps)
        steps = self.repeats(batch, shape, waiting)
        if steps == 1:
            self.fly(batch, now, [now + self.cost.step_time(shape)])
        else:
            self.fly(batch, now, now + np.cumsum(self.cost.step_times(shape, steps)))

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
        if self.flight is None or len(self.flight.ends) == 1:
            return
        batch, start, ends, done = self.flight
        self.simulation.cancel(done)
        count = bisect_right(ends, self.simulation.now)
        if count and ends[count - 1] == self.simulation.now:
            self.conclude(batch, start, ends[:count])
            self.choose()
            return
        if count:
            self.report(batch, start, ends[:count])
            advance(self.scheduler.memory, batch, count)
            start = int(ends[count - 1])
        self.fly(batch, start, ends[count : count + 1])

    def done(self) -> None:
        """The last step of the flight ends."""
        batch, start, ends, _ = self.flight
        self.conclude(batch, start, ends)
        self.choose()

    def conclude(self, batch: Batch, start: int, ends: Sequence[int]) -> None:
        """The launched batch has run until each of `ends`: take its results."""
        self.flight = None
        self.report(batch, start, ends)
        if len(ends) > 1:
            advance(self.scheduler.memory, batch, len(ends) - 1)
        self.scheduler.commit(batch, [self.result(step.request) for step in batch.sampling])
        for request, *_ in batch.steps:
            if request.finish_reason is not None:
                self.end(request)

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
