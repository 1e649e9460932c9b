"""A model that says what it is told, when it is told: a runner whose tokens are written down, and that can be held.

Knows the public names of batches and requests; its tokenizer has a token for each byte, and for the pieces it is given.
"""

import threading
import time
from collections.abc import Mapping, Sequence

from tokenizers import Tokenizer, pre_tokenizers

from course.toy_tokenizer import byte_level

from .hash_model import Sampled, next_token

BYTES = [bytes([byte]) for byte in range(256)]
END = 0
"""The tokenizer's special token: what ends an answer."""


def text_tokenizer(pieces: Sequence[bytes] = ()) -> tuple[Tokenizer, list[int]]:
    """A tokenizer that writes a text byte by byte, token 1 + byte, and reads `pieces` too. With the tokens of those."""
    tokenizer, tokens = byte_level([*BYTES, *pieces])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return tokenizer, tokens[256:]


def prompt_tokens(text: str) -> list[int]:
    """How `text_tokenizer` writes a text."""
    return [1 + byte for byte in text.encode()]


def chosen(ids: Sequence[int], seed: int | None = None) -> int:
    """The token after `ids` where none is written down: a letter by their hash, and by the seed unless that is None."""
    return 1 + ord("a") + next_token([*ids, *([] if seed is None else divmod(seed, 2**32))], 26)


def continued(prompt: Sequence[int], count: int, seed: int | None = None) -> list[int]:
    """`count` tokens after `prompt`, by `chosen`."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(chosen(ids, seed))
    return ids[len(prompt) :]


def text_of(tokens: Sequence[int]) -> str:
    """The text of tokens that stand for one byte each."""
    return bytes(token - 1 for token in tokens).decode()


def logprob_of(token: int) -> float:
    """The log-probability that a token is said to have."""
    return -(1 + token % 64) / 64


def top_of(token: int, count: int) -> list[tuple[int, float]]:
    """The `count` best tokens that are said to have been there when `token` was chosen."""
    return [(1 + (token + 7 * i) % 255, -(1 + i) / 128) for i in range(count)]


class ScriptedRunner:
    """A runner. script: the output tokens after a prompt (a tuple of tokens); other prompts go on by `chosen`.

    fails: prompts, and how many tokens they give before their batch raises. seconds: a step takes.
    threads: the names of those that launched. steps: the tokens of each batch.
    """

    def __init__(
        self,
        script: Mapping[tuple[int, ...], Sequence[int]] | None = None,
        fails: Mapping[tuple[int, ...], int] | None = None,
        seconds: float = 0.0,
    ):
        self.script, self.fails, self.seconds = script or {}, fails or {}, seconds
        self.threads: set[str] = set()
        self.steps: list[int] = []
        self._change = threading.Condition()
        self._allowed: int | None = None

    def hold(self, steps: int = 0) -> None:
        """From now on only `steps` more batches run."""
        with self._change:
            self._allowed = steps
            self._change.notify_all()

    def release(self) -> None:
        """Batches run again."""
        with self._change:
            self._allowed = None
            self._change.notify_all()

    def launch(self, batch: object) -> "Ready":
        """Run a batch, once it may."""
        with self._change:
            self._change.wait_for(lambda: self._allowed is None or self._allowed > 0)
            if self._allowed is not None:
                self._allowed -= 1
        self.threads.add(threading.current_thread().name)
        self.steps.append(sum(step.end - step.start for step in batch.steps))
        if self.seconds:
            time.sleep(self.seconds)
        return Ready([self._sample(step.request) for step in batch.steps if step.samples])

    def _sample(self, request: object) -> Sampled:
        prompt, output = tuple(request.ids[: request.prompt_len]), len(request.ids) - request.prompt_len
        if self.fails.get(prompt) == output:
            raise RuntimeError("the device is on fire")
        if prompt in self.script:
            token = self.script[prompt][output % len(self.script[prompt])]
        else:
            token = chosen(request.ids, request.sampling.seed if request.sampling.temperature else None)
        if request.logprobs is None:
            return Sampled(token)
        return Sampled(token, logprob_of(token), top_of(token, request.logprobs))


class Ready:
    """A batch that has run."""

    def __init__(self, sampled: list[Sampled]):
        self.sampled = sampled

    def results(self) -> list[Sampled]:
        """Its tokens."""
        return self.sampled
