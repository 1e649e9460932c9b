"""What the tools remember between runs: one small JSON file that can be deleted at any time."""

import json
import os
import tempfile
from pathlib import Path

from course.paths import ROOT

STATE = ROOT / ".course" / "state.json"


def read_state(path: Path = STATE) -> dict[str, object]:
    """The remembered values; none where the file is missing or damaged."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def write_state(state: dict[str, object], path: Path = STATE) -> None:
    """Replace the file in one step. Raises OSError where the folder cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="utf-8", delete=False) as file:
        json.dump(state, file, indent=1, sort_keys=True)
    os.replace(file.name, path)
