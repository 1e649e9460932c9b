"""The built book in a real browser: no console error, math and figures visible, quizzes work, it fits."""

import os
import shutil
from pathlib import Path

import pytest

from course.book import browser, build
from course.paths import BOOK

WIDTHS = (390, 1280)
THEMES = ("light", "navy")

pytestmark = [
    pytest.mark.skipif(not browser.available(), reason="needs chromium and chromedriver"),
    pytest.mark.timeout(300),
]

QUIZ = """
[[questions]]
type = "MultipleChoice"
prompt.prompt = "What is $1 + 1$?"
prompt.distractors = ["`1`", "`3`"]
answer.answer = "`2`"
context = "One more than $1$."

[[questions]]
type = "MultipleChoice"
prompt.prompt = "Which are even?"
prompt.distractors = ["`1`"]
answer.answer = ["`2`", "`4`"]
context = "They are divisible by two."

[[questions]]
type = "ShortAnswer"
prompt.prompt = "The shape?"
answer.answer = "(2, 3)"
answer.alternatives = ["2x3"]
context = "Rows, columns."

[[questions]]
type = "Tracing"
prompt.program = "print(1)\\nprint(2)"
answer.doesCompile = true
answer.stdout = "1\\n2"
context = "One line each."

[[questions]]
type = "Tracing"
prompt.program = "1 / 0"
answer.doesCompile = false
context = "Division by zero."
"""


def chapters() -> list[str]:
    return sorted(p.stem for p in (BOOK / "src").glob("*.md") if p.stem != "SUMMARY")


# Everything that should be visible and is not, and what is wider than the window.
FAULTS = """
const shown = (e) => !e.closest("details:not([open])") && !e.closest("[hidden]");
const faults = [];
for (const math of document.querySelectorAll("main math")) {
  const box = math.getBoundingClientRect();
  if (shown(math) && (box.width < 2 || box.height < 1)) faults.push("math not visible: " + math.textContent);
}
for (const figure of document.querySelectorAll("main figure")) {
  const images = [...figure.querySelectorAll("img")].filter((i) => i.getBoundingClientRect().width > 100);
  if (images.length !== 1 || !images[0].complete || images[0].naturalWidth < 100 || !images[0].alt)
    faults.push("figure not visible: " + figure.id);
}
if (document.documentElement.scrollWidth > window.innerWidth + 1) {
  const out = (e) => e.getBoundingClientRect().right > window.innerWidth + 1;
  const wide = [...document.querySelectorAll("main *")].filter(out);
  faults.push("wider than the window: " + wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 80)).join(" | "));
}
if (parseFloat(getComputedStyle(document.querySelector("main p, main")).fontSize) < 14) faults.push("text below 14 px");
return faults;
"""


@pytest.fixture(scope="module")
def window():
    with browser.browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def book_url(tmp_path_factory):
    out = tmp_path_factory.mktemp("book")
    build.build(out)
    with browser.served(out) as url:
        yield url


@pytest.fixture(scope="module")
def quiz_url(tmp_path_factory):
    """A book of one page with every kind of question."""
    folder = tmp_path_factory.mktemp("quiz")
    shutil.copytree(BOOK / "theme", folder / "theme")
    shutil.copy(BOOK / "book.toml", folder)
    (folder / "src" / "quizzes").mkdir(parents=True)
    (folder / "src" / "quizzes" / "q.toml").write_text(QUIZ)
    (folder / "src" / "SUMMARY.md").write_text("[Quiz](quiz.md)\n")
    (folder / "src" / "quiz.md").write_text("# Quiz\n\n{{#quiz quizzes/q.toml}}\n")
    build.build(folder / "out", folder)
    with browser.served(folder / "out") as url:
        yield f"{url}/quiz.html"


def choose(window: browser.Browser, theme: str) -> None:
    """Pick a theme as a reader does: it also changes the colours of code."""
    window.run(f"document.getElementById('mdbook-theme-{theme}').click()")
    assert theme in window.run("return document.documentElement.className").split()


@pytest.mark.parametrize("name", chapters())
def test_a_page_is_whole_and_fits(window, book_url, name):
    keep = os.environ.get("BOOK_SCREENSHOTS")
    faults = {}
    for width in WIDTHS:
        window.resize(width, 844)
        window.open(f"{book_url}/{name}.html")
        for theme in THEMES:
            choose(window, theme)
            faults[f"{width} px, {theme}"] = window.run(FAULTS)
            if keep:
                window.screenshot(Path(keep) / f"{name}-{width}-{theme}.png")
    window.run("localStorage.clear()")
    assert not any(faults.values()), faults
    assert window.errors() == []


def test_the_theme_of_the_reader_is_kept(window, book_url):
    window.open(f"{book_url}/preface.html")
    choose(window, "navy")
    window.open(f"{book_url}/week1-overview.html")
    shown = "return getComputedStyle(document.querySelector('main figure img.figure-dark')).display"
    assert window.run(shown) != "none"
    window.run("localStorage.clear()")


STATE = "return document.querySelectorAll('.quiz-question')[{n}].dataset.state || ''"
ACT = """
const question = document.querySelectorAll('.quiz-question')[{n}];
for (const input of question.querySelectorAll('input')) if (input.type !== 'text') input.checked = false;
for (const text of {ticks}) {{
  const label = [...question.querySelectorAll('label.quiz-choice')].find((l) => l.textContent.trim() === text);
  label.querySelector('input').checked = true;
}}
const field = question.querySelector('textarea, input[type=text]');
if (field) field.value = {text!r};
question.querySelector('.quiz-check').click();
return question.dataset.state || '';
"""
ANSWERS = (
    (0, ["2"], "", "right"),
    (0, ["3"], "", "wrong"),
    (0, [], "", ""),
    (1, ["2", "4"], "", "right"),
    (1, ["2"], "", "wrong"),
    (1, ["1", "2", "4"], "", "wrong"),
    (2, [], "(2,3)", "right"),
    (2, [], "2 X 3", "right"),
    (2, [], "(3, 2)", "wrong"),
    (3, [], "1\\n2\\n", "right"),
    (3, [], "12", "wrong"),
    (3, ["It raises an error"], "", "wrong"),
    (4, ["It raises an error"], "", "right"),
    (4, [], "0", "wrong"),
)


@pytest.mark.parametrize(("n", "ticks", "text", "state"), ANSWERS)
def test_quizzes_judge_answers(window, quiz_url, n, ticks, text, state):
    window.open(quiz_url)
    window.errors()
    assert window.run(STATE.format(n=n)) == ""
    assert window.run(ACT.format(n=n, ticks=ticks, text=text.replace("\\n", "\n"))) == state
    assert window.errors() == []


def test_answers_are_hidden_until_the_reader_has_answered(window, quiz_url):
    window.open(quiz_url)
    hidden = "return [...document.querySelectorAll('.quiz-answer')].map((a) => a.getBoundingClientRect().height)"
    assert window.run(hidden) == [0] * 5
    window.run(ACT.format(n=0, ticks=["3"], text=""))
    assert window.run(hidden)[0] > 0
    assert not window.run("return document.querySelector('.quiz-answer').open"), "a wrong answer does not give it away"


def test_nothing_is_stored(window, quiz_url):
    window.open(quiz_url)
    window.run(ACT.format(n=0, ticks=["2"], text=""))
    assert window.run("return Object.keys(localStorage).filter((k) => !k.startsWith('mdbook'))") == []
    assert window.run("return document.cookie") == ""


def test_without_scripts_answers_are_collapsed_boxes(quiz_url):
    import urllib.request

    html = urllib.request.urlopen(quiz_url, timeout=10).read().decode()
    assert html.count('<details class="quiz-answer">') == 5
    assert html.count('class="quiz-check" hidden') == 5
