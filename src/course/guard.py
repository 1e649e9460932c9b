"""The guarded `mlx.core`: what a day teaches may not be called by the package under test while it is graded.

Modules of that package see stand-ins for `mlx` and its modules; everybody else sees the real ones. A forbidden name
is refused when it is called, not when it is looked up, so one module can serve several days. Methods of `mx.array`
are checked on the real class, because there is only one. The guard prevents accidents; it is not a sandbox.

It knows dotted names under `mlx.core` ("softmax", "fast.rms_norm", "array.logsumexp") and "nn", and nothing of days."""

import builtins
import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import mlx
import mlx.core

_OFFERED = frozenset({"extension", "metal_kernel"})  # what a package may import from course.kernels

ForbiddenNames = Mapping[str, Iterable[str]]
"""Each with the files of the package that may use it all the same, as "model/basics.py"."""


class Forbidden(BaseException):
    """The package under test used what it is to build. Not an `Exception`, so that no `except Exception` hides it."""


class Guard:
    """Checks the use of the names in `forbiddable` by modules of `package`, against the names active at that time."""

    def __init__(self, package: str, forbiddable: Iterable[str]) -> None:
        self.package = package
        self.forbiddable = frozenset(forbiddable)
        self.active: dict[str, frozenset[str]] = {}
        self._tests = ""
        self._used: Forbidden | None = None
        self._top = _StandIn("mlx", mlx, "", self)
        for name in self.forbiddable:
            if name.startswith("array."):
                self._watch(mlx.core.array, name.removeprefix("array."), name)

    @contextmanager
    def forbid(self, names: ForbiddenNames, tests: str) -> Iterator[None]:
        """Forbid `names` meanwhile; the module called `tests` may use them. A caught refusal is raised again."""
        self.active = {name: frozenset(files) for name, files in names.items()}
        self._tests, self._used = tests, None
        try:
            yield
        finally:
            self.active = {}
            if self._used:
                raise self._used

    def rule(self, name: str) -> str | None:
        """The forbiddable name that covers `name`: itself, or a module around it."""
        return next((rule for rule in self.forbiddable if name == rule or name.startswith(rule + ".")), None)

    def check(self, rule: str) -> None:
        """Raise `Forbidden` if `rule` is active now."""
        if rule in self.active and self._nearest_file() not in self.active[rule]:
            self._used = Forbidden(f"{_spelled(rule)} is what this day teaches: build it from simpler operations")
            raise self._used

    def check_caller(self, rule: str) -> None:
        """The same, only if the nearest caller that matters is the package under test, not the test itself."""
        if rule in self.active and self.called_by_package():
            self.check(rule)

    def called_by_package(self) -> bool:
        """Whether the package under test is nearer on the call stack than the test file."""
        frame = sys._getframe(1)
        while frame:
            name = frame.f_globals.get("__name__", "")
            if name.partition(".")[0] == self.package:
                return True
            if name == self._tests:
                return False
            frame = frame.f_back
        return False

    def _nearest_file(self) -> str | None:
        """The file of the package that is nearest on the call stack."""
        frame = sys._getframe(1)
        while frame:
            top, _, inside = frame.f_globals.get("__name__", "").partition(".")
            if top == self.package:
                return f"{inside.replace('.', '/')}.py"
            frame = frame.f_back
        return None

    def patch_real(self) -> None:
        """Check the real `mlx.core` too: for a process that serves the package under test alone."""
        for name in self.forbiddable:
            *path, last = name.split(".")
            owner = functools.reduce(lambda module, part: getattr(module, part, None), path, mlx.core)
            if isinstance(owner, types.ModuleType) and hasattr(owner, last):
                self._watch(owner, last, name)

    def builtins(self, other: str) -> dict[str, object]:
        """Builtins for a module of the package: its imports give stand-ins, and refuse the package `other`."""

        def guarded_import(
            name: str,
            globals: dict[str, object] | None = None,
            locals: dict[str, object] | None = None,
            fromlist: tuple[str, ...] | None = (),
            level: int = 0,
        ) -> types.ModuleType:
            top = "" if level else name.partition(".")[0]
            if top == other:
                raise Forbidden(f"{self.package} cannot import {other}: write it yourself")
            if top == "course" and not (name == "course.kernels" and _OFFERED.issuperset(fromlist or ("",))):
                raise Forbidden(f"{self.package} may import {_offered()} from course.kernels: the rest grades it")
            module = builtins.__import__(name, globals, locals, fromlist, level)
            if top != "mlx":
                return module
            path = name.split(".")[1:] if fromlist else []
            return functools.reduce(getattr, path, self._top)

        return {**vars(builtins), "__import__": guarded_import}

    def _watch(self, owner: object, name: str, rule: str) -> None:
        real = getattr(owner, name)
        real = getattr(real, "__wrapped__", real)  # an earlier guard's check would only slow this one down

        @functools.wraps(real)
        def checked(*args: object, **kwargs: object) -> object:
            self.check_caller(rule)
            return real(*args, **kwargs)

        setattr(owner, name, checked)


class _StandIn(types.ModuleType):
    """Looks like the module `target`; `prefix` is its dotted name under `mlx.core`, "" for that and for `mlx`."""

    def __init__(self, name: str, target: types.ModuleType, prefix: str, guard: Guard) -> None:
        super().__init__(name, target.__doc__)
        self.__dict__.update(_target=target, _prefix=prefix, _guard=guard, _made={})
        self.__all__ = [n for n in dir(target) if not n.startswith("_")]  # for `from mlx.core import *`

    def __dir__(self) -> list[str]:
        return dir(self._target)

    def __getattr__(self, name: str) -> object:
        value = getattr(self._target, name)
        dotted = "" if value is mlx.core else f"{self._prefix}.{name}".lstrip(".")
        if isinstance(value, types.ModuleType):
            return self._once(name, lambda: _StandIn(value.__name__, value, dotted, self._guard))
        rule = self._guard.rule(dotted)
        if rule is None:
            return value
        if isinstance(value, type):
            return self._once(name, lambda: _checked_class(value, rule, self._guard))
        if callable(value):
            return self._once(name, lambda: _checked_function(self._target, name, rule, self._guard))
        self._guard.check(rule)
        return value

    def _once(self, name: str, make: Callable[[], object]) -> object:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]


def _checked_function(module: types.ModuleType, name: str, rule: str, guard: Guard) -> Callable:
    @functools.wraps(getattr(module, name))
    def checked(*args: object, **kwargs: object) -> object:
        guard.check(rule)
        return getattr(module, name)(*args, **kwargs)

    return checked


def _checked_class(real: type, rule: str, guard: Guard) -> type:
    """A subclass, so that it can still be a base class; making an instance is what is checked."""

    def __new__(cls: type, *args: object, **kwargs: object) -> object:
        guard.check(rule)
        return (
            real.__new__(cls) if real.__new__ in (object.__new__, dict.__new__) else real.__new__(cls, *args, **kwargs)
        )

    return type(real)(real.__name__, (real,), {"__new__": __new__, "__module__": real.__module__})


def _offered() -> str:
    return " and ".join(sorted(_OFFERED))


def _spelled(rule: str) -> str:
    return "mlx.nn" if rule == "nn" else f"mx.{rule}"
