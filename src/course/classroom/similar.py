"""Which submissions have more in common than chance gives: a hint to look at two of them side by side.

Code is compared by runs of tokens without names, comments and layout. What the starter or the reference has, and what
many of the class have, says nothing. It does not know who copied from whom, or whether anyone did."""

import keyword
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from course.classroom.report import SimilarLine

RUN = 12
"""Tokens of one run: shorter ones are idioms."""
LEAST_SHARE, LEAST_RUNS = 0.5, 60
_COMMON = 4
_MOST_PAIRS = 30
_PYTHON = re.compile(r'#[^\n]*|"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\.?[^\W\d]\w*|\d[\w.]*|\S')
_OTHER = re.compile(r'//[^\n]*|/\*[\s\S]*?\*/|"(?:\\.|[^"\\\n])*"|\.?[^\W\d]\w*|\d[\w.]*|\S')
_KEPT = set(keyword.kwlist) | {"switch", "case", "auto", "const", "template", "int", "float", "range", "len"}

Files = Mapping[str, bytes]
Runs = dict[int, str]
"""The file of each run, by the run's hash."""


def find_similar(submissions: Mapping[str, Files], known: Iterable[Files]) -> tuple[SimilarLine, ...]:
    """Pairs of `submissions` (files by the name to show), the most similar first. `known` code is left out."""
    known = list(known)
    same = {content for files in known for content in files.values()}  # whole files, so that most need no look
    dull = {run for files in known for run in _runs(files)}
    found = {
        name: _runs({file: content for file, content in files.items() if content not in same})
        for name, files in submissions.items()
    }
    counts = Counter(run for runs in found.values() for run in runs)
    dull |= {run for run, count in counts.items() if count > max(_COMMON, len(found) // 10)}
    own = {name: {run: file for run, file in runs.items() if run not in dull} for name, runs in found.items()}
    pairs = (_compare(one, own[one], other, own[other]) for one, other in combinations(sorted(own), 2))
    lines = sorted(filter(None, pairs), key=lambda line: (-line.share, line.first, line.second))
    return tuple(lines[:_MOST_PAIRS])


def _compare(first: str, one: Runs, second: str, other: Runs) -> SimilarLine | None:
    both = one.keys() & other.keys()
    smaller = min(len(one), len(other))
    if len(both) < LEAST_RUNS or len(both) < LEAST_SHARE * smaller:
        return None
    files = tuple(file for file, _ in Counter(one[run] for run in both).most_common(5))
    return SimilarLine(first, second, round(len(both) / smaller, 2), files)


def _runs(files: Files) -> Runs:
    runs: Runs = {}
    for name, content in files.items():
        tokens = list(_tokens(name, content.decode(errors="replace")))
        runs.update({hash(tuple(tokens[i : i + RUN])): name for i in range(len(tokens) - RUN + 1)})
    return runs


def _tokens(name: str, text: str) -> Iterator[str]:
    """Names become one token, but for keywords and what stands after a dot, which tells what is called."""
    form = _PYTHON if name.endswith(".py") else _OTHER
    for token in form.findall(text):
        if token.startswith(("#", "//", "/*", '"', "'")):
            continue  # comments, and texts too: docstrings are given
        first = token[0]
        yield "name" if (first.isalpha() or first == "_") and token not in _KEPT else token
