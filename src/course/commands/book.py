"""`pdm run book`: builds, serves or redraws the book."""

import argparse
from pathlib import Path

from course.errors import CourseError
from course.manual import Example
from course.paths import BOOK

HELP = "build the book, or serve it while you write"
ABOUT = """
Builds the book with mdBook into book/build, or serves it and rebuilds it on every save. --figures redraws
figures from their scripts in book/figures and stops.
"""
EXAMPLES = (
    Example("pdm run book", "build it: book/build/index.html"),
    Example("pdm run book --serve", "read it at http://localhost:3000", untried="runs until it is told to stop"),
    Example("pdm run book --figures process-boundary", "redraw one figure, in light and dark"),
)
FILES = (("book/src/", "the chapters"), ("book/figures/", "what draws the figures"), ("book/build/", "the pages"))
SEE_ALSO = ("lint", "book/README.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--serve", action="store_true", help="serve on localhost and rebuild on every save")
    parser.add_argument("--port", type=int, default=3000, help="port for --serve (default 3000)")
    parser.add_argument("--out", type=Path, default=BOOK / "build", metavar="DIR", help="where to build")
    parser.add_argument("--figures", nargs="*", metavar="NAME", help="redraw these figures, or all, and stop")


def run(args: argparse.Namespace) -> int:
    """Build the book and print where it is."""
    from course.book import build, draw

    if args.figures is not None:
        for path in draw.redraw(args.figures):
            print(path)
        return 0
    if args.serve:
        if not 0 < args.port < 65536:
            raise CourseError(f"port {args.port} is not between 1 and 65535: choose another --port")
        return build.serve(args.out, args.port)
    print(build.build(args.out))
    return 0
