"""The registry's name of a file that somebody wrote as a path."""

import os
from pathlib import Path

from course.errors import CourseError
from course.paths import extension_folder, extension_name
from course.work.place import Place


def registry_name(file: str, place: Place) -> str:
    """ "src/tiny_llm/model/basics.py" and "model/basics.py" are the same file. Raises CourseError for one outside."""
    if not file or Path(file).as_posix() in (".", ".."):
        raise CourseError(f"{file!r} is no file of the learner's: write it like src/tiny_llm/model/basics.py")
    extensions = extension_folder(place.package)
    for base in (Path.cwd(), place.root, place.package):
        path = Path(os.path.abspath(base / file))
        if path.is_relative_to(place.package):
            if base == place.package and not path.exists() and (other := _elsewhere(file, place)):
                raise CourseError(f"{other} is no file of the learner's: write it like src/tiny_llm/model/basics.py")
            return path.relative_to(place.package).as_posix()
        if path.is_relative_to(extensions):
            return extension_name(path.relative_to(extensions).as_posix())
        if base == place.root and file.startswith("extensions/"):
            return os.path.normpath(file)
    raise CourseError(f"{file} is not in {place.show('')}: write it like src/tiny_llm/model/basics.py")


def _elsewhere(file: str, place: Place) -> str:
    """A file of that name that is there, but not the learner's; "" for none."""
    found = next((path for path in (Path(file), place.root / file) if path.exists()), None)
    return "" if found is None else str(found)
