"""The points of a sweep as a table, and as CSV."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from course.sim.report import Json
from course.sim.sweep import Point, text

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = {
    "GPUs": ("throughput", "mean_gpus"),
    "req/s": ("throughput", "requests_per_s"),
    "tok/s/GPU": ("throughput", "output_tokens_per_s_per_gpu"),
    "tok/s/user": ("throughput", "tokens_per_s_per_user"),
    "TTFT": ("ttft_ms", "mean"),
    "p99 TTFT": ("ttft_ms", "p99"),
    "TPOT": ("tpot_ms", "mean"),
    "p99 TPOT": ("tpot_ms", "p99"),
    "hits": ("hit_rate", "token"),
    "SLOs met": ("goodput", "attainment"),
    "good/s/GPU": ("goodput", "requests_per_s_per_gpu"),
}
"""Headings of the table, and where the report has them. Latencies in ms."""


def sweep_table(points: Sequence[Point], reports: Sequence[Json]) -> "Table":
    """For `rich`. A pool that is too busy for means to be compared has an exclamation mark."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(
        box=SIMPLE, caption="latencies in ms; hits by token; ! rho above 0.95: means may depend on the window"
    )
    shown = {name: path for name, path in COLUMNS.items() if any(_find(one, path) for one in reports)}
    for name in (*points[0].swept, *shown, "rho"):
        table.add_column(name, justify="right")
    for point, numbers in zip(points, reports, strict=True):
        values = (_find(numbers, path) for path in shown.values())
        cells = ["-" if value is None else f"{value:,.4g}" for value in values]
        table.add_row(*map(text, point.swept.values()), *cells, _rho(numbers))
    return table


def write_sweep_csv(path: Path, points: Sequence[Point], reports: Sequence[Json]) -> None:
    """One line per point, all numbers of its report. Raises OSError."""
    flat = [_flat(numbers) for numbers in reports]
    columns = list(dict.fromkeys(key for one in flat for key in one))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*points[0].swept, *columns])
        for point, one in zip(points, flat, strict=True):
            writer.writerow([*map(text, point.swept.values()), *(one.get(key, "") for key in columns)])


def _find(numbers: Json, path: tuple[str, str]) -> float | None:
    values = numbers[path[0]]
    return None if values is None else values[path[1]]


def _rho(numbers: Json) -> str:
    pools = numbers["pools"].items()
    several = len(pools) > 1
    return " ".join(
        f"{name[0] if several else ''}{pool['rho']:.2f}{'!' if pool['saturated'] else ''}" for name, pool in pools
    )


def _flat(numbers: Json) -> dict[str, object]:
    """The numbers of a report by dotted names, without its lists, its configuration and its workers."""
    found: dict[str, object] = {}
    for key, value in numbers.items():
        if key in ("config", "notes", "format", "by_worker"):
            continue
        if isinstance(value, dict):
            found |= {f"{key}.{inner}": one for inner, one in _flat(value).items()}
        else:
            found[key] = value
    return found
