"""Predicted beside measured latencies, for the terminal and for JSON."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rich.table import Table

NAMES = ("TTFT", "TPOT", "E2E")
Comparison = dict[str, dict[str, float]]


def comparison(real: np.ndarray, predicted: np.ndarray) -> Comparison:
    """By latency: the means of both, (requests, 3) in ms, and the error, predicted over measured minus 1."""
    result = {}
    for column, name in enumerate(NAMES):
        seen, said = float(np.nanmean(real[:, column])), float(np.nanmean(predicted[:, column]))
        result[name] = {"measured_ms": seen, "predicted_ms": said, "error": said / seen - 1}
    return result


def error_table(title: str, parts: Mapping[str, Comparison], note: str) -> "Table":
    """For `rich`: a row for each part and latency."""
    from rich.table import Table

    table = Table(title=title, caption=note)
    for heading in ("requests", "mean"):
        table.add_column(heading)
    for heading in ("measured (ms)", "predicted (ms)", "error (%)"):
        table.add_column(heading, justify="right")
    for part, compared in parts.items():
        table.add_section()
        for name, row in compared.items():
            values = f"{row['measured_ms']:,.2f}", f"{row['predicted_ms']:,.2f}", f"{100 * row['error']:+.2f}"
            table.add_row(part, name, *values)
    return table
