"""Recorded workloads: Mooncake's JSONL and Azure's CSV. A broken line is an error that names the file and the line.

Functions take the package's module "workload", whose `Arrival` they make.
"""

import csv
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain, pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec

from course.errors import CourseError

if TYPE_CHECKING:
    import numpy as np

    from tiny_llm_ref.cluster.workload import Arrival

MS = 1_000_000
LATEST = 1e11
"""ms: three years."""
LONGEST = 10_000_000
"""Tokens."""
_AZURE = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]


class TraceError(CourseError):
    """A line of a trace that cannot be meant: file, line, what is wrong, what was expected."""


class _MooncakeLine(msgspec.Struct):
    """One line: timestamp in ms, lengths in tokens, one id per block of 512 tokens."""

    timestamp: float
    input_length: int
    output_length: int
    hash_ids: list[int]


def read_trace(workload: ModuleType, path: Path, jitter: "np.random.Generator | None" = None) -> list["Arrival"]:
    """A trace in the format that its first line shows. Raises TraceError, and OSError for a file that is not there.

    jitter: spread the requests of a tick, in a Mooncake trace.
    """
    first = next((line for _, line in _lines(path)), "")
    return read_mooncake(workload, path, jitter) if first.startswith("{") else read_azure(workload, path)


def read_mooncake(
    workload: ModuleType, path: Path, jitter: "np.random.Generator | None" = None, block_tokens: int | None = None
) -> list["Arrival"]:
    """A trace as Mooncake publishes it (FAST'25), in the order of its times.

    Its times are rounded down to ticks of about 3 s; with `jitter` the requests of a tick are spread evenly over the
    time to the next tick. Raises TraceError for a line that is not such a record, or whose ids do not fit its length.
    """
    size = block_tokens or workload.BLOCK_TOKENS
    decoder = msgspec.json.Decoder(_MooncakeLine)
    arrivals = []
    for number, line in _lines(path):
        try:
            row = decoder.decode(line)
        except msgspec.DecodeError as error:  # msgspec.ValidationError is one of these
            wanted = ", ".join(_MooncakeLine.__struct_fields__)
            raise TraceError(f"{path}:{number}: {error}: expected {wanted}") from None
        expected = workload.blocks(row.input_length, size)
        if len(row.hash_ids) != expected:
            raise TraceError(
                f"{path}:{number}: {len(row.hash_ids)} hash_ids for {row.input_length} tokens: expected {expected}, "
                f"one for each {size} tokens"
            )
        if row.timestamp > LATEST:
            raise TraceError(
                f"{path}:{number}: timestamp {row.timestamp:g} ms: the limit is {LATEST:g}, from 0 at the start"
            )
        _check(path, number, time := round(row.timestamp * MS), row.input_length, row.output_length)
        arrivals.append(workload.Arrival(time, row.input_length, row.output_length, tuple(row.hash_ids)))
    arrivals.sort(key=lambda arrival: arrival.time_ns)
    return arrivals if jitter is None else spread_ticks(arrivals, jitter)


def spread_ticks(arrivals: Sequence["Arrival"], rng: "np.random.Generator") -> list["Arrival"]:
    """Arrivals in order of their times, each moved evenly into the time between its tick and the next one.

    The last tick is taken to be as long as the one before it.
    """
    ticks = list(dict.fromkeys(arrival.time_ns for arrival in arrivals))
    if len(ticks) < 2:
        return list(arrivals)
    length = {tick: after - tick for tick, after in pairwise(chain(ticks, [2 * ticks[-1] - ticks[-2]]))}
    moved = [
        arrival._replace(time_ns=arrival.time_ns + int(share * length[arrival.time_ns]))
        for arrival, share in zip(arrivals, rng.random(len(arrivals)).tolist(), strict=True)
    ]
    return sorted(moved, key=lambda arrival: arrival.time_ns)


def read_azure(workload: ModuleType, path: Path) -> list["Arrival"]:
    """A trace as Azure publishes it (TIMESTAMP,ContextTokens,GeneratedTokens), the first request at 0.

    It says nothing of shared prefixes: no hash ids. Requests without an answer are left out: nothing was generated.
    Raises TraceError for another header, or a line that is not a time and two counts.
    """
    rows = ((number, next(csv.reader([line]))) for number, line in _lines(path))
    number, header = next(rows, (1, []))
    if header != _AZURE:
        raise TraceError(f"{path}:{number}: the header is {','.join(header)!r}: expected {','.join(_AZURE)}")
    arrivals = []
    for number, row in rows:
        try:
            stamp, context, generated = row
            time, lengths = _time(stamp), (int(context), int(generated))
        except ValueError:
            raise TraceError(
                f"{path}:{number}: {','.join(row)!r}: expected a time like 2023-11-16 18:15:46.6805900 and two counts"
            ) from None
        if lengths[1] != 0:
            _check(path, number, time, *lengths)
            arrivals.append(workload.Arrival(time, *lengths))
    start = min((arrival.time_ns for arrival in arrivals), default=0)
    if arrivals and max(arrival.time_ns for arrival in arrivals) - start > LATEST * MS:
        raise TraceError(f"{path}: from its first request to its last are more than {LATEST:g} ms, the limit: cut it")
    return sorted((arrival._replace(time_ns=arrival.time_ns - start) for arrival in arrivals), key=lambda a: a.time_ns)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1. Raises TraceError for what is not text."""
    try:
        with path.open(encoding="utf-8-sig", newline=None) as file:
            yield from ((number, line.strip()) for number, line in enumerate(file, 1) if line.strip())
    except UnicodeDecodeError:
        raise TraceError(f"{path} is not a text file: expected a trace, unpacked") from None


def _time(stamp: str) -> int:
    """ns of a time stamp with up to nine decimals; `datetime` alone keeps six."""
    date, _, fraction = stamp.removesuffix("+00:00").partition(".")
    if fraction and not (fraction.isdecimal() and len(fraction) <= 9):
        raise ValueError(stamp)
    since = datetime.fromisoformat(date) - datetime(1970, 1, 1)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + int(fraction.ljust(9, "0"))


def _check(path: Path, number: int, time: int, length: int, answer: int) -> None:
    """Raise TraceError for a time before 0, an empty prompt or an empty answer, and for what no deployment can hold."""
    if max(length, answer) > LONGEST:
        raise TraceError(f"{path}:{number}: {length} tokens in, {answer} out: the limit is {LONGEST:,} each")
    if time < 0 or length < 1 or answer < 1:
        raise TraceError(
            f"{path}:{number}: time {time} ns, {length} tokens in, {answer} out: "
            "expected a time from 0 on, and at least one token each"
        )
