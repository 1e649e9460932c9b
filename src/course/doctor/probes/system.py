"""Which system this is: Linux, macOS, or Linux under Windows."""

import platform
import sys
from pathlib import Path

from course.doctor.finding import Finding
from course.paths import ROOT


def probe(full: bool) -> Finding:
    """Linux and macOS are fit; a checkout on a Windows disk is slow, and loses file modes."""
    name = f"{platform.system()} {platform.release()} on {platform.machine()}"
    if sys.platform not in ("linux", "darwin"):
        return Finding.fail(f"{name} is neither Linux nor macOS", "on Windows: `wsl --install`, and work inside WSL")
    if not _is_wsl():
        return Finding.ok(name)
    if len(ROOT.parts) > 2 and ROOT.parts[1] == "mnt":
        move = "clone the course again inside WSL: `git clone ... ~/tiny-llm`"
        return Finding.warn(f"{name}, under WSL, with the checkout on a Windows disk ({ROOT}): builds are slow", move)
    return Finding.ok(f"{name}, under WSL: the Debian and Ubuntu commands are yours")


def _is_wsl() -> bool:
    try:
        return "microsoft" in Path("/proc/version").read_text(errors="replace").lower()
    except OSError:
        return False
