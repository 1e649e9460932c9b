"""Decode batches of few sizes: a batch is padded to the next one by a request that does not exist.

A compiled program or a captured graph knows one size only; a ladder of sizes keeps their number small.
"""

from ..cache.paged import PageTable
from .engine import Pending, Runner
from .request import Batch, Request, Step

LADDER = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Sizes of a decode batch: each size that is not a power of 2 is padded to the next that is."""


def padded(batch: Batch, row: int, ladder: tuple[int, ...] = LADDER) -> Batch:
    """The batch, with as many dummy steps behind its own as make its size one of the ladder.

    row: the dummy row of the page table. A dummy step runs position 0 of it, has uid -1, and chooses no token.
    ladder: sizes, ascending. A batch beyond the last one stays as it is, and so does one in which a step has more than
    one token: the shape of a prefill is its own.
    """
    steps = len(batch.steps)
    size = next((size for size in ladder if size >= steps), steps)
    if batch.tokens > steps or size == steps:
        return batch
    nobody = Request(-1, [0], 1)
    nobody.row = row
    return Batch(batch.steps + (Step(nobody, 0, 1, False),) * (size - steps))


class PaddedRunner:
    """A `Runner` that runs padded batches on another one. Nobody sees it: a dummy step has no result."""

    def __init__(self, runner: Runner, table: PageTable, ladder: tuple[int, ...] = LADDER):
        self.runner = runner
        self.table = table
        self.ladder = ladder

    def launch(self, batch: Batch) -> Pending:
        """Launch the padded batch."""
        return self.runner.launch(padded(batch, self.table.dummy_row, self.ladder))
