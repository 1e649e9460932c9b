"""Every table of operations and the cache compute the same model: the embedded one, on 50 prompts, teacher-forced.

All tables run on the same packed weights, `python` and `dense` on the numbers that these stand for, unpacked in float32
(`load_weights` rounds them to the bfloat16 of their scales). A text is a prompt and what plain operations reply to it.
The prompt runs in two chunks and every token of the reply alone, so kernels for one and for many tokens both run.
On the emulator, `metal` and `metal-flash` take a few texts, and all of them with ALL_PROMPTS=1 in the environment.
"""

import functools
import itertools
import os

import mlx.core as mx
import numpy as np
import pytest
from tokenizers import Tokenizer

from course.folder import read_json
from course.models import EMBEDDED
from course.paths import REFERENCE
from course.variant import OPS, UNPACKED, Variant, build
from tiny_llm_ref.cache.cached import CachedModel
from tiny_llm_ref.cache.dense import DenseCache
from tiny_llm_ref.kernels.tables import make_ops
from tiny_llm_ref.model.checkpoint import load_config, load_weights
from tiny_llm_ref.model.qwen3 import Qwen3
from tiny_llm_ref.text.chat import Message, render_chat
from tiny_llm_ref.text.generate import generate, greedy

FOLDER = EMBEDDED["tiny-4bit"]
CONFIG = load_config(FOLDER)
GROUP_SIZE = CONFIG.quantization.group_size
TOKENIZER = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
TOLERANCE = 2e-4  # of logits, which reach 30: float32 round-off through four layers
REPLY = 12
NAMES = ("Anna", "Ben", "Olga", "Iris", "Tom")
PROMPTS = [
    *(f"Tell me a story about a bear named {name}." for name in NAMES),
    *(f"My name is {name}." for name in NAMES),
    *(f"What is the capital of {land}?" for land in ("France", "Italy", "Japan", "Peru", "Egypt")),
    *(f"What is {a} + {b}?" for a, b in ((1, 1), (2, 3), (17, 25), (40, 2), (99, 1), (123, 456), (0, 7))),
    *(f"What is {a} - {b}?" for a, b in ((9, 4), (20, 13), (7, 7), (100, 1))),
    *(f"Tell me a story about {thing}." for thing in ("a red ball", "the sea", "a cold day", "two friends")),
    *(f"Which letter comes after {letter}?" for letter in "ADKQ"),
    *(f"What colour is {thing}?" for thing in ("grass", "snow", "the sky", "a lemon")),
    *("Hello!", "Hi", "Thank you.", "Who are you?", "?", "What can you do?"),
    *("one two three", "Monday, Tuesday,", "x", "a b c d", "12345", "Straße, naïve, 東京, 🙂"),
]


@functools.cache
def plain_weights() -> dict[str, mx.array]:
    """What the packed weights stand for, by MLX's own operator."""
    stored = mx.load(str(FOLDER / "model.safetensors"))
    weights = {}
    for name in load_weights(FOLDER, CONFIG):
        parts = [stored[name.removesuffix("weight") + part] for part in ("scales", "biases") if "norm" not in name]
        wide = [part.astype(mx.float32) for part in parts]
        weights[name] = mx.dequantize(stored[name], *wide, GROUP_SIZE) if parts else stored[name].astype(mx.float32)
    return weights


@functools.cache
def model_of(ops: str) -> Qwen3:
    if ops in UNPACKED:
        build(REFERENCE.name)
        return Qwen3(CONFIG, plain_weights(), make_ops(ops))
    return Variant(ops=ops).load_plain(FOLDER, "float32")


@functools.cache
def text(prompt: str) -> tuple[tuple[int, ...], int]:
    """The tokens of a prompt and of the reply to it, and how many belong to the prompt."""
    messages = [Message("user", prompt)]
    tokens = TOKENIZER.encode(render_chat(messages, enable_thinking=False), add_special_tokens=False).ids
    model = CachedModel(model_of("python"), DenseCache)
    return (*tokens, *generate(model, tokens, greedy, max_tokens=REPLY)), len(tokens)


@functools.cache
def expected(prompt: str) -> np.ndarray:
    """Logits (L, V) of plain operations without a cache."""
    return np.array(model_of("python")(mx.array([text(prompt)[0]])))[0]


def cached_logits(ops: str, prompt: str) -> np.ndarray:
    """Logits (L, V) through dense caches: the prompt in two chunks, then one token at a time."""
    tokens, length = text(prompt)
    model = model_of(ops)
    caches = [DenseCache(16) for _ in model.layers]
    cuts = [0, length // 2, *range(length, len(tokens) + 1)]
    parts = [model(mx.array([tokens[a:b]]), caches) for a, b in itertools.pairwise(cuts)]
    return np.array(mx.concatenate(parts, axis=1))[0]


def assert_same(got: np.ndarray, want: np.ndarray, prompt: str) -> None:
    """Within the tolerance everywhere, and the same best token wherever the second is farther away than twice that."""
    worst = np.abs(got - want).max()
    assert worst <= TOLERANCE, f"{prompt!r}: a logit differs by {worst:.3g}"
    two = np.sort(want, axis=-1)[:, -2:]
    clear = two[:, 1] - two[:, 0] > 2 * TOLERANCE
    assert clear.sum() > len(want) / 2, f"{prompt!r}: nearly no token is a clear choice, so nothing was compared"
    assert np.array_equal(got.argmax(-1)[clear], want.argmax(-1)[clear]), prompt


def prompts_for(ops: str) -> list[str]:
    few = ops.startswith("metal") and not mx.metal.is_available() and not os.environ.get("ALL_PROMPTS")
    return PROMPTS[:: len(PROMPTS) // 3] if few else PROMPTS


def test_there_are_fifty_prompts():
    assert len(set(PROMPTS)) == 50


@pytest.mark.parametrize("ops", OPS)
def test_a_table_computes_what_plain_operations_compute(ops):
    for prompt in prompts_for(ops):
        assert_same(cached_logits(ops, prompt), expected(prompt), prompt)


def test_plain_operations_compute_what_mlx_lm_computes():
    qwen3 = pytest.importorskip("mlx_lm.models.qwen3", reason="mlx-lm is in the dev group")
    model = qwen3.Model(qwen3.ModelArgs.from_dict(read_json(FOLDER / "config.json")))
    model.load_weights(list(plain_weights().items()))
    for prompt in PROMPTS:
        assert_same(expected(prompt), np.array(model(mx.array([text(prompt)[0]])))[0], prompt)


def test_a_wrong_table_would_be_noticed():
    """A relative error of a percent in one layer's output is far beyond the tolerance."""
    model = model_of("packed")
    ops, right = model.ops, model.ops.output
    ops.output = lambda layer, x, attended: right(layer, x, attended * (1.01 if layer is model.layers[1] else 1.0))
    try:
        with pytest.raises(AssertionError, match="a logit differs"):
            assert_same(cached_logits("packed", PROMPTS[0]), expected(PROMPTS[0]), PROMPTS[0])
    finally:
        del ops.output
