"""Paged attention against flash attention on dense caches: the kernel alone, and a whole decode step of a model.

Every request has its own context. Dense: one cache and one call of `cpu_flash_attention` for each request. Paged: one
call for all, over pages in random order. Gathered: pages copied into a dense cache, then as dense. All in turns.
"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from course.checkpoints import SHAPES, Shape
from course.learner import explained
from course.models import locate
from course.options import number
from course.timing import Spread, in_turn, ratio, seconds
from course.variant import SOLUTIONS, Variant, build

if TYPE_CHECKING:
    import mlx.core as mx

HELP = "attention over pages against dense caches, kernel and whole step"
MOST = 3_000_000_000  # bytes of keys and values of one setting; larger ones are left out
CACHED = 128_000_000  # bytes: layers together are larger than the processor's caches
DENSE = "dense"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's options."""
    count = number(int, "of at least 1", lambda x: x >= 1, 5)
    parser.add_argument("--solution", choices=SOLUTIONS, default=SOLUTIONS[0], help="whose kernels run")
    parser.add_argument("--shape", choices=list(SHAPES), default="0.6b", help="heads of this published shape")
    parser.add_argument("--requests", type=count, nargs="+", default=[1, 8, 32], metavar="N", help="in a batch")
    parser.add_argument(
        "--contexts", type=count, nargs="+", default=[128, 512, 2048], metavar="TOKENS", help="tokens of each"
    )
    parser.add_argument(
        "--page-sizes", type=count, nargs="+", default=[1, 16, 64], metavar="P", help="tokens of a page"
    )
    parser.add_argument("--model", default="tiny", help="whose decode step is measured (default: tiny)")
    parser.add_argument("--rounds", type=count, default=7, metavar="N", help="readings of each")


def measure(args: argparse.Namespace) -> tuple[dict[str, object], list[str]]:
    """Numbers and a table: a line for each number of requests and context."""
    build(args.solution)
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    shape, variant = SHAPES[args.shape], Variant(args.solution, "flash")
    settings = [(n, S) for n in args.requests for S in args.contexts]
    with explained(args.solution):
        fit = [(n, S) for n, S in settings if 40 * n * S * shape.kv_heads * shape.head_dim < MOST]
        kernels = [_setting(n, S, *_kernels(variant, shape, n, S, args.page_sizes), args.rounds) for n, S in fit]
        step = _Step(variant, args.model)
        longest = step.model.config.max_position_embeddings - 1
        steps = [_setting(n, S, step.works(n, S), 1, args.rounds) for n, S in settings if longest >= S]
    lines = [
        f"attention of one layer, heads of {args.shape}: ms dense, and how many times faster paged is, by page size"
    ]
    lines += _table(kernels)
    lines += [
        f"decode step of {args.model}, --ops flash, pages of 16: ms dense, and how many times faster the others are"
    ]
    return {"solution": args.solution, "kernels": kernels, "steps": steps}, lines + _table(steps)


def _setting(n: int, S: int, works: dict[str, Callable[[], None]], times: int, rounds: int) -> dict[str, object]:
    """Readings of works that do the same so many times."""
    found = in_turn({name: lambda work=work: seconds(work) for name, work in works.items()}, rounds)
    gains = {name: ratio(readings, found[DENSE]).plain() for name, readings in found.items() if name != DENSE}
    return {"requests": n, "context": S, "seconds": Spread.of(found[DENSE]).scaled(times).plain(), "gains": gains}


def _table(settings: list[dict]) -> list[str]:
    names = list(settings[0]["gains"]) if settings else []
    lines = [f"{'requests':>8} {'context':>7} {'dense':>8}  " + "  ".join(f"{name:>20}" for name in names)]
    for s in settings:
        gains = "  ".join(f"{Spread.again(gain)!s:>20}" for gain in s["gains"].values())
        lines.append(f"{s['requests']:8} {s['context']:7} {s['seconds']['median'] * 1e3:8.3g}  {gains}")
    return lines


def _kernels(
    variant: Variant, shape: Shape, n: int, S: int, page_sizes: list[int]
) -> tuple[dict[str, Callable[[], None]], int]:
    """The attention of several layers, and how many: each has its own keys and values."""
    import mlx.core as mx

    flash = variant.module("kernels.flash").cpu_flash_attention
    paged = variant.module("kernels.paged").paged_attention
    H_kv, D = shape.kv_heads, shape.head_dim
    layers = max(1, min(28, CACHED // (8 * n * S * H_kv * D)))
    q = mx.random.normal((n, shape.heads, 1, D))
    caches = [[_pair((1, H_kv, 2 * S, D), S) for _ in range(n)] for _ in range(layers)]
    mx.eval(q, caches)

    def dense() -> None:
        mx.eval([flash(q[i : i + 1], *cache) for layer in caches for i, cache in enumerate(layer)])

    works = {DENSE: dense}
    for size in page_sizes:
        table, bounds, lengths = _places(n, S, size)
        pools = [_pair((table.size, H_kv, size, D), size) for _ in range(layers)]
        mx.eval(pools)
        works[f"pages of {size}"] = lambda pools=pools, places=(table, bounds, lengths): mx.eval(
            [paged(q, *pool, *places) for pool in pools]
        )
    return works, layers


def _pair(shape: tuple[int, ...], used: int) -> "tuple[mx.array, mx.array]":
    """Random keys and values; of a dense buffer only `used` positions, as a view."""
    import mlx.core as mx

    keys, values = (mx.random.normal(shape) for _ in "kv")
    return keys[:, :, :used], values[:, :, :used]


def _places(n: int, S: int, size: int) -> "tuple[mx.array, mx.array, mx.array]":
    import mlx.core as mx
    import numpy as np

    pages = -(-S // size)
    table = np.random.default_rng(0).permutation(n * pages).reshape(n, pages).astype(np.int32)
    return mx.array(table), mx.arange(n + 1, dtype=mx.int32), mx.full((n,), S, dtype=mx.int32)


class _Step:
    """One decode step of a model for n requests, each with `S` positions in its cache."""

    SIZE = 16

    def __init__(self, variant: Variant, model: str):
        self.module = variant.module
        ops = self.module("kernels.tables").make_ops(variant.ops)
        self.ops = self.module("serving.ragged").batched(ops)
        import mlx.core as mx

        self.model = self.module("kernels.load").load_packed_model(locate(model), self.ops, mx.float32)

    def works(self, n: int, S: int) -> dict[str, Callable[[], None]]:
        """Dense caches, pages gathered into dense copies, and pages read by the kernel."""
        import mlx.core as mx

        layers = len(self.model.layers)
        pages = -(-(S + 1) // self.SIZE)
        pool = self.module("cache.pool").PagePool(self.model.config, n * pages, self.SIZE, mx.float32)
        table = self.module("cache.paged").PageTable(n, S + 1, self.SIZE, n * pages)
        for row in range(n):
            table.append(row, list(range(row, n * pages, n)))  # neighbours belong to different requests
        dense = self.module("serving.model_runner").DenseRows(layers)
        shape = (1, self.model.config.num_key_value_heads, S, self.model.config.head_dim)
        dense.rows = {row: [self._filled(shape) for _ in range(layers)] for row in range(n)}
        gathered = self.module("serving.paged_rows").PagedRows(pool, table)
        kernel = self.module("serving.paged_layer").KernelRows(pool, table, self.ops)
        works = {DENSE: dense, "gathered": gathered, "kernel": kernel}
        return {name: lambda rows=rows: self._run(rows, dense, n, S) for name, rows in works.items()}

    def _filled(self, shape: tuple[int, ...]) -> object:
        import mlx.core as mx

        cache = self.module("cache.dense").DenseCache(2 * shape[2])
        mx.eval(cache.update(mx.random.normal(shape), mx.random.normal(shape)))
        return cache

    def _run(self, rows: object, dense: object, n: int, S: int) -> None:
        request = self.module("serving.request")
        sampler = self.module("serving.batch_sampler").BatchSampler()
        steps = []
        for i in range(n):
            r = request.Request(i, [1] * (S + 1), 4)
            r.row = i
            steps.append(request.Step(r, S, S + 1, True))
        runner = self.module("serving.model_runner").ModelRunner(self.model, rows, sampler)
        runner.launch(request.Batch(tuple(steps))).results()
        for caches in dense.rows.values() if rows is dense else ():
            for cache in caches:
                cache.rewind(S)
