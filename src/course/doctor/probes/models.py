"""The embedded model, by its checksums, and what lies in Hugging Face's cache."""

import hashlib
import os
from pathlib import Path

from course.doctor.finding import Finding
from course.models import HUB
from course.paths import MODELS

SUMS = MODELS / "SHA256SUMS"


def probe(full: bool) -> Finding:
    """Damaged files stop whatever talks; absent downloads stop nothing."""
    try:
        wrong = _wrong(SUMS.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return Finding.warn(f"{SUMS.name} cannot be read ({error})", "git checkout models")
    if wrong:
        more = f" and {len(wrong) - 2} more" if len(wrong) > 2 else ""
        return Finding.warn(f"the embedded model is damaged: {', '.join(wrong[:2])}{more}", "git checkout models")
    cached = [name for name, repository in HUB.items() if _is_cached(repository)]
    return Finding.ok(f"embedded model intact; in the cache: {', '.join(cached) or 'none (none is needed)'}")


def _wrong(sums: str) -> list[str]:
    """Files whose content is not what the list says. Raises ValueError for a damaged list."""
    found = []
    for line in sums.splitlines():
        digest, name = line.split(maxsplit=1)
        path = MODELS / name
        if not path.is_file():
            found.append(f"{name} is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            found.append(f"{name} is another file")
    return found


def _is_cached(repository: str) -> bool:
    """Whether a snapshot with weights is there; whether it is complete, the loader says."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    snapshots = hub / f"models--{repository.replace('/', '--')}" / "snapshots"
    try:
        return any(snapshots.glob("*/*.safetensors"))
    except OSError:
        return False
