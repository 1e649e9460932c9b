"""Tar files whose headers are bounded: long names and attributes, which `tarfile` reads whole and parses before it
tells of a member. Knows nothing of files that are taken."""

import tarfile
from typing import Self

from course.grading.source import SUBMIT, Unreadable

MOST_OF_ONE = 64 << 10
MOST_OF_ALL = 8 << 20
MOST_GLOBAL = 1 << 10
_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_ATTRIBUTES = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)


class _Member(tarfile.TarInfo):
    """`tarfile` documents `_proc_member` as the place to step in: size and type are known, nothing more is read."""

    def _proc_member(self, archive: "BoundedTar") -> Self:
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise _sparse()
        if self.type in _LONG or self.type in _ATTRIBUTES:
            archive.charge(self.size)
        if self.type == tarfile.XGLTYPE:
            archive.charge_global(self.size)
        return super()._proc_member(archive)

    def _proc_gnusparse_10(self, *_: object) -> None:
        """A map of holes that is as long as it likes to be."""
        raise _sparse()


class BoundedTar(tarfile.TarFile):
    """Raises Unreadable where headers are longer than honest ones."""

    tarinfo = _Member
    _all = 0
    _global = 0

    def charge(self, size: int) -> None:
        """Count a header that speaks of one member."""
        self._all += max(size, 0)
        if size > MOST_OF_ONE or self._all > MOST_OF_ALL:
            raise Unreadable(f"names or attributes of files in the archive are too long: {SUBMIT}")

    def charge_global(self, size: int) -> None:
        """Count a header that speaks of all members that follow: each gets a copy."""
        self.charge(size)
        self._global += max(size, 0)
        if self._global > MOST_GLOBAL:
            raise Unreadable(f"the archive has more than {MOST_GLOBAL} bytes of attributes of all files: {SUBMIT}")


def _sparse() -> Unreadable:
    return Unreadable("the archive holds sparse files: pack it without --sparse")
