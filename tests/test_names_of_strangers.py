"""Names that people choose: of themselves, their files and folders. No result file and no terminal obeys one."""

import csv
import json
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from classroom import Class
from conftest import SmallCourse
from grading_course import MORE, Graded
from markdown_it import MarkdownIt

from course.grading.formats import FORMATS
from course.grading.show import show
from course.grading.text import FORMULA

EVIL = '=HYPERLINK("http:x")\x1b]0;own\x07\x1b[2J\n| `<script>alert(1)<script>` ![x](javascript:1) &lt;b> \u202e\x9b31m'
SHORT = "=1+1\x1b[2J<img src=x onerror=1>](javascript:1)|`<i>`"
WRONG = f"""
    def first(x):
        raise ValueError({EVIL!r})

    linear = first

    def second(x):
        print({EVIL!r})
        return {EVIL!r}
    """


def check_text(text: str) -> None:
    """Nothing in it steers a terminal or turns a line around."""
    kinds = {char: unicodedata.category(char) for char in set(text) - set("\n\r\t")}
    assert not [char for char, kind in kinds.items() if kind in ("Cc", "Cf", "Cs")]


def check_table(path: Path) -> None:
    with path.open(newline="", encoding="utf-8-sig") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert cells
    assert not [cell for cell in cells if cell.startswith(FORMULA)]


def check_markdown(path: Path) -> None:
    """It holds headings, tables, lists and code, as rendered with raw HTML allowed: no link, picture or script."""
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(path.read_text(encoding="utf-8"))
    assert "script" in html or "img" in html
    assert not [tag for tag in ("<script", "<img", "<a ", "<i>", "<b>") if tag in html]


def check_no_formula_or_escape(folder: Path, names: set[str]) -> None:
    assert {path.name for path in folder.iterdir() if path.is_file()} >= names
    for name in names:
        check_text((folder / name).read_text(encoding="utf-8-sig"))
    for name in names:
        if name.endswith(".csv"):
            check_table(folder / name)
        if name.endswith(".md"):
            check_markdown(folder / name)
        if name.endswith(".json"):
            json.loads((folder / name).read_text(encoding="utf-8"))
        if name.endswith(".xml"):
            ET.parse(folder / name)


def test_a_grade_obeys_no_name(
    make_course: Callable[[], SmallCourse], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    graded = Graded.of(make_course())
    submission = graded.submission(SHORT, basics=WRONG, more=MORE)
    for name in (f"{SHORT}.py", f"{SHORT}/conftest.py", "``<script>`.py", "\u2028=x.py", "\udcff.py"):
        path = submission / "src/tiny_llm/model" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    (submission / f"src/tiny_llm/model/link{SHORT}").symlink_to("/")
    grade = graded.desk().grade(submission, tmp_path / "out", EVIL)
    assert grade.points == 20
    assert grade.notes
    assert "HYPERLINK" in grade.student
    check_no_formula_or_escape(tmp_path / "out", set(FORMATS))
    show(grade, tmp_path / "out")
    check_text(capsys.readouterr().out)


def test_a_class_obeys_no_name(tmp_path: Path):
    room = Class(tmp_path)
    room.submit(SHORT, "points 10 5")
    room.submit("bob", "points 0 10")
    (room.submit("eve", "points 5 5") / f"src/tiny_llm/model/own_{SHORT}.py").write_text("")
    name = EVIL.replace("\n", " ").replace('"', '""')
    roster = room.write("roster.csv", f'id,name,folder\n=1,"{name}",bob\n+2,"@x\x1b[31m<script>[a](b)",eve\n')
    done = room.run("--roster", roster)
    assert done.returncode in (0, 1), done.stderr
    check_text(done.stdout + done.stderr)
    assert "HYPERLINK" in done.stdout
    files = {"class.csv", "tasks.csv", "mistakes.csv", "class.json", "summary.md"}
    check_no_formula_or_escape(room.out, files)
