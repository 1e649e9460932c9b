"""A course of one kernel day: a C++ primitive that doubles an array, small enough to be built in a test."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

REGISTRY = """
week = 1
title = "Sums"
[[day]]
day = 1
title = "One"
chapter = "week1-01-one.md"
hours = 1.0
[day.given]
"kernels/cpu.py" = ["twice", "plus"]
[[day.task]]
title = "The loop"
points = 10
hints = ["a", "b", "c"]
[day.task.symbols]
"extensions/src/twice.cpp" = ["twice"]
[[day.task]]
title = "The primitive"
points = 5
hints = ["a", "b", "c"]
[day.task.symbols]
"extensions/src/bindings.cpp" = ["Twice.eval_cpu"]
[[day]]
day = 2
title = "Two"
chapter = "week1-02-two.md"
hours = 1.0
needs = ["1.1"]
[[day.task]]
title = "More"
points = 10
hints = ["a", "b", "c"]
[day.task.symbols]
"kernels/more.py" = ["four_times"]
"""
CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
find_package(Python 3.11 COMPONENTS Interpreter Development.Module REQUIRED)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT)
find_package(nanobind CONFIG REQUIRED)
execute_process(COMMAND "${Python_EXECUTABLE}" -m mlx --cmake-dir
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE MLX_ROOT)
find_package(MLX CONFIG REQUIRED)
nanobind_add_module(_ext NB_STATIC NB_DOMAIN mlx src/bindings.cpp src/twice.cpp)
target_compile_features(_ext PRIVATE cxx_std_20)
target_link_libraries(_ext PRIVATE mlx)
"""
BINDINGS = """
#include <nanobind/nanobind.h>

#include <stdexcept>

#include "mlx/allocator.h"
#include "mlx/array.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/primitives.h"
#include "twice.h"

namespace mx = mlx::core;
using namespace nanobind::literals;

struct Twice : mx::Primitive {
  using mx::Primitive::Primitive;
  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    // begin task: Twice.eval_cpu
    mx::array& out = outputs[0];
    out.set_data(mx::allocator::malloc(out.nbytes()));
    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.set_input_array(inputs[0]);
    encoder.set_output_array(out);
    encoder.dispatch([x = mx::array::unsafe_weak_copy(inputs[0]), y = mx::array::unsafe_weak_copy(out)]() mutable {
      twice(x.data<float>(), y.data<float>(), y.size());
    });
    // end task: Twice.eval_cpu
  }
  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {}
  const char* name() const override { return "Twice"; }
};

NB_MODULE(_ext, m) {
  m.def("identity", [](const mx::array& x) { return x; }, "x"_a);
  m.def("twice", [](const mx::array& x) {
    auto stream = mx::default_stream(mx::Device::cpu);
    return mx::array(x.shape(), x.dtype(), std::make_shared<Twice>(stream), {x});
  }, "x"_a, "Twice x.");
}
"""
KERNEL = """
#include "twice.h"

#include <stdexcept>

void twice(const float* x, float* y, size_t n) {
  // begin task: twice
  for (size_t i = 0; i < n; ++i) y[i] = 2 * x[i];
  // end task: twice
}
"""
FILES = {
    "CMakeLists.txt": CMAKE,
    "src/bindings.cpp": BINDINGS,
    "src/twice.cpp": KERNEL,
    "src/twice.h": "#pragma once\n#include <cstddef>\nvoid twice(const float* x, float* y, size_t n);\n",
}
CPU = '''
"""The Python face of the library."""

import mlx.core as mx

from course.kernels import extension

_ext = extension(__package__)


def twice(x: mx.array) -> mx.array:
    """Twice x."""
    return _ext.twice(x)


def plus(x: mx.array) -> mx.array:
    """One more."""
    return x + 1
'''
MORE = '''
"""On top of the kernel."""

import mlx.core as mx

from .cpu import twice


def four_times(x: mx.array) -> mx.array:
    """Four times x."""
    return twice(twice(x))
'''
TESTS = '''
import mlx.core as mx
from course.case import case
from course.compare import close, same
from course.kernels import dispatches, faulty

@case(task=1, params=[dict(size=1), dict(size=5)])
class TwiceDoubles:
    """Twice x."""
    def inputs(rng, size): return mx.array(rng.normal(size=size))
    def observe(solution, x): return solution.module("kernels.cpu").twice(x)
    def verify(x, y): close(y, 2 * x, suspects={"it was added to itself once more": 3 * x})

@case(task=2)
class TheKernelRuns:
    """The result comes from the kernel."""
    def inputs(rng): return mx.array(rng.normal(size=3))
    def observe(solution, x):
        with dispatches() as counts, faulty("twice", index=1, delta=1.0):
            y = solution.module("kernels.cpu").twice(x)
        return y, dict(counts)
    def verify(x, seen):
        assert seen[1] == {"twice": 1}, "no dispatch"
        same(seen[0], 2 * x + mx.array([0.0, 1.0, 0.0]))
'''
MORE_TESTS = '''
import mlx.core as mx
from course.case import case
from course.compare import close, same

@case(task=1)
class FourTimes:
    """Four times x."""
    def inputs(rng): return mx.array(rng.normal(size=3))
    def observe(solution, x): return solution.module("kernels.more").four_times(x)
    def verify(x, y): same(y, 4 * x)
'''


@dataclass(frozen=True)
class KernelCourse:
    """A reference with its C++ sources, its tests and its registry."""

    root: Path

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip())
        return path

    @property
    def reference(self) -> Path:
        return self.root / "tiny_llm_ref"

    @property
    def sources(self) -> Path:
        return self.root / "extensions_ref"

    @property
    def options(self) -> list[str]:
        return ["--curriculum", str(self.root / "curriculum")]


def make(root: Path) -> KernelCourse:
    course = KernelCourse(root)
    course.write("curriculum/week1.toml", REGISTRY)
    course.write("tiny_llm_ref/__init__.py", '"""A package."""\n')
    course.write("tiny_llm_ref/kernels/__init__.py", '"""Kernels."""\n')
    course.write("tiny_llm_ref/kernels/cpu.py", CPU)
    course.write("tiny_llm_ref/kernels/more.py", MORE)
    for name, text in FILES.items():
        course.write(f"extensions_ref/{name}", text)
    course.write("tests_refsol/week_1/test_day_1.py", TESTS)
    course.write("tests_refsol/week_1/test_day_2.py", MORE_TESTS)
    return course
