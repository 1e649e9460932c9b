# This file is yours to edit. Read book/src/week1-06-generation.md.
"""The generation loop: score, choose, append, repeat, until a stop condition holds.

Knows tokens and text; how a token is chosen is the sampler's business. There is no cache yet: each step runs the model
over the whole prefix.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

import mlx.core as mx
from tokenizers import Tokenizer

Model = Callable[[mx.array], mx.array]
"""tokens (B, L) -> logits (B, L, V)."""

Sample = Callable[[mx.array, list[list[int]]], mx.array]
"""logits (B, V) and the tokens of each row so far (prompt and output) -> next token of each row (B,)."""


def greedy(logits: mx.array, history: list[list[int]]) -> mx.array:
    """The simplest `Sample`: the best token of each row."""
    return mx.argmax(logits, axis=-1)


def generate(
    model: Model, prompt: Sequence[int], sample: Sample, *, max_tokens: int, stop_tokens: Collection[int] = ()
) -> Iterator[int]:
    """Yield the tokens that follow `prompt`, one by one.

    Prefill runs the model over the prompt, each decode step over prompt and output. Ends after `max_tokens` tokens, or
    at a token of `stop_tokens`, which is not yielded.
    Returns (as the generator's value) the finish reason: "stop" or "length".
    Raises ValueError for an empty prompt or a negative `max_tokens`.
    """
    raise NotImplementedError("Week 1 Day 6 Task 1: generate - see book/src/week1-06-generation.md#task-1")
    yield  # only makes this a generator: replace it, too


def stream_text(tokenizer: Tokenizer, tokens: Iterator[int], stop: Sequence[str] = ()) -> Iterator[str]:
    """Turn a stream of tokens into a stream of text that ends before the first stop string.

    tokens: from `generate`. stop: non-empty strings; the text ends before the one that is complete first (the longest
    of those that end at the same place), and nothing of it is ever yielded: text that may be the beginning of a stop
    string is held back until that is decided, all other text is yielded before the next token is asked for.
    Yields non-empty pieces. Joined they are the text of all tokens, up to the stop string; where that is does not
    depend on how the text is cut into tokens.
    Returns "stop" at a stop string, else what `tokens` returns, "length" where that is None.
    Raises ValueError for an empty stop string.
    """
    raise NotImplementedError("Week 1 Day 6 Task 4: stream_text - see book/src/week1-06-generation.md#task-4")
    yield  # only makes this a generator: replace it, too
