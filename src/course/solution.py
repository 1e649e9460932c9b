"""The package under test, resolved module by module, so that a mistake in one module does not stop the others."""

import importlib
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from pathlib import Path

from course.guard import Forbidden, Guard
from course.paths import EXTENSION, package_folder

OTHER = {"tiny_llm": "tiny_llm_ref", "tiny_llm_ref": "tiny_llm"}


class Solution:
    """What `observe` gets: `solution.module("model.basics")` is `tiny_llm.model.basics`, guarded.

    Making one forgets modules of the package that were imported before: those are not guarded.
    """

    def __init__(self, package: str, forbiddable: Sequence[str] = ()) -> None:
        self.package = package
        self.guard = Guard(package, forbiddable)
        for name in [n for n in sys.modules if n.partition(".")[0] == package]:
            del sys.modules[name]
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
        sys.meta_path.insert(0, _Finder(self.guard, OTHER[package]))

    def module(self, name: str) -> types.ModuleType:
        """The module `name` of the package under test."""
        return importlib.import_module(f"{self.package}.{name}")

    @property
    def folder(self) -> Path:
        """Where the package is."""
        return package_folder(self.package)

    @property
    def library(self) -> Path:
        """Its built C++ library, for tests that look into it. Raises FileNotFoundError."""
        if not (found := sorted(self.folder.glob(f"{EXTENSION}.*so"))):
            raise FileNotFoundError(f"the C++ library of {self.package} is not built")
        return found[0]


class _Finder:
    """Gives modules of the package guarded builtins, and keeps the other package away from them."""

    def __init__(self, guard: Guard, other: str) -> None:
        self.guard, self.other = guard, other

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        top = name.partition(".")[0]
        if top == self.other and self.guard.called_by_package():
            raise Forbidden(f"{self.guard.package} cannot import {self.other}: write it yourself")
        if top != self.guard.package:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self.guard, self.other)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, guard: Guard, other: str) -> None:
        super().__init__(name, path)
        self.guard, self.other = guard, other

    def path_stats(self, path: str) -> dict[str, object]:
        """Compiles the source each time: two saves within a second, of the same size, would share one .pyc file."""
        raise OSError(f"{path} is not cached")

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__["__builtins__"] = self.guard.builtins(self.other)
        super().exec_module(module)
