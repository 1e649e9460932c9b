# This file is yours to edit. Read book/src/week3-06-overlap.md.
"""The tokens of all admitted requests, on the device: what one batch chooses, the next one reads there.

So a batch can be launched before the host has seen a token of the one before. Both run in the order of their launch,
on one stream: what was written is there when it is read. Knows steps and rows; nothing of models.
"""

from collections.abc import Sequence
from types import ModuleType

import mlx.core as mx
import numpy as np

from .request import Step

Array = mx.array | np.ndarray


class TokenPool:
    """A table of token ids, (rows + 1, max_len) int32; the token at a request's position p stands at (its row, p).

    tokens: the table. dummy_row: the last row, which no request has. Steps that pad a batch read its first column, and
    what nobody wants is written to its last one. xp: `mlx.core`, or `numpy` for a simulated device.
    """

    def __init__(self, rows: int, max_len: int, xp: ModuleType = mx):
        raise NotImplementedError("Week 3 Day 6 Task 3: TokenPool.__init__ - see book/src/week3-06-overlap.md#task-3")

    def load(self, steps: Sequence[Step]) -> None:
        """Write the tokens of the steps' positions that the host knows: prompts, chunk by chunk. Padding has none."""
        raise NotImplementedError("Week 3 Day 6 Task 3: TokenPool.load - see book/src/week3-06-overlap.md#task-3")

    def read(self, steps: Sequence[Step]) -> Array:
        """The tokens at the steps' positions, step after step: (T,) int32."""
        raise NotImplementedError("Week 3 Day 6 Task 3: TokenPool.read - see book/src/week3-06-overlap.md#task-3")

    def write(self, steps: Sequence[Step], tokens: Array) -> None:
        """Write what the steps chose, one of `tokens` (n,) for each: behind the positions that the step ran.

        A step that does not sample is followed by a token of its prompt, which must stay: what was chosen after it, as
        a device with fixed shapes does for every step, goes to the dummy row.
        """
        raise NotImplementedError("Week 3 Day 6 Task 3: TokenPool.write - see book/src/week3-06-overlap.md#task-3")
