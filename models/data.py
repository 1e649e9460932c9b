"""Turn documents into training rows: token ids and loss weights, packed so that no document is cut.

Layout: `rows` is `[N, L + 1]` uint16 and `weights` `[N, L + 1]` float32; a step reads `rows[:, :-1]` and predicts
`rows[:, 1:]` with `weights[:, 1:]`. Rows start with a whole document and are filled up with end markers of weight 0.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from models.corpus import END, Document, documents

WAITING = 200  # documents that wait for a row in which they fit


@dataclass(frozen=True)
class Rows:
    """Packed documents: `ids` `[N, L + 1]` uint16, `weights` `[N, L + 1]` float32."""

    ids: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, picked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows `picked` `[B]` as int32 ids and float32 weights, both `[B, L + 1]`."""
        return self.ids[picked].astype(np.int32), self.weights[picked]


def encode(tokenizer: Tokenizer, docs: list[Document]) -> list[tuple[list[int], list[float]]]:
    """Token ids and weights of each document."""
    encoded = iter(tokenizer.encode_batch([piece.text for doc in docs for piece in doc]))
    out = []
    for doc in docs:
        ids: list[int] = []
        weights: list[float] = []
        for piece in doc:
            tokens = next(encoded).ids
            ids += tokens
            weights += [piece.weight] * len(tokens)
        out.append((ids, weights))
    return out


def pack(docs: Iterable[tuple[list[int], list[float]]], length: int, fill: int) -> Rows:
    """Pack documents into rows of `length + 1`; each row takes the first waiting documents that fit."""
    waiting: list[tuple[list[int], list[float]]] = []
    ids: list[list[int]] = []
    weights: list[list[float]] = []

    def close_row() -> None:
        row: list[int] = []
        row_weights: list[float] = []
        for doc in list(waiting):
            if len(row) + len(doc[0]) <= length + 1:
                row += doc[0]
                row_weights += doc[1]
                waiting.remove(doc)
        missing = length + 1 - len(row)
        ids.append(row + [fill] * missing)
        weights.append(row_weights + [0.0] * missing)

    for doc in docs:
        waiting.append((doc[0][: length + 1], doc[1][: length + 1]))
        if len(waiting) >= WAITING:
            close_row()
    while waiting:
        close_row()
    return Rows(np.array(ids, dtype=np.uint16), np.array(weights, dtype=np.float32))


def make_rows(tokenizer: Tokenizer, seed: int, count: int, length: int, mix: str = "broad") -> Rows:
    """Draw `count` documents of the corpus of `seed` and `mix` and pack them into rows of `length + 1` tokens."""
    fill = tokenizer.token_to_id(END)
    return pack(encode(tokenizer, list(documents(seed, count, mix))), length, fill)
