"""How the course's packages are put back: by the PDM of `./run`, or by one's own."""

import shlex

from course.paths import ROOT

_PRIVATE = ROOT / ".course" / "bootstrap" / "pdm" / "bin" / "pdm"


def install(again: bool = False) -> str:
    """The command that installs what pdm.lock says. again: also what is there, but damaged."""
    pdm = shlex.quote(str(_PRIVATE.relative_to(ROOT))) if _PRIVATE.exists() else "pdm"
    return f"{pdm} sync --prod{' --reinstall' * again}"
