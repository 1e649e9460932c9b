"""The preprocessors, one by one, and the built book."""

import re
import subprocess
import sys

import pytest

from course import curriculum
from course.book import badges, build, draw, execute, figures, glossary, hints, math, preprocess, quiz
from course.book.library import Library
from course.book.page import BookError, Page, fences, map_prose, segments
from course.errors import CourseError
from course.paths import BOOK
from course.sim.config import OPTIONS

PAGE = Page("week1-01-x.md", "")
COURSE = curriculum.load()
QUESTION = """
[[questions]]
type = "MultipleChoice"
prompt.prompt = "Why *now*?"
prompt.distractors = ["No, $x$."]
answer.answer = "Yes."
context = "Because."
"""


def expand(text: str) -> str:
    return preprocess.expand(preprocess.Context(BOOK, COURSE, {"page": "page"}), Page("week1-01-x.md", text))


def test_segments_lose_nothing_and_know_code():
    text = "a `b $` ``c ` d``\n\n```python\n$x$\n~~~\n```\n<!-- $ -->\n{{#badge 1.1.1}}\n"
    text += "> ```\n> $\n> ```\nend \\` not code\n"
    assert "".join(s.text for s in segments(text)) == text
    code = [s.text for s in segments(text) if s.kind == "code"]
    assert code == ["`b $`", "``c ` d``", "```python\n$x$\n~~~\n```\n", "<!-- $ -->", "> ```\n> $\n> ```\n"]
    assert map_prose(text, lambda s: "") == "".join(code[:2]) + code[2] + code[3] + "{{#badge 1.1.1}}\n" + code[4]


def test_fences_know_language_marks_and_line():
    [first, second] = fences("x\n\n```python,run\na\n\nb\n```\n\n- item\n\n  ~~~text\n  c\n  ~~~\n")
    assert (first.language, first.marks, first.body, first.line) == ("python", ("run",), "a\n\nb", 3)
    assert (second.language, second.marks, second.line) == ("text", (), 11)


def test_math_becomes_mathml_and_code_stays():
    html = math.apply(PAGE, "the `$a$` of $\\frac{1}{\\sqrt{D}}$ costs \\$5\n\n```text\n$b$\n```\n")
    assert html.count("<math") == 1
    assert "<mfrac>" in html
    assert "`$a$`" in html
    assert "costs \\$5" in html
    assert "$b$" in html


def test_escapes_in_text_are_resolved():
    assert "<mtext>a&#95;b</mtext>" in math.to_mathml("\\text{a\\_b}")


def test_spaces_in_math_are_those_of_tex():
    assert "<mi>&#x0221E;</mi>" in math.to_mathml("-\\infty")
    assert '<mo lspace="0" rspace="0">&#x0002F;</mo>' in math.to_mathml("1/2")
    assert '<mo lspace="0.167em" rspace="0.167em">ln</mo>' in math.to_mathml("2\\ln 3")
    assert '<mo lspace="0" rspace="0">exp</mo>' in math.to_mathml("\\exp(x)")
    assert '<mo form="prefix">' in math.to_mathml("(-1, x)")
    assert '<mo form="prefix">' not in math.to_mathml("(x)-1")
    assert "<msub><mo" in math.to_mathml("\\log_2 x"), "a subscript has two children, no more"


def test_display_math_may_span_lines():
    html = math.apply(PAGE, "$$\n\\begin{aligned}\na &= b \\\\\nc &= d\n\\end{aligned}\n$$")
    assert 'display="block"' in html
    assert html.count("<mtr>") == 2
    assert "\n" not in html, "a blank line inside would end the formula"


def test_characters_of_markdown_in_math_are_escaped():
    html = math.apply(PAGE, "$a * b_* | [c]$")
    assert not re.search(r"[*|\[\]_]", re.sub(r"<[^>]*>", "", html))


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("one\n\nfive $ and nothing", 3, "without its partner"),
        ("$\\frac{1$", 1, "unbalanced braces"),
        ("\n$\\fraq{1}{2}$", 2, r"unknown command \\fraq"),
        ("$x^$", 1, "MissingSuperScriptOrSubscript"),
        ("$a & b$", 1, "outside a matrix"),
        ("`code\n` and\n\n$a\n\nb$", 4, "without its partner"),
    ],
)
def test_bad_math_names_chapter_and_line(text, line, problem):
    with pytest.raises(BookError, match=rf"^book/src/week1-01-x.md:{line}: .*{problem}"):
        math.apply(PAGE, text)


def test_hints_are_the_registrys_in_nested_boxes():
    html = hints.render(COURSE, PAGE, 1, "1.1.1")
    assert html.count("<details") == html.count("</details>") == 3
    assert html.endswith("</details>\n</details>\n</details>\n"), "the second is inside the first"
    assert "\n\n" not in html, "a blank line would make Markdown of the hints"
    [task] = [t for t in COURSE.tasks if t.label == "Week 1 Day 1 Task 1"]
    for hint in task.hints:
        assert hint.split()[0].strip("`") in html


def test_badge_and_day_and_week_come_from_the_registry():
    badge = badges.badge(COURSE, PAGE, 1, "1.1.2")
    assert "Week 1 Day 1 Task 2" in badge
    assert "<code>pdm run test --week 1 --day 1 --task 2</code>" in badge
    day = badges.day(COURSE, PAGE, 1, "1.2")
    assert 'href="week1-01-attention.html"' in day
    assert 'href="#task-1"' in day
    week = badges.week(COURSE, PAGE, 1, "1")
    assert week.count("<tr>") == len(COURSE.week(1).days) + 2


def test_options_of_the_simulator_come_from_their_definition():
    html = expand("{{#options routing}}\n")
    assert html.count("<tr>") == 1 + len([one for one in OPTIONS.values() if one.group == "routing"])
    assert "<code>--router NAME</code></td><td>round-robin</td>" in html
    with pytest.raises(BookError, match="no group of options 'roads'"):
        expand("{{#options roads}}\n")


@pytest.mark.parametrize("argument", ["9.1.1", "1.99.1", "1.1.99", "1.1", "", "a.b.c"])
def test_an_unknown_task_is_an_error_at_its_line(argument):
    with pytest.raises(BookError, match=r"week1-01-x.md:7: no task .* in the registry"):
        badges.badge(COURSE, PAGE, 7, argument)


def test_task_headings_get_their_anchor():
    assert badges.anchors("## Task 2: A `b` c\ntext") == "## Task 2: A `b` c {#task-2}\ntext"
    assert badges.anchors("### Task 2: no\n") == "### Task 2: no\n"


def test_known_terms_link_to_the_glossary():
    text = glossary.apply(PAGE, "a <dfn>Pages</dfn> and `<dfn>page</dfn>`, <dfn>other</dfn>", {"page": "page"})
    assert '<dfn><a href="glossary.html#page">Pages</a></dfn>' in text
    assert "`<dfn>page</dfn>`" in text
    assert "<dfn>other</dfn>" in text


def test_a_figure_needs_script_picture_and_caption(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "src" / "figures").mkdir(parents=True)
    with pytest.raises(BookError, match=r":4: cannot read"):
        figures.render(PAGE, 4, "name no caption", tmp_path)
    with pytest.raises(BookError, match="no figure 'box'"):
        figures.render(PAGE, 1, 'box "A $x$."', tmp_path)
    (tmp_path / "figures" / "box.py").write_text('"""A box <of>\nthings.\n\nMore."""\n')
    with pytest.raises(BookError, match="not drawn: run pdm run book --figures box"):
        figures.render(PAGE, 1, 'box "A $x$."', tmp_path)
    for theme in ("light", "dark"):
        (tmp_path / "src" / "figures" / f"box-{theme}.svg").write_text("<svg/>")
    html = figures.render(PAGE, 1, 'box "A $x$."', tmp_path)
    assert html.count('alt="A box &lt;of&gt; things."') == 2
    assert "<math" in html


def test_a_quiz_hides_its_answers_in_closed_boxes(tmp_path):
    (tmp_path / "q.toml").write_text(QUESTION)
    html = quiz.render(PAGE, 1, "q.toml", tmp_path)
    assert '<details class="quiz-answer">' in html
    assert html.count('type="radio"') == 2
    assert "<math" in html
    choices = re.findall(r'value="(\d)"> <span>(\w+)', html)
    [right] = re.findall(r"data-answers=\"\[&quot;(\d)&quot;\]\"", html)
    assert dict(choices)[right] == "Yes"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("Because.", " "), "the context is empty"),
        (("MultipleChoice", "Essay"), "Invalid value 'Essay'"),
        (("context", "contxt"), "contxt"),
        (('["No, $x$."]', '["Yes."]'), "two choices are the same"),
        (('["No, $x$."]', "[]"), "at least one distractor|one answer and one distractor"),
        (('"Yes."', "3"), "Expected"),
        (("[[questions]]", "[[questions"), "invalid|Invalid|Expected"),
    ],
)
def test_a_faulty_quiz_is_an_error_at_its_line(tmp_path, change, problem):
    assert change[0] in QUESTION
    (tmp_path / "q.toml").write_text(QUESTION.replace(*change))
    with pytest.raises(BookError, match=rf"week1-01-x.md:5: quiz 'q.toml': .*({problem})"):
        quiz.render(PAGE, 5, "q.toml", tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a\n\n{{#bagde 1.1.1}}\n", ":3: unknown directive {{#bagde}}"),
        ("a {{#badge 1.1.1}}\n", ":1: a directive inside a line"),
        ("$x$\n$$\ny\n$$\n\n{{#hints 1.1.9}}\n", ":6: no task '1.1.9'"),
    ],
)
def test_directive_mistakes_name_the_line_of_the_file(text, problem):
    with pytest.raises(BookError, match=re.escape(problem)):
        expand(text)


def test_directives_in_code_and_mdbooks_own_stay():
    text = "`{{#badge 1.1.1}}`\n\n```text\n{{#hints 1.1.1}}\n{{#include x.py:a}}\n```\n\n{{#include y.md}}\n"
    assert expand(text) == text


def test_the_preprocessor_says_what_it_supports():
    command = [sys.executable, "-m", "course.book.preprocess", "supports", "html"]
    assert subprocess.run(command, timeout=60).returncode == 0


# The built book.


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    try:
        build.find_mdbook()
    except CourseError as error:
        pytest.skip(str(error))
    index = build.build(tmp_path_factory.mktemp("built"))
    return {p.stem: p.read_text(encoding="utf-8") for p in index.parent.glob("*.html")}


def test_every_chapter_is_built_and_fully_expanded(built):
    for path, page in Library.load().chapters.items():
        html = built[path.removesuffix(".md")]
        main = html[html.index("<main>") : html.index("</main>")]
        prose = re.sub(r"<(code|pre|math)\b.*?</\1>", "", main, flags=re.DOTALL)
        assert "{{#" not in prose, path
        assert not re.search(r"\$[^$\n]*\$", prose), path
        formulas = len(re.findall(r"(?<![\\$])\$\$?[^$]+\$\$?", map_prose(page.text, lambda s: s.text)))
        assert main.count("<math") >= min(formulas, 1), path


def test_the_book_needs_no_network(built):
    for name, html in built.items():
        loads = re.findall(r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="(https?:)?//', html)
        assert not loads, name


def test_a_broken_chapter_stops_the_build_with_one_line(tmp_path, built):
    (tmp_path / "src").mkdir()
    (tmp_path / "theme").mkdir()
    for name in ("course.css", "quiz.js"):
        (tmp_path / "theme" / name).write_text("")
    (tmp_path / "book.toml").write_bytes((BOOK / "book.toml").read_bytes())
    (tmp_path / "src" / "SUMMARY.md").write_text("[A](a.md)\n")
    (tmp_path / "src" / "a.md").write_text("# A\n\nOne $ too many.\n")
    with pytest.raises(CourseError, match=r"^book/src/a.md:3: a '\$' without its partner: [^\n]*$"):
        build.build(tmp_path / "out", tmp_path)


def test_without_mdbook_one_line_names_the_fix(monkeypatch):
    monkeypatch.setattr(build.sys, "executable", "/nowhere/python")
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    with pytest.raises(CourseError, match=r"^mdbook is not installed: run \./run book"):
        build.find_mdbook()


def test_without_a_package_one_line_names_the_fix(monkeypatch):
    monkeypatch.setitem(sys.modules, "latex2mathml.converter", None)
    with pytest.raises(CourseError, match=r"^the package latex2mathml\S* is not installed: run \./run book"):
        build.check_packages()


# What the book claims.


NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def parts(svg: str) -> tuple[list[str], list[float]]:
    """Texts and numbers of a drawing; ids are hashes of coordinates and say nothing more."""
    svg = re.sub(r"\b[a-z][0-9a-f]{10}\b", "id", svg)
    return NUMBER.split(svg), [float(n) for n in NUMBER.findall(svg)]


@pytest.mark.parametrize("name", draw.names())
def test_committed_pictures_are_what_the_script_draws(name):
    pytest.importorskip("matplotlib")
    for theme, svg in draw.drawings(name).items():
        texts, numbers = parts(svg)
        committed = parts((draw.PICTURES / f"{name}-{theme}.svg").read_text(encoding="utf-8"))
        redraw = f"run pdm run book --figures {name}"
        assert texts == committed[0], redraw
        assert numbers == pytest.approx(committed[1], abs=0.5), redraw  # half a point: other processors round otherwise


@pytest.mark.parametrize("snippet", list(execute.snippets(Library.load())), ids=lambda s: s.place)
def test_programs_in_the_book_print_what_it_says(snippet):
    execute.run(snippet)


@pytest.mark.parametrize(
    ("snippet", "problem"),
    [
        (execute.Snippet("a.md:1", "python", "print(1)", "2"), "it prints\n1\nand the chapter says\n2"),
        (execute.Snippet("a.md:1", "python", "1 / 0", None), "ZeroDivisionError"),
        (execute.Snippet("a.md:1", "python", "print(1)", None, fails=True), "exit status 0"),
        (execute.Snippet("a.md:1", "bash", "pdm run nothing", None), "no script nothing"),
        (execute.Snippet("a.md:1", "bash", "false\ntrue", None), "exit status 1"),
    ],
)
def test_a_claim_that_does_not_hold_is_reported(snippet, problem):
    with pytest.raises(CourseError, match=re.escape(problem)):
        execute.run(snippet)


def test_a_program_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(execute, "TIMEOUT", 1.0)
    with pytest.raises(CourseError, match="still running after 1 s"):
        execute.run(execute.Snippet("a.md:1", "bash", "sleep 30", None))
