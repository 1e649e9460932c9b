"""Tables as people's programs write them: CSV with commas, semicolons or tabs, with or without a byte order mark.

Knows nothing of what the columns mean."""

import codecs
import csv
import io
from collections.abc import Sequence
from pathlib import Path

from course.errors import CourseError

_MOST_BYTES = 16 * 2**20
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Row = dict[str, str]


def read_sheet(path: Path) -> list[Row]:
    """The rows by the names of their columns, in lower case with spaces between words; empty lines are left out."""
    lines = _lines(path, _text(path))
    if len(lines) < 2:
        raise CourseError(f"{path} holds no row below its column names: write one line for each student")
    header = [" ".join(cell.replace("_", " ").replace("-", " ").lower().split()) for cell in lines[0]]
    return [dict(zip(header, (cell.strip() for cell in line), strict=False)) for line in lines[1:]]


def _lines(path: Path, text: str) -> list[list[str]]:
    first, _, rest = text.partition("\n")
    if first.lower().startswith("sep="):  # Excel's own hint
        separator, text = first.strip()[4:5] or "\t", rest
    else:
        separator = max(",;\t", key=_outside_quotes(first).count)
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True))
    except csv.Error as error:
        raise CourseError(f"{path}: {error}: save it as CSV again") from None
    return [line for line in lines if any(map(str.strip, line))]


def column(row: Row, names: Sequence[str]) -> str:
    """The first cell among `names` that is not empty; "" where there is none."""
    return next((row[name] for name in names if row.get(name)), "")


def write_sheet(path: Path, header: Sequence[str], rows: Sequence[Sequence[str | int | float]]) -> None:
    """Write CSV that spreadsheets read as text and numbers: no cell of it can become a formula."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_harmless(cell) for cell in row] for row in rows)
    path.write_bytes(codecs.BOM_UTF8 + out.getvalue().encode())  # without the mark, Excel takes it for Latin 1


def _harmless(cell: str | int | float) -> str | int | float:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise CourseError(f"{path} is larger than {_MOST_BYTES // 2**20} MiB: it is not a list of students")
        data = path.read_bytes()
    except OSError as error:
        raise CourseError(f"{path}: {error.strerror}: name a CSV file") from None
    encodings = ("utf-16",) if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else ("utf-8-sig", "cp1252")
    for encoding in encodings:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise CourseError(f"{path} is not text: save it as CSV in UTF-8")


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])
