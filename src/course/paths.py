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
_PREFIX = "extensions/"  # of the names that the registry gives to files of an extension folder


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
    return package.parent / _EXTENSION_FOLDERS.get(package.name, f"{package.name}_extensions")


def is_extension(name: str) -> bool:
    """Whether the registry's name of a file means one of C++ or Metal: "extensions/src/qmv.cpp"."""
    return name.startswith(_PREFIX)


def extension_name(file: str) -> str:
    """The registry's name of a file of an extension folder: "src/qmv.cpp" is called "extensions/src/qmv.cpp"."""
    return _PREFIX + file


def source_file(package: Path, name: str) -> Path:
    """The file that the registry calls `name`: in the package, or in the extension folder beside it."""
    return extension_folder(package) / name.removeprefix(_PREFIX) if is_extension(name) else package / name
