"""A greedy model without weights: each token is a hash of all before it, so a token that is lost or doubled shows."""

from collections.abc import Sequence
from hashlib import blake2b

VOCAB = 1009


def next_token(ids: Sequence[int]) -> int:
    """The token after `ids`."""
    return int.from_bytes(blake2b(repr(list(ids)).encode(), digest_size=4).digest()) % VOCAB


def alone(prompt: Sequence[int], max_tokens: int, stop: int | None = None) -> list[int]:
    """The answer of a worker that never fails."""
    ids = list(prompt)
    while len(ids) - len(prompt) < max_tokens and (len(ids) == len(prompt) or ids[-1] != stop):
        ids.append(next_token(ids))
    return ids[len(prompt) :]
