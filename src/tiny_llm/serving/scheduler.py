# This file is yours to edit. Read book/src/week3-01-continuous-batching.md, book/src/week3-06-overlap.md.
"""Continuous batching: requests join and leave the batch between any two steps (Yu et al., Orca, 2022).

A scheduler decides what runs next and what a result means. It knows requests and counts of memory; no model, no clock.
"""

from collections import deque
from collections.abc import Sequence

from .memory import Memory
from .request import Batch, Output, Request, Sampled, Step


class Scheduler:
    """First come, first served: whole prompts first, then one token for every running request.

    memory: where admitted requests live. token_budget: tokens that a prefill batch takes, though always one prompt.
    requests: those that were accepted and have not ended, by uid. waiting: those whose whole prompt was not launched
    yet, the oldest first. running: those whose whole prompt was launched, by uid, the oldest first.
    asked_tokens, hit_tokens: of all prompts that were admitted, and how many of these the prefix cache had.
    Raises ValueError for a `token_budget` below 1: no batch would hold a token.
    """

    def __init__(self, memory: Memory, token_budget: int = 8192):
        if token_budget < 1:
            raise ValueError(f"token_budget is {token_budget}: a batch has at least 1 token")
        self.memory = memory
        self.token_budget = token_budget
        self.requests: dict[int, Request] = {}
        self.waiting: deque[Request] = deque()
        self.running: dict[int, Request] = {}
        self.asked_tokens = self.hit_tokens = 0

    def add(self, request: Request) -> None:
        """Accept a request. It may choose fewer tokens than it asked for where memory allows no more.

        Raises ValueError, and accepts nothing, for a uid in use, or a prompt that leaves no room for one token.
        """
        raise NotImplementedError(
            "Week 3 Day 1 Task 2: Scheduler.add - see book/src/week3-01-continuous-batching.md#task-2"
        )

    # ANCHOR: next_batch
    def next_batch(self) -> Batch | None:
        """What to run now, counted as launched when this returns.

        None if nothing can run.
        """
        steps = self.prefill() or self.decode()
        return Batch(tuple(steps)) if steps else None

    # ANCHOR_END: next_batch

    def prefill(self) -> list[Step]:
        """Admit waiting requests in their order, until a row is missing or the next prompt is over the budget."""
        raise NotImplementedError(
            "Week 3 Day 1 Task 2: Scheduler.prefill - see book/src/week3-01-continuous-batching.md#task-2"
        )

    def decode(self) -> list[Step]:
        """One token for every running request that may still choose one."""
        raise NotImplementedError(
            "Week 3 Day 1 Task 2: Scheduler.decode - see book/src/week3-01-continuous-batching.md#task-2"
        )

    # ANCHOR: launch
    def launch(self, request: Request, tokens: int) -> Step:
        """Give the request pages for its next `tokens`, and launch them.

        It is running from when its whole prompt was launched.
        """
        self.memory.grow(request, request.cached_len + tokens)
        self.count(request)
        step = request.launch(tokens)
        if step.samples:
            self.running[request.uid] = request
        return step

    # ANCHOR_END: launch

    def count(self, request: Request) -> None:
        """Before the first launch of a request: note what the prefix cache was worth. Not again after preemption."""
        if request.hit_tokens is None:
            request.hit_tokens = request.cached_len
            self.asked_tokens += request.prompt_len
            self.hit_tokens += request.hit_tokens

    def commit(self, batch: Batch, results: Sequence[Sampled]) -> list[Output]:
        """Take the results of a launched batch, one for each of `batch.sampling`, in this order.

        Batches are committed in the order of their launch; one more may be in flight. The result of a request that has
        ended is dropped. A request that has ended keeps its memory until its last launched step is committed: the
        device may still be writing there.
        Returns one output for each result that was not dropped.
        """
        raise NotImplementedError(
            "Week 3 Day 1 Task 3: Scheduler.commit - see book/src/week3-01-continuous-batching.md#task-3"
        )

    def fail(self, batch: Batch) -> list[Output]:
        """End every request of a launched batch whose results will never come. Returns their last outputs."""
        outputs = []
        for request, start, *_ in batch.steps:
            request.in_flight -= 1
            request.cached_len = min(request.cached_len, start)  # nobody may find what this step did not compute
            if request.finish_reason is None:
                outputs.append(self.end(request, "error"))
            else:
                self.retire(request)
        return outputs

    def retire(self, request: Request) -> None:
        """Forget a request that has ended, and take its memory back once no step of it is in flight."""
        raise NotImplementedError(
            "Week 3 Day 1 Task 3: Scheduler.retire - see book/src/week3-01-continuous-batching.md#task-3"
        )

    def abort(self, uid: int) -> Output | None:
        """End a request now, wherever it is: waiting, half prefilled, running, or in flight.

        Returns its last output, or None for a uid that is not here (any more): an abort may come too late.
        """
        raise NotImplementedError("Week 3 Day 6 Task 4: Scheduler.abort - see book/src/week3-06-overlap.md#task-4")

    def end(self, request: Request, reason: str) -> Output:
        """End a request that has not ended. Returns its last output, which holds no token."""
        raise NotImplementedError("Week 3 Day 6 Task 4: Scheduler.end - see book/src/week3-06-overlap.md#task-4")
