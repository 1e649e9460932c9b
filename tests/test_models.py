"""The embedded model: its corpus, tokenizer, chat template, training and weights."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import jinja2
import mlx.core as mx
import numpy as np
import pytest
from models import tasks
from models.backend_mlx import MLXTrainer
from models.card import BEGIN, END, measured
from models.chatml import Turn, call_text, chat_pieces, prompt_text, response_text
from models.config import Recipe, Shape, initial_weights
from models.corpus import MIXES, documents
from models.data import make_rows
from models.evaluate import answers, load_float32, score
from models.export import load_bfloat16, save_bfloat16, to_bfloat16
from models.facts import FACTS
from models.heldout import FLOORS, held_out_set
from models.tokenizer import SPECIAL, train_tokenizer
from models.tools import TOOLS
from threadpoolctl import threadpool_limits
from tokenizers import Tokenizer

MODELS = Path(__file__).parents[1] / "models"
TINY, TINY_4BIT = MODELS / "tiny", MODELS / "tiny-4bit"
SMALL = Shape(vocab_size=768, hidden_size=64, layers=2, intermediate_size=128, heads=2, kv_heads=1, head_dim=32)
SHORT = Recipe(documents=1000, row_length=128, batch=8, steps=60, warmup=10, fall_from=40, fall_to=60, compile=False)


@pytest.fixture(autouse=True)
def _on_one_cpu_thread():
    """Products this small gain nothing from a second thread, and spinning threads starve on a busy machine."""
    before = mx.default_device()
    mx.set_default_device(mx.cpu)
    with threadpool_limits(1):
        yield
    mx.set_default_device(before)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(TINY / "tokenizer.json"))


@pytest.fixture(scope="module")
def template() -> jinja2.Template:
    config = json.loads((TINY / "tokenizer_config.json").read_text(encoding="utf-8"))
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    environment.filters["tojson"] = json.dumps
    return environment.from_string(config["chat_template"])


def text_of(seed: int, count: int, mix: str = "broad") -> list[str]:
    return ["".join(piece.text for piece in doc) for doc in documents(seed, count, mix)]


# The corpus and what is held out from it


@pytest.mark.parametrize("mix", MIXES)
def test_the_shares_of_a_mix_add_up(mix: str):
    assert sum(MIXES[mix].values()) == pytest.approx(1.0)


def test_the_same_seed_writes_the_same_corpus():
    assert text_of(3, 200) == text_of(3, 200)
    assert text_of(3, 50) != text_of(4, 50)


@pytest.mark.parametrize("mix", MIXES)
def test_no_training_question_is_held_out(mix: str):
    held_facts = {fact.held_out for fact in FACTS}
    assert not held_facts & {question for fact in FACTS for question in fact.trained}
    texts = text_of(1, 4000, mix)
    asked = {part.split("<|im_end|>")[0] for text in texts for part in text.split("<|im_start|>user\n")[1:]}
    assert not held_facts & asked
    for item in held_out_set(share=0.3):
        if item.category in ("facts", "sequences", "tool call", "reading"):
            assert item.turns[-1].content not in asked, item


@pytest.mark.parametrize("mix", MIXES)
def test_no_training_answer_states_a_held_out_sum(mix: str):
    answer = re.compile(r"(?:assistant|</think>)\n+(\d\d?) ([+-]) (\d\d?) = ")
    sums = [match for text in text_of(1, 4000, mix) for match in answer.findall(text)]
    assert len(sums) > 1000
    assert not [(a, b) for a, operator, b in sums if tasks.pair_held_out(int(a), int(b), operator)]


def test_a_held_out_sum_is_held_out_both_ways_round():
    pairs = [(a, b) for a in range(100) for b in range(100)]
    kept = [(a, b) for a, b in pairs if tasks.pair_held_out(a, b, "+")]
    assert 0.08 < len(kept) / len(pairs) < 0.12
    assert all(tasks.pair_held_out(b, a, "+") for a, b in kept)


def test_the_evaluation_set_is_seeded_and_large_enough():
    items = held_out_set()
    assert items == held_out_set()
    assert sum(item.category in FLOORS for item in items) >= 2000


# Tokenizer and chat template


TEXTS = ["plain words", "  two  spaces\n\n\tand a tab ", "猫が好き", "😀👍🏽", "café 23 + 45", ""]


@pytest.mark.parametrize("text", TEXTS)
def test_decoding_gives_back_the_text(tokenizer: Tokenizer, text: str):
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_special_tokens_are_one_token_each_and_digits_stand_alone(tokenizer: Tokenizer):
    assert tokenizer.get_vocab_size() == 2048
    for token in SPECIAL:
        assert len(tokenizer.encode(token).ids) == 1, token
    assert tokenizer.encode("123").tokens == ["1", "2", "3"]


def test_template_renders_turns_and_thinking(template: jinja2.Template):
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
    head = "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
    assert template.render(messages=messages) == head
    asked = template.render(messages=messages, add_generation_prompt=True)
    assert asked == head + "<|im_start|>assistant\n"
    assert template.render(messages=messages, add_generation_prompt=True, enable_thinking=True) == asked
    off = template.render(messages=messages, add_generation_prompt=True, enable_thinking=False)
    assert off == asked + "<think>\n\n</think>\n\n"


def test_template_drops_the_thoughts_of_earlier_turns(template: jinja2.Template):
    said = {"role": "assistant", "content": "<think>\n1 + 2.\n</think>\n\n3"}
    messages = [{"role": "user", "content": "1 + 2"}, said, {"role": "user", "content": "2 + 2"}]
    text = template.render(messages=messages, add_generation_prompt=True)
    assert "<|im_start|>assistant\n3<|im_end|>\n" in text
    last = template.render(messages=messages[:2])
    assert last.endswith("<|im_start|>assistant\n<think>\n1 + 2.\n</think>\n\n3<|im_end|>\n")


def test_template_renders_tools_as_the_corpus_does(template: jinja2.Template):
    tool = TOOLS["get_time"]
    call = {"function": {"name": "get_time", "arguments": {"city": "Rome"}}}
    messages = [
        {"role": "user", "content": "What time is it in Rome?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": '{"time": "14:02"}'},
    ]
    turns = [
        Turn("user", "What time is it in Rome?"),
        Turn("assistant", call_text("get_time", {"city": "Rome"})),
        Turn("user", response_text({"time": "14:02"})),
    ]
    arguments = {"messages": messages, "tools": [{"type": "function", "function": tool}], "add_generation_prompt": True}
    assert template.render(**arguments) == prompt_text(turns, tools=[tool], thinking=True)
    assert template.render(**arguments, enable_thinking=False) == prompt_text(turns, tools=[tool])


def test_a_chat_in_pieces_is_the_template_s_text_and_splits_where_the_tokenizer_does(tokenizer: Tokenizer):
    turns = [Turn("user", "Hi"), Turn("assistant", "Hello!")]
    turns += [Turn("user", "1 + 2"), Turn("assistant", "3", "1 + 2 = 3.")]
    for style in ("off", "last", "raw", "plain"):
        pieces = chat_pieces(turns, style)
        whole = "".join(piece.text for piece in pieces)
        assert [i for piece in pieces for i in tokenizer.encode(piece.text).ids] == tokenizer.encode(whole).ids
    last = "".join(piece.text for piece in chat_pieces(turns, "last"))
    assert last == prompt_text(turns[:3]) + "3<|im_end|>"


# Training and weights


def test_a_shrunken_training_run_learns_and_repeats_itself():
    tokenizer = train_tokenizer(count=500, vocab_size=SMALL.vocab_size)
    rows = make_rows(tokenizer, SHORT.seed, SHORT.documents, SHORT.row_length)

    def run(steps: int) -> list[float]:
        trainer = MLXTrainer(SMALL, SHORT, initial_weights(SMALL, SHORT.seed))
        picks = [np.arange(i * SHORT.batch, (i + 1) * SHORT.batch) % len(rows) for i in range(steps)]
        return [trainer.step(*rows.batch(pick), SHORT.rate(i)) for i, pick in enumerate(picks)]

    losses = run(SHORT.steps)
    assert losses[0] == pytest.approx(np.log(SMALL.vocab_size), rel=0.1)
    assert np.mean(losses[-5:]) < 0.6 * losses[0], losses
    np.testing.assert_allclose(run(5), losses[:5], rtol=1e-5)


def test_rate_rises_stays_and_falls_to_zero():
    recipe = replace(SHORT, steps=100, warmup=10, fall_from=50, fall_to=100)
    rates = [recipe.rate(step) for step in range(100)]
    assert rates[9] == rates[49] == 1.0
    assert all(a >= b for a, b in pairwise(rates[9:]))
    assert 0 < rates[-1] < 0.05


def test_bfloat16_rounding_is_mlx_s():
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    np.testing.assert_array_equal(to_bfloat16(x), np.array(mx.array(x).astype(mx.bfloat16).view(mx.uint16)))


def test_saved_weights_are_read_back_and_by_mlx_too(tmp_path: Path):
    weights = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "b.weight": np.ones(4, dtype=np.float32)}
    save_bfloat16(weights, tmp_path / "model.safetensors")
    for name, weight in load_bfloat16(tmp_path / "model.safetensors").items():
        np.testing.assert_array_equal(weight, weights[name])
    loaded = mx.load(str(tmp_path / "model.safetensors"))
    assert {name: w.dtype for name, w in loaded.items()} == dict.fromkeys(weights, mx.bfloat16)


def test_models_folder_stays_below_12_mb():
    size = sum(path.stat().st_size for path in MODELS.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert size <= 12_000_000


def test_model_card_shows_the_recorded_measurements():
    card = (MODELS / "README.md").read_text(encoding="utf-8")
    assert card.split(BEGIN)[1].split(END)[0] == measured(), "run `python -m models.card`"


def test_four_bit_weights_are_close_to_the_bf16_ones():
    full = mx.load(str(TINY / "model.safetensors"))
    packed = mx.load(str(TINY_4BIT / "model.safetensors"))
    how = json.loads((TINY_4BIT / "config.json").read_text(encoding="utf-8"))["quantization"]
    for name, weight in full.items():
        if weight.ndim == 1:
            assert mx.array_equal(weight, packed[name]), name
            continue
        stem = name.removesuffix(".weight")
        parts = (packed[name], packed[f"{stem}.scales"], packed[f"{stem}.biases"])
        restored = mx.dequantize(*parts, group_size=how["group_size"], bits=how["bits"])
        gap = mx.linalg.norm((restored - weight).astype(mx.float32)) / mx.linalg.norm(weight.astype(mx.float32))
        assert gap.item() < 0.15, (name, gap.item())


@pytest.mark.parametrize("folder", [TINY, TINY_4BIT], ids=["bf16", "4-bit"])
def test_a_sample_of_the_held_out_set_is_answered(folder: Path):
    model, tokenizer = load_float32(folder)
    items = held_out_set(share=0.05)
    table = score(items, answers(model, tokenizer, [item.prompt() for item in items]))
    for category, floor in FLOORS.items():  # a sample of 12 to 20 prompts: allow two misses more than the floor does
        row = table[category]
        assert row["right"] >= row["prompts"] * floor / 100 - 2, (category, row)
