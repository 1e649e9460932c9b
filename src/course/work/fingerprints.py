"""What the learner's files were when merged texts were written for them, so that later work is noticed.

Kept in `.course/update.json`, beside the merged texts; by the names that messages use."""

import hashlib
import json
from collections.abc import Mapping

import msgspec

from course.work.place import Place

FINGERPRINTS = "/.course/update.json"


def fingerprint(content: bytes | None) -> str:
    """SHA-256; "" for no file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def fingerprints(place: Place) -> dict[str, str]:
    """All that are kept; none where the record is missing or damaged."""
    try:
        return msgspec.json.decode(place.read(FINGERPRINTS) or b"{}", type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def record(prints: Mapping[str, str]) -> bytes | None:
    """The record as it is written; None for no record."""
    return (json.dumps(prints, indent=0, sort_keys=True) + "\n").encode() if prints else None
