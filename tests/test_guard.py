"""What a day teaches cannot be called by the package under test, in whatever way it is imported."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

import mlx.core as mx
import pytest

from course.guard import Forbidden
from course.solution import Solution

if TYPE_CHECKING:
    from conftest import SmallCourse

MX = "import mlx.core as mx\n"
NAMES = ("softmax", "nn", "array.logsumexp", "fast.rms_norm")
ALL = dict.fromkeys(NAMES, ())


class Guarded:
    """A one-module package, called with names forbidden."""

    def __init__(self, course: "SmallCourse") -> None:
        self.course = course

    def load(self, text: str) -> Solution:
        self.course.package(basics=text)
        return Solution("tiny_llm", NAMES)

    def call(self, text: str, forbidden: tuple[str, ...] = NAMES) -> object:
        solution = self.load(text)
        with solution.guard.forbid(dict.fromkeys(forbidden, ()), __name__):
            return solution.module("model.basics").f(mx.array([1.0, 2.0]))


@pytest.fixture
def guarded(small_course: "SmallCourse", monkeypatch: pytest.MonkeyPatch) -> Iterator[Guarded]:
    monkeypatch.syspath_prepend(small_course.root)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    real = mx.array.logsumexp
    kept = _forget_packages()  # other tests import both packages; a graded run starts with neither
    yield Guarded(small_course)
    mx.array.logsumexp = real
    _forget_packages()
    sys.modules.update(kept)


def _forget_packages() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.partition(".")[0] in ("tiny_llm", "tiny_llm_ref")]
    return {name: sys.modules.pop(name) for name in names}


@pytest.mark.parametrize(
    "text",
    [
        MX + "def f(x): return mx.softmax(x)",
        "import mlx.core\ndef f(x): return mlx.core.softmax(x)",
        "import mlx\nimport mlx.core\ndef f(x): return mlx.core.softmax(x)",
        "from mlx import core\ndef f(x): return core.softmax(x)",
        "from mlx.core import softmax\ndef f(x): return softmax(x)",
        "from mlx.core import *\ndef f(x): return softmax(x)",
        "def f(x):\n    import mlx.core as mx\n    return mx.softmax(x)",
        MX + "from functools import partial\nsoft = partial(mx.softmax, axis=-1)\ndef f(x): return soft(x)",
        MX + "def f(x): return list(map(mx.softmax, [x]))",
        MX + "def f(x): return getattr(mx, 'soft' + 'max')(x)",
        MX + "@mx.compile\ndef f(x): return mx.softmax(x)",
        MX + "f = mx.compile(mx.softmax)",
        MX + "def f(x): return mx.grad(lambda x: mx.softmax(x)[0])(x)",
        MX + "def f(x): return mx.fast.rms_norm(x, x, 1e-5)",
        "from mlx.core import fast\ndef f(x): return fast.rms_norm(x, x, 1e-5)",
        "from mlx.core.fast import rms_norm\ndef f(x): return rms_norm(x, x, 1e-5)",
        "import mlx.core.fast as fast\ndef f(x): return fast.rms_norm(x, x, 1e-5)",
        "def f(x): return x.logsumexp()",
        MX + "def f(x): return mx.array.logsumexp(x)",
        "import mlx.nn as nn\ndef f(x): return nn.softmax(x)",
        "import mlx.nn as nn\ndef f(x): return nn.RMSNorm(2)(x)",
        "from mlx import nn\ndef f(x): return nn.RMSNorm(2)(x)",
        "from mlx.nn import RMSNorm\ndef f(x): return RMSNorm(2)(x)",
        "from mlx.nn.layers.normalization import RMSNorm\ndef f(x): return RMSNorm(2)(x)",
        "import mlx.nn as nn\nclass M(nn.Module): pass\ndef f(x): return M()",
        MX + "def f(x):\n    try:\n        return mx.softmax(x)\n    except BaseException:\n        return x",
        MX + "def f(x):\n    try:\n        return mx.softmax(x)\n    except BaseException:\n        raise ValueError",
    ],
)
def test_forbidden_uses_are_refused(guarded: Guarded, text: str):
    with pytest.raises(Forbidden, match="is what this day teaches"):
        guarded.call(text)


@pytest.mark.parametrize(
    "text",
    [
        MX + "def f(x): return isinstance(x, mx.array) and isinstance(x + 1, mx.array)",
        MX + "def f(x: mx.array) -> mx.array | None: return x.dtype == mx.float32",
        MX + "def f(x): return isinstance(x.dtype, mx.Dtype) and mx.array([1]).shape == (1,)",
        MX + "def f(x): return mx.issubdtype(x.dtype, mx.floating)",
        MX + "def f(x): return isinstance(mx.fast.layer_norm(x, None, None, 1e-5), mx.array)",
        MX + "g = mx.compile(lambda x: mx.exp(x))\ndef f(x): return g(x).shape == (2,)",
        MX + "def f(x): return mx.value_and_grad(lambda x: mx.sum(mx.exp(x)))(x)[1].shape == (2,)",
        MX + "def f(x): return mx.vmap(mx.exp)(x).shape == (2,)",
        MX + "def f(x): return mx.random.normal((2,)).shape == (2,) and mx.inf > 1 and mx.pi > 3",
        MX + "import pickle\ndef f(x): return pickle.loads(pickle.dumps(x)).shape == (2,)",
        MX + "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: mx.array\ndef f(x): return A(x).x is x",
        MX + "import mlx.nn as nn\nunused = mx.softmax, nn.Linear\ndef f(x): return mx.softmax is unused[0]",
        "from __future__ import annotations\nimport mlx.core as mx, typing\ndef g(x: mx.array): ...\n"
        "def f(x): return typing.get_type_hints(g)['x'] is mx.array",
        "from mlx.utils import tree_flatten\ndef f(x): return len(tree_flatten([x])) == 1",
        MX + "def f(x):\n    with mx.stream(mx.cpu):\n        return (x + 1).shape == (2,)",
        "import numpy as np, math, sys\ndef f(x): return float(np.array(x)[0]) == 1.0",
        MX + "def f(x): return 'softmax' in dir(mx) and mx.__name__ == 'mlx.core'",
    ],
)
def test_other_uses_work(guarded: Guarded, text: str):
    assert guarded.call(text) is True


SOFTMAX = MX + "def f(x): return mx.softmax(x)"


def test_names_of_other_days_are_allowed(guarded: Guarded):
    assert guarded.call(SOFTMAX, forbidden=("nn",)).shape == (2,)


def test_one_module_serves_days_with_different_rules(guarded: Guarded):
    solution = guarded.load(SOFTMAX)
    f = solution.module("model.basics").f
    with pytest.raises(Forbidden), solution.guard.forbid(ALL, __name__):
        f(mx.ones(2))
    with solution.guard.forbid({}, __name__):
        f(mx.ones(2))
    f(mx.ones(2))


def test_files_may_be_excepted(guarded: Guarded):
    solution = guarded.load(MX + "from .more import g\ndef f(x): return mx.softmax(x)")
    guarded.course.write(
        "tiny_llm/model/more.py", MX + "def g(x): return mx.softmax(x)\ndef h(x): return x.logsumexp()"
    )
    module, rules = solution.module("model.basics"), ALL | {"softmax": ["model/more.py"]}
    with solution.guard.forbid(rules, __name__):
        assert module.g(mx.ones(2)).shape == (2,)
    with pytest.raises(Forbidden), solution.guard.forbid(rules, __name__):
        module.f(mx.ones(2))
    with pytest.raises(Forbidden), solution.guard.forbid(rules, __name__):
        solution.module("model.more").h(mx.ones(2))


def test_tests_use_the_real_mlx(guarded: Guarded):
    solution = guarded.load("def f(x, callback): return callback(x)")
    with solution.guard.forbid(ALL, __name__):
        assert mx.softmax(mx.ones(2)).shape == (2,)
        assert mx.ones(2).logsumexp().shape == ()
        assert solution.module("model.basics").f(mx.ones(2), lambda x: x.logsumexp()).shape == ()


def test_patching_the_real_module_checks_only_the_package(guarded: Guarded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mx, "softmax", mx.softmax)
    monkeypatch.setattr(mx.fast, "rms_norm", mx.fast.rms_norm)
    solution = guarded.load("import importlib\ndef f(x): return importlib.import_module('mlx.core').softmax(x)")
    solution.guard.patch_real()
    with pytest.raises(Forbidden), solution.guard.forbid(ALL, __name__):
        solution.module("model.basics").f(mx.ones(2))
    with solution.guard.forbid(ALL, __name__):
        assert mx.softmax(mx.ones(2)).shape == (2,)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    import tiny_llm_ref",
        "def f(x):\n    from tiny_llm_ref.model import basics",
        "def f(x):\n    import importlib\n    importlib.import_module('tiny_llm_ref.model.basics')",
        "def f(x):\n    try:\n        import tiny_llm_ref\n    except Exception:\n        return x",
    ],
)
def test_the_other_package_cannot_be_imported(guarded: Guarded, text: str):
    with pytest.raises(Forbidden, match="tiny_llm cannot import tiny_llm_ref: write it yourself"):
        guarded.call(text)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("from course.kernels import extension, metal_kernel\ndef f(x): return x", True),
        ("from course.kernels import faulty\ndef f(x): return x", False),
        ("from course.kernels.proof import called\ndef f(x): return x", False),
        ("import course.kernels\ndef f(x): return x", False),
        ("from course import compare\ndef f(x): return x", False),
        ("def f(x):\n    import course.compare\n    return x", False),
    ],
)
def test_what_grades_cannot_be_imported(guarded: Guarded, text: str, allowed: bool):
    if allowed:
        assert guarded.call(text) is not None
    else:
        with pytest.raises(Forbidden, match=r"may import extension and metal_kernel from course\.kernels"):
            guarded.call(text)


def test_modules_are_resolved_one_by_one(guarded: Guarded):
    solution = guarded.load("def f(x): return 1")
    guarded.course.write("tiny_llm/model/more.py", "def broken(:\n")
    assert solution.module("model.basics").f(None) == 1
    with pytest.raises(SyntaxError):
        solution.module("model.more")


def test_a_new_solution_forgets_the_old_modules(guarded: Guarded):
    first = guarded.load("def f(x): return 1").module("model.basics")
    assert guarded.load("def f(x): return 2").module("model.basics").f(None) == 2
    assert first.f(None) == 1


def test_relative_imports_inside_the_package(guarded: Guarded):
    solution = guarded.load("from .more import g\nfrom . import more\ndef f(x): return g(x)")
    guarded.course.write("tiny_llm/model/more.py", MX + "def g(x): return mx.softmax(x)")
    with pytest.raises(Forbidden), solution.guard.forbid(ALL, __name__):
        solution.module("model.basics").f(mx.ones(2))
