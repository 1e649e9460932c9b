"""What a load test found, with the names and definitions of vLLM's serving benchmark. Times are in milliseconds.

TTFT: from sending to the first piece. TPOT: of one request, the time from its first to its last piece for each token
after the first. ITL: every gap between two pieces. E2EL: from sending to the end of the answer.
"""

from collections.abc import Sequence

import numpy as np
from benches.common.load_client import Answer

METRICS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL"}


def latencies(answer: Answer) -> dict[str, float]:
    """TTFT, TPOT and E2EL of one successful request, in ms; TPOT is 0 for a single token."""
    first, last = answer.pieces[0], answer.pieces[-1]
    after = max(answer.output_tokens - 1, 1)
    return {
        "ttft": 1e3 * (first - answer.sent),
        "tpot": 1e3 * (last - first) / after,
        "e2el": 1e3 * (answer.done - answer.sent),
    }


def report(answers: Sequence[Answer], goals: dict[str, float]) -> dict[str, object]:
    """The numbers of a run. goals: upper limits in ms by metric; goodput counts the requests that meet all of them."""
    good = [answer for answer in answers if answer.error is None]
    duration = max(a.done for a in answers) - min(a.sent for a in answers)
    single = [latencies(answer) for answer in good]
    series = {name: [one[name] for one in single] for name in ("ttft", "tpot", "e2el")}
    series["itl"] = [1e3 * gap for a in good for gap in np.diff(a.pieces)]
    tokens = sum(a.output_tokens for a in good)
    inputs = sum(a.input_tokens for a in good)
    numbers: dict[str, object] = {
        "completed": len(good),
        "failed": len(answers) - len(good),
        "errors": sorted({a.error for a in answers if a.error})[:5],
        "duration_s": duration,
        "input_tokens": inputs,
        "output_tokens": tokens,
        "requests_per_s": len(good) / duration,
        "output_tokens_per_s": tokens / duration,
        "total_tokens_per_s": (tokens + inputs) / duration,
        **{f"{name}_ms": summary(series[name]) for name in METRICS},
    }
    if goals:
        met = sum(all(one[name] <= limit for name, limit in goals.items()) for one in single)
        numbers["goodput_requests_per_s"] = met / duration
    return numbers


def summary(values: Sequence[float]) -> dict[str, float]:
    """Mean and percentiles; zeros where there is nothing."""
    values = values or [0.0]
    points = dict(zip(("p50", "p90", "p99"), np.percentile(values, (50, 90, 99)).tolist(), strict=True))
    return {"mean": float(np.mean(values)), **points}


def lines(numbers: dict[str, object]) -> list[str]:
    """The report as a table."""
    rows = [
        ("requests completed", f"{numbers['completed']}"),
        ("requests failed", f"{numbers['failed']}"),
        ("duration (s)", f"{numbers['duration_s']:.2f}"),
        ("input tokens", f"{numbers['input_tokens']}"),
        ("output tokens", f"{numbers['output_tokens']}"),
        ("requests/s", f"{numbers['requests_per_s']:.2f}"),
        ("output tokens/s", f"{numbers['output_tokens_per_s']:.1f}"),
        ("total tokens/s", f"{numbers['total_tokens_per_s']:.1f}"),
    ]
    if "goodput_requests_per_s" in numbers:
        rows.append(("goodput (requests/s)", f"{numbers['goodput_requests_per_s']:.2f}"))
    table = [f"{name:<24}{value:>12}" for name, value in rows]
    table.append(f"{'':<10}{'mean':>10}{'p50':>10}{'p90':>10}{'p99':>10}   ms")
    for name, title in METRICS.items():
        found = numbers[f"{name}_ms"]
        table.append(f"{title:<10}" + "".join(f"{found[key]:>10.1f}" for key in ("mean", "p50", "p90", "p99")))
    return table + [f"error: {text}" for text in numbers["errors"]]
