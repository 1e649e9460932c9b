"""The process of one case: it confines itself, then runs `observe` on request until it is ended."""

import importlib
import os
import sys
import types
from contextlib import suppress

from course import limit
from course.boundary.confine import confine, keep_only
from course.boundary.order import Order
from course.child import serve
from course.solution import Solution

_REQUESTS, _ANSWERS = 3, 4


def run(order: Order, module: types.ModuleType, descriptors: list[int]) -> None:
    """Answer requests. Descriptors: requests, answers, printed."""
    requests, answers, printed = descriptors
    nothing = os.open(os.devnull, os.O_RDONLY)
    with suppress(PermissionError):  # it leads a session already
        os.setsid()
    keep_only({nothing: 0, printed: 1, requests: _REQUESTS, answers: _ANSWERS})
    os.dup2(1, 2)
    confine(order)
    limit.last_words = 2
    sys.path.insert(0, order.tree)
    importlib.invalidate_caches()
    serve(Solution(order.package, order.forbiddable), module, _REQUESTS, _ANSWERS)
