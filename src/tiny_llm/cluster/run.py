"""What a simulated run leaves behind: plain values for reports. All times in ns, workers by name."""

from dataclasses import dataclass, field
from typing import NamedTuple

from .busy import BusyTime
from .record import Record


class Steps(NamedTuple):
    """Equal batches of a worker, one after the other: `count` steps of `rows` requests, prefill_tokens in the first."""

    start: int
    end: int
    count: int
    rows: int
    prefill_tokens: int


class Choice(NamedTuple):
    """A router sent a request to a worker. overlap: blocks that it believed to be cached there."""

    time: int
    uid: int
    worker: str
    overlap: int


class Moved(NamedTuple):
    """KV of a request went from one worker to another. status: done or failed."""

    uid: int
    source: str
    target: str
    start: int
    end: int
    size: int
    status: str


class Sample(NamedTuple):
    """A look at a worker. blocks: KV blocks in use, of which `cached` only keep a prefix for later."""

    time: int
    worker: str
    running: int
    waiting: int
    blocks: int
    cached: int


class Note(NamedTuple):
    """Something that happened to the deployment: a fault, a worker that came or went, a decision to scale."""

    time: int
    kind: str
    worker: str
    text: str


@dataclass
class WorkerRun:
    """One worker's life. stopped: None while it still serves at the end."""

    name: str
    pool: str
    gpus: int
    kv_blocks: int
    started: int
    stopped: int | None = None
    busy: BusyTime = field(default_factory=BusyTime)
    steps: list[Steps] = field(default_factory=list)


# ANCHOR: run
@dataclass
class Run:
    """A whole run.

    records: by uid, in the order of their arrivals. workers: by name. end: when the last request left.
    events: that the kernel handled; engine_steps: that engines ran, most of them without an event of their own.
    """

    seed: int
    records: dict[int, Record] = field(default_factory=dict)
    workers: dict[str, WorkerRun] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)
    moves: list[Moved] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    end: int = 0
    events: int = 0
    engine_steps: int = 0
    # ANCHOR_END: run
