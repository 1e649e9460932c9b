"""What the chapters for learners and instructors say, held against the registry, the course file and the commands."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from course import leaderboard
from course.book import command_help, lint_commands, protections
from course.book.library import Library
from course.book.page import BookError, Page, fences
from course.boundary import MODES
from course.boundary import protections as promises
from course.curriculum import Curriculum, load
from course.grading.course_file import load_course
from course.grading.formats import FORMATS
from course.grading.rules import TABLES
from course.help_page import WIDTH, parser_of
from course.manual import GROUPS, Manual, command_names
from course.paths import BOOK, ROOT

STUDYING, TEACHING, COMMANDS = (
    Page(name, (BOOK / "src" / name).read_text(encoding="utf-8"))
    for name in ("studying.md", "teaching.md", "commands.md")
)


@pytest.fixture(scope="module")
def registry() -> Curriculum:
    return load()


def needed(registry: Curriculum, day: str) -> set[str]:
    """A day and all that it builds on, directly or not."""
    week, number = map(int, day.split("."))
    return {day}.union(*(needed(registry, one) for one in registry.day(week, number).needs))


def days(*parts: str) -> set[str]:
    """ "1" is a whole week, "2.1-4" four days."""
    found = set()
    for part in parts:
        week, _, span = part.partition(".")
        first, _, last = (span or "1-7").partition("-")
        found |= {f"{week}.{day}" for day in range(int(first), int(last or first) + 1)}
    return found


def test_the_plan_has_the_hours_of_the_registry(registry: Curriculum):
    for week in registry.weeks:
        hours = f"{sum(day.hours for day in week.days):g}"
        assert f"| Week {week.week} | {hours} |" in STUDYING.text


@pytest.mark.parametrize(
    ("goal", "told"),
    [
        ("2.4", days("1", "2.1-4")),
        ("2.6", days("1", "2.1-3", "2.5-6")),
        ("2.7", days("1", "2")),
        ("3.7", days("1", "2.1", "3.1-3", "3.5-7")),
        ("4.7", days("1", "2.1", "3.1-3", "3.5", "4")),
    ],
)
def test_the_shortest_ways_are_enough_and_short(registry: Curriculum, goal: str, told: set[str]):
    missing = needed(registry, goal) - told
    assert not missing
    assert told - needed(registry, goal) <= {"1.7"}, "not needed: say so in studying.md"


def test_nothing_needs_the_days_that_may_be_skipped(registry: Curriculum):
    skipped = days("2.5-7", "3.4")
    needing = {f"{day.week}.{day.day}" for day in registry.days if skipped.intersection(day.needs)}
    assert needing <= skipped


def test_the_course_file_of_the_chapter_has_every_key_and_is_valid(registry: Curriculum, tmp_path: Path):
    first, included = (fence.body for fence in fences(TEACHING.text) if fence.language == "toml")
    (tmp_path / "course.toml").write_text(first)
    assert load_course(tmp_path / "course.toml", registry).days
    name = re.fullmatch(r"\{\{#include ../../(course.example.toml)\}\}", included.strip())[1]
    load_course(ROOT / name, registry)
    whole = (ROOT / name).read_text(encoding="utf-8")
    for table, rules in TABLES.items():
        assert not table or f"[{table}]" in whole
        for key in rules.keys() - {"*"}:
            assert re.search(rf"^(# )?{key} = ", whole, re.MULTILINE), f"{key} is missing in {name}"


def test_the_chapter_names_every_result_file():
    for name in FORMATS:
        assert f"| `{name}` |" in TEACHING.text


def test_the_chapter_names_every_workload():
    for name in leaderboard.NAMES:
        assert f"| `{name}` |" in TEACHING.text


def test_the_table_of_promises_is_the_grader_s_own(registry: Curriculum):
    html = protections.render(registry, TEACHING, 1, "")
    rows = re.findall(r"<tr><td><strong>(.*?)</strong>.*?</td>((?:<td>\w+</td>)+)</tr>", html)
    assert len(rows) == len(promises(next(iter(MODES))))
    for column, mode in enumerate(MODES):
        found = {name: re.findall(r"<td>(\w+)</td>", cells)[column] for name, cells in rows}
        assert found == {one.name: "yes" if one.on else "no" for one in promises(mode)}
        assert f"| `{mode}` |" in TEACHING.text


def test_the_reference_of_commands_has_each_of_them_in_order():
    listed = re.findall(r"^### ([\w-]+)\n\n\{\{#command ([\w-]+)\}\}$", COMMANDS.text, re.MULTILINE)
    assert [name for name, _ in listed] == [directive for _, directive in listed]
    assert [name for name, _ in listed] == [name for group in GROUPS.values() for name in group]
    assert sorted(name for name, _ in listed) == command_names()


def test_a_command_in_the_book_says_what_its_help_says(registry: Curriculum):
    html = command_help.render(registry, COMMANDS, 1, "test")
    assert "\n\n" not in html, "Markdown would end the block there"
    for example in Manual.of("test").examples:
        assert example.line in html
    whole = html.partition("<pre>")[2].partition("</pre>")[0].replace("&#10;", "\n").replace("&lt;", "<")
    assert whole.replace("\n\n\n", "\n\n") == parser_of("test", WIDTH).format_help().rstrip()


def test_a_command_that_a_release_lacks_is_told_and_a_misspelt_one_refused(
    registry: Curriculum, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(BookError, match="no command 'tset'"):
        command_help.render(registry, COMMANDS, 1, "tset")
    monkeypatch.setattr(command_help, "command_names", lambda: ["test"])
    assert "not in this copy" in command_help.render(registry, COMMANDS, 1, "release")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "book/README.md"])
def test_command_lines_outside_of_the_book_are_real(name: str):
    shell = [fence.body for fence in fences((ROOT / name).read_text(encoding="utf-8")) if fence.language == "bash"]
    page = Page(name, "".join(f"```bash\n{body}\n```\n" for body in shell))
    assert not list(lint_commands.check(replace(Library.load(), pages={name: page})))
