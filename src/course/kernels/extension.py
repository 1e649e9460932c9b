"""A package's C++ library as its Python code sees it: loaded when first used, every call counted.

A module of the package says `_ext = extension(__package__)`; `_ext.quantized_matmul` is then the library's function."""

import functools
import importlib
import importlib.util
from collections.abc import Callable
from types import ModuleType

from course.errors import CourseError
from course.kernels import proof
from course.paths import EXTENSION

_COMMANDS = {"tiny_llm": "build-ext", "tiny_llm_ref": "build-ext-ref"}


class Extension:
    """Stands in for the library of `package`: its functions take part in the proof of kernel."""

    def __init__(self, package: str) -> None:
        self._package = package

    @functools.cached_property
    def _library(self) -> ModuleType:
        name = f"{self._package}.{EXTENSION}"
        fix = f"`pdm run {_COMMANDS[self._package]}` builds it"
        if importlib.util.find_spec(name) is None:
            raise CourseError(f"the C++ library of {self._package} is not built: {fix}")
        try:
            return importlib.import_module(name)
        except ImportError as error:
            raise CourseError(f"the C++ library of {self._package} does not load ({error}): {fix}") from None

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            value = getattr(self._library, name)
        except AttributeError:
            raise AttributeError(f"the C++ library of {self._package} has no {name}: see its bindings") from None
        if callable(value) and not isinstance(value, type):
            value = _counted(name, value)
        self.__dict__[name] = value  # found without this method from now on
        return value


@functools.cache
def extension(package: str) -> Extension:
    """The library of the package that holds the module or package called `package`."""
    top = package.partition(".")[0]
    return Extension(top) if top == package else extension(top)


def _counted(name: str, function: Callable[..., object]) -> Callable[..., object]:
    def call(*args: object, **kwargs: object) -> object:
        return proof.called(name, function(*args, **kwargs))

    call.__name__, call.__doc__ = name, function.__doc__
    return call
