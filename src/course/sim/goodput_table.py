"""What the search for the highest rate found, as a table."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from course.sim.report import Json

if TYPE_CHECKING:
    from rich.table import Table


def goodput_table(reports: Mapping[float, Json], best: float, target: float, high: float) -> "Table":
    """For `rich`: all runs by rate, and the result below."""
    from rich.table import Table

    table = Table(
        title=f"Rates at which {target:.0%} of the requests must meet all SLOs", caption=_said(reports, best, high)
    )
    for name in ("rate (req/s)", "SLOs met", "mean TTFT (ms)", "p99 TTFT", "mean TPOT (ms)", "p99 TPOT", "rho"):
        table.add_column(name, justify="right")
    for rate in sorted(reports):
        numbers = reports[rate]
        cells = [
            "-" if numbers[kind] is None else f"{numbers[kind][value]:,.2f}"
            for kind in ("ttft_ms", "tpot_ms")
            for value in ("mean", "p99")
        ]
        rho = " ".join(f"{pool['rho']:.2f}" for pool in numbers["pools"].values())
        style = "bold" if rate == best else None
        table.add_row(f"{rate:.3f}", f"{numbers['goodput']['attainment']:.2%}", *cells, rho, style=style)
    return table


def _said(reports: Mapping[float, Json], best: float, high: float) -> str:
    if not best:
        return "already the lowest rate is too fast: give a lower --low"
    gpus = reports[best]["throughput"]["mean_gpus"]
    at_least = "at least " if best == high else ""
    return f"goodput: {at_least}{best:.3f} requests/s, {best / gpus:.3f} per GPU on {gpus:g} GPUs"
