"""What the tools remember between runs: one small JSON file that can be deleted at any time.

Each tool owns one key. Whoever changes a key does it in one step, so programs that run at once lose nothing."""

import contextlib
import fcntl
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from course.paths import ROOT

STATE = ROOT / ".course" / "state.json"
State = dict[str, object]
_PATIENCE = 5.0  # s: nobody holds the lock longer than a moment, unless he was stopped half-way


def read_state(path: Path = STATE) -> State:
    """The remembered values; none where the file is missing. A damaged one is set aside, which one line tells."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return {}
    except (ValueError, RecursionError):
        state = None
    if isinstance(state, dict):
        return state
    _set_aside(path)
    return {}


def _set_aside(path: Path) -> None:
    aside = path.with_name(f"{path.stem}.damaged{path.suffix}")
    try:
        os.replace(path, aside)
        kept = f": it is kept as {aside.name}"
    except OSError:
        kept = ""
    print(f"{path.parent.name}/{path.name} was damaged, and progress begins anew{kept}", file=sys.stderr)


def update_state(change: Callable[[State], State], path: Path = STATE) -> None:
    """Replace the values by what `change` makes of them. Raises OSError where the folder cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.parent):
        _write(change(read_state(path)), path)


def _write(state: State, path: Path) -> None:
    with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="utf-8", delete=False) as file:
        try:
            json.dump(state, file, indent=1, sort_keys=True)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Whoever comes second waits. A file system without locks, or one who never lets go, does not stop the work."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.005)
            except OSError:
                break
        yield
    finally:
        os.close(handle)
