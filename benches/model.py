"""Our model beside mlx-lm's Qwen3 on the same weights, number format and BLAS, in turns, in one process.

prefill: one forward pass over a prompt. decode: the Week 1 loop, which runs the whole prefix for every new token;
mlx-lm is made to do the same, without its cache, so this compares the models and not a cache with none.
"""

import argparse
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

from benches.random_checkpoint import random_checkpoint

from course.checkpoints import SHAPES
from course.errors import CourseError
from course.folder import read_json
from course.models import locate
from course.options import number
from course.timing import Pair, alternate

HELP = "our model beside mlx-lm's: prefill and decode without a cache"
BAR = 0.9  # ours may not be slower than this times mlx-lm


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--model", help="a model name or folder, as for `pdm run main`")
    which.add_argument(
        "--shape", choices=list(SHAPES), default="0.6b", help="random weights in this published shape (default 0.6b)"
    )
    count = number(int, "of at least 1", lambda x: x >= 1, 5)
    parser.add_argument("--solution", choices=["tiny_llm_ref", "tiny_llm"], default="tiny_llm_ref")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    parser.add_argument("--lengths", type=count, nargs="+", default=[32, 128, 512], metavar="TOKENS")
    parser.add_argument("--decode-at", type=count, default=128, metavar="TOKENS", help="prompt length for decode")
    parser.add_argument("--decode-tokens", type=count, default=4, metavar="N", help="tokens per decode reading")
    parser.add_argument("--rounds", type=count, default=5, metavar="N", help="readings of each kind")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Numbers and a table of tokens/s: median (slowest .. fastest)."""
    folder = _folder(args)
    ours, theirs, context = _models(folder, args)
    work = [("prefill", n, n) for n in args.lengths] + [("decode", args.decode_at, args.decode_tokens)]
    longest = max(args.decode_at + args.decode_tokens, *args.lengths)
    if longest > context:
        raise CourseError(f"{longest} tokens do not fit in the model's context of {context}: lower --lengths")
    results, lines = [], [f"{folder.name}, {args.dtype}, tokens/s: median (slowest .. fastest) of {args.rounds}"]
    for kind, length, tokens in work:
        steps = 1 if kind == "prefill" else tokens
        pair = alternate(
            _loop(args.solution, ours, length, steps), _loop(args.solution, theirs, length, steps), args.rounds
        )
        results.append(_plain(kind, length, tokens, pair))
        lines.append(_line(kind, length, tokens, pair))
    numbers = {"model": str(folder), "solution": args.solution, "dtype": args.dtype, "bar": BAR, "results": results}
    return numbers, lines


def _folder(args: argparse.Namespace) -> Path:
    if args.model:
        return locate(args.model)
    return random_checkpoint(args.shape)


def _models(folder: Path, args: argparse.Namespace):
    """Our model and mlx-lm's, sharing one set of weights, and the longest context."""
    import mlx.core as mx

    try:
        from mlx_lm.models import qwen3 as peer
    except ImportError:
        raise CourseError("mlx-lm is not installed, nothing to compare with: run `pdm install -G dev`") from None
    checkpoint = importlib.import_module(f"{args.solution}.model.checkpoint")
    qwen3 = importlib.import_module(f"{args.solution}.model.qwen3")
    config = checkpoint.load_config(folder)
    weights = checkpoint.load_weights(folder, config, getattr(mx, args.dtype))
    mx.eval(weights)
    theirs = peer.Model(peer.ModelArgs.from_dict(read_json(folder / "config.json")))
    theirs.load_weights(list(weights.items()))
    return qwen3.Qwen3(config, weights), theirs, config.max_position_embeddings


def _loop(solution: str, model: Callable, length: int, steps: int) -> Callable[[], Sequence[int]]:
    """Generate `steps` tokens after a prompt of `length` with our loop, which asks `model` for the whole prefix."""
    generate = importlib.import_module(f"{solution}.text.generate")
    prompt = [i % 64 for i in range(length)]
    return lambda: list(generate.generate(model, prompt, generate.greedy, max_tokens=steps))


def _plain(kind: str, length: int, tokens: int, pair: Pair) -> dict[str, object]:
    return {
        "kind": kind,
        "length": length,
        "ours_tokens_per_s": pair.ours.per(tokens).plain(),
        "mlx_lm_tokens_per_s": pair.theirs.per(tokens).plain(),
        "ratio": pair.ratio.plain(),
    }


def _line(kind: str, length: int, tokens: int, pair: Pair) -> str:
    verdict = "meets" if pair.ratio.median >= BAR else "misses"
    return (
        f"{kind:8} {length:5}  ours {pair.ours.per(tokens)}  mlx-lm {pair.theirs.per(tokens)}  "
        f"ratio {pair.ratio}: {verdict} {BAR}x"
    )
