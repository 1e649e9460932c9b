"""`{{#quiz quizzes/week1-01.toml}}`: HTML that quiz.js makes interactive; without scripts, collapsed answers."""

import json
import zlib
from html import escape
from pathlib import Path

from course.book import math, quizfile
from course.book.page import Page


def render(page: Page, line: int, argument: str, src: Path) -> str:
    """The quiz in that file, relative to `book/src`."""
    try:
        quiz = quizfile.load(src / argument)
    except (ValueError, OSError) as error:
        problem = "no such file" if isinstance(error, OSError) else str(error)
        raise page.error(line, f"quiz {argument!r}: {problem}", "see Quizzes in book/README.md") from error
    total = len(quiz.questions)
    html = '<section class="quiz" aria-label="Quiz">\n\n'
    for number, question in enumerate(quiz.questions, 1):
        name = f"{Path(argument).stem}-{number}"
        kind, answers, prompt, controls, answer = _parts(question, name)
        text = (
            f'<fieldset class="quiz-question" data-kind="{kind}" data-answers="{escape(json.dumps(answers))}">\n\n'
            f"<legend>Question {number} of {total}</legend>\n\n{prompt.strip()}\n\n{controls}\n\n"
            '<p class="quiz-controls"><button type="button" class="quiz-check" hidden>Check</button> '
            '<output class="quiz-verdict"></output></p>\n\n'
            f'<details class="quiz-answer">\n<summary>Answer</summary>\n\n{answer}\n\n{question.context.strip()}\n\n'
            "</details>\n\n</fieldset>\n\n"
        )
        html += math.apply(page, text, line)
    return html + "</section>"


def _parts(question: quizfile.Question, name: str) -> tuple[str, list[str], str, str, str]:
    """The kind of control, the accepted answers for quiz.js, and prompt, controls and answer as Markdown."""
    if isinstance(question, quizfile.MultipleChoice):
        return _choice(question, name)
    if isinstance(question, quizfile.ShortAnswer):
        accepted = [question.answer.answer, *question.answer.alternatives]
        label = f'<label for="{name}">Your answer</label>'
        field = f'{label}\n<input type="text" id="{name}" autocomplete="off" autocapitalize="none" spellcheck="false">'
        if question.prompt.response == "long":
            field = f'{label}\n<textarea id="{name}" rows="3"></textarea>'
        return "text", accepted, question.prompt.prompt, f"<p>{field}</p>", f"**{question.answer.answer}**"
    return _tracing(question, name)


def _choice(question: quizfile.MultipleChoice, name: str) -> tuple[str, list[str], str, str, str]:
    right = question.answer.right
    # An order that looks random and never changes, so that the answer isn't always first.
    choices = sorted(right + question.prompt.distractors, key=lambda c: zlib.crc32(c.encode()))
    kind = "radio" if isinstance(question.answer.answer, str) else "checkbox"
    controls = "\n\n".join(
        f'<label class="quiz-choice"><input type="{kind}" name="{name}" value="{i}"> <span>{c.strip()}</span></label>'
        for i, c in enumerate(choices)
    )
    accepted = [str(choices.index(c)) for c in right]
    prompt = question.prompt.prompt if kind == "radio" else f"{question.prompt.prompt.strip()} (Tick all that apply.)"
    return "choice", accepted, prompt, controls, "\n".join(f"- {c.strip()}" for c in right)


def _tracing(question: quizfile.Tracing, name: str) -> tuple[str, list[str], str, str, str]:
    runs, stdout = question.answer.does_compile, question.answer.stdout.strip("\n")
    prompt = (
        f"What does this program print, or does it raise an error?\n\n```python\n{question.prompt.program.strip()}\n```"
    )
    controls = (
        f'<p><label for="{name}">It prints</label>\n'
        f'<textarea id="{name}" rows="2" spellcheck="false"></textarea></p>\n\n'
        f'<label class="quiz-choice"><input type="checkbox" name="{name}" value="raises"> '
        "<span>It raises an error</span></label>"
    )
    answer = f"It prints\n\n```text\n{stdout}\n```" if runs else "It raises an error."
    return "trace", [stdout if runs else "raises"], prompt, controls, answer
