"""Zip files whose bytes depend on contents alone: sorted, without times, not compressed (zlib's output varies)."""

import io
import zipfile
from collections.abc import Collection, Mapping

_TIME = (1980, 1, 1, 0, 0, 0)


def zipped(files: Mapping[str, bytes], executable: Collection[str] = (), private: Collection[str] = ()) -> bytes:
    """A zip of `files` by name; `private` ones may be read by their owner only."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.create_system = 3  # Unix: the mode counts
            mode = 0o600 if name in private else 0o755 if name in executable else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, files[name])
    return buffer.getvalue()
