"""The same work for our model and for mlx-lm's: `prefill` and `decode`, each one reading in tokens/s.

Both score the last position only, keep keys and values, and choose greedily. Ours runs in the loop that `main` uses;
mlx-lm in one like its own, which starts the next step before it looks at the last token.
"""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import mlx.core as mx

from course.errors import CourseError
from course.folder import read_json
from course.timing import seconds
from course.variant import Variant
from tiny_llm_ref.model.checkpoint import load_config, load_weights
from tiny_llm_ref.model.qwen3 import Qwen3


def prompt_of(length: int) -> list[int]:
    """Some tokens that every vocabulary has."""
    return [i % 64 for i in range(length)]


class Ours:
    """A model of the course, run in one way of one package."""

    def __init__(self, variant: Variant, qwen3: Qwen3):
        self.name = f"{variant.solution} {variant.ops}"
        self.variant, self.qwen3 = variant, qwen3
        self._generation = variant.module("text.generate")
        self._model = variant.cached(qwen3)

    def prefill(self, length: int) -> float:
        """A prompt of `length` tokens on an empty cache, up to its first token."""
        model = self.variant.cached(self.qwen3)
        return length / seconds(lambda: next(self._tokens(model, length, 1)))

    def decode(self, at: int, tokens: int, limit: float = math.inf) -> float:
        """`tokens` tokens one by one, behind `at` tokens; a cache that holds these from the last time is used again.

        The reading ends early with the token that is finished after `limit` seconds.
        """
        stream = self._tokens(self._model, at, tokens + 1)
        next(stream)
        times = [time.perf_counter()]
        for _ in stream:
            times.append(time.perf_counter())
            if times[-1] - times[0] > limit:
                break
        return (len(times) - 1) / (times[-1] - times[0])

    def _tokens(self, model: Callable[[mx.array], mx.array], length: int, count: int) -> Iterator[int]:
        return self._generation.generate(model, prompt_of(length), self._generation.greedy, max_tokens=count)


class MlxLm:
    """mlx-lm's Qwen3 on the same weights: plain numbers of `dtype`, or packed by mlx-lm in 4 bits."""

    def __init__(self, folder: Path, dtype: str, *, packed: bool = False):
        try:
            import mlx.nn as nn
            from mlx_lm.models import cache, qwen3
        except ImportError:
            raise CourseError("mlx-lm is not installed, nothing to compare with: run `pdm install -G dev`") from None
        self.name = f"mlx-lm {'4-bit' if packed else dtype}"
        self._cache = cache
        self.model = qwen3.Model(qwen3.ModelArgs.from_dict(read_json(folder / "config.json")))
        self.model.load_weights(list(load_weights(folder, load_config(folder), getattr(mx, dtype)).items()))
        if packed:
            nn.quantize(self.model, group_size=64, bits=4)
        mx.eval(self.model.parameters())
        self._kept: tuple[int, list] | None = None

    def prefill(self, length: int) -> float:
        """As `Ours.prefill`."""
        cache = self._cache.make_prompt_cache(self.model)
        return length / seconds(lambda: self._step(mx.array([prompt_of(length)]), cache).item())

    def decode(self, at: int, tokens: int) -> float:
        """As `Ours.decode`."""
        if self._kept is None or self._kept[0] != at:
            cache = self._cache.make_prompt_cache(self.model)
            self._step(mx.array([prompt_of(at)]), cache).item()
            self._kept = at, cache
        cache = self._kept[1]
        speed = tokens / seconds(lambda: self._run(cache, tokens))
        self._cache.trim_prompt_cache(cache, tokens)
        return speed

    def _run(self, cache: list, tokens: int) -> None:
        token = self._step(mx.array([[1]]), cache)
        mx.async_eval(token)
        for _ in range(tokens - 1):
            following = self._step(token, cache)
            mx.async_eval(following)
            token.item()
            token = following
        token.item()

    def _step(self, tokens: mx.array, cache: list) -> mx.array:
        x = self.model.model(tokens, cache)[:, -1:]
        tied = self.model.args.tie_word_embeddings
        return mx.argmax(self.model.model.embed_tokens.as_linear(x) if tied else self.model.lm_head(x), axis=-1)
