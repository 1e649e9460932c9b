"""The manual: each command has a page, its examples do what they say, and help comes at once."""

import argparse
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from prepared_checkouts import Checkouts, environment
from terminal import Terminal

from course import cli
from course.help_page import CommandParser, parser_of
from course.manual import GROUPS, Example, Manual, command_module, command_names, grouped
from course.paths import ROOT

NAMES = command_names()
SCRIPTS = {
    name: shlex.split(line)[3:]
    for name, line in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pdm"]["scripts"].items()
    if line.startswith("python -m course ")
}
EXAMPLES = [(name, example) for name in NAMES for example in Manual.of(name).examples]
HEAVY = {"rich", "numpy", "mlx", "pytest", "psutil", "matplotlib", "watchfiles", "hypothesis"}
QUICK = 0.8
"""s of CPU for a page of help, on a slow machine of others. (On an idle one it is a tenth of a second.)"""


def words_of(example: Example) -> list[str]:
    """What the course's command line gets of a line of the manual."""
    pdm, run, script, *rest = shlex.split(example.line)
    assert (pdm, run) == ("pdm", "run")
    return SCRIPTS[script] + rest


def page(name: str) -> str:
    return parser_of(name).format_help()


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and those of its subcommands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from parsers(one)


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> Checkouts:
    return Checkouts(tmp_path_factory.mktemp("checkouts"))


@pytest.mark.parametrize(("name", "example"), [pytest.param(n, e, id=e.line) for n, e in EXAMPLES])
def test_example_does_what_it_says(name: str, example: Example, checkouts: Checkouts):
    words = words_of(example)
    parser_of(words[0]).parse_args(words[1:])
    if example.untried:
        pytest.skip(example.untried)
    root = checkouts.of(name, example.needs)
    done = subprocess.run(
        [sys.executable, "-m", "course", *words],
        cwd=root,
        env=environment(root),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == example.ends, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert "Traceback" not in done.stderr
    if example.ends == 2:
        assert re.fullmatch(r"error: [^\n]+\n", done.stderr), done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_a_page(name: str):
    manual = Manual.of(name)
    assert manual.about, "write ABOUT"
    assert manual.examples, "write EXAMPLES"
    assert not all(example.untried for example in manual.examples) or name in ("build-ext", "bench", "gates")
    assert len(manual.help) <= 90
    assert not manual.help.endswith(".")
    assert name in [one for group in GROUPS.values() for one in group], "list it in manual.GROUPS"
    assert SCRIPTS[name][0] == name, "pyproject.toml has no script for it"
    assert manual.see_also == getattr(command_module(name), "SEE_ALSO", ()), "it names what is not there"
    for example in manual.examples:
        assert words_of(example)[0] == name
        assert not example.does.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_a_terminal_and_explains_every_option(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    for parser in parsers(parser_of(name)):
        text = parser.format_help()
        assert max(map(len, text.splitlines())) <= 80, text
        assert "\x1b" not in text
        assert parser.format_help() == text
        for action in parser._actions:
            assert action.help, f"{parser.prog} {action.dest}: write help="


def test_narrow_terminals_get_narrow_pages(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "60")
    text = "\n".join(line for line in page("mutants").splitlines()[1:] if "tests_refsol" not in line)
    assert max(map(len, text.splitlines())) <= 60


def test_a_page_has_all_its_parts():
    text = page("test")
    parts = ["pdm run test: grade", "usage: pdm run test", "Runs the graded", "options:", "examples:"]
    parts += ["files:", "exit status:", "see also:"]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    assert "pdm run watch, " in text
    assert "book/src/debugging-numerics.md" in text


def test_a_subcommand_has_the_examples_that_are_its_own():
    [sim] = [one for one in parsers(parser_of("sim")) if one.prog == "pdm run sim sweep"]
    text = sim.format_help()
    assert "pdm run sim sweep --sweep" in text
    assert "pdm run sim goodput" not in text
    assert re.search(r"see also:\n  pdm run sim,", text)


def test_a_copy_without_the_reference_shows_only_what_works_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert "test-refsol" in page("test")
    assert "pdm run release" in page("grade")
    monkeypatch.setattr("course.manual.REFERENCE", tmp_path / "tiny_llm_ref")
    monkeypatch.setattr("course.manual.command_names", lambda: ["grade", "test"])
    assert "test-refsol" not in page("test")
    assert "pdm run release" not in page("grade")


def test_help_and_the_option_say_the_same(capsys: pytest.CaptureFixture[str]):
    pages = []
    for words in (["help", "test"], ["test", "--help"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        assert ended.value.code == 0
        pages.append(capsys.readouterr().out)
    assert pages[0] == pages[1] == page("test")


def test_the_list_has_every_command_once_in_groups(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert cli.main([]) == 2
    assert capsys.readouterr().out == text
    assert cli.main(["help"]) == 0
    assert capsys.readouterr().out == text
    assert [line.split()[0] for line in text.splitlines() if re.match("  [a-z]", line)] == [
        n for names in grouped().values() for n in names
    ]
    assert sorted(n for names in grouped().values() for n in names) == NAMES
    assert text.index("for learners:") < text.index("for instructors:") < text.index("for maintainers:")
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("tset", "no command 'tset': did you mean test or reset?"),
        ("chekout", "no command 'chekout': did you mean checkout"),
        ("zzz", "no command 'zzz': see `python -m course` for all"),
    ],
)
def test_an_unknown_command_names_near_ones(typed: str, said: str, capsys: pytest.CaptureFixture[str]):
    assert cli.main([typed]) == 2
    text = capsys.readouterr().err
    assert said in text
    assert text.count("\n") == 1


def test_a_wrong_option_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["hint", "--wek", "1"]) == 2
    text = capsys.readouterr().err
    assert "pdm run hint --help" in text
    assert text.count("\n") == 1


def test_headings_are_bold_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch):
    def at_terminal(**settings: str) -> str:
        known = {key: value for key, value in environment(ROOT).items() if key != "NO_COLOR"}
        terminal = Terminal(["/usr/bin/env", *(f"{k}={v}" for k, v in settings.items()), *line], known)
        try:
            assert terminal.exit_status() == 0
            return terminal.output
        finally:
            terminal.close()

    line = [sys.executable, "-m", "course", "hint", "--help"]
    assert "\x1b[1mexamples:\x1b[0m" in at_terminal(TERM="xterm")
    assert "\x1b" not in at_terminal(TERM="xterm", NO_COLOR="1")
    assert "\x1b" not in at_terminal(TERM="dumb")


@pytest.mark.parametrize("name", NAMES)
def test_help_comes_at_once(name: str):
    code = (
        "import sys, time; from course.cli import main\n"
        f"try: main([{name!r}, '--help'])\n"
        "except SystemExit: pass\n"
        "print(time.process_time(), *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    seconds, *modules = done.stderr.split()
    loaded = HEAVY.intersection(modules) - ({"numpy", "mlx"} if name == "bench" else set())
    assert not loaded, f"{name} --help imports {', '.join(loaded)}: import them inside functions"
    assert float(seconds) < QUICK


def test_paragraphs_that_begin_with_blanks_stay_as_they_are():
    manual = Manual("x", "help", "One\nparagraph.\n\n  a   table\n  b   row\n\nThe end.", ())
    parser = CommandParser(manual, 80, prog="pdm run x")
    assert "\nOne paragraph.\n\n  a   table\n  b   row\n\nThe end.\n" in parser.format_help()
