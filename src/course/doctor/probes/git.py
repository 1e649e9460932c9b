"""Git: `update` merges with it, and it is the best place for one's own work."""

import shutil
import subprocess

from course.doctor.finding import Finding
from course.paths import ROOT

_FIXES = {"debian": "apt install git", "macos": "xcode-select --install"}
_SECONDS = 10


def probe(full: bool) -> Finding:
    """Installed, and this checkout is a repository."""
    if not shutil.which("git"):
        return Finding.warn("not installed: `update` cannot merge a newer course into your work", **_FIXES)
    version = _git("--version")
    if not version:
        return Finding.warn("git does not run", **_FIXES)
    if not _git("-C", str(ROOT), "rev-parse", "--is-inside-work-tree"):
        return Finding.ok(f"{version}; this folder is no repository (`git init` keeps your steps)")
    return Finding.ok(version)


def _git(*arguments: str) -> str:
    """What git prints; "" where it fails."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
