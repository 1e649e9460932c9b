"""An engine from its parts: which scheduler, which memory, which attention, which loop.

The parts of a day are imported when they are asked for, so a day that is not written yet stops no earlier one.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import mlx.core as mx

from ..kernels.tables import DENSE, make_ops
from ..model.checkpoint import load_config, load_weights
from ..model.qwen3 import Qwen3
from .batch_sampler import BatchSampler
from .engine import Engine
from .memory import Memory, RowMemory
from .model_runner import Caches, DenseRows, ModelRunner
from .ragged import batched
from .scheduler import Scheduler

# ANCHOR: parts
SCHEDULERS = {
    "fcfs": (".scheduler", "Scheduler"),
    "chunked": (".chunked", "ChunkedScheduler"),
    "mixed": (".mixed", "MixedScheduler"),
}
MEMORIES = {
    "rows": (".memory", "RowMemory"),
    "paged": (".paged_memory", "PagedMemory"),
    "prefix": (".prefix_memory", "PrefixMemory"),
}
ATTENTIONS = ("gather", "kernel")
LOOPS = {"normal": (".engine", "Engine"), "overlap": (".overlap", "OverlapEngine")}
# ANCHOR_END: parts


@dataclass(frozen=True)
class Options:
    """How to build an engine; names are keys of the tables above.

    rows: requests that run at once. max_len: positions that the longest may have, prompt and answer; None: as many as
    the model knows. page_size: positions of a page. pages: of the pool; None: enough for all rows at full length.
    token_budget: tokens that one batch takes. The attention of memory "rows" is the table's own.
    """

    rows: int = 32
    max_len: int | None = None
    page_size: int = 16
    pages: int | None = None
    token_budget: int = 512
    scheduler: str = "chunked"
    memory: str = "prefix"
    attention: str = "kernel"
    loop: str = "overlap"


def load_batched(folder: Path, ops: str, dtype: mx.Dtype | None = None, memory_limit: int | None = None) -> Qwen3:
    """The model in `folder` with the table called `ops` for batches. Raises what the loaders raise."""
    if ops in DENSE:
        config = load_config(folder)
        weights = load_weights(folder, config, dtype, memory_limit)
        mx.eval(weights)
        return Qwen3(config, weights, batched(make_ops(ops)))
    from ..kernels.load import load_packed_model

    return load_packed_model(folder, batched(make_ops(ops)), dtype, memory_limit)


def assemble(model: Qwen3, options: Options) -> Engine:
    """An engine for a model whose table is `batched`. Must run in the thread that will step it."""
    max_len = options.max_len or model.config.max_position_embeddings
    memory = make_memory(options, max_len)
    scheduler: Scheduler = part(SCHEDULERS, options.scheduler)(memory, options.token_budget)
    caches = make_caches(model, memory, options)
    return part(LOOPS, options.loop)(scheduler, make_runner(model, caches, options, max_len))


def make_runner(model: Qwen3, caches: Caches, options: Options, max_len: int) -> ModelRunner:
    """A runner that takes tokens from the host, or, for a loop that launches ahead, from a pool on the device."""
    if options.loop == "normal":
        return ModelRunner(model, caches, BatchSampler())
    from .pool_runner import PoolRunner
    from .token_pool import TokenPool

    return PoolRunner(model, caches, BatchSampler(), TokenPool(options.rows, max_len))


def make_memory(options: Options, max_len: int) -> Memory:
    """The memory that `options` name."""
    if options.memory == "rows":
        return RowMemory(options.rows, max_len)
    pages = options.pages or options.rows * -(-max_len // options.page_size)
    return part(MEMORIES, options.memory)(options.rows, max_len, options.page_size, pages)


def make_caches(model: Qwen3, memory: Memory, options: Options) -> Caches:
    """Where the keys and values of `memory` are."""
    if options.memory == "rows":
        return DenseRows(len(model.layers))
    from ..cache.pool import PagePool

    pool = PagePool(model.config, memory.pages, memory.page_size, model.norm.weight.dtype)
    if options.attention == "gather":
        from .paged_rows import PagedRows

        return PagedRows(pool, memory.table)
    if options.attention == "kernel":
        from .paged_layer import KernelRows

        return KernelRows(pool, memory.table, model.ops)
    raise ValueError(f"attention {options.attention!r} is not known: choose one of {', '.join(ATTENTIONS)}")


def part(table: dict[str, tuple[str, str]], name: str) -> type:
    """The class that `name` stands for. Raises ValueError for a name that is not in the table."""
    if name not in table:
        raise ValueError(f"{name!r} is not known: choose one of {', '.join(table)}")
    module, attribute = table[name]
    return getattr(import_module(module, __package__), attribute)
