"""The process boundary: learner code runs in a place where it can reach neither the grader nor the machine.

`Boundary` says where and how much, `choose` which of the three modes this machine allows, `protections` what a mode
keeps off and what it does not. `course.boundary.sandboxed` runs cases inside."""

from course.boundary.modes import MODES, choose, problem
from course.boundary.protection import Protection, protections
from course.boundary.settings import Boundary, Limits

__all__ = ["MODES", "Boundary", "Limits", "Protection", "choose", "problem", "protections"]
