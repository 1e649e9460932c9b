"""What a release tells: what went where, and what stayed here and why; for a reader, or as JSON for a program."""

from collections.abc import Mapping, Sequence

import msgspec

from course.release.selection import summary


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON of `release student` and `release gradescope`; names are those of files."""

    target: str
    dry_run: bool
    weeks: tuple[int, ...]
    added: Sequence[str]
    changed: Sequence[str] = ()
    removed: Sequence[str] = ()
    committed: bool = False
    bytes: int = 0
    private: Sequence[str] = ()
    left_out: Mapping[str, Sequence[str]] = {}


def show(report: Report, later: Sequence[int] = ()) -> None:
    """Print it."""
    from rich.table import Table

    from course.console import console

    out, table = console(), Table(box=None, pad_edge=False, show_header=False)
    table.add_column(ratio=1)
    table.add_column(ratio=2)
    for why, names in report.left_out.items():
        table.add_row(why, ", ".join(summary(list(names))))
    if later:
        table.add_row("not released yet", f"curriculum, tests and chapters of week {', '.join(map(str, later))}")
    out.print("left out:")
    out.print(table)
    if report.private:
        out.print(f"secret, for root only: {', '.join(report.private)}")
    counts = f"added {len(report.added)}, changed {len(report.changed)}, removed {len(report.removed)}"
    size = f", {report.bytes / 1e6:.1f} MB" if report.bytes else ""
    verb = "would write" if report.dry_run else "wrote"
    out.print(
        f"{verb} {report.target}: files {counts}{size}{', committed' if report.committed else ''}", soft_wrap=True
    )


def dump(report: Report) -> None:
    """Print it as JSON."""
    print(msgspec.json.format(msgspec.json.encode(report), indent=1).decode())
