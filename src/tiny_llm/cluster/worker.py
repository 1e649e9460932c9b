"""One engine of a simulated deployment, as its front end sees it: it serves, falls silent, comes back or dies.

Knows its replica, what it noted, and whom to tell. Chooses nothing.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from ..serving.request import Batch, Request
from .cost import is_decode
from .courier import EVERYTHING, Courier
from .deployment import Pool, Transport
from .events import Event, EventLog
from .hashing import traced_hashes
from .kernel import Phase, Simulation
from .ledger import Ledger
from .link import Link
from .replica import Replica
from .run import Sample, Steps, WorkerRun
from .schedulers import scheduler_for
from .slowed import Slowed
from .trace_memory import TraceMemory
from .worker_cache import tell

KEPT_EVENTS = 1024
"""KV events that a worker can tell again."""


class Front(Protocol):
    """Who gets the answers of workers."""

    ledger: Ledger

    def first_token(self, worker: "Worker", request: Request) -> None:
        """A prompt has been computed, and its first token left the worker."""
        ...

    def ended(self, worker: "Worker", request: Request) -> None:
        """An answer has ended at this worker."""
        ...

    def event(self, worker: "Worker", event: Event) -> None:
        """The worker's cache has changed."""
        ...


class TellingReplica(Replica):
    """A replica of whose cache others hear: what it evicts is told when it is evicted, not when many steps end."""

    def spare(self) -> int:
        """Pages that are free without an eviction."""
        return self.scheduler.memory.allocator.available


class Worker:
    """A worker of `pool`.

    number: no two workers of a run share one; name: for reports. tells: whether routers hear of its cache.
    silent_until: ns until which nothing reaches or leaves it. deadline: when its lease ends then. lost: it will be dead
    before. alive: whether it serves. recent: start, end and prompt tokens of its last steps, None if nobody asks.
    """

    Memory = TraceMemory

    def __init__(
        self, simulation: Simulation, number: int, name: str, kind: str, pool: Pool, front: Front, tells: bool
    ):
        self.simulation, self.number, self.kind, self.pool, self.front = simulation, number, kind, pool, front
        self.run = WorkerRun(name, kind, pool.gpus, pool.kv_blocks, simulation.now)
        self.memory = self.Memory(pool.max_num_seqs, pool.max_len, pool.block_size, pool.kv_blocks)
        self.log: EventLog | None = None
        if tells:
            self.log = tell(self.memory, KEPT_EVENTS, lambda event: front.event(self, event), naming=traced_hashes)
        self.speed = Slowed(pool.cost)
        self.replica = (TellingReplica if tells else Replica)(
            simulation, scheduler_for(pool, self.memory), self.speed, front.ledger.left, self
        )
        self.alive, self.lost, self.silent_until, self.deadline = True, False, 0, 0
        self._unseen: list[np.ndarray] = []
        self.recent: deque[tuple[int, int, int]] | None = None
        self._first: dict[int, bool] = {}
        """Requests whose first token here has not come."""

    @property
    def name(self) -> str:
        """As reports call it."""
        return self.run.name

    def add(self, request: Request) -> None:
        """Serve a request. Raises ValueError for one that no engine of this pool can hold."""
        self.replica.add(request)
        self._first[request.uid] = True

    def wire(self, transport: Transport) -> None:
        """Give it NICs."""
        self.transport = transport
        self.nics = {f"nic-{nic}": Link(transport.bytes_per_s, transport.latency) for nic in range(transport.nics)}
        slices = transport.slice_bytes if transport.nics > 1 else EVERYTHING.length
        self.courier = Courier(self.simulation, self.nics, slices)

    def set_rate(self, factor: float) -> None:
        """Let the first NIC go on at a part of its rate."""
        name = next(iter(self.nics))
        self.courier.set_rate(name, int(self.transport.bytes_per_s * factor))

    def adopt(self, request: Request, blocks: int) -> None:
        """The first blocks of a prompt have come from elsewhere: they are cached here, if there is room."""
        self.replica.wake()
        memory, tree = self.memory, self.memory.tree
        keys = request.page_keys(memory.page_size, blocks * memory.page_size)
        pages, node = tree.match(keys)
        tree.lock(node)
        more = len(keys) - len(pages)
        if more <= memory.available:
            memory.evict(max(more - memory.allocator.available, 0))
            tree.insert(keys, [*pages, *memory.allocator.allocate(more)])
        tree.unlock(node)

    def abort(self, uid: int) -> None:
        """Stop serving a request, if it is here."""
        self.replica.abort(uid)

    def slow(self, factor: float) -> None:
        """Let steps that are launched from now on take `factor` times as long as in the beginning."""
        self.replica.wake()
        self.speed.factor = factor

    def silence(self, until: int) -> None:
        """Nothing reaches or leaves it until then: tokens that would have left before leave then."""
        self.replica.settle()
        now, self.silent_until = self.simulation.now, max(self.silent_until, until)
        self._unseen = [times for times in self._unseen if times[-1] > now]
        for times in self._unseen:
            times[times > now] = self.silent_until

    def stop(self) -> None:
        """Be gone. What it served ends with "error"."""
        self.alive, self.run.stopped = False, self.simulation.now
        self.replica.crash()

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do."""
        return not self.replica.scheduler.requests

    def sample(self) -> Sample:
        """How it stands now."""
        self.replica.settle()
        scheduler, memory = self.replica.scheduler, self.memory
        waiting = len(scheduler.waiting)
        used = memory.pages - memory.allocator.available
        return Sample(
            self.simulation.now,
            self.name,
            len(scheduler.requests) - waiting,
            waiting,
            used,
            memory.tree.evictable,
        )

    def ran(self, batch: Batch, start: int, ends: Sequence[int]) -> None:
        """Its replica ran a batch."""
        prompts = [step for step in batch.steps if not is_decode(step)] if len(ends) == 1 else []
        end = int(ends[-1])
        self.run.busy.add(start, end)
        self.run.steps.append(Steps(start, end, len(ends), len(batch.steps), sum(s.end - s.start for s in prompts)))
        if self.recent is not None:
            tail = [start, *ends] if len(ends) < self.recent.maxlen else ends[-self.recent.maxlen - 1 :]
            self.recent += ((int(a), int(b), self.run.steps[-1].prefill_tokens) for a, b in pairwise(tail))
        if self.lost:
            return
        seen = ends
        if ends[0] < self.silent_until:  # its tokens leave when the worker can be reached again
            seen = np.maximum(ends, self.silent_until)
            self._unseen.append(seen)
        self.front.ledger.recorder.ran(batch, start, ends, seen)
        for request, _, _, samples in prompts:
            if samples and self._first.pop(request.uid, None):
                self.tell(self.front.first_token, request)

    def ended(self, request: Request, time: int) -> None:
        """A request has ended here."""
        self._first.pop(request.uid, None)
        self.tell(self.front.ended, request)

    def tell(self, hear: Callable[["Worker", Request], object], request: Request) -> None:
        """Let the front end hear of a request, as soon as this worker can be reached."""
        time = max(self.simulation.now, self.silent_until)
        self.simulation.at(time, Phase.ADMISSION, self.told, hear, request)

    def told(self, hear: Callable[["Worker", Request], object], request: Request) -> None:
        """It hears now, unless the worker fell silent again, or is gone."""
        if self.silent_until > self.simulation.now:
            self.tell(hear, request)
        elif self.alive:
            hear(self, request)
