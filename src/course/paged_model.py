"""A small model over real pages, driven batch by batch, and random scripts for it.

Knows the public names of the package under test. A script is a list of ["run", [uid, tokens], ...], which is a batch,
and ["close", uid], which ends a request wherever it is.
"""

from collections.abc import Sequence

import mlx.core as mx
import numpy as np

from course.model_case import config_of, model_of
from course.solution import Solution

Op = list
"""[name, argument, ...]"""


class PagedModel:
    """A model of the package under test whose keys and values are in pages. Requests are fed given tokens.

    ladder: sizes that decode batches are padded to, None to leave them as they are.
    """

    def __init__(self, solution: Solution, inputs: dict, sizes: dict[str, int], ladder: tuple[int, ...] | None = None):
        self.solution, self.ladder = solution, ladder
        weights = next(iter(inputs["weights"].values()))
        ops = solution.module("serving.ragged").batched(solution.module("model.qwen3").Ops())
        self.model = model_of(solution, inputs, ops)
        self.memory = solution.module("serving.paged_memory").PagedMemory(**sizes)
        config = config_of(solution, inputs["sizes"])
        self.pool = solution.module("cache.pool").PagePool(config, sizes["pages"], sizes["page_size"], weights.dtype)
        self.caches = solution.module("serving.paged_rows").PagedRows(self.pool, self.memory.table)
        Request = solution.module("serving.request").Request
        self.requests = [Request(uid, list(ids), 1) for uid, ids in enumerate(inputs["prompts"])]

    def run(self, *shares: Sequence[int]) -> mx.array:
        """Run the next tokens of some requests. Returns the logits of all rows, those of dummy steps too: (T, V)."""
        request = self.solution.module("serving.request")
        steps = []
        for uid, tokens in shares:
            one = self.requests[uid]
            if one.row is None:
                self.memory.open(one, self.memory.match(one))
            self.memory.grow(one, one.cached_len + tokens)
            steps.append(request.Step(one, one.cached_len, one.cached_len + tokens, False))
            one.cached_len += tokens
        batch = request.Batch(tuple(steps))
        if self.ladder is not None:
            padded = self.solution.module("serving.padding").padded
            batch = padded(batch, self.memory.table.dummy_row, self.ladder)
        rows = self.solution.module("serving.ragged").ragged(batch)
        hidden = self.model.hidden(mx.array(rows.tokens)[:, None], self.caches.layers(batch, rows))
        logits = self.model.ops.head(self.model, hidden)[:, 0]
        mx.eval(logits)
        return logits

    def close(self, uid: int) -> None:
        """End a request; it may begin again from its first token."""
        self.memory.close(self.requests[uid])
        self.requests[uid].cached_len = 0

    def play(self, script: Sequence[Op]) -> list[mx.array]:
        """Run a script. Returns the logits of each batch."""
        results = [getattr(self, name)(*arguments) for name, *arguments in script]
        return [logits for logits in results if logits is not None]


def play_script(rng: np.random.Generator, lengths: Sequence[int], rows: int, decode: bool = False) -> list[Op]:
    """Batches of up to `rows` requests until all have run, in random order and pieces, some begun again.

    decode: one token of each at a time.
    """
    script: list[Op] = []
    waiting, at = list(range(len(lengths))), {}
    again = set(rng.choice(len(lengths), len(lengths) // 3, replace=False).tolist())
    while waiting or at:
        while waiting and len(at) < rows:
            at[waiting.pop(0)] = 0
        chosen = [uid for uid in at if rng.random() < 0.8] or list(at)[:1]
        left = {uid: lengths[uid] - at[uid] for uid in chosen}
        shares = [[uid, 1 if decode else int(rng.integers(1, left[uid] + 1))] for uid in chosen]
        script.append(["run", *shares])
        for uid, tokens in shares:
            at[uid] += tokens
            if at[uid] == lengths[uid] or (uid in again and rng.random() < 0.3):
                script.append(["close", uid])
                if at.pop(uid) < lengths[uid]:
                    again.discard(uid)
                    waiting.append(uid)
    return script


def rows_of(script: Sequence[Op]) -> list[list[tuple[int, int]]]:
    """The (uid, position) of each row of each batch of a script."""
    at: dict[int, int] = {}
    batches = []
    for name, *arguments in script:
        if name == "close":
            at.pop(arguments[0])
            continue
        rows = []
        for uid, tokens in arguments:
            start = at.get(uid, 0)
            at[uid] = start + tokens
            rows += [(uid, position) for position in range(start, start + tokens)]
        batches.append(rows)
    return batches
