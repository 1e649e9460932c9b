"""One line of CSV per request. Times are ms with six decimals: whole ns, nothing rounded."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.goodput import Objective
    from tiny_llm_ref.cluster.record import Record
    from tiny_llm_ref.cluster.run import Run

STAMPS = ("arrival", "prefill_start", "prefill_end", "transfer_start", "transfer_end", "decode_start", "done")
COLUMNS = (
    "uid",
    "input_tokens",
    "output_tokens",
    "hit_tokens",
    "prefill_worker",
    "decode_worker",
    "migrations",
    "finish_reason",
    "slo_met",
    *(f"{name}_ms" for name in STAMPS),
    "ttft_ms",
    "tpot_ms",
    "e2e_ms",
)


def write_csv(path: Path, run: "Run", objective: "Objective") -> None:
    """Write it. Raises OSError."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(list(_row(record, objective)) for record in run.records.values())


def _row(record: "Record", objective: "Objective") -> Iterator[str | int]:
    yield from (record.uid, record.input_length, record.output_length, record.hit_tokens)
    yield from (record.prefill_worker or "", record.decode_worker or "", record.migrations)
    yield from (record.finish_reason or "", int(objective.met(record)))
    yield from (_ms(getattr(record, name)) for name in STAMPS)
    tpot = record.tpot
    yield from (_ms(record.ttft), "" if tpot is None else f"{tpot / 1e6:.6f}", _ms(record.e2e))


def _ms(time: int | None) -> str:
    return "" if time is None else f"{int(time) // 1_000_000}.{int(time) % 1_000_000:06d}"
