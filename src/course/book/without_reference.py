"""The book in a class's copy of the course, which has no reference solution, and not all chapters.

Given code comes from the untouched starter, where it stands as in the reference, and pages that name the reference say
what to do instead. A release puts what concerns Markdown into the chapters already, as learners read them there, too.
"""

import re
from pathlib import Path

from course.book.page import Page, Segment, map_prose
from course.curriculum import Curriculum
from course.paths import REFERENCE, ROOT, extension_folder, source_file

STARTER = ROOT / ".course" / "starter" / "tiny_llm"
_INCLUDE = re.compile(rf"(\{{\{{#\w*include (?:\.\./)+)src/({REFERENCE.name}|{extension_folder(REFERENCE).name})/")
_LINK = re.compile(r"\[([^\]\n]+)\]\(([\w-]+\.md)(?:#[\w-]+)?\)")
_NAMES_REFERENCE = re.compile(rf"{REFERENCE.name}|{extension_folder(REFERENCE).name}|test-refsol|build-ext-ref")
_STARTS_PROGRAM = re.compile(r"^(?:\./run|pdm run) main$", re.MULTILINE)
_TWO_WAYS = re.compile(r"<!-- reference -->\n.*?<!-- without reference:(.*?)-->\n+", re.DOTALL)
_TITLE = re.compile(r"^# .+\n", re.MULTILINE)
_NOTE = f"""
> [!NOTE]
> This copy of the course has no reference solution. Where this page writes `{REFERENCE.name}`, write `tiny_llm`, or
> leave out `--solution {REFERENCE.name}`: your own code runs, once it passes. There is no `test-refsol` and no
> `build-ext-ref`; `pdm run status` says where you are, and `pdm run doctor` whether your machine is ready.
"""


def unpack_starter(curriculum: Curriculum, folder: Path = STARTER) -> None:
    """Write the untouched starter where the chapters' includes look for it. Raises CourseError."""
    from course.work.pristine import pristine

    for name, content in pristine(curriculum).items():
        path = source_file(folder, name)
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def adapted(page: Page, source: Path) -> Page:
    """The page for this copy of the course; `source` is the folder of all pages."""
    folders = {REFERENCE.name: STARTER.name, extension_folder(REFERENCE).name: extension_folder(STARTER).name}
    place = STARTER.parent.relative_to(ROOT).as_posix()
    text = _INCLUDE.sub(lambda found: f"{found[1]}{place}/{folders[found[2]]}/", page.text)
    text = map_prose(text, lambda segment: _without_dead_links(segment, source))
    return Page(page.path, with_note(text))


def with_note(text: str) -> str:
    """A page with the note below its title, if it needs it and has it not yet."""
    if _NOTE in text or not (_NAMES_REFERENCE.search(text) or _STARTS_PROGRAM.search(text)):
        return text
    return _TITLE.sub(lambda found: found[0] + _NOTE, text, count=1)


def in_other_words(text: str) -> str:
    """Markdown with what it says, in a comment, to those who have no reference, in the place of what it says else."""
    return _TWO_WAYS.sub(lambda found: f"{found[1].strip()}\n\n" if found[1].strip() else "", text)


def _without_dead_links(segment: Segment, source: Path) -> str:
    """Links to chapters that are not there become plain text."""
    return _LINK.sub(lambda found: found[0] if (source / found[2]).is_file() else found[1], segment.text)
