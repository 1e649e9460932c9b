"""Submissions in an archive: zip, or tar with or without gzip. Read in memory, file by file, never unpacked to disk.

A name that leads out of the archive is no file of ours. A bomb costs what is read of it: at most the bytes that were
asked for, and for tar, which must be read from its start, `MOST_BYTES` in all. Only deflate is unpacked: Python's
readers of other kinds unpack a whole member at once. Whatever an archive makes Python raise becomes `Unreadable`, or
`OSError` for one file."""

import gzip
import io
import stat
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from course.grading.source import MOST_ENTRIES, SUBMIT, Entry, Unreadable
from course.grading.tar_headers import BoundedTar
from course.grading.text import one_line

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
MOST_ARCHIVE = 256 << 20
MOST_BYTES = 512 << 20
_MOST_KEPT = 64 << 20
_END, _MOST_END = b"PK\x05\x06", (1 << 16) + 22
_LARGE = 20 + 56
_LEAST_ENTRY = 47
_MOST_OF_ONE = (1 << 20) + 1
_MOST_READS = 500_000
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_OTHERS = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7-Zip", b"Rar!": "RAR"}


def is_archive(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def open_archive(path: Path) -> "Zip | Tar":
    """The archive `path`, whatever its name says. Raises Unreadable."""
    try:
        if path.stat().st_size > MOST_ARCHIVE:
            raise Unreadable(f"the archive is larger than {MOST_ARCHIVE >> 20} MiB: {SUBMIT}")
        return Zip(path) if zipfile.is_zipfile(path) else Tar(path)
    except Unreadable:
        raise
    except Exception as error:
        raise Unreadable(f"the archive cannot be read ({_told(error)}): submit a folder, .zip or .tar.gz") from None


class Zip:
    """A zip file."""

    def __init__(self, path: Path) -> None:
        _check_count(_directory_size(path) // _LEAST_ENTRY)
        self._archive = zipfile.ZipFile(path)
        infos = self._archive.infolist()
        _check_count(len(infos))
        self._members = {name: info for info in infos if (name := _inside(info.filename))}

    def entries(self) -> Iterator[Entry]:
        for name, info in self._members.items():
            mode = info.external_attr >> 16
            plain = stat.S_ISREG(mode) or not stat.S_IFMT(mode)
            yield Entry(name, "link" if stat.S_ISLNK(mode) else "file" if plain else "special")

    def read(self, name: str, most: int) -> bytes:
        info = self._members[name]
        if info.flag_bits & 1:
            raise OSError(0, "it is encrypted: zip it without a password")
        if info.compress_type not in _PLAIN:
            kind = zipfile.compressor_names.get(info.compress_type, f"method {info.compress_type}")
            raise OSError(0, f"it is packed with {kind}: zip it with ordinary compression, deflate")
        try:
            with self._archive.open(info) as file:
                return file.read(most)
        except Exception as error:
            raise OSError(0, _told(error)) from None


class Tar:
    """A tar file. Its source files are kept in memory when it is opened: going back in a .gz means to start again."""

    def __init__(self, path: Path) -> None:
        self._entries: list[Entry] = []
        self._contents: dict[str, bytes] = {}
        kept = 0
        with path.open("rb") as raw, BoundedTar.open(fileobj=_plain(raw), mode="r|") as archive:
            for count, member in enumerate(iter(archive.next, None)):
                _check_count(count)
                archive.members.clear()
                if (name := _inside(member.name)) and not member.isdir():
                    self._entries.append(Entry(name, _kind(member)))
                    if member.isfile() and kept < _MOST_KEPT:
                        self._contents[name] = archive.extractfile(member).read(_MOST_OF_ONE)
                        kept += len(self._contents[name])

    def entries(self) -> Iterator[Entry]:
        return iter(dict.fromkeys(self._entries))

    def read(self, name: str, most: int) -> bytes:
        if name not in self._contents:
            raise OSError(0, f"the files of the archive are larger than {_MOST_KEPT >> 20} MiB")
        return self._contents[name][:most]


class _Counted(io.RawIOBase):
    """A stream that ends in an error after so many bytes, or so many reads: gzip may have headers of any number."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self._stream, self._count, self._reads = stream, 0, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._count, self._reads = self._count + len(data), self._reads + 1
        if self._count > MOST_BYTES:
            raise Unreadable(f"the archive holds more than {MOST_BYTES >> 20} MiB: {SUBMIT}")
        if self._reads > _MOST_READS:
            raise Unreadable("the archive is packed in too many pieces: pack it again, as .zip or .tar.gz")
        return data


def _plain(raw: io.BufferedReader) -> _Counted:
    start = raw.peek(8)[:8]
    if kind := next((kind for magic, kind in _OTHERS.items() if start.startswith(magic)), ""):
        raise Unreadable(f"the archive is packed with {kind}, which is not read: submit a folder, .zip or .tar.gz")
    return _Counted(gzip.GzipFile(fileobj=_Counted(raw)) if start.startswith(b"\x1f\x8b") else raw)


def _inside(name: str) -> str:
    """The name with slashes only; nothing where it leads out of the archive or is no name at all."""
    name = name.replace("\\", "/").removeprefix("./")
    parts = name.split("/")
    bad = name.startswith("/") or ":" in parts[0] or "\0" in name or any(part in ("", ".", "..") for part in parts)
    return "" if bad else name


def _kind(member: tarfile.TarInfo) -> str:
    if member.issym() or member.islnk():
        return "link"
    return "file" if member.isfile() else "special"


def _directory_size(path: Path) -> int:
    """Bytes of a zip's directory, which `zipfile` would read into memory; its end says so."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _MOST_END - _LARGE))
        end = file.read()
    at = len(end) - 22 if end[-22:-18] == _END and end[-2:] == b"\0\0" else end.rfind(_END)
    if not 0 <= at <= len(end) - 22:
        return 0
    if end[max(0, at - 20) : at].startswith(b"PK\x06\x07"):  # the end of a large zip says it elsewhere, once more
        large = end[max(0, at - _LARGE) : at]
        if not large.startswith(b"PK\x06\x06"):
            raise Unreadable("the archive's directory is damaged: zip it again")
        return struct.unpack_from("<Q", large, 40)[0]
    return struct.unpack_from("<I", end, at + 12)[0]


def _check_count(count: int) -> None:
    if count > MOST_ENTRIES:
        raise Unreadable(f"the archive holds more than {MOST_ENTRIES} files: {SUBMIT}")


def _told(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}")
