"""The README of a class's repository: only commands that work there, and only the weeks that are there."""

from collections.abc import Sequence

from course.curriculum import Curriculum, Day, points_text
from course.grading.course_file import Course
from course.release.graded import how_graded

_TEXT = """\
# {title}

You write an LLM serving stack yourself, a task at a time. Every day has a chapter, starter code and tests that tell you
what is wrong. It runs on Linux and macOS with a CPU, on Windows in WSL: no GPU, no download of weights.

## Start

You need Python 3.11 or later and, for kernels and for full speed on Linux, a C++ compiler.

```bash
./run doctor                    # is this machine ready? The first call installs what is locked, and takes minutes
./run book --serve              # read the book in a browser: begin with the preface and the setup
./run test {day}   # red at first: every task is still to do
```

Book and messages write `pdm run NAME`. Without a [PDM](https://pdm-project.org) of your own, type `./run NAME`: it is
the same.

## Work

```bash
./run watch                     # runs the current task whenever you save a file
./run status                    # what is done, and what comes next
./run hint {task}
./run reset {task}   # begin a task again; `./run restore` brings your code back
./run main                      # programs run your own code, once the days behind them are done
```

You write in `src/tiny_llm/` and, where kernels are the task, in `src/extensions/`. Each function there names its task
and its chapter, and raises an error, or does not compile, until you replace its body.

| week | you build | days | points |
|---|---|---|---|
{weeks}

This copy of the course has no reference solution, so `checkout`, `solution` and `compare` say so and stop.

## How you are graded

{graded}

## Hand in

{hand_in}

## Where things are

| folder | what |
|---|---|
| `src/tiny_llm/`, `src/extensions/` | your code; above stands which of these files are graded |
| `tests_refsol/` | the graded tests |
| `curriculum/` | weeks, days, tasks, points, hints |
| `book/` | the chapters |
| `models/` | the embedded model and its [model card](models/README.md) |
| `src/course/` | what runs the course |

Changes: [CHANGELOG.md](CHANGELOG.md). Licence: [Apache-2.0](LICENSE).
"""
_HAND_IN = """\
Commit and push: on GitHub Classroom each push is graded. For an upload, pack the two folders:

```bash
zip -r submission.zip src/tiny_llm src/extensions
```
"""


def readme(course: Course, kept: Curriculum, graded: Sequence[Day]) -> bytes:
    """The text for the weeks of `kept`, of which `graded` days count; examples name the first of these."""
    weeks = "\n".join(
        f"| {week.week} | {week.title} | {len(week.days)} | "
        f"{points_text(sum(course.points_of(task) for day in week.days for task in day.tasks))} |"
        for week in kept.weeks
    )
    first = graded[0]
    text = _TEXT.format(
        title=course.title,
        weeks=weeks,
        day=f"--week {first.week} --day {first.day}",
        task=first.tasks[0].options,
        graded=how_graded(course, graded),
        hand_in=_HAND_IN.strip(),
    )
    return text.encode()
