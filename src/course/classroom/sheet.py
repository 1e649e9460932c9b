"""Tables as people's programs write them: CSV with commas, semicolons or tabs, with or without a byte order mark.

Knows nothing of what the columns mean."""

import codecs
import csv
import io
from collections.abc import Sequence
from pathlib import Path

from course.errors import CourseError
from course.grading.text import FORMULA

_MOST_BYTES = 16 * 2**20
_END = "end of the table"
"""Put below it: a quote that is still open takes it in."""

Row = dict[str, str]


def read_sheet(path: Path) -> list[Row]:
    """The rows by the names of their columns, in lower case with spaces between words; empty lines are left out."""
    lines = _lines(path, _text(path))
    if len(lines) < 2:
        raise CourseError(f"{path} holds no row below its column names: write one line for each student")
    header = [" ".join(cell.replace("_", " ").replace("-", " ").lower().split()) for cell in lines[0]]
    return [_row(path, number, header, line) for number, line in enumerate(lines[1:], 2)]


def _row(path: Path, number: int, header: Sequence[str], line: Sequence[str]) -> Row:
    if any(map(str.strip, line[len(header) :])):
        raise CourseError(
            f"{path} row {number} ({line[0]} ...) has {len(line)} cells for {len(header)} columns: "
            'write "quotes" around a text with the separator in it'
        )
    return dict(zip(header, (cell.strip() for cell in line), strict=False))


def _lines(path: Path, text: str) -> list[list[str]]:
    first, _, rest = text.partition("\n")
    if first.lower().startswith("sep="):  # Excel's own hint
        separator, text = first.strip()[4:5] or "\t", rest
    else:
        separator = max(",;\t", key=_outside_quotes(first).count)
    try:
        table = io.StringIO(f"{text}\n{_END}", newline="")
        lines = list(csv.reader(table, delimiter=separator, skipinitialspace=True))
    except csv.Error as error:
        raise CourseError(f"{path}: {error}: is a quote not closed? Save it as CSV again") from None
    lines = [line for line in lines if any(map(str.strip, line))]
    if lines.pop() != [_END]:
        raise CourseError(f'{path} row {len(lines) + 1}: a quote (") is opened and not closed: close or remove it')
    return lines


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
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


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
