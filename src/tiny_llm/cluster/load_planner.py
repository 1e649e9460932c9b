# This file is yours to edit. Read book/src/week4-07-planner.md.
"""One worker more or less, by what the engines are doing now and how long that will take (Dynamo's load planner)."""

import math

from .goodput import Objective
from .observation import EngineLoad, Observation
from .regression import Line, Regression
from .vote import PoolVoter, Vote
from .window import SECOND


# ANCHOR: load
class LoadPlanner(PoolVoter):
    """Estimates the next prompt's TTFT and the next token's ITL of each engine, from lines through recent steps.

    objective: ttft and tpot, in ns. sensitivity: the share of them that must do after one worker is gone. kv_most: the
    share of the KV memory that may be in use then. max_batched_tokens: prompt tokens of one step. warm_up: of a
    `Regression`.
    """

    def __init__(
        self,
        objective: Objective,
        sensitivity: float = 0.8,
        kv_most: float = 0.9,
        max_batched_tokens: int = 8192,
        warm_up: int = 30 * SECOND,
    ):
        if objective.tpot is None or objective.ttft is None:
            raise ValueError("a load planner needs targets for the time to first token (ttft) and per token (tpot)")
        self.ttft, self.itl = float(objective.ttft), float(objective.tpot)
        self.sensitivity, self.kv_most, self.max_batched_tokens = sensitivity, kv_most, max_batched_tokens
        self.prompts, self.decodes = Regression(warm_up), Regression(warm_up)
        self.prompt = 0.0
        # ANCHOR_END: load

    def learn(self, seen: Observation) -> None:
        """Take the samples of all engines: prompt tokens to time, KV blocks to time where no prompt was in the batch.

        Remembers the mean number of tokens that a prompt has to compute.
        """
        traffic = seen.traffic
        if traffic.input_length is not None:
            self.prompt = traffic.input_length * (1 - (traffic.hit_rate or 0.0))
        for pool in seen.pools.values():
            for sample in (sample for engine in pool.engines for sample in engine.samples):
                if sample.prefill_tokens:
                    self.prompts.add(sample.age, sample.prefill_tokens, sample.duration)
                else:
                    self.decodes.add(sample.age, sample.kv_blocks, sample.duration)

    def prefill_time(self, line: Line, tokens: float) -> float:
        """Ns of so many prompt tokens, in full batches."""
        return line.base * math.ceil(tokens / self.max_batched_tokens) + line.slope * tokens

    def prefill(self, engines: tuple[EngineLoad, ...]) -> Vote:
        """Up if a new prompt would miss the TTFT on every engine: what is queued there, and then its own time.

        Down if, with one engine less and so N/(N-1) of each queue, all queues take less than `sensitivity` of what its
        own time leaves of the target.
        """
        raise NotImplementedError("Week 4 Day 7 Task 2: LoadPlanner.prefill - see book/src/week4-07-planner.md#task-2")

    def decode(self, engines: tuple[EngineLoad, ...]) -> Vote:
        """Up if every engine's step takes longer than the ITL, with all blocks that are used or waited for.

        Down if, with N/(N-1) of them, all engines stay below `kv_most` of their memory and `sensitivity` of the ITL.
        """
        raise NotImplementedError("Week 4 Day 7 Task 2: LoadPlanner.decode - see book/src/week4-07-planner.md#task-2")
