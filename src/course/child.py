"""`python -m course.child TESTS PACKAGE FORBIDDABLE READ WRITE`: runs `observe` of one test file's cases on request.

Started afresh by `course.isolate`; behind a process boundary `course.boundary.inside` calls `serve`. It holds the code
under test and no judgement: what it says is data. Its messages are those of `course.messages`."""

import faulthandler
import importlib.util
import os
import sys
import types
from pathlib import Path

import course.route  # noqa: F401 - before anything imports mlx.core
from course.case import Case
from course.codec import unpack
from course.failure import describe
from course.limit import TimeLimit
from course.messages import failure, values
from course.pipe import Closed, receive, send
from course.solution import Solution


def main(tests: str, package: str, forbiddable: str, read: str, write: str) -> None:
    """Load the test file and serve."""
    solution = Solution(package, forbiddable.split(",") if forbiddable else ())
    module = load(Path(tests))
    serve(solution, module, int(read), int(write))


def serve(solution: Solution, module: types.ModuleType, read: int, write: int) -> None:
    """Say that all is ready, then answer requests for cases of `module` until the grader closes its end."""
    faulthandler.enable()
    solution.guard.patch_real()
    own = os.getpid()
    send(write, b"ready")
    while True:
        try:
            request = unpack(receive(read))
        except Closed:
            return
        answer = _answer(solution, vars(module)[request["case"]], request)
        if os.getpid() != own:  # a copy that the code under test forked must not answer too
            os._exit(1)
        send(write, answer)


def _answer(solution: Solution, case: Case, request: dict[str, object]) -> bytes:
    try:
        with TimeLimit(request["timeout"]), solution.guard.forbid(request["forbidden"], case.observe.__module__):
            return values(request["number"], case.observe(solution, request["inputs"]))
    except BaseException as error:
        return failure(request["number"], describe(error, solution.folder))


def load(path: Path) -> types.ModuleType:
    """The test file, as a module of its own."""
    spec = importlib.util.spec_from_file_location("graded_tests", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["graded_tests"] = module  # dataclasses of the test file look their module up
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(*sys.argv[1:])
