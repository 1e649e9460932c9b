"""Seeded random workloads as plain scripts: which request comes at which step, and which one its client gives up when.

Knows token counts; nothing of engines. A script is a dict of plain values: what failed can be printed and replayed.
"""

import random
from collections.abc import Sequence

from .hash_model import VOCAB
from .oracle import alone

KINDS = ("short", "page", "long", "shared", "equal")
"""short: a few tokens. page: a multiple of the page size, or one token beside it. long: a good part of the longest.
shared: begins with the prefix that all of these share. equal: the prompt of an earlier request."""


def workload(
    seed: int,
    requests: int = 12,
    max_len: int = 48,
    page_size: int = 4,
    kinds: Sequence[str] = KINDS,
    aborts: float = 0.2,
    stops: float = 0.3,
    penalties: float = 0.0,
    steps: int = 30,
    vocab: int = VOCAB,
) -> dict[str, object]:
    """A script: {"vocab", "adds", "aborts"}, the adds in the order of their step.

    max_len: positions of the longest request; some ask for more tokens than that leaves, and are cut. aborts, stops,
    penalties: share of the requests that are aborted, have a stop token that they will meet, have a repetition
    penalty. steps: the adds come before this step. An abort comes before its step, or between its launch and its
    commit ("between").
    """
    rng = random.Random(seed)
    prefix = [rng.randrange(vocab) for _ in range(max_len // 2)]
    adds: list[dict[str, object]] = []
    at = sorted(rng.choice((0, rng.randrange(max(steps, 1)))) for _ in range(requests))
    for uid, step in enumerate(at):
        ids = _prompt(rng, rng.choice(kinds), [add["ids"] for add in adds], prefix, max_len, page_size, vocab)
        max_tokens = rng.choice((1, 2, rng.randint(1, max_len // 2), rng.randint(1, max_len), 2 * max_len))
        penalty = rng.random() < penalties
        stop = []
        if rng.random() < stops:
            met, _ = alone(ids, min(max_tokens, max_len - len(ids)), penalty=penalty, vocab=vocab)
            stop = [rng.choice(met), rng.randrange(vocab)]
        adds.append({"at": step, "uid": uid, "ids": ids, "max_tokens": max_tokens, "stop": stop, "penalty": penalty})
    return {"vocab": vocab, "adds": adds, "aborts": _aborts(rng, adds, aborts, max_len)}


def _prompt(
    rng: random.Random,
    kind: str,
    earlier: list[list[int]],
    prefix: list[int],
    max_len: int,
    page_size: int,
    vocab: int,
) -> list[int]:
    longest = max_len - 1
    if kind == "equal" and earlier:
        return list(rng.choice(earlier))
    if kind == "shared":
        head = prefix[: rng.randint(1, len(prefix))]
        return head + [rng.randrange(vocab) for _ in range(rng.randint(0, min(6, longest - len(head))))]
    if kind == "page":
        length = rng.randint(1, max(1, max_len // page_size - 1)) * page_size + rng.choice((-1, 0, 1))
    elif kind == "long":
        length = rng.randint(max_len // 2, longest)
    else:
        length = rng.randint(1, 6)
    return [rng.randrange(vocab) for _ in range(min(max(length, 1), longest))]


def _aborts(rng: random.Random, adds: list[dict[str, object]], share: float, max_len: int) -> list[dict[str, object]]:
    """Some requests, mostly while they are on their way, a few twice."""
    aborts = []
    for add in adds:
        for _ in range(rng.choice((1, 1, 1, 2))):
            if rng.random() < share:
                at = add["at"] + rng.choice((0, 1, 2, rng.randrange(max_len)))
                aborts.append({"at": at, "uid": add["uid"], "between": rng.random() < 0.5})
    return sorted(aborts, key=lambda abort: abort["at"])


def request(uid: int, ids: Sequence[int], max_tokens: int, at: int = 0, stop: Sequence[int] = ()) -> dict[str, object]:
    """One add of a script written by hand."""
    return {"at": at, "uid": uid, "ids": list(ids), "max_tokens": max_tokens, "stop": list(stop), "penalty": False}


def script(*adds: dict[str, object], aborts: Sequence[dict[str, object]] = (), vocab: int = VOCAB) -> dict[str, object]:
    """A script written by hand. An abort is {"at", "uid", "between"}."""
    return {"vocab": vocab, "adds": list(adds), "aborts": list(aborts)}
