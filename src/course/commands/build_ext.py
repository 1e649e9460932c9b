"""`pdm run build-ext`: compiles the C++ kernels of a package, and says what was built."""

import argparse
import time

from course.solutions import LEARNER, add_solution

HELP = "build your C++ kernels in src/extensions (build-ext-ref: the reference's)"


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
