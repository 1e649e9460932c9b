# This file is yours to edit. Read book/src/week4-05-disaggregation.md.
"""Whether a prompt is worth a second worker: the choice between one worker for all of a request, and two.

Knows counts of tokens and blocks. After Dynamo's conditional disaggregation, the first rule and the present one.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol


# ANCHOR: situation
class Situation(NamedTuple):
    """What a rule may know of a request and of the two pools.

    prompt: tokens. cached: tokens of it that the best decode worker has.
    queued: prompts that wait at the prefill pool.
    prefill_tokens: those that the chosen prefill worker has still to compute.
    decode_blocks: active ones of the best decode worker.
    """

    prompt: int
    cached: int = 0
    queued: int = 0
    prefill_tokens: int = 0
    decode_blocks: float = 0.0


class Rule(Protocol):
    """Chooses."""

    def local(self, situation: Situation) -> bool:
        """Whether the decode worker should compute the prompt itself."""
        ...
        # ANCHOR_END: situation


@dataclass(frozen=True)
class QueueRule:
    """Dynamo v0.2: remote where much is to compute, and the queue of the prefill pool is short.

    max_local: tokens that are worth no transfer. max_queued: prompts; a queue of so many is full.
    """

    max_local: int
    max_queued: int

    def local(self, situation: Situation) -> bool:
        """Remote needs both: more than `max_local` tokens that are not cached, and fewer than `max_queued` prompts."""
        raise NotImplementedError(
            "Week 4 Day 5 Task 1: QueueRule.local - see book/src/week4-05-disaggregation.md#task-1"
        )


class Mode(StrEnum):
    """What makes a prompt local: little to compute, a busy prefill worker, or either of them."""

    PROMPT = "prompt"
    LOAD = "load"
    EITHER = "either"


@dataclass(frozen=True)
class Conditional:
    """Dynamo's present rule.

    tokens, share: a prompt is short if fewer than `tokens`, and less than `share` of it, are still to compute.
    busy_prefill_tokens: a prefill worker with more to compute is busy. busy_decode_blocks: a decode worker with more
    active blocks is busy, and computes no prompt, whatever the mode says.
    """

    mode: Mode = Mode.PROMPT
    tokens: int = 2048
    share: float = 0.7
    busy_prefill_tokens: float = math.inf
    busy_decode_blocks: float = math.inf

    def local(self, situation: Situation) -> bool:
        """Whether the mode says so, and the decode worker has room."""
        raise NotImplementedError(
            "Week 4 Day 5 Task 1: Conditional.local - see book/src/week4-05-disaggregation.md#task-1"
        )
