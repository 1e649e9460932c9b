"""A quiz file: mdbook-quiz's TOML schema as typed objects. It knows the schema and what makes a question sound."""

from pathlib import Path

import msgspec


class ChoicePrompt(msgspec.Struct, forbid_unknown_fields=True):
    prompt: str
    distractors: list[str]


class ChoiceAnswer(msgspec.Struct, forbid_unknown_fields=True):
    answer: str | list[str]

    @property
    def right(self) -> list[str]:
        """All choices that must be ticked."""
        return [self.answer] if isinstance(self.answer, str) else self.answer


class TextPrompt(msgspec.Struct, forbid_unknown_fields=True):
    prompt: str
    response: str = "short"


class TextAnswer(msgspec.Struct, forbid_unknown_fields=True):
    answer: str
    alternatives: list[str] = []


class TracePrompt(msgspec.Struct, forbid_unknown_fields=True):
    program: str


class TraceAnswer(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    does_compile: bool
    stdout: str = ""


class MultipleChoice(msgspec.Struct, tag=True, tag_field="type", forbid_unknown_fields=True):
    """Choose one, or all that apply when the answer is a list."""

    prompt: ChoicePrompt
    answer: ChoiceAnswer
    context: str
    id: str = ""

    def problem(self) -> str:
        """What is wrong with the question, or ""."""
        choices = self.answer.right + self.prompt.distractors
        if not self.answer.right or not self.prompt.distractors:
            return "a choice needs at least one answer and one distractor"
        if len({c.strip() for c in choices}) < len(choices):
            return "two choices are the same"
        return "a choice must be one line" if any("\n" in c.strip() for c in choices) else ""


class ShortAnswer(msgspec.Struct, tag=True, tag_field="type", forbid_unknown_fields=True):
    """Type a word, a number or a shape."""

    prompt: TextPrompt
    answer: TextAnswer
    context: str
    id: str = ""

    def problem(self) -> str:
        """What is wrong with the question, or ""."""
        if not all(a.strip() for a in [self.answer.answer, *self.answer.alternatives]):
            return "an accepted answer is empty"
        return "" if self.prompt.response in ("short", "long", "code") else "response is not short, long or code"


class Tracing(msgspec.Struct, tag=True, tag_field="type", forbid_unknown_fields=True):
    """What does the program print, or does it raise?"""

    prompt: TracePrompt
    answer: TraceAnswer
    context: str
    id: str = ""

    def problem(self) -> str:
        """What is wrong with the question, or ""."""
        if self.answer.does_compile == (not self.answer.stdout.strip()):
            return "doesCompile = true needs a stdout, doesCompile = false must have none"
        return ""


Question = MultipleChoice | ShortAnswer | Tracing


class Quiz(msgspec.Struct, forbid_unknown_fields=True):
    """One file of questions."""

    questions: list[Question]


def load(path: Path) -> Quiz:
    """Read a quiz. Raises ValueError that names the question or key; OSError when there is no such file."""
    try:
        quiz = msgspec.toml.decode(path.read_text(encoding="utf-8"), type=Quiz)
    except msgspec.DecodeError as error:  # includes ValidationError, whose text names the key
        raise ValueError(str(error)) from error
    for number, question in enumerate(quiz.questions, 1):
        problem = question.problem() or ("" if question.context.strip() else "the context is empty")
        if problem:
            raise ValueError(f"question {number}: {problem}")
    if not quiz.questions:
        raise ValueError("no questions")
    return quiz
