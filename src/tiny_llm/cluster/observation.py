"""What a planner sees: plain numbers of an interval and of the pools at its end. Times in ns, KV in blocks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


# ANCHOR: engine
class StepSample(NamedTuple):
    """One step of an engine, or the mean of equal ones.

    age: ns from the engine's first moment of service. prefill_tokens: of prompts,
    in the batch. kv_blocks: in use. duration: ns.
    """

    age: int
    prefill_tokens: int
    kv_blocks: int
    duration: float


@dataclass(frozen=True)
class EngineLoad:
    """An engine that serves.

    worker: its name. queued_tokens: of prompts, still to compute. running: requests
    that decode. kv_used: blocks that requests hold. kv_queued: blocks that waiting
    requests will ask for. samples: some of its steps since the last look.
    """

    worker: str
    queued_tokens: int = 0
    running: int = 0
    kv_used: int = 0
    kv_queued: int = 0
    kv_total: int = 1
    samples: tuple[StepSample, ...] = ()


@dataclass(frozen=True)
class PoolLoad:
    """A pool. wanted: workers that it was told to have, by a decision or by hand.
    starting: not serving yet. draining: not serving any more. Both hold their
    GPUs. engines: those that serve.
    """

    wanted: int
    starting: int = 0
    draining: int = 0
    engines: tuple[EngineLoad, ...] = ()

    @property
    def held(self) -> int:
        """Workers that hold GPUs."""
        return len(self.engines) + self.starting + self.draining

    @property
    def settled(self) -> bool:
        """Whether it is what it was told to be."""
        return len(self.engines) == self.wanted == self.held
        # ANCHOR_END: engine


# ANCHOR: traffic
@dataclass(frozen=True)
class Traffic:
    """An interval of `duration` ns. Means are None where there was nothing to
    average.

    requests: that came. input_length: mean tokens of their prompts. output_length:
    mean tokens of answers that ended. ttft, itl: mean ns. hit_rate: prompt tokens
    found in a cache, of all.
    """

    duration: int
    requests: int = 0
    input_length: float | None = None
    output_length: float | None = None
    ttft: float | None = None
    itl: float | None = None
    hit_rate: float | None = None


@dataclass(frozen=True)
class Observation:
    """An interval, and the pools at its end by name: "prefill" and "decode", or
    "worker" for one that does both.
    """

    traffic: Traffic
    pools: Mapping[str, PoolLoad]
    # ANCHOR_END: traffic


def merged(parts: Sequence[Traffic]) -> Traffic:
    """Consecutive intervals as one. Means are weighted by requests, and one without requests as if it had one."""

    def mean(values: Sequence[float | None]) -> float | None:
        known = [(v, max(part.requests, 1)) for v, part in zip(values, parts, strict=True) if v is not None]
        return sum(value * weight for value, weight in known) / sum(weight for _, weight in known) if known else None

    means = [(part.input_length, part.output_length, part.ttft, part.itl, part.hit_rate) for part in parts]
    duration, requests = sum(part.duration for part in parts), sum(part.requests for part in parts)
    return Traffic(duration, requests, *map(mean, zip(*means, strict=True)))
