"""The same requests for our engine and for mlx-lm's batch generator, both in this process: generated tokens/s of all.

Everybody generates greedily to the full length. mlx-lm's generator recomputes a shared prefix; ours finds it.
"""

import time
from pathlib import Path

import mlx.core as mx
import numpy as np

from course.errors import CourseError
from course.folder import read_json
from tiny_llm_ref.model.checkpoint import load_config, load_weights
from tiny_llm_ref.model.qwen3 import Qwen3
from tiny_llm_ref.serving.assemble import Options, assemble
from tiny_llm_ref.serving.request import Request

Prompts = list[list[int]]


def draw_prompts(rng: np.random.Generator, count: int, length: int, prefix: list[int]) -> Prompts:
    """Random tokens of a small vocabulary behind a common prefix; `length` includes it."""
    own = rng.integers(0, 2000, (count, length - len(prefix))).tolist()
    return [prefix + row for row in own]


class OurEngine:
    """Our engine on `model`, whose table is batched."""

    name = "ours"

    def __init__(self, model: Qwen3, options: Options):
        self.engine = assemble(model, options)

    def run(self, prompts: Prompts, tokens: int) -> float:
        """Tokens/s of `prompts` that arrive together, each with `tokens` to generate."""
        start = time.perf_counter()
        for uid, prompt in enumerate(prompts):
            self.engine.add(Request(uid, prompt, tokens))
        generated = 0
        while self.engine.busy:
            generated += sum(output.sampled is not None for output in self.engine.step())
        if generated != len(prompts) * tokens:
            raise CourseError(f"our engine generated {generated} tokens of {len(prompts) * tokens}")
        return generated / (time.perf_counter() - start)


class MlxLmBatch:
    """mlx-lm's `BatchGenerator` on the same weights, in `dtype`."""

    name = "mlx-lm"

    def __init__(self, folder: Path, dtype: str):
        try:
            from mlx_lm.generate import BatchGenerator
            from mlx_lm.models import qwen3
        except ImportError:
            raise CourseError("mlx-lm is not installed, nothing to compare with: run `pdm install -G dev`") from None
        self._generator = BatchGenerator
        self.model = qwen3.Model(qwen3.ModelArgs.from_dict(read_json(folder / "config.json")))
        self.model.load_weights(list(load_weights(folder, load_config(folder), getattr(mx, dtype)).items()))
        mx.eval(self.model.parameters())

    def run(self, prompts: Prompts, tokens: int) -> float:
        """As `OurEngine.run`."""
        start = time.perf_counter()
        generator = self._generator(self.model, completion_batch_size=len(prompts), prefill_batch_size=len(prompts))
        generator.insert(prompts, [tokens] * len(prompts))
        generated = 0
        while responses := generator.next_generated():
            generated += len(responses)
        seconds = time.perf_counter() - start
        generator.close()
        if generated != len(prompts) * tokens:
            raise CourseError(f"mlx-lm generated {generated} tokens of {len(prompts) * tokens}")
        return generated / seconds
