"""What the graded test files owe to a learner who reads their failures."""

import ast
from pathlib import Path

import pytest

from course.curriculum import load
from course.paths import ROOT

FILES = [day.tests for day in load().days]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_assertion_says_in_words_what_is_wrong(path: Path):
    assertions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)]
    assert [node.lineno for node in assertions if node.msg is None] == []
