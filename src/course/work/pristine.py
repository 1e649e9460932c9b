"""The untouched starter: made from the reference, or read from `curriculum/starter.zip` in a copy without one."""

import zipfile

from course.curriculum import Curriculum
from course.errors import CourseError
from course.starter import package_files, render, render_file
from course.work.place import HERE, Place


def has_reference(place: Place = HERE) -> bool:
    """Whether this copy of the course holds the reference; a student repository does not."""
    return place.reference.is_dir()


def pristine(curriculum: Curriculum, place: Place = HERE) -> dict[str, bytes]:
    """All files of the untouched starter. Raises CourseError where there is neither a reference nor an archive."""
    if has_reference(place):
        return render(curriculum, place.reference)
    with _archive(place) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def pristine_file(curriculum: Curriculum, name: str, place: Place = HERE) -> bytes:
    """One file of the untouched starter. Raises CourseError for a name that it does not have."""
    try:
        if has_reference(place):
            return render_file(curriculum, place.reference, name)
        with _archive(place) as archive:
            return archive.read(name)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, KeyError):
        raise CourseError(f"{place.show(name)} is no file of the course: it has no untouched form") from None


def starter_names(place: Place = HERE) -> set[str]:
    """The files of the untouched starter, without their content. Raises CourseError as `pristine` does."""
    if has_reference(place):
        return set(package_files(place.reference))
    with _archive(place) as archive:
        return set(archive.namelist())


def _archive(place: Place) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(place.starter_zip)
    except (OSError, zipfile.BadZipFile) as error:
        problem = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        name = place.starter_zip.relative_to(place.root)
        raise CourseError(
            f"{name} {problem}: the untouched starter is in it, so copy it from the course anew"
        ) from None
