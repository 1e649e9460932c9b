"""`pdm run lint`: checks the book against its own rules."""

import argparse

from course.manual import Example

HELP = "check the book: links, commands, grammar, glossary, spelling"
ABOUT = """
Checks the book against its own rules: links and anchors, the grammar of chapters, terms of the glossary,
spelling, and that every command line in it is one that the course takes.
"""
EXAMPLES = (
    Example("pdm run lint", "all chapters"),
    Example("pdm run lint setup.md", "only the findings of one chapter"),
)
EXITS = ((0, "the book is clean"), (1, "there are findings, a line for each"), (2, "a package of the book is missing"))
SEE_ALSO = ("book", "CONTRIBUTING.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="show only these, such as week1-01-attention.md")


def run(args: argparse.Namespace) -> int:
    """Print every finding; exit status 1 if there are any."""
    from course.book import build, lint
    from course.book.library import Library

    build.check_packages()
    findings = lint.check(Library.load())
    if args.chapters:
        findings = [f for f in findings if f.file.endswith(tuple(args.chapters))]
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings" if findings else "the book is clean")
    return 1 if findings else 0
