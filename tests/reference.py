"""The reference's cluster as a test file has imported it, for the test kit: a `Solution` would import it anew."""

from importlib import import_module
from types import ModuleType

from course.paths import REFERENCE


class Reference:
    """Like `course.solution.Solution` for tiny_llm_ref, without a guard. Make it where a test file has its imports.

    It keeps the modules that are imported then: other test files may import the package anew, also while tests are
    collected.
    """

    def __init__(self) -> None:
        names = [f"cluster.{file.stem}" for file in (REFERENCE / "cluster").glob("[!_]*.py")]
        self.modules = {name: import_module(f"tiny_llm_ref.{name}") for name in names}

    def module(self, name: str) -> ModuleType:
        """The module `name` of the reference, such as "cluster.store"."""
        return self.modules[name]
