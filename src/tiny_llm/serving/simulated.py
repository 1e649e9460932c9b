"""A runner on simulated streams: both loops of an engine run on it unchanged, in virtual time, and races are real.

Three streams: uploads of what a batch consists of, the model, downloads of its tokens. Only events order them. Keys and
values are the tokens themselves; the model sees them through the page table, when its op ends.
"""

from collections.abc import Callable, Hashable, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from .memory import Memory, pages_for
from .request import Batch, Sampled, Step
from .streams import Device, Event
from .token_pool import TokenPool


class Costs(NamedTuple):
    """Nanoseconds: to prepare a batch and to process its results, on the CPU; a forward, each token of it, a copy."""

    prepare: int = 300_000
    process: int = 200_000
    forward: int = 900_000
    token: int = 2_000
    copy: int = 10_000


COSTS = Costs()
Buffer = tuple[Hashable, ...]


class Inputs(NamedTuple):
    """What a forward needs of the host: its steps as they were at the launch, and the pages of each."""

    steps: list[Step]
    pages: list[list[int]]


class SimulatedRunner:
    """A `Runner` with up to two batches in flight.

    memory: whose page table the model reads; without one a row is a memory of its own. choose: the token after some
    tokens. number: of the latest batch, from 1.
    staging: the pinned host buffer that uploads read. inputs, sampled: the device's, two of each, used in turns.
    """

    def __init__(self, device: Device, memory: Memory, choose: Callable[[Sequence[int]], int], costs: Costs = COSTS):
        self.device, self.memory, self.choose, self.costs = device, memory, choose, costs
        self.upload, self.model, self.download = map(device.stream, ("upload", "model", "download"))
        self.uploaded = device.event("uploaded")
        rows = memory.free_rows
        self.pool = TokenPool(rows, memory.max_len, np)
        self.values: dict[tuple[int, int], tuple[int, int]] = {}
        self.staging = Inputs([], [])
        self.inputs = [self.staging, self.staging]
        self.sampled = np.zeros((2, 2 * rows), np.int32)
        self.host = np.zeros((2, 2 * rows), np.int32)
        self.number = 0

    # ANCHOR: launch
    def launch(self, batch: Batch) -> "SimulatedPending":
        """Enqueue upload, forward and download of a batch, and go on."""
        self.number += 1
        slot = self.number % 2
        inputs = Inputs([frozen(step) for step in batch.steps], [self.pages(step) for step in batch.steps])
        self.device.host(f"prepare {self.number}", self.costs.prepare)
        self.enqueue_upload(inputs, slot)
        computed = self.enqueue_forward(inputs, slot)
        return SimulatedPending(self, batch, self.number, self.enqueue_download(computed, slot))

    def enqueue_upload(self, inputs: Inputs, slot: int) -> None:
        """Put the inputs into the staging buffer, once the last upload has read it, and copy them to the device."""
        device = self.device
        device.synchronize(self.uploaded)
        device.host("stage", writes=["staging"], effect=lambda: setattr(self, "staging", inputs))
        device.copy(
            self.upload,
            f"up {self.number}",
            self.costs.copy,
            engine="host to device",
            reads=["staging"],
            writes=[("inputs", slot), *self.loaded(inputs)],
            effect=lambda: self.receive(slot),
        )
        device.record(self.uploaded, self.upload)

    def enqueue_forward(self, inputs: Inputs, slot: int) -> Event:
        """Run the model when its inputs are there. Returns an event for its end."""
        device = self.device
        device.wait(self.model, self.uploaded)
        device.launch(
            self.model,
            f"forward {self.number}",
            self.costs.forward + self.costs.token * sum(step.end - step.start for step in inputs.steps),
            reads=[("inputs", slot), *tokens(inputs.steps), *{("page", page) for own in inputs.pages for page in own}],
            writes=[("sampled", slot), *self.written(inputs)],
            effect=lambda: self.forward(slot),
        )
        computed = device.event("computed")
        device.record(computed, self.model)
        return computed

    def enqueue_download(self, computed: Event, slot: int) -> Event:
        """Copy the tokens to the host when they are computed. Returns an event for the end of the copy."""
        device = self.device
        device.wait(self.download, computed)
        device.copy(
            self.download,
            f"down {self.number}",
            self.costs.copy,
            engine="device to host",
            reads=[("sampled", slot)],
            writes=[("host", slot)],
            effect=lambda: self.host.__setitem__(slot, self.sampled[slot]),
        )
        copied = device.event("copied")
        device.record(copied, self.download)
        return copied

    # ANCHOR_END: launch

    def receive(self, slot: int) -> None:
        """Take what is in the staging buffer; the tokens that the host knows go to the pool."""
        self.inputs[slot] = self.staging
        self.pool.load(self.staging.steps)

    def forward(self, slot: int) -> None:
        """Write the tokens of all steps to their pages, choose after each step, and put the choices into the pool."""
        steps, pages = self.inputs[slot]
        size = self.memory.page_size
        tokens = iter(self.pool.read(steps).tolist())
        for step, own in zip(steps, pages, strict=True):
            for position in range(step.start, step.end):
                if (token := next(tokens)) < 0:
                    raise ValueError(f"token {token} of row {step.request.row} is not in the vocabulary")
                self.values[own[position // size], position % size] = token, position
        for lane, (step, own) in enumerate(zip(steps, pages, strict=True)):
            read = [self.values.get((own[p // size], p % size), (-1, p)) for p in range(step.end)]
            right = [token if position == p else -1 for p, (token, position) in enumerate(read)]
            self.sampled[slot, lane] = self.choose(right)
        self.pool.write(steps, self.sampled[slot, : len(steps)])

    def pages(self, step: Step) -> list[int]:
        """The pages of the positions that a step reads."""
        count = pages_for(step.end, self.memory.page_size)
        if table := getattr(self.memory, "table", None):
            return table.entries[step.request.row, :count].tolist()
        return [step.request.row * self.memory.max_len + i for i in range(count)]

    def loaded(self, inputs: Inputs) -> list[Buffer]:
        """The places in the token pool that the host writes."""
        steps = [step for step in inputs.steps if step.request.row != self.pool.dummy_row]
        return tokens([step._replace(end=min(step.end, len(step.request.ids))) for step in steps])

    def written(self, inputs: Inputs) -> set[Buffer]:
        """The pages and tokens that the steps write."""
        size = self.memory.page_size
        buffers: set[Buffer] = set()
        for step, own in zip(*inputs, strict=True):
            buffers |= {("page", page) for page in own[step.start // size : pages_for(step.end, size)]}
            buffers.add(("token", step.request.row, step.end) if step.samples else ("token", self.pool.dummy_row, -1))
        return buffers


class SimulatedPending(NamedTuple):
    """A launched batch. copied: reached when its tokens are on the host."""

    runner: SimulatedRunner
    batch: Batch
    number: int
    copied: Event

    def results(self) -> list[Sampled]:
        """Wait, and process them."""
        device, slot = self.runner.device, self.number % 2
        device.synchronize(self.copied)
        device.host(f"process {self.number}", self.runner.costs.process)
        tokens = device.host("read", reads=[("host", slot)], effect=lambda: self.runner.host[slot].tolist())
        return [Sampled(tokens[lane]) for lane, step in enumerate(self.batch.steps) if step.samples]


def tokens(steps: Sequence[Step]) -> list[Buffer]:
    """The places in the token pool that the steps read."""
    return [("token", step.request.row, position) for step in steps for position in range(step.start, step.end)]


def frozen(step: Step) -> Step:
    """The step with the ids that its request has now."""
    request = copy(step.request)
    request.ids = list(request.ids)
    return step._replace(request=request)
