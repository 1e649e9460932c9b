"""What a boundary is told: the tree of a submission, the mode, and the limits. Plain data, readable from JSON."""

from pathlib import Path

import msgspec

from course.errors import CourseError


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much one case may use. Sizes in MB are of 2**20 bytes."""

    memory_mb: int = 4096
    """of all processes of a case together"""
    reserved_mb: int = 65_536
    """more that one process may ask for without using it: the kernel emulator reserves 48 GB of addresses"""
    processes: int = 512
    """processes and threads"""
    scratch_mb: int = 512
    """all files that a case writes"""
    file_mb: int = 256
    """one file"""
    cpu_seconds: int = 300
    """of one process"""
    open_files: int = 512
    message_mb: int = 64
    """one answer of `observe`"""
    printed_kb: int = 256
    """kept of what a call prints; the rest is thrown away"""
    build_seconds: int = 600
    build_memory_mb: int = 8192


class Boundary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where learner code runs.

    tree: absolute path of the folder that holds the package and its extension folder, readable for everybody.
    mode: one of `MODES`. readable: more paths that the code may read.
    """

    tree: str
    mode: str
    limits: Limits = Limits()
    readable: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """As JSON, for `--boundary`."""
        path.write_bytes(msgspec.json.encode(self))

    @classmethod
    def read(cls, path: Path) -> "Boundary":
        """Raises CourseError for a file that holds no boundary."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.MsgspecError) as error:
            raise CourseError(f"{path} describes no boundary ({error}): write it with Boundary.write") from None
