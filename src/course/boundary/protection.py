"""What each mode of the boundary promises: one list for reports, `doctor`, the instructors' chapter and the tests."""

import os

import msgspec

_ALL = ("namespaces", "user", "limits")


class Protection(msgspec.Struct, frozen=True):
    """One promise: whether a mode keeps it, and what it means."""

    name: str
    on: bool
    detail: str


_PROMISES = {
    "verdict": (_ALL, "judgement happens in the grader; code of a submission only sends it values"),
    "time": (_ALL, "endless loops, deadlocks and sleeping threads are killed, in Python and in C++"),
    "memory": (_ALL, "of all processes of a case together"),
    "processes": (_ALL, "their number is limited, and none outlives its case"),
    "files": (_ALL, "what a case writes is limited in size and thrown away after it"),
    "traces": (
        ("namespaces", "user"),
        "neither a file in a shared place nor shared memory of System V reaches the next case; "
        "only compiled kernels do",
    ),
    "environment": (_ALL, "no variable of the grader but a few harmless ones is passed on"),
    "memory of the grader": (_ALL, "seeds and expected values cannot be read from the grading process"),
    "course files": (("namespaces", "user"), "tests, results and submissions cannot be written"),
    "grader": (("namespaces", "user"), "the grader and its helpers cannot be stopped or killed"),
    "private files": (("namespaces", "user"), "files that only the grader's user may read, as seeds, stay unread"),
    "reference": (("namespaces",), "the solution, other submissions and home folders are not there to be read"),
    "other processes": (("namespaces",), "no process but those of the case can be seen"),
    "network": (("namespaces",), "no network, and no local service of the machine"),
}


_NOT_FROM_ROOT = "memory of the grader"
"""What `limits` cannot promise where the grader is root: code under test then is root, too."""


def protections(mode: str) -> list[Protection]:
    """All promises, and whether `mode` keeps them for a grader with this process's user."""
    lost = _NOT_FROM_ROOT if mode == "limits" and os.geteuid() == 0 else ""
    return [Protection(name, mode in modes and name != lost, detail) for name, (modes, detail) in _PROMISES.items()]
