"""The package whose simulator runs."""

import importlib
from dataclasses import dataclass
from types import ModuleType

from course.errors import CourseError
from course.solutions import SOLUTIONS


@dataclass(frozen=True)
class Package:
    """One of the course's packages, by name."""

    name: str

    def module(self, name: str) -> ModuleType:
        """One of its modules of Week 4, such as "kernel". Raises CourseError where there is none."""
        full = f"{self.name}.cluster.{name}"
        try:
            return importlib.import_module(full)
        except ModuleNotFoundError as error:
            if not (error.name and full.startswith(error.name)):
                raise
            raise CourseError(
                f"there is no module {full}: use --solution {SOLUTIONS[0]}, or `pdm run starter`"
            ) from None
