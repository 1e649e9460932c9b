"""Where things are in the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
CURRICULUM = ROOT / "curriculum"
TESTS = ROOT / "tests_refsol"
BOOK = ROOT / "book"
MODELS = ROOT / "models"
