"""The reference's modules as tests have imported them, for the test kit: a `Solution` would import them anew."""

from importlib import import_module
from types import ModuleType


class Reference:
    """Like `course.solution.Solution` for tiny_llm_ref, without a guard."""

    def module(self, name: str) -> ModuleType:
        """The module `name` of the reference."""
        return import_module(f"tiny_llm_ref.{name}")
