"""Predicts a run of a real vLLM from its kernel times and at most one fitted constant."""

import argparse
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.sim.error_table import Comparison, comparison, error_table
from course.sim.package import Package
from course.sim.vllm_run import (
    Asked,
    Engine,
    Measured,
    ModelShape,
    Predictor,
    answered,
    fitted_overhead,
    matched,
    measured,
    read_lines,
    read_meta,
)

if TYPE_CHECKING:
    from rich.table import Table

BLOCK_SIZE = 16


def engine_of(args: argparse.Namespace) -> Engine:
    """The engine from the options and meta.json. Raises CourseError for what neither says."""
    try:
        shape = ModelShape(*map(int, (args.model_shape or "").split(",")))
        if min(shape.layers, shape.hidden, shape.kv_heads, shape.head_dim) < 1:
            raise ValueError
    except (TypeError, ValueError):
        raise CourseError(
            f"--model-shape is {args.model_shape}: give layers,hidden,kv_heads,head_dim, such as 32,4096,8,128"
        ) from None
    if args.kv_blocks is None:
        raise CourseError("give --kv-blocks: vLLM prints at its start how many tokens fit: divide by the block size")
    if shape.kv_heads % args.tp and args.tp % shape.kv_heads:
        raise CourseError(f"--tp {args.tp} cannot share {shape.kv_heads} KV heads: use a divisor or a multiple")
    meta = read_meta(args.vllm)
    seqs = args.max_num_seqs or meta.max_num_seqs
    tokens = args.max_num_batched_tokens or meta.max_num_batched_tokens
    for flag, value in (("--max-num-seqs", seqs), ("--max-num-batched-tokens", tokens)):
        if value is None:
            raise CourseError(f"{args.vllm}/meta.json does not say it: give {flag}")
    block = args.block_size or meta.block_size or BLOCK_SIZE
    return Engine(shape, args.kv_blocks, block, seqs, tokens, args.tp, args.link_gbps * 1e9, args.link_us / 1e6)


def validate(args: argparse.Namespace) -> tuple["Table", dict[str, object]]:
    """The table and the same as JSON."""
    engine = engine_of(args)
    asked = read_lines(args.workload or args.vllm / "workload.jsonl", Asked)
    rows = matched(asked, read_lines(args.vllm / "requests.jsonl", Measured))
    asked = answered(asked, rows)
    real = measured(asked, rows)
    predictor = Predictor(Package(args.solution), args.vllm, asked, engine)
    overhead = args.step_overhead_us
    fitted = overhead is None
    if fitted:
        overhead = fitted_overhead(predictor, real)
    said, half = predictor.predict(overhead), len(asked) // 2
    names = ("first half (fitted)" if fitted else "first half", "second half", "all")
    spans = (slice(0, half), slice(half, None), slice(None))
    parts: dict[str, Comparison] = {
        name: comparison(real[span], said[span]) for name, span in zip(names, spans, strict=True) if half
    }
    how = "fitted on the TPOT of the first half" if fitted else "given"
    note = f"step overhead {overhead:,.0f} us, {how}"
    title = f"{args.vllm.resolve().name}: {len(asked)} requests"
    return error_table(title, parts, note), {"step_overhead_us": overhead, "fitted": fitted, "parts": parts}
