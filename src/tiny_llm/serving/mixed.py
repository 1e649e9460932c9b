# This file is yours to edit. Read book/src/week3-02-chunked-prefill.md.
"""Decodes and chunks of prompts in one batch; where pages run out, the newest request starts again: vLLM's way."""

from .memory import Memory, OutOfPagesError
from .request import Batch, Request, Step
from .scheduler import Scheduler


class MixedScheduler(Scheduler):
    """One budget of tokens for each batch: every running request has one, chunks of prompts share the rest.

    max_chunk: tokens of one prompt in one batch, None for no limit. Raises ValueError if it is below 1.
    running: those that were admitted, by uid, the oldest first; here the prompt may have been launched in part.

    Admission asks for pages for the first chunk only. The oldest request can always go on: newer ones give it their
    pages, and `add` has refused what is larger than all the memory. So every request ends.
    """

    def __init__(self, memory: Memory, token_budget: int = 8192, max_chunk: int | None = None):
        super().__init__(memory, token_budget)
        self.max_chunk = token_budget if max_chunk is None else max_chunk
        if self.max_chunk < 1:
            raise ValueError(f"max_chunk is {max_chunk}: a chunk has at least 1 token")

    def next_batch(self) -> Batch | None:
        """A token for each running request, or a chunk, the oldest first; then new ones, unless pages were missing.

        A request that misses pages ends the batch: those behind it stay out, so that the newest can be preempted soon.
        """
        raise NotImplementedError(
            "Week 3 Day 2 Task 3: MixedScheduler.next_batch - see book/src/week3-02-chunked-prefill.md#task-3"
        )

    def admit(self, budget: int) -> list[Step]:
        """First chunks of waiting requests in their order, until one finds no token, no row or no pages."""
        raise NotImplementedError(
            "Week 3 Day 2 Task 3: MixedScheduler.admit - see book/src/week3-02-chunked-prefill.md#task-3"
        )

    # ANCHOR: run
    def run(self, request: Request, tokens: int) -> Step | None:
        """Launch the next tokens of a running request as soon as there are pages.

        None where there is no way.
        """
        while True:
            try:
                return self.launch(request, tokens)
            except OutOfPagesError:
                if not self.make_room(request):
                    return None

    # ANCHOR_END: run

    def make_room(self, request: Request) -> bool:
        """Preempt the newest running request, so that `request`, which misses pages, may find them.

        Returns False, and preempts nobody, where the newest is this request itself, which waits, or has a step in
        flight, which ends first.
        """
        raise NotImplementedError(
            "Week 3 Day 2 Task 4: MixedScheduler.make_room - see book/src/week3-02-chunked-prefill.md#task-4"
        )

    def preempt(self, request: Request) -> None:
        """Take the pages of a running request. It waits at the front, to compute its prompt and its answer again."""
        raise NotImplementedError(
            "Week 3 Day 2 Task 4: MixedScheduler.preempt - see book/src/week3-02-chunked-prefill.md#task-4"
        )
