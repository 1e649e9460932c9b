"""Where things are in the repository, and what is kept outside it."""

import os
from importlib.machinery import PathFinder
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
REFERENCE = SRC / "tiny_llm_ref"
CURRICULUM = ROOT / "curriculum"
TESTS = ROOT / "tests_refsol"
BOOK = ROOT / "book"
MODELS = ROOT / "models"

EXTENSION = "_ext"  # the module that a package's C++ sources become
_EXTENSION_FOLDERS = {"tiny_llm_ref": "extensions_ref", "tiny_llm": "extensions"}
_PREFIX = "extensions/"


def cache_folder() -> Path:
    """Where files made once are kept for this user. Raises RuntimeError for one without a home folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tiny-llm"


def package_folder(package: str) -> Path:
    """Where Python finds `package`, without importing it; its bare name where it finds none."""
    spec = PathFinder.find_spec(package)
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places else Path(package)


def extension_folder(package: Path) -> Path:
    """Where a package keeps its C++ and Metal sources: beside it, also in a scratch copy."""
    return package.parent / _EXTENSION_FOLDERS[package.name]


def source_file(package: Path, name: str) -> Path:
    """The file that the registry calls `name`: "model/basics.py", or "extensions/src/qmv.cpp" beside the package."""
    inside = name.removeprefix(_PREFIX)
    return package / name if inside == name else extension_folder(package) / inside
