"""Which files of the machine code inside a boundary may see, in mode `namespaces`: a list of what it needs."""

import importlib.util
import site
import sys
from contextlib import suppress
from pathlib import Path

from course.boundary.root import TREE
from course.boundary.settings import Boundary
from course.paths import CURRICULUM, MODELS, REFERENCE, ROOT, SRC, cache_folder, extension_folder

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix", "/sys/devices")
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "passwd", "group", "hosts", "nsswitch.conf")
_PACKAGES = ("numpy", "msgspec")  # where these are the others are, too
_COURSE = Path(__file__).resolve().parents[1]


def visible(boundary: Boundary, tests: Path) -> tuple[str, ...]:
    """Paths to show: the system, Python and its packages, this course without its solution, the test file, the tree."""
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, *site.getsitepackages(), *map(_place, _PACKAGES)} - {""}
    system = {*_SYSTEM, *(f"/etc/{name}" for name in _ETC), "/etc/localtime"}
    course = {_COURSE, MODELS, CURRICULUM, tests, tests.parent / "golden", *_routes()}
    return tuple(sorted({*system, *python, *map(str, course), *boundary.readable, TREE}))


def _routes() -> list[Path]:
    """What `course.blas` has built for this user."""
    with suppress(OSError, RuntimeError):
        return list(cache_folder().glob("blas-*.so"))
    return []


def hidden(boundary: Boundary) -> tuple[str, ...]:
    """Folders to cover where they lie inside of something visible; not those that hold what is to be readable."""
    places = [_place(name, 0) for name in ("tiny_llm", REFERENCE.name)]
    packages = {Path(place) for place in places if place} | {SRC / "tiny_llm", REFERENCE}
    folders = {folder for package in packages for folder in (package, extension_folder(package))}
    folders |= {ROOT / ".course", ROOT / ".git"}
    needed = {parent for path in boundary.readable for parent in (Path(path), *Path(path).parents)}
    return tuple(sorted(map(str, folders - needed)))


def _place(package: str, above: int = 1) -> str:
    """The folder of a package, or a folder above it; "" for a package that is not installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.origin:
        return ""
    folder = Path(spec.origin).parent
    return str(folder.parents[above - 1] if above else folder)
