"""Fast float32 on Linux: lets MLX multiply matrices with the OpenBLAS inside NumPy's wheel.

MLX's Linux wheel brings the reference BLAS, about 30 times slower than OpenBLAS. `activate()` loads a small library
(built from `blas_shim.c` on first use) that defines `cblas_sgemm` and `cblas_dgemm` ahead of it. It must run before
`mlx.core` is imported. Where it does not apply nothing changes, and `status()` says why. `TINY_LLM_BLAS=off` switches
it off.

Imports neither NumPy nor MLX, and costs a few milliseconds once the library is built.
"""

import ctypes
import hashlib
import importlib.util
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from course.paths import cache_folder

SWITCH = "TINY_LLM_BLAS"
ROUTINES = ("cblas_sgemm", "cblas_dgemm", "openblas_get_num_threads", "openblas_set_num_threads")
SOURCE = Path(__file__).with_name("blas_shim.c")
COMPILERS = ("cc", "gcc", "clang", "c++", "g++", "clang++")
BUILD_SECONDS = 30


class Status(NamedTuple):
    """Whether MLX's float32 and float64 products go to OpenBLAS, why or why not, and the library they go to."""

    active: bool
    reason: str
    library: Path | None = None


class _Unavailable(Exception):
    """The route does not apply here; the text is the reason shown to the user."""


_status = Status(False, "not activated in this process")
_shim: ctypes.CDLL | None = None


def activate() -> Status:
    """Route MLX's BLAS to NumPy's OpenBLAS if this machine allows it. Call before importing mlx.core; never raises."""
    global _status
    if not _status.active:
        try:
            _status = _route()
        except (_Unavailable, OSError, RuntimeError, ValueError) as error:  # e.g. no home folder, an unreadable CC
            _status = Status(False, str(error))
    return _status


def status() -> Status:
    """The outcome of `activate()` in this process."""
    return _status


def calls() -> int:
    """How many matrix products MLX has sent through the route so far in this process."""
    return _shim.tiny_llm_blas_calls() if _shim else 0


def _route() -> Status:
    global _shim
    if sys.platform != "linux":
        raise _Unavailable(f"not needed on {sys.platform}: MLX uses the system's BLAS or the GPU")
    if os.environ.get(SWITCH) == "off":
        raise _Unavailable(f"switched off by {SWITCH}=off")
    if "mlx.core" in sys.modules:
        raise _Unavailable("mlx.core was imported first, so its own BLAS is already bound")
    library = _openblas()
    openblas = ctypes.CDLL(str(library))
    try:
        routines = [ctypes.cast(openblas[f"scipy_{name}64_"], ctypes.c_void_p) for name in ROUTINES]
    except AttributeError as error:
        raise _Unavailable(f"{library.name} is not the OpenBLAS known here: {error}") from None
    path = cache_folder() / f"blas-{_key(library)}.so"
    if not path.exists():
        _build(path)
    shim = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    shim.tiny_llm_blas_calls.restype = ctypes.c_int64
    shim.tiny_llm_blas_route(*routines)
    _shim = shim
    return Status(True, "MLX's float32 products run on NumPy's OpenBLAS", library)


def _openblas() -> Path:
    """The OpenBLAS file in NumPy's wheel, found without importing NumPy."""
    spec = importlib.util.find_spec("numpy")
    if spec is None or spec.origin is None:
        raise _Unavailable("NumPy is not installed")
    found = sorted((Path(spec.origin).parents[1] / "numpy.libs").glob("libscipy_openblas64_*.so"))
    if not found:
        raise _Unavailable("this NumPy brings no OpenBLAS of its own: install its wheel from PyPI")
    return found[0]


def _key(library: Path) -> str:
    """Names one build: the shim's source, the machine, and the OpenBLAS (its file name holds a hash of its content)."""
    return hashlib.sha256(SOURCE.read_bytes() + f"{os.uname().machine} {library.name}".encode()).hexdigest()[:16]


def _build(path: Path) -> None:
    """Compile the shim to `path`. Written aside and renamed, so processes that build at once never see half a file."""
    import subprocess
    import tempfile

    compiler = shlex.split(os.environ.get("CC", "")) or [c for c in COMPILERS if shutil.which(c)][:1]
    if not compiler:
        raise _Unavailable("no C compiler found: install gcc or clang for about 30 times faster float32")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        built = Path(folder) / path.name
        command = [*compiler, "-O2", "-shared", "-fPIC", "-o", str(built), str(SOURCE)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise _Unavailable(f"{compiler[0]} did not finish {SOURCE.name} in {BUILD_SECONDS} s") from None
        if done.returncode:
            first_line = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[0]
            raise _Unavailable(f"{compiler[0]} failed on {SOURCE.name}: {first_line}")
        built.replace(path)
