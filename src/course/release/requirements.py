"""The packages that the autograder installs: what pdm.lock pins for a learner, with hashes, as pip reads it."""

import os
import shutil
import subprocess
from pathlib import Path

from course.errors import CourseError
from course.paths import ROOT

_OWN = ROOT / ".course" / "bootstrap" / "pdm" / "bin" / "pdm"
_LIMIT = 120.0


def requirements() -> bytes:
    """The text of requirements.txt. Raises CourseError without PDM, or where pdm.lock is not up to date."""
    done = _export(_pdm())
    if done.returncode or b"--hash=sha256:" not in done.stdout:
        reason = (done.stderr.decode(errors="replace").strip() or "it says nothing").splitlines()[-1]
        raise CourseError(f"pdm cannot export pdm.lock ({reason}): run `pdm lock`, then try again")
    return done.stdout


def _pdm() -> Path:
    found = shutil.which("pdm")
    if _OWN.exists():
        return _OWN
    if found is None:
        raise CourseError("PDM is missing, which reads pdm.lock: call `./run release ...`, which installs it")
    return Path(found)


def _export(pdm: Path) -> subprocess.CompletedProcess[bytes]:
    own = {"PDM_CHECK_UPDATE": "false", "PDM_IGNORE_ACTIVE_VENV": "true", "NO_COLOR": "1"}
    command = [pdm, "export", "--project", ROOT, "--prod", "--format", "requirements"]
    try:
        return subprocess.run(command, cwd=ROOT, env=os.environ | own, capture_output=True, timeout=_LIMIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CourseError(f"{pdm} cannot be run ({error}): call `./run release ...`, which installs it") from None
