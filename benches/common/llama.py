"""Readings of llama.cpp through its `llama-bench`, in a process of its own, on a checkpoint that it gets as Q4_0."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

from benches.common.gguf import BLOCK, write_gguf

from course.errors import CourseError
from course.paths import cache_folder
from tiny_llm_ref.model.checkpoint import load_config, load_weights

SECONDS = 600
VARIABLE = "LLAMA_BENCH"


class LlamaBench:
    """One program on one model. `prefill` and `decode` return tokens/s of one reading, warmed up by the program."""

    name = "llama.cpp Q4_0"

    def __init__(self, program: Path, model: Path, threads: int):
        self.command = [str(program), "-m", str(model), "-t", str(threads), "-r", "1", "-o", "json"]

    def prefill(self, length: int) -> float:
        """A prompt of `length` tokens in one go; the program computes logits for its last token only."""
        return self._read("-p", str(length), "-n", "0")

    def decode(self, at: int, tokens: int) -> float:
        """`tokens` tokens one by one, behind `at` tokens that are in the cache already."""
        return self._read("-p", "0", "-n", str(tokens), "-d", str(at))

    def _read(self, *options: str) -> float:
        try:
            done = subprocess.run(
                [*self.command, *options], capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except OSError as error:
            raise CourseError(
                f"cannot run {self.command[0]} ({error.strerror}): give the path of llama-bench"
            ) from None
        except subprocess.TimeoutExpired:
            raise CourseError(f"{self.command[0]} took more than {SECONDS} s: lower --lengths") from None
        try:
            return float(json.loads(done.stdout)[0]["avg_ts"])
        except (ValueError, KeyError, IndexError, TypeError):
            said = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
            raise CourseError(f"{self.command[0]} gave no reading ({said}): is it llama-bench?") from None


def find_program(given: Path | None) -> Path | None:
    """The program at `given` or in the variable LLAMA_BENCH; None where neither is set. Raises CourseError."""
    found = given or os.environ.get(VARIABLE)
    if not found:
        return None
    program = shutil.which(found)
    if program is None:
        raise CourseError(f"{found} is no program: build llama-bench as CONTRIBUTING.md says, and give its path")
    return Path(program)


def llama_bench(program: Path, folder: Path, threads: int) -> LlamaBench:
    """`program` on the checkpoint in `folder`; the GGUF file is made on first use and kept."""
    return LlamaBench(program, gguf_of(folder), threads)


def gguf_of(folder: Path) -> Path:
    """The checkpoint in `folder` as a Q4_0 file in the user's cache."""
    config = load_config(folder)
    narrow = min(config.hidden_size, config.intermediate_size, config.num_attention_heads * config.head_dim)
    if narrow % BLOCK:
        raise CourseError(f"rows of {narrow} weights do not divide into the {BLOCK} of a Q4_0 block: use another model")
    state = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in sorted(folder.glob("*.safetensors"))]
    key = hashlib.sha256(repr((str(folder), state)).encode()).hexdigest()[:12]
    path = cache_folder() / f"{folder.name}-{key}-q4_0.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_gguf(path, config, load_weights(folder, config))
    return path
