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
        self.xp = xp
        self.dummy_row = rows
        # Zeros, not just memory: padding runs through the model like a token, so the dummy row must hold one.
        self.tokens: Array = xp.zeros((rows + 1, max_len), xp.int32)

    def load(self, steps: Sequence[Step]) -> None:
        """Write the tokens of the steps' positions that the host knows: prompts, chunk by chunk. Padding has none."""
        places, ids = [], []
        for request, start, end, _ in steps:
            if request.row != self.dummy_row:
                known = request.ids[start:end]
                places += [(request.row, position) for position in range(start, start + len(known))]
                ids += known
        if ids:
            self.tokens[self._index(places)] = self.xp.array(ids, self.xp.int32)

    def read(self, steps: Sequence[Step]) -> Array:
        """The tokens at the steps' positions, step after step: (T,) int32."""
        return self.tokens[self._index([(step.request.row, p) for step in steps for p in range(step.start, step.end)])]

    def write(self, steps: Sequence[Step], tokens: Array) -> None:
        """Write what the steps chose, one of `tokens` (n,) for each: behind the positions that the step ran.

        A step that does not sample is followed by a token of its prompt, which must stay: what was chosen after it, as
        a device with fixed shapes does for every step, goes to the dummy row.
        """
        nowhere = self.dummy_row, self.tokens.shape[1] - 1
        places = [(step.request.row, step.end) if step.samples else nowhere for step in steps]
        self.tokens[self._index(places)] = tokens.astype(self.xp.int32)

    def _index(self, places: Sequence[tuple[int, int]]) -> tuple[Array, Array]:
        rows, columns = zip(*places, strict=True)
        return self.xp.array(rows), self.xp.array(columns)
