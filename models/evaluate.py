"""Measure the model on the held-out set, greedy, exact match, one figure per category.

    python -m models.evaluate --model models/tiny --out models/tiny/evaluation.json
    python -m models.evaluate --model models/tiny-4bit --out models/tiny-4bit/evaluation.json
    python -m models.evaluate --model models/tiny --thinking

The weights are used as stored (4-bit ones dequantized), the arithmetic is float32. The prompt ends with the empty think
block (`enable_thinking=False`); `--thinking` ends it with the plain header, and thoughts are cut before scoring.
"""

import argparse
import json
import time
from pathlib import Path

import course.route  # noqa: F401 - before mlx.core

# isort: split
import mlx.core as mx
from mlx_lm.models.cache import BatchKVCache
from mlx_lm.models.qwen3 import Model
from mlx_lm.utils import dequantize_model, load_model
from tokenizers import Tokenizer

from models.heldout import FLOORS, SEED, Item, held_out_set

MAX_TOKENS = 120


def load_float32(folder: Path) -> tuple[Model, Tokenizer]:
    """The model of `folder` with float32 weights, dequantized if they were packed, and its tokenizer."""
    model, config = load_model(folder)
    if "quantization" in config:
        model = dequantize_model(model)
    model.set_dtype(mx.float32)
    mx.eval(model.parameters())
    return model, Tokenizer.from_file(str(folder / "tokenizer.json"))


def generate_batch(model: Model, prompts: list[list[int]], end: int, limit: int = MAX_TOKENS) -> list[list[int]]:
    """Greedy tokens after each of `prompts`, without the `end` token. Shorter prompts are padded on the left."""
    longest = max(len(prompt) for prompt in prompts)
    padding = [longest - len(prompt) for prompt in prompts]
    cache = [BatchKVCache(padding) for _ in model.layers]
    tokens = mx.array([[0] * pad + prompt for pad, prompt in zip(padding, prompts, strict=True)])
    out: list[list[int]] = [[] for _ in prompts]
    open_rows = set(range(len(prompts)))
    for _ in range(limit):
        following = model(tokens, cache=cache)[:, -1].argmax(axis=-1)
        for row, token in enumerate(following.tolist()):
            if row in open_rows:
                if token == end:
                    open_rows.discard(row)
                else:
                    out[row].append(token)
        if not open_rows:
            break
        tokens = following[:, None]
    return out


def answers(model: Model, tokenizer: Tokenizer, prompts: list[str], batch: int = 48) -> list[str]:
    """What the model says to each prompt, batched by length."""
    encoded = [tokenizer.encode(prompt).ids for prompt in prompts]
    order = sorted(range(len(prompts)), key=lambda i: len(encoded[i]))
    end = tokenizer.token_to_id("<|im_end|>")
    out = [""] * len(prompts)
    for start in range(0, len(order), batch):
        picked = order[start : start + batch]
        for i, ids in zip(picked, generate_batch(model, [encoded[i] for i in picked], end), strict=True):
            out[i] = tokenizer.decode(ids, skip_special_tokens=False)
    return out


def without_thoughts(text: str) -> str:
    """What follows the think block, or all of `text` where there is none."""
    return text.split("</think>")[-1].strip()


def score(items: list[Item], said: list[str]) -> dict[str, dict[str, float]]:
    """Right answers, prompts and per cent by category."""
    table: dict[str, dict[str, float]] = {}
    for item, text in zip(items, said, strict=True):
        row = table.setdefault(item.category, {"right": 0, "prompts": 0})
        row["right"] += without_thoughts(text) == item.answer
        row["prompts"] += 1
    for row in table.values():
        row["percent"] = round(100 * row["right"] / row["prompts"], 1)
    return table


def print_table(table: dict[str, dict[str, float]]) -> None:
    """The scores as a Markdown table."""
    print("| category | prompts | right | % | floor |\n|---|---|---|---|---|")
    for category, row in table.items():
        print(f"| {category} | {row['prompts']} | {row['right']} | {row['percent']} | {FLOORS.get(category, '')} |")


def main() -> None:
    """Evaluate one model folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path(__file__).parent / "tiny")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--share", type=float, default=1.0, help="share of the set to run")
    parser.add_argument("--thinking", action="store_true", help="plain assistant header, no empty think block")
    parser.add_argument("--misses", type=int, default=0, help="wrong answers to print per category")
    parser.add_argument("--out", type=Path, help="write the scores as JSON")
    options = parser.parse_args()
    mx.set_default_device(mx.cpu)
    model, tokenizer = load_float32(options.model)
    items = held_out_set(options.seed, options.share)
    start = time.perf_counter()
    said = answers(model, tokenizer, [item.prompt(thinking=options.thinking) for item in items])
    table = score(items, said)
    print_table(table)
    print(f"{len(items)} prompts in {time.perf_counter() - start:.0f} s")
    shown: dict[str, int] = {}
    for item, text in zip(items, said, strict=True):
        if without_thoughts(text) != item.answer and shown.setdefault(item.category, 0) < options.misses:
            shown[item.category] += 1
            print(f"{item.category}: {item.turns[-1].content[-300:]!r}\n  want {item.answer!r}\n  said {text!r}")
    if options.out:
        record = {"seed": options.seed, "thinking": options.thinking, "prompts": len(items), "categories": table}
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
