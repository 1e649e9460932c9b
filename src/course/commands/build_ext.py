"""`pdm run build-ext`: compiles the C++ kernels of a package, and says what was built."""

import argparse
import time

from course.manual import Example
from course.solutions import LEARNER, add_solution

HELP = "build the C++ kernels of your package"
ABOUT = """
Compiles the C++ of src/extensions (from Week 2 Day 4 on), and says what was built. `build-ext-ref` compiles
the reference's. Tests and programs that need the library build it by themselves: this command is for seeing
the compiler's messages alone, and for building ahead.

The first build takes a minute or more, later ones only what has changed.
"""
EXAMPLES = (
    Example("pdm run build-ext", "build yours", untried="compiles for minutes"),
    Example("pdm run build-ext-ref", "build the reference's", untried="compiles for minutes"),
)
EXITS = ((0, "the library is there and up to date"), (2, "it does not compile, or a compiler is missing"))
FILES = (
    ("src/extensions/", "the sources"),
    (".course/build/", "what the compiler left; it can be deleted"),
    ("src/tiny_llm/_ext.*.so", "the library"),
)
SEE_ALSO = ("kernel", "doctor", "week2-04-cpu-kernels.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_solution(parser, "whose kernels", LEARNER)


def run(args: argparse.Namespace) -> int:
    """Exit status 0 if the library is there and up to date."""
    from course.build import ensure_built, is_stale
    from course.paths import EXTENSION, ROOT, SRC, extension_folder

    package = SRC / args.solution
    source = extension_folder(package)
    began, stale = time.monotonic(), is_stale(source, package, EXTENSION)
    if stale:
        print(f"building {source.relative_to(ROOT)} (the first time takes a minute or more)", flush=True)
    library = ensure_built(source, package, EXTENSION)
    done = f"built in {time.monotonic() - began:.1f} s" if stale else "up to date"
    print(f"{library.relative_to(ROOT)}: {done}")
    return 0
