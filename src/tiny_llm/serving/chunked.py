# This file is yours to edit. Read book/src/week3-02-chunked-prefill.md.
"""Prompts in chunks, and no request is admitted that could run out of pages: Mini-SGLang's scheduler."""

from .request import Step
from .scheduler import Scheduler


class ChunkedScheduler(Scheduler):
    """Prefill first, at most `token_budget` tokens at a time; a prompt that is longer runs in several batches.

    A request whose prompt was launched in part stands at the front of `waiting`, with a row; there is at most one.
    """

    def prefill(self) -> list[Step]:
        """The next chunk of a prompt that was begun, then waiting requests in their order.

        Ends at the first that cannot be added, however small those behind it are: nobody is overtaken.
        """
        raise NotImplementedError(
            "Week 3 Day 2 Task 2: ChunkedScheduler.prefill - see book/src/week3-02-chunked-prefill.md#task-2"
        )
