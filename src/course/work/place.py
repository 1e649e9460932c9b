"""Where one course has the learner's files, their saved copies, the reference and the untouched starter.

Files have the registry's names: "model/basics.py", "extensions/src/qmv.cpp". A file of the course itself is named from
the root of the repository, with a slash in front: "/src/course/cli.py"."""

from dataclasses import dataclass
from pathlib import Path

from course.errors import CourseError
from course.paths import REFERENCE, ROOT, source_file
from course.starter import package_files


@dataclass(frozen=True)
class Place:
    """One checkout of the course; `package` is the learner's, with the extension folder beside it."""

    root: Path
    package: Path
    reference: Path

    @classmethod
    def of(cls, root: Path) -> "Place":
        """The usual layout."""
        return cls(root, root / "src" / "tiny_llm", root / "src" / REFERENCE.name)

    @property
    def course(self) -> Path:
        """What the tools keep."""
        return self.root / ".course"

    @property
    def saved(self) -> Path:
        return self.course / "saved"

    @property
    def starter_zip(self) -> Path:
        """The untouched starter, in a copy of the course that has no reference."""
        return self.root / "curriculum" / "starter.zip"

    def names(self) -> set[str]:
        """The learner's files, without what is built, and without names that are no text: nothing changes those."""
        return {name for name in package_files(self.package) if name.isascii() or _is_text(name)}

    def file(self, name: str) -> Path:
        """The file of that name, which need not exist."""
        return self.root / name[1:] if name.startswith("/") else source_file(self.package, name)

    def show(self, name: str) -> str:
        """How a message calls a file, or the package for ""."""
        path = self.file(name)
        return str(path.relative_to(self.root) if path.is_relative_to(self.root) else path)

    def read(self, name: str) -> bytes | None:
        """Its content; None where there is no file. Raises CourseError for one that cannot be read."""
        try:
            return self.file(name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CourseError(
                f"cannot read {self.show(name)} ({error.strerror}): make it a file you may read"
            ) from None


def _is_text(name: str) -> bool:
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


HERE = Place.of(ROOT)
