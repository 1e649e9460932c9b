"""What a request answers when it is alone: no cache, no batch, no pages. Knows the hash, nothing of engines."""

from collections.abc import Sequence

from .hash_model import VOCAB, next_token


def alone(
    ids: Sequence[int], max_tokens: int, stop: Sequence[int] = (), penalty: bool = False, vocab: int = VOCAB
) -> tuple[list[int], str]:
    """The tokens after `ids`, the stop token included, and why they end: "stop" or "length"."""
    ids, chosen = list(ids), []
    while len(chosen) < max_tokens:
        token = next_token(ids, vocab, ids if penalty else None)
        ids.append(token)
        chosen.append(token)
        if token in stop:
            return chosen, "stop"
    return chosen, "length"
