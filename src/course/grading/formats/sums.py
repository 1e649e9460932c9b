"""The points that each result file tells, read back from the file: they must be the same number."""

import csv
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

from course.grading.grade import rounded, total

Points = tuple[float, float]
_HEADING = re.compile(r"^# .*: ([\d.]+) of ([\d.]+) points$", re.MULTILINE)


def points_told(folder: Path) -> dict[str, set[Points]]:
    """By file, the sums that it tells and those that its parts add up to: of points, and of all there are."""
    return {name: {(rounded(a), rounded(b)) for a, b in read(folder / name)} for name, read in _READERS.items()}


def _own(path: Path) -> list[Points]:
    grade = json.loads(path.read_text())
    return [(grade["points"], grade["max_points"]), _added((t["points"], t["max_points"]) for t in grade["tasks"])]


def _gradescope(path: Path) -> list[Points]:
    result = json.loads(path.read_text())
    sums = _added((test["score"], test["max_score"]) for test in result["tests"])
    return [sums, (result["score"], sums[1])]


def _junit(path: Path) -> list[Points]:
    suites = ET.parse(path).getroot().iter("testsuite")
    values = [{p.get("name"): float(p.get("value")) for p in suite.iter("property")} for suite in suites]
    return [_added((value["points"], value["max_points"]) for value in values if value)]


def _csv(path: Path) -> list[Points]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    pairs = [(float(row["points"]), float(row["max_points"])) for row in rows]
    return [pairs[-1], _added(pairs[:-1])]


def _report(path: Path) -> list[Points]:
    text = path.read_text(encoding="utf-8")
    heading = _HEADING.search(text)
    table = re.findall(r"^\| (Week .*|total) \|.* ([\d.]+)/([\d.]+) \|$", text, re.MULTILINE)
    rows = [(float(a), float(b)) for name, a, b in table if name != "total"]
    return [(float(heading[1]), float(heading[2])), _added(rows)]


def _added(pairs: object) -> Points:
    columns = list(zip(*pairs, strict=True)) or [(), ()]
    return total(columns[0]), total(columns[1])


_READERS: dict[str, Callable[[Path], list[Points]]] = {
    "result.json": _own,
    "results.json": _gradescope,
    "junit.xml": _junit,
    "result.csv": _csv,
    "report.md": _report,
}
