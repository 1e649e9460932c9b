# This file is yours to edit. Read book/src/week3-03-paged-kv.md.
"""Decode batches of few sizes: a batch is padded to the next one by a request that does not exist.

A compiled program or a captured graph knows one size only; a ladder of sizes keeps their number small.
"""

from ..cache.paged import PageTable
from .engine import Pending, Runner
from .request import Batch

LADDER = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Sizes of a decode batch: each size that is not a power of 2 is padded to the next that is."""


def padded(batch: Batch, row: int, ladder: tuple[int, ...] = LADDER) -> Batch:
    """The batch, with as many dummy steps behind its own as make its size one of the ladder.

    row: the dummy row of the page table. A dummy step runs position 0 of it, has uid -1, and chooses no token.
    ladder: sizes, ascending. A batch beyond the last one stays as it is, and so does one in which a step has more than
    one token: the shape of a prefill is its own.
    """
    raise NotImplementedError("Week 3 Day 3 Task 5: padded - see book/src/week3-03-paged-kv.md#task-5")


class PaddedRunner:
    """A `Runner` that runs padded batches on another one. Nobody sees it: a dummy step has no result."""

    def __init__(self, runner: Runner, table: PageTable, ladder: tuple[int, ...] = LADDER):
        self.runner = runner
        self.table = table
        self.ladder = ladder

    def launch(self, batch: Batch) -> Pending:
        """Launch the padded batch."""
        return self.runner.launch(padded(batch, self.table.dummy_row, self.ladder))
