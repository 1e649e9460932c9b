"""The options of `serve` and `batch`: the model, whose code runs it, the parts of the engine, and their sizes."""

import argparse

from course.checkpoint_json import Config
from course.errors import CourseError
from course.memory import BYTES, GIB, Format
from course.options import number
from course.solutions import add_solution
from course.variant import OPS

SCHEDULERS = {
    "fcfs": "whole prompts, first come, first served",
    "chunked": "prompts in chunks, worst case reserved",
    "mixed": "chunks and decodes in one batch, the newest is preempted",
}
MEMORIES = {"rows": "each request owns its longest length", "paged": "pages", "prefix": "pages, and prefixes are kept"}
ATTENTIONS = {"gather": "copies pages together", "kernel": "walks the page table, in C++"}
LOOPS = {"normal": "reads a batch before the next", "overlap": "launches the next batch first"}
MOST = 4096
"""Rows, and tokens of a page: more are a mistake, and the page table would take all memory."""
POOL_SHARE = 0.5
"""Of the memory that the weights leave: what keys and values take where nobody says how many pages."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that choose a model and the parts of its engine."""
    count = number(int, "of at least 1", lambda x: x >= 1, 16)
    few = number(int, f"from 1 to {MOST}", lambda x: 1 <= x <= MOST, 16)
    parser.add_argument("--model", default="tiny", help="tiny, tiny-4bit, 0.6b, 1.7b, 4b, 8b, a folder, or a hub id")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16", "stored"], help="format of the weights")
    add_solution(parser, "whose code runs")
    tables = "; ".join(f"{name}: {what}" for name, what in OPS.items())
    default = "default: dense; python for tiny_llm, which may have no C++"
    parser.add_argument("--ops", choices=list(OPS), help=f"who computes a block's steps ({default}). {tables}")
    engine = parser.add_argument_group("parts of the engine")
    parts = {"scheduler": SCHEDULERS, "memory": MEMORIES, "attention": ATTENTIONS, "loop": LOOPS}
    defaults = {"scheduler": "chunked", "memory": "prefix", "attention": "kernel", "loop": "overlap"}
    for name, known in parts.items():
        text = "; ".join(f"{key}: {what}" for key, what in known.items())
        text = f"{text} (default {defaults[name]})"
        engine.add_argument(f"--{name}", choices=list(known), default=defaults[name], help=text)
    sizes = parser.add_argument_group("sizes")
    sizes.add_argument("--rows", type=few, default=32, metavar="N", help="requests that run at once (default 32)")
    sizes.add_argument("--max-len", type=count, metavar="N", help="tokens of the longest request, prompt and answer")
    sizes.add_argument("--page-size", type=few, default=16, metavar="N", help="tokens of a page (default 16)")
    sizes.add_argument("--pages", type=count, metavar="N", help="pages for keys and values (default: as memory allows)")
    sizes.add_argument("--token-budget", type=count, default=512, metavar="N", help="tokens of a batch (default 512)")


def page_bytes(config: Config, page_size: int, dtype: str) -> int:
    """What a page takes, in all layers."""
    heads, layers = config.num_key_value_heads or 1, config.num_hidden_layers or 1
    size = config.head_dim or (config.hidden_size or 1) // (config.num_attention_heads or 1)
    return 2 * layers * heads * size * page_size * BYTES[dtype]


def pages_of(args: argparse.Namespace, config: Config, form: Format, max_len: int, left: float) -> int:
    """Pages of the pool: as asked, else enough for all rows at full length, but not more than its share of memory.

    left: bytes that the weights leave. Raises CourseError for more pages than fit, or fewer than the scheduler needs.
    """
    pages = _pages_that_fit(args, config, form, max_len, left)
    if pages * args.page_size < 2:
        raise CourseError("--pages 1 of one token has no room for a prompt and an answer: give at least --pages 2")
    full = args.rows * -(-max_len // args.page_size)
    if args.scheduler == "fcfs" and pages < full:
        raise CourseError(
            f"--scheduler fcfs never asks for pages before it admits: {args.rows} rows of {max_len} tokens need {full} "
            f"pages, not {pages}: choose another scheduler, or fewer --rows, or a smaller --max-len"
        )
    return pages


def _pages_that_fit(args: argparse.Namespace, config: Config, form: Format, max_len: int, left: float) -> int:
    page = page_bytes(config, args.page_size, form.dtype)
    fit = int(left * POOL_SHARE / page) - 1  # one page more belongs to the padding
    if args.pages is not None and fit >= 1:
        if args.pages * page > left:
            raise CourseError(
                f"--pages {args.pages} takes {args.pages * page / GIB:.1f} GiB, but only {left / GIB:.1f} GiB are "
                f"free: at most --pages {fit} is safe"
            )
        return args.pages
    if fit < 1:
        raise CourseError(
            f"there is no memory for keys and values ({left / GIB:.1f} GiB are free): close other programs"
        )
    return min(fit, args.rows * -(-max_len // args.page_size))
