"""How far a graded run has come, as lines of JSON in a file, which also a crash leaves behind."""

import json
from pathlib import Path
from typing import TextIO


class Events:
    """A file that gets a line for each event, at once. Without a path nothing is written."""

    def __init__(self, path: Path | None) -> None:
        self._file: TextIO | None = path.open("w", encoding="utf-8") if path else None

    def tell(self, **event: object) -> None:
        if self._file:
            self._file.write(json.dumps(event) + "\n")
            self._file.flush()

    def close(self) -> None:
        if self._file:
            self._file.close()
