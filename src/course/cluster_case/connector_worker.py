"""Workers of a world of two pools: Week 3's schedulers, and memories whose pages are watched.

They carry out what the package's connector orders, and tell the world what it has to judge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from course.cluster_case.device import Device, prefix_values
from course.cluster_case.greedy import next_token

if TYPE_CHECKING:
    from course.cluster_case.connector_clients import Client
    from course.cluster_case.connector_world import World

ROWS = 4


@dataclass(eq=False)
class Attempt:
    """One try of a client's request. base: tokens of the answer that it begins with. first: the prefill worker's."""

    client: "Client"
    prompt: list[int]
    base: int
    max_tokens: int
    takes_token: bool
    first: int | None = None


class Worker:
    """An engine: one step after the other, as long as there is something to run."""

    def __init__(self, world: "World", name: str, ranks: int, pages: int):
        self.world, self.name, self.ranks, self.pages = world, name, ranks, pages
        self.dead = self.busy = False
        self.memory = world.part("held_memory.HeldMemory")(ROWS, world.max_len, world.page_size, pages)
        self.device = Device(self.memory, pages, ranks, world.kv_heads, self.freed)
        kind, budget = world.rng.choice(["mixed.MixedScheduler", "chunked.ChunkedScheduler"]), world.rng.randint(6, 40)
        module, _, attribute = kind.partition(".")
        self.scheduler = getattr(world.solution.module(f"serving.{module}"), attribute)(self.memory, budget)
        self.chunked = module == "chunked"

    def request(self, ids: Sequence[int], max_tokens: int):
        """A request for this engine."""
        made = self.world.solution.module("serving.request").Request
        return made(self.world.number(), list(ids), max_tokens, stop_tokens=frozenset({self.world.stop}))

    def kick(self) -> None:
        """Run a step if none runs and there is something to run."""
        if self.dead or self.busy or (batch := self.scheduler.next_batch()) is None:
            return
        self.busy = True
        self.world.agenda.after(self.world.some_time(0.01, 0.2), self.step_done, batch)

    def step_done(self, batch) -> None:
        """The step read what was there, wrote its positions, and chose tokens."""
        if self.dead:
            return
        self.busy = False
        sampled, chosen = self.world.solution.module("serving.request").Sampled, []
        for request, start, end, samples in batch.steps:
            values, row = prefix_values(request.ids), self.memory.table.pages(request.row)
            if wrong := self.device.wrong(row, values[:start]):
                self.world.violate(f"{self.name} runs request {request.uid}, whose KV is wrong at {wrong}")
            self.device.compute(row, start, values[start:end])
            if samples:
                chosen.append(sampled(next_token(request.ids)))
        requests = {step.request.uid: step.request for step in batch.steps}
        outputs = self.scheduler.fail(batch) if self.breaks() else self.scheduler.commit(batch, chosen)
        for output in outputs:
            self.told(requests[output.uid], output)
        self.after()

    def breaks(self) -> bool:
        """Whether this step fails."""
        return False

    def freed(self, pages: Sequence[int]) -> None:
        """Pages have become free: nobody may be reading or writing them."""
        self.world.mover.check_free(self, pages)

    def promised(self) -> int:
        """Pages that a scheduler has promised to those that it admitted."""
        if not self.chunked:
            return 0
        waiting = [request for request in self.scheduler.waiting if request.row is not None]
        admitted = chain(self.scheduler.running.values(), waiting)
        return self.world.solution.module("serving.prefill").PrefillAdder(self.memory, admitted, 0).reserved

    def expect_idle(self) -> None:
        """Nothing is left."""
        memory = self.memory
        left = {
            "requests": len(self.scheduler.requests),
            "rows": ROWS - memory.free_rows,
            "pages outside of rows": memory.held_pages,
            "pages lost": self.pages - memory.allocator.available - memory.tree.evictable,
            "records": len(self.side.records),
        }
        if any(left.values()):
            told = ", ".join(f"{count} {name}" for name, count in left.items() if count)
            self.world.violate(f"{self.name} is idle and still has {told}")

    def check(self) -> None:
        """Judge what is held; a prefill worker has more to say."""

    def after(self) -> None:
        """Something has changed: run on, and come back when the connector asks for it."""
        self.check()
        self.kick()
        time = self.side.next_time()
        if time is not None:
            self.world.agenda.after(max(time - self.world.now, 0), self.tick, time)

    def tick(self, time: int) -> None:
        """It is the time that the connector asked for."""
        if not self.dead and self.side.next_time() == time:
            self.carry(self.side.expire(self.world.now))
