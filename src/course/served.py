"""A model as `serve` and `batch` run it: an engine of chosen parts of one package, behind its HTTP application.

Knows checkpoint folders and the package's public names; no sockets.
"""

import argparse
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.folder import contents, read_config
from course.learner import explained
from course.memory import MIB, available_memory, check_memory
from course.paths import REFERENCE
from course.served_options import page_bytes, pages_of
from course.tokens import load_tokenizer, stop_tokens
from course.trace import TracedEngine
from course.trace_file import TraceFile
from course.variant import COMPILED, Variant, build

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LONGEST = 4096
"""Positions of the longest request, where the model allows more and nobody asks for it."""


@dataclass(frozen=True)
class Served:
    """What the options say, checked. options: keyword arguments of the package's `Options`. trace: where to record."""

    name: str
    folder: Path
    variant: Variant
    dtype: str
    options: dict[str, object]
    trace: TraceFile | None = None

    @classmethod
    def chosen(cls, args: argparse.Namespace, folder: Path, trace: TraceFile | None = None) -> "Served":
        """From the options of `add_options`. Raises CourseError for what cannot work, before anything is loaded."""
        variant = Variant(args.solution, args.ops or ("dense" if args.solution == REFERENCE.name else "python"))
        found, config = contents(folder), read_config(folder)
        form = variant.format(folder, found, args.dtype)
        check_memory(folder, found, form)
        if form.dtype == "float16" and kernels_in_cpp(variant.ops, args.memory, args.attention):
            raise CourseError(
                "--attention kernel computes in float32 or bfloat16, not float16: add --dtype float32, or --attention "
                "gather"
            )
        longest = config.max_position_embeddings or LONGEST
        if (args.max_len or 0) > longest:
            raise CourseError(f"--max-len {args.max_len} exceeds the {longest} positions of {folder.name}: lower it")
        max_len = args.max_len or min(longest, LONGEST)
        if max_len < 2:
            raise CourseError("--max-len 1 leaves no room for an answer: give at least 2")
        names = ("rows", "page_size", "token_budget", "scheduler", "memory", "attention", "loop")
        options = {name: getattr(args, name) for name in names} | {"max_len": max_len}
        left = available_memory() - found.parameters * form.bytes_per_weight
        if args.memory != "rows":
            options["pages"] = pages_of(args, config, form, max_len, left)
        return cls(args.model, folder, variant, form.dtype, options, trace)

    def __str__(self) -> str:
        """One line about what was chosen."""
        rows, longest = self.options["rows"], self.options["max_len"]
        how = f"{self.dtype}, --ops {self.variant.ops}"
        said = f"{self.name} ({how}): {rows} requests at once, each of {longest} tokens"
        if "pages" not in self.options:
            return said
        pages, size = self.options["pages"], self.options["page_size"]
        taken = pages * page_bytes(read_config(self.folder), size, self.dtype)
        return f"{said} at most, which share {pages} pages of {size} tokens ({taken / MIB:.0f} MiB)"

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """Of the model. Raises CourseError where there is none, or it fits another model."""
        return load_tokenizer(self.folder)

    def module(self, name: str) -> ModuleType:
        """A module of the package, such as "serving.server"."""
        return importlib.import_module(f"{self.variant.solution}.{name}")

    def engine(self) -> object:
        """Load the model and assemble its engine. Must run in the thread that will step it.

        Raises CourseError, and what the loaders of a learner's package raise.
        """
        import mlx.core as mx

        parts = self.module("serving.assemble")
        if self._compiles():
            mx.set_default_device(mx.cpu)  # these primitives are written for the CPU, also on a Mac
        try:
            model = parts.load_batched(self.folder, self.variant.ops, getattr(mx, self.dtype), available_memory())
        except (ValueError, FileNotFoundError, MemoryError) as error:
            if self.variant.solution != REFERENCE.name:
                raise  # a learner wants to see where
            raise CourseError(f"cannot load {self.folder}: {error}") from error
        engine = parts.assemble(model, parts.Options(**self.options))
        return engine if self.trace is None else TracedEngine(engine, self.trace)

    def prepare(self) -> None:
        """Build what is compiled, where it is not up to date. Raises CourseError."""
        if self._compiles():
            build(self.variant.solution)

    def app(self, engine: object, limits: object, routes: Sequence[object] = ()) -> object:
        """The package's HTTP application on an `AsyncEngine`. limits: its `Limits`."""
        stop = frozenset(stop_tokens(self.folder, self.tokenizer))
        create = self.module("serving.server").create_app
        return create(engine, self.tokenizer, self.name, stop, limits=limits, routes=routes)

    def start(self, limit: int) -> tuple[object, "Startup"]:
        """An `AsyncEngine` that is not started yet, and what stopped it from starting, later."""
        startup = Startup(self)
        startup.engine = self.module("serving.async_engine").AsyncEngine(startup.build, limit)
        return startup.engine, startup

    def _compiles(self) -> bool:
        parts = self.options["memory"], self.options["attention"]
        return self.variant.ops in COMPILED or kernels_in_cpp(self.variant.ops, *parts)


def kernels_in_cpp(ops: str, memory: str, attention: str) -> bool:
    """Whether attention over pages runs in C++. A Metal table brings kernels of its own."""
    return memory != "rows" and attention == "kernel" and not ops.startswith("metal")


class Startup:
    """Builds the engine, and keeps the error that stopped it. engine: the `AsyncEngine` that it is for."""

    def __init__(self, served: Served):
        self.served = served
        self.engine: object = None
        self.error: Exception | None = None

    def build(self) -> object:
        """The engine. Must run in the thread that will step it."""
        try:
            return self.served.engine()
        except Exception as error:
            self.error = error
            raise

    def check(self) -> None:
        """Raise what stopped the engine from starting, as a CourseError where it is one for the user or learner."""
        if error := self.error or self.engine.error:
            with explained(self.served.variant.solution):
                raise error
