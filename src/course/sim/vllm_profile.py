"""Measured kernels of a real engine as a step-time table: the layout of LLMServingSim's profiles (Cho et al., 2024).

`dense.csv`: layer, tokens, time_us. `per_sequence.csv`: layer, sequences, time_us. `attention.csv`: prefill_chunk,
kv_prefill, n_decode, kv_decode, time_us; of one layer, with kv_prefill positions before the chunk, and kv_decode in
each of the decodes.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from course.errors import CourseError

ONCE = frozenset({"embedding", "final_layernorm", "lm_head", "sampler"})
"""Kernels that run once a step; all others run in each layer."""
TWICE = frozenset({"layernorm"})
"""Kernels that run twice in each layer."""


def read_table(table: ModuleType, folder: Path, layers: int, overhead: float = 0.0) -> object:
    """The `Table` of a folder's three files, for a model of `layers` layers.

    table: the module `cluster.table` of a package. overhead: microseconds of each step.
    """
    dense = totals(rows(folder / "dense.csv", 3), layers)
    sequence = totals(rows(folder / "per_sequence.csv", 3), layers)
    entries = {tuple(map(int, row[:4])): float(row[4]) for row in rows(folder / "attention.csv", 5)}
    return table.Table(table.Line(dense), table.Line(sequence), table.Attention(entries), layers, overhead)


def rows(path: Path, columns: int) -> list[list[str]]:
    """The rows of a CSV file below its heading. Raises CourseError where it is missing, empty, or narrower."""
    try:
        with path.open(newline="") as file:
            found = list(csv.reader(file))[1:]
    except OSError as error:
        raise CourseError(f"{path}: {error.strerror}: expected dense.csv, per_sequence.csv and attention.csv") from None
    if not found or any(len(row) < columns for row in found):
        raise CourseError(f"{path}: expected a heading and rows of {columns} columns")
    return found


def totals(entries: Iterable[Sequence[str]], layers: int) -> list[tuple[int, float]]:
    """(count, microseconds of a whole step), from rows (kernel, count, microseconds of one run)."""
    sums: dict[int, float] = {}
    for kernel, count, time in entries:
        runs = 1 if kernel in ONCE else layers * (1 + (kernel in TWICE))
        sums[int(count)] = sums.get(int(count), 0.0) + runs * float(time)
    return list(sums.items())
