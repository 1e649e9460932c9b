"""The summary of a run on the terminal, laid out as vLLM's benchmark does it, with definitions named."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from course.sim.report import Json

if TYPE_CHECKING:
    from rich.table import Table

LATENCIES = {
    "ttft_ms": ("Time to first token", "TTFT"),
    "tpot_ms": ("Time per output token (without the first)", "TPOT"),
    "itl_ms": ("Inter-token latency (all gaps pooled)", "ITL"),
    "e2e_ms": ("End-to-end time", "E2E"),
}


def summary_table(numbers: Json) -> "Table":
    """For `rich`."""
    from rich.table import Table

    window = numbers["window"]
    title = f"Simulated run, seed {numbers['config']['goals']['seed']}"
    said = f"window: {window['name']}, {window['start_s']:,.2f} to {window['end_s']:,.2f} s"
    table = Table(title=title, caption=said, show_header=False, min_width=56)
    table.add_column()
    table.add_column(justify="right")
    for name, values in sections(numbers):
        if not values:
            continue
        table.add_section()
        if name:
            table.add_row(f"[bold]{name}[/bold]", "")
        for key, value in values:
            table.add_row(key, value)
    return table


def sections(numbers: Json) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Parts of the table: a heading, and rows of a name and a value."""
    yield "", list(_counts(numbers))
    yield "Throughput", list(_throughput(numbers["throughput"]))
    for key, (heading, short) in LATENCIES.items():
        if values := numbers[key]:
            names = {"mean": "Mean", "p50": "Median", "p90": "P90", "p99": "P99", "most": "Max"}
            yield heading, [(f"{said} {short} (ms)", f"{values[name]:,.2f}") for name, said in names.items()]
    hits = numbers["hit_rate"]
    yield "Prefix cache hits", [(f"{name.capitalize()}-weighted", f"{value:.4f}") for name, value in hits.items()]
    if goodput := numbers["goodput"]:
        yield "Goodput (all SLOs met)", list(_goodput(numbers, goodput))
    yield "Pools", list(_pools(numbers["pools"]))
    moves = numbers["transfers"]
    if moves["done"] or moves["failed"]:
        rows = [("KV transfers (failed)", f"{moves['done']:,} ({moves['failed']:,})")]
        rows.append(("KV moved (GiB)", f"{moves['bytes'] / 2**30:,.2f}"))
        mean = moves["mean_ms"]
        yield "Transfers", [*rows, ("Mean transfer (ms)", "-" if mean is None else f"{mean:,.2f}")]


def _counts(numbers: Json) -> Iterator[tuple[str, str]]:
    requests = numbers["requests"]
    yield "Successful requests", f"{requests['complete']:,}"
    for reason, count in requests["by_finish_reason"].items():
        if reason not in ("stop", "length"):
            yield f"  {reason}", f"{count:,}"
    if requests["migrated"]:
        yield "  moved to another worker", f"{requests['migrated']:,}"
    yield "Measured duration (s)", f"{numbers['window']['seconds']:,.2f}"
    yield "Total input tokens", f"{requests['input_tokens']:,}"
    yield "Total generated tokens", f"{requests['output_tokens']:,}"


def _throughput(values: Json) -> Iterator[tuple[str, str]]:
    yield "Request throughput (req/s)", f"{values['requests_per_s']:,.2f}"
    yield "Output token throughput (tok/s)", f"{values['output_tokens_per_s']:,.2f}"
    yield "Total token throughput (tok/s)", f"{values['total_tokens_per_s']:,.2f}"
    yield "Output tok/s per GPU", f"{values['output_tokens_per_s_per_gpu']:,.2f}"
    if values["tokens_per_s_per_user"] is not None:
        yield "Output tok/s per user (1 / mean TPOT)", f"{values['tokens_per_s_per_user']:,.2f}"


def _goodput(numbers: Json, values: Json) -> Iterator[tuple[str, str]]:
    goals = numbers["config"]["goals"]
    bounds = {"TTFT": goals["slo_ttft_ms"], "TPOT": goals["slo_tpot_ms"], "E2E": goals["slo_e2e_ms"]}
    yield "SLOs", ", ".join(f"{name} <= {bound:g} ms" for name, bound in bounds.items() if bound is not None)
    yield "Attainment", f"{100 * values['attainment']:.2f} %"
    yield "Goodput (req/s)", f"{values['requests_per_s']:,.2f}"
    yield "Goodput per GPU (req/s)", f"{values['requests_per_s_per_gpu']:,.3f}"


def _pools(pools: Json) -> Iterator[tuple[str, str]]:
    for name, pool in pools.items():
        flag = " (above 0.95)" if pool["saturated"] else ""
        yield f"{name}: {pool['workers']} workers, {pool['mean_gpus']:.4g} GPUs", f"rho {pool['rho']:.3f}{flag}"
