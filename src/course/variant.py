"""Which of a package's ways to run the model: a table of operations and a cache, chosen by name.

Knows the modules to call and in which order. Whatever else a program wants to know of a way is in `Variant`.
"""

import argparse
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from course.checkpoint_json import Packing
from course.errors import CourseError
from course.folder import Contents, read_config
from course.memory import Format, default_dtype
from course.paths import EXTENSION, REFERENCE, extension_folder, package_folder
from course.solutions import SOLUTIONS, add_solution

if TYPE_CHECKING:
    import mlx.core as mx

OPS = {
    "python": "plain array operations on unpacked weights",
    "dense": "unpacked weights, what stands between products in C++",
    "packed": "4-bit weights, unpacked for each product",
    "cpu": "4-bit products in C++",
    "fused": "a few C++ primitives per block",
    "flash": "fused, with flash attention",
    "metal": "Metal kernels, on the kernel emulator where there is no GPU",
    "metal-flash": "metal, with flash attention",
}
CACHES = ("none", "dense")
UNPACKED = {"python", "dense"}
COMPILED = {"dense", "cpu", "fused", "flash"}
GROUPS = Packing(bits=4, group_size=64)  # what `kernels.load` makes of an unpacked checkpoint


@dataclass(frozen=True)
class Variant:
    """A table, and a cache or none, of one solution package."""

    solution: str = SOLUTIONS[0]
    ops: str = "python"
    cache: str = "none"

    @classmethod
    def chosen(cls, args: argparse.Namespace) -> "Variant":
        """What the options of `add_options` say. A learner's package may have no cache yet, so it must be asked for."""
        return cls(args.solution, args.ops, args.cache or ("dense" if args.solution == REFERENCE.name else "none"))

    def module(self, name: str) -> ModuleType:
        """A module of the package, such as "text.generate"."""
        return importlib.import_module(f"{self.solution}.{name}")

    def packing(self, folder: Path) -> Packing | None:
        """How this table holds the matrices of the checkpoint in `folder`; None: one number each."""
        return None if self.ops in UNPACKED else read_config(folder).quantization or GROUPS

    def format(self, folder: Path, found: Contents, dtype: str | None) -> Format:
        """How the weights of the checkpoint in `folder` are held. dtype: the user's choice, "stored" for the files'.

        Raises CourseError for what the kernels of this table do not take.
        """
        packing = self.packing(folder)
        dtype = found.dtype if dtype == "stored" else dtype or default_dtype(found, packing=packing)
        if self.ops in COMPILED and dtype == "float16":
            raise CourseError(f"--ops {self.ops} computes in float32 or bfloat16, not float16: add --dtype float32")
        if self.ops != "packed" and packing is not None and packing.bits != 4:
            raise CourseError(f"--ops {self.ops} takes 4-bit weights, not {packing.bits}: try --ops packed")
        return Format(dtype, packing, found.dtype)

    def load(self, folder: Path, dtype: str, memory_limit: int | None = None) -> "Callable[[mx.array], mx.array]":
        """A model that scores the next token of a whole prefix: tokens (B, L) -> logits (B, L or 1, V).

        Builds the package's C++ extension first where the table needs it and its sources have changed. Raises what
        the package raises; CourseError for an extension that does not build.
        """
        model = self.load_plain(folder, dtype, memory_limit)
        return self.cached(model)

    def load_plain(self, folder: Path, dtype: str, memory_limit: int | None = None):
        """The package's `Qwen3` without the cache; as for `load`."""
        import mlx.core as mx

        if self.ops == "python":
            return self.module("model.checkpoint").load_model(folder, getattr(mx, dtype), memory_limit)
        if self.ops in COMPILED:
            build(self.solution)
            mx.set_default_device(mx.cpu)  # its primitives are written for the CPU, also on a Mac
        ops = self.module("kernels.tables").make_ops(self.ops)
        if self.ops in UNPACKED:
            checkpoint = self.module("model.checkpoint")
            config = checkpoint.load_config(folder)
            weights = checkpoint.load_weights(folder, config, getattr(mx, dtype), memory_limit)
            return self.module("model.qwen3").Qwen3(config, weights, ops)
        return self.module("kernels.load").load_packed_model(folder, ops, getattr(mx, dtype), memory_limit)

    def cached(self, model):
        """`model` with this variant's cache, empty; `model` itself without one."""
        if self.cache == "none":
            return model
        dense = self.module("cache.dense").DenseCache
        return self.module("cache.cached").CachedModel(model, dense)


def add_options(parser: "argparse._ActionsContainer", ops: str = "python") -> None:
    """The options that choose a variant; `ops` is the default table."""
    add_solution(parser, "whose code runs")
    tables = "; ".join(f"{name}: {what}" for name, what in OPS.items())
    parser.add_argument("--ops", choices=list(OPS), default=ops, help=f"who computes a block's steps. {tables}")
    kept = "whether keys and values are kept (default: dense; none for tiny_llm, which gets its cache in Week 2)"
    parser.add_argument("--cache", choices=CACHES, help=kept)


def build(solution: str) -> None:
    """Build the package's C++ extension if its sources have changed, and say so. Raises CourseError."""
    from course.build import ensure_built, is_stale

    package = package_folder(solution)
    sources = extension_folder(package)
    if is_stale(sources, package, EXTENSION):
        print(f"building {sources.name} (takes a minute or more)", file=sys.stderr, flush=True)
    ensure_built(sources, package, EXTENSION)
