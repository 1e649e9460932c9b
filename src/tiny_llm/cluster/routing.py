# This file is yours to edit. Read book/src/week4-04-kv-aware-routing.md.
"""What a router asks for one request, and what each worker would cost it.

Knows counts of tokens and blocks; it reads no state and changes none. After the cost function of Dynamo's KV router.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .indexer import Worker


# ANCHOR: cost_config
@dataclass(frozen=True)
class CostConfig:
    """Weights of the cost function.

    credit: of a cached block, 0 to 1. decay: how fast the credit falls for workers
    with more prefill work than others. prefill_scale: prefill against decode blocks.
    active: of each active request. host, disk, shared: credits of slower tiers.
    track_prefill: False where prompts come computed from elsewhere.
    assume_reuse: False where no active block can be shared.
    """

    credit: float = 1.0
    decay: float = 0.0
    prefill_scale: float = 1.0
    active: float = 0.0
    host: float = 0.75
    disk: float = 0.25
    shared: float = 0.0
    track_prefill: bool = True
    assume_reuse: bool = True
    # ANCHOR_END: cost_config


DEFAULT_COST = CostConfig()


@dataclass(frozen=True)
class RouteRequest:
    """A request as its router sees it.

    tokens: of the prompt. blocks: sequence hashes of its complete blocks. arrival: ns. priority: a higher one goes
    first, whatever the others wait. jump: ns of head start within its priority. eligible: the workers that may have it,
    None for all. cost: its own weights, None for those of the router.
    """

    uid: Hashable
    tokens: int
    blocks: Sequence[int] = ()
    arrival: int = 0
    priority: int = 0
    jump: int = 0
    eligible: tuple[Worker, ...] | None = None
    cost: CostConfig | None = field(default=None, repr=False)


class Candidate(NamedTuple):
    """A worker that may get the request.

    overlap: its leading blocks on the worker's device. host, disk, shared: those behind them in slower tiers.
    prefill_tokens: prompt tokens that the worker has still to compute, without this request.
    decode_blocks: blocks that would be active with it. requests: active now.
    """

    worker: Worker
    overlap: int = 0
    prefill_tokens: int = 0
    decode_blocks: float = 0
    requests: int = 0
    host: int = 0
    disk: int = 0
    shared: int = 0


def credit_decay(config: CostConfig, excess_tokens: int, tokens: int, block_size: int) -> float:
    """What a cached block still counts, 0 to 1, where a worker has this much more prefill work than the least busy."""
    raise NotImplementedError("Week 4 Day 4 Task 3: credit_decay - see book/src/week4-04-kv-aware-routing.md#task-3")


def costs(candidates: Sequence[Candidate], tokens: int, block_size: int, config: CostConfig) -> list[float]:
    """The cost of each candidate for a prompt of this many tokens, in blocks; none for none.

    prefill_scale * max(raw - credit, 0) + decode blocks + active * requests, where raw is all prompt work if nothing
    was cached, and credit what is: so about the blocks still to compute, and those to read at each decode step.
    """
    raise NotImplementedError("Week 4 Day 4 Task 3: costs - see book/src/week4-04-kv-aware-routing.md#task-3")


def probabilities(values: Sequence[float], temperature: float) -> list[float]:
    """How likely each candidate is chosen, by its cost: the cheapest at temperature 0, ties in equal parts.

    Above it p ~ exp(-(cost - lowest) / (highest - lowest) / temperature): only differences count, not their scale.
    Raises ValueError for a negative temperature.
    """
    raise NotImplementedError("Week 4 Day 4 Task 3: probabilities - see book/src/week4-04-kv-aware-routing.md#task-3")
