"""A loaded model that answers, made only of course code: the modules of one solution package.

Knows checkpoint folders, the package's functions and the order in which to call them. It does no input or output and
decides nothing about the conversation. Every method touches MLX, so all must run in one thread.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from types import ModuleType

from course.checkpoint_json import Recommended
from course.errors import CourseError
from course.folder import contents, read_as, read_config
from course.memory import available_memory, check_memory
from course.paths import REFERENCE
from course.tokens import load_tokenizer, stop_tokens
from course.traffic import Traffic, step_traffic
from course.variant import Variant

SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")


@dataclass(frozen=True)
class Settings:
    """How to answer. `sampling` holds keyword arguments of the package's `SamplingParams`, without the seed."""

    sampling: dict[str, float]
    seed: int
    max_tokens: int
    stop: tuple[str, ...] = ()
    think: bool = False
    raw: bool = False


@dataclass
class Meter:
    """Counts and times one reply, and ends it early when `cancelled` is set. Times in seconds.

    `reused` counts the tokens of the prompt whose keys and values were in the cache before.
    """

    prompt_tokens: int
    reused: int = 0
    started: float = field(default_factory=time.perf_counter)
    first: float | None = None
    last: float | None = None
    generated: int = 0
    cancelled: bool = False

    @property
    def decode_seconds(self) -> float:
        """From the first token to the last."""
        return (self.last or self.started) - (self.first or self.started)

    def watch(self, tokens: Iterator[int]) -> Iterator[int]:
        """Pass `tokens` on. Returns (as the generator's value) their finish reason."""
        while not self.cancelled:
            try:
                token = next(tokens)
            except StopIteration as end:
                return end.value
            self.last = time.perf_counter()
            self.first = self.first or self.last
            self.generated += 1
            yield token
        return "cancelled"


class Assistant:
    """One model in one number format, run in one way of one package. Raises CourseError where it cannot be loaded."""

    def __init__(self, folder: Path, variant: Variant, dtype: str | None = None):
        self.folder, self.variant = folder, variant
        self.contents = contents(folder)
        self.format = variant.format(folder, self.contents, dtype)
        check_memory(folder, self.contents, self.format)
        self.config = read_config(folder)
        self.generation = read_as(Recommended, folder / "generation_config.json")
        self.tokenizer = load_tokenizer(folder)
        try:
            self.qwen3 = variant.load_plain(folder, self.format.dtype, available_memory())
        except (ValueError, FileNotFoundError, MemoryError) as error:
            if variant.solution != REFERENCE.name:
                raise  # a learner wants to see where
            raise CourseError(f"cannot load {folder}: {error}") from error
        self.model = variant.cached(self.qwen3)

    def module(self, name: str) -> ModuleType:
        """A module of the solution package, such as "text.generate"."""
        return self.variant.module(name)

    def traffic(self, tokens: int) -> Traffic:
        """What a decode step reads at a context of `tokens`. Without a cache it keeps no keys and values to read."""
        return step_traffic(
            self.qwen3.config, self.contents, self.format, 0 if self.variant.cache == "none" else tokens
        )

    @property
    def context(self) -> int:
        """The most tokens that prompt and reply may have together."""
        return self.qwen3.config.max_position_embeddings

    def sampling_defaults(self) -> dict[str, float]:
        """What the checkpoint's author recommends in generation_config.json."""
        if self.generation.do_sample is False:
            return {"temperature": 0.0}
        values = {name: getattr(self.generation, name) for name in SAMPLING}
        return {name: value for name, value in values.items() if value is not None}

    def encode_chat(self, messages: Sequence[tuple[str, str]], think: bool) -> list[int]:
        """The tokens of a conversation, given as (role, content), up to where the reply begins."""
        chat = self.module("text.chat")
        return self.encode(chat.render_chat([chat.Message(*m) for m in messages], enable_thinking=think))

    def encode(self, text: str) -> list[int]:
        """The tokens of `text` as it is."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def reply(self, prompt: Sequence[int], settings: Settings, meter: Meter) -> Iterator[str]:
        """Stream the text that follows `prompt`, at most to the end of the context."""
        generation = self.module("text.generate")
        meter.reused = self._reusable(prompt)
        limit = min(settings.max_tokens, self.context - len(prompt))
        tokens = generation.generate(
            self.model,
            prompt,
            self._sample(settings),
            max_tokens=limit,
            stop_tokens=stop_tokens(self.folder, self.tokenizer),
        )
        yield from generation.stream_text(self.tokenizer, meter.watch(tokens), settings.stop)

    def _reusable(self, prompt: Sequence[int]) -> int:
        """How many of the first tokens of `prompt` the cache holds. The last one has to run in any case."""
        held = None if self.variant.cache == "none" else self.model.tokens
        if held is None or held.shape[0] != 1:
            return 0
        equal = takewhile(lambda pair: pair[0] == pair[1], zip(held[0].tolist(), prompt[:-1], strict=False))
        return sum(1 for _ in equal)

    def _sample(self, settings: Settings):
        """Greedy needs no sampler, so a learner's model can talk before the sampler is written."""
        if settings.sampling == {"temperature": 0.0}:
            return self.module("text.generate").greedy
        sampler = self.module("text.sampler")
        return sampler.Sampler([sampler.SamplingParams(**settings.sampling, seed=settings.seed)])
