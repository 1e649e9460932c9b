"""The attacks again where this process cannot try them: as root in mode `user`, and as a user without rights.

Both need a Python that everybody may read. Where it lies in a closed home folder, they run in a mount namespace that
opens the folder."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_TESTS = [str(Path(__file__).with_name(f"test_boundary_{name}.py")) for name in ("attacks", "secrets")]
_NOBODY = 65534
_OPEN = """
set -e
mount --bind "$1" "$2"
mount -t tmpfs -o mode=755 none "$3"
mkdir -p "$1"
mount --move "$2" "$1"
shift 3
exec "$@"
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can become another user"
)


def _with_open_python(folder: Path, command: list[str]) -> list[str]:
    """`command` where everybody may read Python."""
    base = Path(sys.base_prefix).resolve()
    closed = [parent for parent in base.parents if parent != Path("/") and not parent.stat().st_mode & 0o001]
    if not closed:
        return command
    aside = folder / "aside"
    aside.mkdir()
    return ["unshare", "--mount", "sh", "-c", _OPEN, "sh", str(base), str(aside), str(closed[-1]), *command]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may write; those of pytest are closed again whenever another run starts."""
    with tempfile.TemporaryDirectory(prefix="tiny-llm-") as name:
        os.chmod(name, 0o777)
        yield Path(name)


def _run(folder: Path, user: list[str], modes: str, *options: str) -> str:
    pytest_command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *_TESTS]
    pytest_command += ["--basetemp", str(folder / "pytest")]
    environment = os.environ | {"BOUNDARY_MODES": modes, "HOME": str(folder), "TMPDIR": "/tmp"}
    environment.pop("XDG_CACHE_HOME", None)
    done = subprocess.run(
        _with_open_python(folder, [*user, *pytest_command, *options]),
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def test_root_runs_each_submission_as_a_user_of_its_own(folder: Path):
    said = _run(folder, [], "user")
    print(said)
    assert " passed" in said


def test_user_without_rights(folder: Path):
    user = ["setpriv", "--reuid", str(_NOBODY), "--regid", str(_NOBODY), "--clear-groups"]
    attacks = "every or signals or fork or many or daemon or files or parent or forged or seed"
    said = _run(folder, user, "namespaces,limits", "-k", attacks)
    print(said)
    assert " passed" in said
