"""The package whose simulator runs."""

import importlib
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class Package:
    """One of the course's packages, by name."""

    name: str

    def module(self, name: str) -> ModuleType:
        """One of its modules of Week 4, such as "kernel"."""
        return importlib.import_module(f"{self.name}.cluster.{name}")
