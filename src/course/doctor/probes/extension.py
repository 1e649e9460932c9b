"""Whether a small C++ extension builds, loads and knows MLX's arrays: only where minutes may be spent."""

import tempfile
from pathlib import Path

from course.doctor.finding import COMPILED, Finding
from course.errors import CourseError

_MODULE = "_ext"
_CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(doctor LANGUAGES CXX)
find_package(Python 3.11 COMPONENTS Interpreter Development.Module REQUIRED)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT)
find_package(nanobind CONFIG REQUIRED)
execute_process(COMMAND "${Python_EXECUTABLE}" -m mlx --cmake-dir
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE MLX_ROOT)
find_package(MLX CONFIG REQUIRED)
nanobind_add_module(_ext NB_STATIC NB_DOMAIN mlx bindings.cpp)
target_compile_features(_ext PRIVATE cxx_std_20)
target_link_libraries(_ext PRIVATE mlx)
"""
_BINDINGS = """
#include <nanobind/nanobind.h>
#include "mlx/array.h"

NB_MODULE(_ext, m) {
  m.def("identity", [](const mlx::core::array& x) { return x; });
}
"""


def probe(full: bool) -> Finding:
    """Built in a folder of its own, and tried."""
    if not full:
        return Finding.ok("not tried; `pdm run doctor --full` builds a small one")
    from course.build import ensure_built

    with tempfile.TemporaryDirectory(prefix="tiny-llm-") as folder:
        source, destination = Path(folder) / "source", Path(folder) / "built"
        source.mkdir()
        destination.mkdir()
        (source / "CMakeLists.txt").write_text(_CMAKE)
        (source / "bindings.cpp").write_text(_BINDINGS)
        try:
            ensure_built(source, destination, _MODULE)
        except (CourseError, OSError) as error:
            said = " ".join(str(error).split())
            fixes = {"debian": "apt install g++", "macos": "xcode-select --install"}
            return Finding.fail(f"a small extension does not build: {said[:300]}", stops=COMPILED, **fixes)
    return Finding.ok("a small one builds, loads and takes MLX's arrays")
