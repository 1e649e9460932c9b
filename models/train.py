"""Train the embedded model and write its weights.

    python -m models.train --backend torch
    python -m models.train --backend torch --recipe drill --start models/tiny
    python -m models.train --backend torch --recipe polish --start models/tiny

These three runs made the committed weights; `--backend mlx` is the same on MLX, for Macs. A run is seeded. It writes
`model.safetensors` (bf16), `config.json`, the tokenizer's files and `training-<recipe>.json` (the loss curve, wall and
CPU seconds, versions) into `--out`.
"""

import argparse
import dataclasses
import json
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import numpy as np
from tokenizers import Tokenizer

from models.config import RECIPES, Recipe, Shape, initial_weights
from models.data import Rows, make_rows
from models.export import load_bfloat16, save_model
from models.tokenizer import save_tokenizer, train_tokenizer

VALID_SEED, VALID_DOCUMENTS = 1_000_003, 400


class Trainer(Protocol):
    """What a backend gives: one update, a loss without an update, and the weights."""

    def step(self, ids: np.ndarray, weights: np.ndarray, rate: float) -> float:
        """One update on `[B, L + 1]` ids and loss weights; returns the loss."""

    def loss(self, ids: np.ndarray, weights: np.ndarray) -> float:
        """Weighted mean loss of `[B, L + 1]`."""

    def weights(self) -> dict[str, np.ndarray]:
        """Float32 weights by Hugging Face name."""


def make_trainer(backend: str, shape: Shape, recipe: Recipe, start: dict[str, np.ndarray]) -> Trainer:
    """Build the trainer named `backend`, "torch" or "mlx", with the weights `start`."""
    if backend == "torch":
        from models.backend_torch import TorchTrainer

        return TorchTrainer(shape, recipe, start)
    from models.backend_mlx import MLXTrainer

    return MLXTrainer(shape, recipe, start)


def validation_loss(trainer: Trainer, rows: Rows, batch: int, *, answers_only: bool = False) -> float:
    """Weighted mean loss over `rows`, or that of the assistant's tokens alone."""
    losses, totals = [], []
    for start in range(0, len(rows) - batch + 1, batch):
        ids, weights = rows.batch(np.arange(start, start + batch))
        if answers_only:
            weights = (weights == 1.0).astype(np.float32)
        losses.append(trainer.loss(ids, weights))
        totals.append(float(weights[:, 1:].sum()))
    return float(np.average(losses, weights=totals))


@dataclasses.dataclass
class Log:
    """The committed record of a run."""

    backend: str
    recipe: Recipe
    shape: Shape
    curve: list[dict[str, float]] = dataclasses.field(default_factory=list)
    wall_start: float = dataclasses.field(default_factory=time.perf_counter)
    cpu_start: float = dataclasses.field(default_factory=time.process_time)

    def add(self, step: int, **losses: float) -> None:
        """Note and print the losses at `step`."""
        wall = round(time.perf_counter() - self.wall_start, 1)
        self.curve.append({"step": step, **{name: round(loss, 4) for name, loss in losses.items()}, "wall_s": wall})
        print(json.dumps(self.curve[-1]), flush=True)

    def save(self, folder: Path, tokens: int) -> None:
        """Write `training-<mix>.json`."""
        packages = ("torch", "numpy", "tokenizers") if self.backend == "torch" else ("mlx", "numpy", "tokenizers")
        cpu = time.process_time() - self.cpu_start
        record = {
            "backend": self.backend,
            "recipe": dataclasses.asdict(self.recipe),
            "shape": dataclasses.asdict(self.shape),
            "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
            "tokens": tokens,
            "wall_s": round(time.perf_counter() - self.wall_start, 1),
            "cpu_s": round(cpu, 1),
            "curve": self.curve,
        }
        (folder / f"training-{self.recipe.mix}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def train(log: Log, tokenizer: Tokenizer, start: dict[str, np.ndarray], checkpoint: Path | None = None) -> Trainer:
    """Run the recipe of `log` from `start`; every 400 steps save the weights to `checkpoint` if it is given."""
    recipe = log.recipe
    rows = make_rows(tokenizer, recipe.seed, recipe.documents, recipe.row_length, recipe.mix)
    valid = make_rows(tokenizer, VALID_SEED, min(VALID_DOCUMENTS, recipe.documents), recipe.row_length)
    trainer = make_trainer(log.backend, log.shape, recipe, start)
    order = np.random.default_rng(recipe.seed).permutation(len(rows))
    print(f"{len(rows)} rows, {recipe.steps * recipe.batch / len(rows):.2f} passes", flush=True)
    running: list[float] = []
    for step in range(recipe.steps):
        picked = order[np.arange(step * recipe.batch, (step + 1) * recipe.batch) % len(rows)]
        running.append(trainer.step(*rows.batch(picked), recipe.rate(step)))
        if step % recipe.log_every == 0:
            log.add(step, train=float(np.mean(running)), valid=validation_loss(trainer, valid, recipe.batch))
            running.clear()
        if checkpoint and step % 400 == 399:
            save_model(trainer.weights(), log.shape, tokenizer, checkpoint)
    answers = validation_loss(trainer, valid, recipe.batch, answers_only=True)
    valid_loss = validation_loss(trainer, valid, recipe.batch)
    log.add(recipe.steps, train=float(np.mean(running)), valid=valid_loss, valid_answers=answers)
    return trainer


def main() -> None:
    """Train and save everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("torch", "mlx"), default="mlx")
    parser.add_argument("--recipe", choices=tuple(RECIPES), default="broad")
    parser.add_argument("--start", type=Path, help="model folder to start from instead of fresh weights")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "tiny")
    parser.add_argument("--checkpoint", type=Path, help="also save the weights here every 400 steps")
    options = parser.parse_args()
    recipe, shape = RECIPES[options.recipe], Shape()
    log = Log(options.backend, recipe, shape)
    tokenizer = train_tokenizer()
    start = initial_weights(shape, recipe.seed)
    if options.start:
        start = load_bfloat16(options.start / "model.safetensors")
    trainer = train(log, tokenizer, start, options.checkpoint)
    save_model(trainer.weights(), shape, tokenizer, options.out)
    save_tokenizer(tokenizer, options.out, shape.max_positions)
    log.save(options.out, recipe.steps * recipe.batch * recipe.row_length)


if __name__ == "__main__":
    main()
