"""The test of a library that was just built: it must load in a fresh process, and know MLX's arrays.

A library of another nanobind than MLX's, or of no domain, imports without complaint and then refuses every array."""

import subprocess
import sys
from pathlib import Path

_SECONDS = 60
_PROGRAM = """
import importlib.util, sys
import mlx.core as mx
spec = importlib.util.spec_from_file_location(sys.argv[1], sys.argv[2])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
if module.identity(mx.array([1, 2])).tolist() != [1, 2]:
    sys.exit("identity(x) does not return its argument")
"""


def problem(library: Path, module: str) -> str | None:
    """Why the library does not work, in words; None if it does."""
    command = [sys.executable, "-c", _PROGRAM, module, str(library)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"loading it takes more than {_SECONDS} s"
    if done.returncode == 0:
        return None
    said = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
    if "incompatible function arguments" in done.stderr:
        return "it does not know MLX's arrays: CMakeLists.txt needs NB_DOMAIN mlx, and nanobind must fit mlx"
    if "has no attribute 'identity'" in done.stderr:
        return "it has no function identity(x), which shows that it works: keep it in the bindings"
    if "undefined symbol: " in said:
        return f"{_demangled(said.rpartition('undefined symbol: ')[2])} is declared and used, but nowhere defined"
    return said


def _demangled(symbol: str) -> str:
    """A C++ name as one writes it, where the machine can tell."""
    try:
        done = subprocess.run(["c++filt", symbol], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return symbol
    return done.stdout.strip() or symbol
