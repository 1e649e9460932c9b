"""The mode is chosen by trying, and each mode says what it promises."""

import pytest

from course.boundary import MODES, choose, problem, protections
from course.errors import CourseError


def test_best_working_mode_is_chosen():
    assert choose() == next(mode for mode in MODES if problem(mode) is None)


def test_wrong_name_is_refused():
    with pytest.raises(CourseError, match="there is no boundary jail: choose namespaces, user, limits"):
        choose("jail")


def test_every_mode_tells_the_same_promises():
    names = [[promise.name for promise in protections(mode)] for mode in MODES]
    assert names[0] == names[1] == names[2]
    assert all(promise.on for promise in protections("namespaces"))
    kept = [sum(promise.on for promise in protections(mode)) for mode in MODES]
    assert kept == sorted(kept, reverse=True)
