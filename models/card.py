"""Write the measured figures into the model card, between its two markers.

python -m models.card            # rewrite models/README.md
python -m models.card --check    # fail if the card differs from the recorded measurements
"""

import argparse
import json
import sys
from pathlib import Path

from models.config import RECIPES, Shape, initial_weights
from models.heldout import FLOORS

HERE = Path(__file__).parent
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
COLUMNS = (
    ("bf16", HERE / "tiny" / "evaluation.json"),
    ("4-bit", HERE / "tiny-4bit" / "evaluation.json"),
    ("bf16, thinking", HERE / "tiny" / "evaluation-thinking.json"),
)


def read(path: Path) -> dict:
    """A recorded measurement."""
    return json.loads(path.read_text(encoding="utf-8"))


def accuracy_table() -> str:
    """Per cent right by category, one column per evaluation."""
    tables = [read(path)["categories"] for _, path in COLUMNS]
    lines = ["| category | prompts | floor | " + " | ".join(name for name, _ in COLUMNS) + " |"]
    lines.append("|---" * (3 + len(COLUMNS)) + "|")
    for category, row in tables[0].items():
        cells = [f"{table[category]['percent']}" for table in tables]
        lines.append(f"| {category} | {row['prompts']} | {FLOORS.get(category, '-')} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def training_table() -> str:
    """Size, time and loss of the runs that made the weights."""
    logs = [read(HERE / "tiny" / f"training-{name}.json") for name in RECIPES]
    parameters = sum(w.size for w in initial_weights(Shape(**logs[0]["shape"]), 0).values())
    sizes = [(HERE / name / "model.safetensors").stat().st_size / 1e6 for name in ("tiny", "tiny-4bit")]
    losses = [log["curve"][-1] for log in logs]
    wall, cpu = [log["wall_s"] / 60 for log in logs], [log["cpu_s"] / 60 for log in logs]
    rows = (
        ("parameters", f"{parameters / 1e6:.2f} million"),
        ("weights", f"bf16 {sizes[0]:.2f} MB, 4-bit {sizes[1]:.2f} MB"),
        ("tokens seen", " + ".join(f"{log['tokens'] / 1e6:.1f}" for log in logs) + " million"),
        ("validation loss after each run", ", ".join(str(loss["valid"]) for loss in losses)),
        ("validation loss, the assistant's tokens alone", f"{losses[-1]['valid_answers']}"),
        ("wall time", f"{sum(wall):.0f} minutes, on two cores shared with other work"),
        ("CPU time", f"{sum(cpu):.0f} minutes in all, {sum(cpu) / 2:.0f} for each of two cores"),
        ("made with", ", ".join(f"{name} {number}" for name, number in logs[-1]["versions"].items())),
    )
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def measured() -> str:
    """The generated part of the card."""
    return f"### Training\n\n{training_table()}\n\n### Accuracy, % of held-out prompts\n\n{accuracy_table()}\n"


def main() -> None:
    """Rewrite or check the card."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    path = HERE / "README.md"
    card = path.read_text(encoding="utf-8")
    before, rest = card.split(BEGIN)
    fresh = before + BEGIN + measured() + END + rest.split(END)[1]
    if not options.check:
        path.write_text(fresh, encoding="utf-8")
    elif fresh != card:
        sys.exit("models/README.md does not show the recorded measurements: run `python -m models.card`")


if __name__ == "__main__":
    main()
