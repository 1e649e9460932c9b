"""Every lint of the book catches a seeded fault in an otherwise clean book, and says where and what to do."""

import re
import shutil
from pathlib import Path

import pytest

from course import curriculum
from course.book import lint
from course.book.library import Library
from course.paths import ROOT

REGISTRY = """
week = 1
title = "From matmul to text"

[[day]]
day = 1
title = "Attention"
chapter = "week1-01-attention.md"
hours = 3.0

[[day.task]]
title = "A stable `softmax`"
points = 10
hints = ["nudge", "invariant", "nearly code"]
[day.task.symbols]
"model/basics.py" = ["softmax"]

[[day.task]]
title = "Linear"
points = 5
hints = ["nudge", "invariant", "nearly code"]
[day.task.symbols]
"model/basics.py" = ["linear"]
"""
TASK = """{{{{#badge 1.1.{0}}}}}

**Files**: `a.py`. **Contract**: none. **Expected red**:

```bash
pdm run test --week 1 --day 1 --task {0}
```

{{{{#hints 1.1.{0}}}}}
"""
CHAPTER = f"""# Week 1 Day 1: Attention

{{{{#day 1.1}}}}

## What you will build

An <dfn>embedding</dfn>, see [task](#task-1), [glossary](glossary.md#embedding) and [web](https://example.org/x#y).

## Why

Because $x$ costs \\$5.

## Picture

{{{{#figure box "A $x$."}}}}

## Shapes and symbols

Run `pdm run hint --week 1 --day 1 --task 2` or `./run main --prompt "a b" | head`, or `pdm run test --week <week>`.

```python
{{{{#include ../../code.py:part}}}}
```

## Predict before coding

<details><summary>Answer</summary>

Two.

</details>

## Task 1: A stable `softmax`

{TASK.format(1)}

## Task 2: Linear

{TASK.format(2)}

## Pitfalls

## Checkpoint

```bash
$ FOO=1 pdm run test-refsol --week 1 2>&1 | tail -1   # comment
pdm run main --prompt \\
  "x" > out.txt && pdm run book
```

## Self-check

{{{{#quiz quizzes/q.toml}}}}

<details><summary>Why?</summary>

So.

</details>

## How production systems do it

## Bonus

## Next

The [end](glossary.md).
"""
QUESTION = """
[[questions]]
type = "ShortAnswer"
prompt.prompt = "One?"
answer.answer = "1"
context = "One."
"""
FILES = {
    "week1.toml": REGISTRY,
    "code.py": "# ANCHOR: part\nx = 1\n# ANCHOR_END: part\n",
    "book/figures/box.py": '"""A box."""\n',
    "book/src/figures/box-light.svg": "<svg/>",
    "book/src/figures/box-dark.svg": "<svg/>",
    "book/src/quizzes/q.toml": QUESTION * 2,
    "book/src/SUMMARY.md": "[One](week1-01-attention.md)\n\n[Glossary](glossary.md)\n",
    "book/src/glossary.md": "# Glossary\n\nEmbedding\n: A table.\n\nToken\n: Text, in an [embedding](#embedding).\n",
    "book/src/week1-01-attention.md": CHAPTER,
}
DAY = "book/src/week1-01-attention.md"


@pytest.fixture
def findings(tmp_path):
    """Write the clean book with some files changed and return what the lints find; spelling is slow."""

    def check(spelling: bool = False, **changes: str) -> list[str]:
        for name, text in (FILES | changes).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        shutil.copy(ROOT / "pyproject.toml", tmp_path)
        course = curriculum.load(tmp_path)
        lints = [one for one in lint.LINTS if spelling or one is not lint.lint_spelling]
        return [str(f) for f in lint.check(Library.load(tmp_path / "book", course, tmp_path), lints)]

    return check


def test_a_clean_book_has_no_findings(findings):
    assert findings(spelling=True) == []


def test_a_command_that_asks_for_help_is_read_and_not_answered(findings, capsys):
    chapter = FILES["book/src/week1-01-attention.md"].replace("&& pdm run book", "&& pdm run bench model --help")
    assert findings(**{"book/src/week1-01-attention.md": chapter}) == []
    assert capsys.readouterr().out == ""


# (text to replace, its replacement, the finding)
CHAPTER_FAULTS = [
    ("(glossary.md#embedding)", "(glosary.md)", "the link 'glosary.md' leads nowhere"),
    ("(glossary.md#embedding)", "(glossary.md#emb)", "glossary.md has no anchor #emb"),
    ("(#task-1)", "(#task-3)", "this page has no anchor #task-3"),
    ("(#task-1)", "(../../code.py)", "leads nowhere"),
    ("../../code.py:part", "../../core.py:part", "the included file '../../core.py' does not exist"),
    ("../../code.py:part", "../../code.py:parts", "has no anchor 'parts'"),
    ('{{#figure box "', '{{#figure bax "', "no figure 'bax'"),
    ("--task 2` or", "--task 9` or", "has no task 9"),
    ("`./run main", "`./run mian", "there is no command 'mian'"),
    ("`./run main", "`./run pytest", "there is no command 'pytest'"),
    ("--prompt \\", "--promt \\", "unrecognized arguments: --promt"),
    ("&& pdm run book", "&& pdm run book --port many", "invalid int value"),
    ("test-refsol --week 1", "test-refsol --week 7", "week 7 does not exist"),
    ("```python\n", "```\n", "the fence has no language"),
    ("# Week 1 Day 1: Attention", "# Day 1", "write '# Week 1 Day 1: Attention'"),
    ("{{#day 1.1}}", "", "the chapter has no day box"),
    ("## Why\n", "## Motivation\n", "'## Motivation' stands where '## Why' belongs"),
    ("## Next\n", "", "the heading '## Next' is missing"),
    ("## Next\n", "## Next\n\n## More\n", "'## More' is no heading of a day chapter"),
    ("## Task 2: Linear", "## Task 2: The linear layer", "where '## Task 2: Linear' belongs"),
    ("{{#badge 1.1.2}}", "", "task 1.1.2 has no badge"),
    ("{{#hints 1.1.2}}", "{{#hints 1.1.1}}", "task 1.1.2 has no hints"),
    ("--task 2\n", "--task 1\n", "task 1.1.2 does not show its command"),
    ("**Contract**", "Contract", "has no '**Contract**'"),
    ('{{#figure box "A $x$."}}', "", "'## Picture' holds no {{#figure}}"),
    ("{{#quiz quizzes/q.toml}}", "", "'## Self-check' holds no {{#quiz}}"),
    ("{{#quiz quizzes/q.toml}}", "{{#quiz quizzes/p.toml}}", "quiz quizzes/p.toml: no such file"),
    ("<dfn>embedding", "<dfn>embeding", "<dfn>embeding</dfn> is not in the glossary"),
    ("$x$ costs", "$\\foo$ costs", "unknown command \\foo"),
    ("\\$5", "$5", "a '$' without its partner"),
    ("Because", "Becuase", "spelling: Becuase ==> Because"),
    ("{{#day 1.1}}", "{{#day 1.1}} {{#day 1.1}}", "a directive inside a line"),
]


@pytest.mark.parametrize(("old", "new", "problem"), CHAPTER_FAULTS)
def test_a_fault_in_a_chapter_is_found_at_its_line(findings, old, new, problem):
    assert old in CHAPTER
    changed = CHAPTER.replace(old, new)
    found = [f for f in findings(spelling="spelling" in problem, **{DAY: changed}) if problem in f]
    assert found, f"not found: {problem}"
    path, line, _, fix = re.fullmatch(r"(.*?):(\d+): (.*): (.*)", found[0]).groups()
    assert path == DAY
    assert 1 <= int(line) <= changed.count("\n") + 1
    assert fix.strip()


FILE_FAULTS = [
    ("book/src/SUMMARY.md", "[Glossary](glossary.md)\n", "attention.md:1: the chapter is not in SUMMARY.md"),
    ("book/src/SUMMARY.md", FILES["book/src/SUMMARY.md"] + "[Gone](gone.md)\n", "SUMMARY.md:4: the link 'gone.md'"),
    (
        "book/src/glossary.md",
        "# G\n\nToken\n: A.\n\nEmbedding\n: B.\n",
        "glossary.md:6: 'Embedding' stands after 'Token'",
    ),
    ("book/src/glossary.md", "# G\n\nEmbedding\n: A.\n\nEmbeddings\n: B.\n", "'Embeddings' is defined twice"),
    ("book/src/quizzes/q.toml", QUESTION, "has 1 questions: ask two or three"),
    ("book/src/quizzes/q.toml", QUESTION * 4, "has 4 questions: ask two or three"),
    ("book/src/quizzes/q.toml", QUESTION.replace("context", "contxt") * 2, "contxt"),
    ("book/figures/box.py", "x = 1\n", "box.py:1: the script has no docstring"),
    ("book/src/figures/old-light.svg", "<svg/>", "old-light.svg:1: no script draws this picture"),
    ("book/src/extra.md", "# Extra\n", "extra.md:1: the chapter is not in SUMMARY.md"),
    ("code.py", "# ANCHOR: part\nx = 1\n", "has no anchor 'part'"),
]


@pytest.mark.parametrize(("name", "text", "problem"), FILE_FAULTS)
def test_a_fault_in_another_file_is_found(findings, name, text, problem):
    assert any(problem in f for f in findings(**{name: text})), problem


def test_a_missing_chapter_is_found(findings, tmp_path):
    findings()
    (tmp_path / DAY).unlink()
    course = curriculum.load(tmp_path)
    found = [str(f) for f in lint.check(Library.load(tmp_path / "book", course, tmp_path))]
    assert any("names week1-01-attention.md, which does not exist" in f for f in found)


def test_a_registry_without_hints_is_refused(tmp_path):
    (tmp_path / "week1.toml").write_text(REGISTRY.replace('"nudge"', '" "'))
    with pytest.raises(curriculum.CourseError, match="hints"):
        curriculum.load(tmp_path)


def test_findings_come_once_and_in_order(findings):
    found = findings(True, **{DAY: CHAPTER.replace("```python\n", "```\n").replace("Because", "Becuase")})
    assert found == sorted(set(found), key=lambda f: int(f.split(":")[1]))
    assert len(found) == 2


def test_a_page_name_is_shown_as_in_the_repository(findings):
    [found] = findings(True, **{DAY: CHAPTER.replace("Because", "Becuase")})
    assert found.startswith(f"{DAY}:11: spelling: ")
    assert not Path(found.split(":")[0]).is_absolute()
