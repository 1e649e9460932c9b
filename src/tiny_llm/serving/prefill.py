# This file is yours to edit. Read book/src/week3-02-chunked-prefill.md.
"""Which prompts a prefill batch takes: a token budget, and enough pages for all that was admitted to run to its end.

Knows counts of tokens and pages; nothing of queues, batches or models. The rule is Mini-SGLang's, exact in pages.
"""

from collections.abc import Iterable

from .memory import Memory
from .request import Request


def worst_case(request: Request, page_size: int) -> int:
    """Pages of its row when it runs to `max_device_len`. The last token is chosen and never computed."""
    raise NotImplementedError("Week 3 Day 2 Task 1: worst_case - see book/src/week3-02-chunked-prefill.md#task-1")


# ANCHOR: adder
class PrefillAdder:
    """Fills one prefill batch.

    Lives for one scheduling call, and sees no page handed out in between.
    admitted: requests that hold a row and go on.
    token_budget: tokens that still fit in the batch.
    reserved: pages that admitted requests may still ask for, at most `memory.available`.
    """

    def __init__(self, memory: Memory, admitted: Iterable[Request], token_budget: int):
        self.memory = memory
        self.token_budget = token_budget
        self.reserved = sum(self.owed(request) for request in admitted)

    def owed(self, request: Request) -> int:
        """Pages that it may still ask for: its worst case, less what it holds."""
        return worst_case(request, self.memory.page_size) - self.memory.held(request)

    # ANCHOR_END: adder

    def add(self, request: Request) -> int:
        """Take the next chunk of a prompt, and admit the request first if it holds no row.

        Returns the tokens to launch: all that is left, or what the budget allows. 0 where no token or no row is left,
        or where the pages cannot be promised; nothing has changed then.
        """
        raise NotImplementedError(
            "Week 3 Day 2 Task 1: PrefillAdder.add - see book/src/week3-02-chunked-prefill.md#task-1"
        )

    def admit(self, request: Request) -> bool:
        """Open a row and reserve the worst case. Returns whether that was possible; nothing has changed if not."""
        raise NotImplementedError(
            "Week 3 Day 2 Task 1: PrefillAdder.admit - see book/src/week3-02-chunked-prefill.md#task-1"
        )
