"""`pdm run main` as a user meets it: in a pipe, at a terminal, with wrong arguments, with a learner's unfinished code.

Every test runs the real program on a small random checkpoint. A scratch copy of the reference stands in for the
learner's package where a test needs code that fails or takes long.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from small_model import PACKABLE, small_model
from terminal import Terminal
from tokenizers import Tokenizer

from course.assistant import Assistant
from course.checkpoints import Quantization, make_checkpoint
from course.errors import CourseError
from course.paths import SRC
from course.variant import Variant

CONTEXT = 200


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return small_model(tmp_path_factory.mktemp("random-model"), max_positions=CONTEXT, shards=2)


@pytest.fixture(scope="module")
def packable(tmp_path_factory) -> Path:
    """A model whose rows divide into groups of 64."""
    return small_model(tmp_path_factory.mktemp("packable-model"), max_positions=CONTEXT, shape=PACKABLE)


@pytest.fixture
def learner(tmp_path):
    """A function that makes a `tiny_llm` from the reference with one text replaced, and returns where to find it."""

    def make(file: str, old: str, new: str) -> Path:
        unwanted = shutil.ignore_patterns("__pycache__", "*.so", ".built*")
        shutil.copytree(SRC / "tiny_llm_ref", tmp_path / "tiny_llm", ignore=unwanted)
        path = tmp_path / "tiny_llm" / file
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
        return tmp_path

    return make


def environment(path: Path | None = None, **more: str) -> dict[str, str]:
    """One thread is plenty for these models, and steadier on a busy machine. `path` comes before the course's own."""
    return os.environ | {"OPENBLAS_NUM_THREADS": "1"} | ({"PYTHONPATH": str(path)} if path else {}) | more


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "course", "main", *arguments]


def run(*arguments: str, stdin: str = "", **settings) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(*arguments),
        input=stdin.encode(),
        capture_output=True,
        timeout=60,
        env=environment(**settings),
        check=False,
    )


def assert_one_line(done: subprocess.CompletedProcess, *parts: str) -> None:
    """A user's mistake: exit status 2, and one line on stderr that names the given parts."""
    text = done.stderr.decode()
    assert done.returncode == 2, text
    assert done.stdout == b""
    assert text.startswith("error: ")
    assert text.count("\n") == 1
    for part in parts:
        assert part in text


def test_prompt_streams_a_reply_and_reports(model):
    done = run("--model", str(model), "--prompt", "Hello", "--max-tokens", "6", "--seed", "3", "--stats")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(b"\n")
    stats = done.stderr.decode()
    for part in ("prompt ", "tokens/s", "first token after", "peak memory", "float32", "cpu", "OpenBLAS", "seed 3"):
        assert part in stats or (part == "cpu" and sys.platform == "darwin")


def test_every_turn_runs_only_what_the_cache_does_not_hold(model):
    chat = ("--model", str(model), "--max-tokens", "4", "--temperature", "0", "--stats")
    lines = run(*chat, "--cache", "dense", stdin="one\ntwo\n").stderr.decode().splitlines()
    first, second = (line for line in lines if line.startswith("prompt "))
    assert "in the cache" not in first
    # The template drops the empty thinking block of earlier turns, so this is where the two prompts part.
    common = ("<|im_start|>", *"user\none", "<|im_end|>", "\n", "<|im_start|>", *"assistant\n")
    assert f"({len(common)} of them in the cache)" in second
    assert any(re.search(r"a token reads at least .* MB, keys and values \d", line) for line in lines)


def test_cache_and_table_change_the_speed_and_not_the_text(packable):
    arguments = ("--model", str(packable), "--temperature", "0", "--max-tokens", "12", "--stats")
    done = {
        way: run(*arguments, *(f"--{part}" for part in way), stdin="one\ntwo\n")
        for way in [("cache=none",), ("cache=dense",), ("ops=packed", "cache=none"), ("ops=packed",)]
    }
    for way, one in done.items():
        assert one.returncode == 0, one.stderr
        said = one.stderr.decode()
        assert f"--ops {'packed' if 'ops=packed' in way else 'python'} " in said
        assert f"--cache {'none' if 'cache=none' in way else 'dense'}" in said
        assert ("in the cache" in said) == ("cache=none" not in way)
    plain, cached, packed, both = (one.stdout for one in done.values())
    assert plain == cached
    assert packed == both


def test_packed_weights_read_a_seventh_per_token(packable):
    sizes = []
    for ops in ("python", "packed"):
        done = run("--model", str(packable), "--ops", ops, "--prompt", "x", "--max-tokens", "2", "--stats")
        sizes.append(float(re.search(r"weights ([\d.]+) MB", done.stderr.decode())[1]))
    assert sizes[0] / sizes[1] == pytest.approx(4 / (0.5 + 4 / 64), rel=0.05)


def test_rows_that_do_not_divide_into_groups_are_one_line(model):
    done = run("--model", str(model), "--ops", "packed", "--prompt", "x")
    assert_one_line(done, "rows of 48", "groups of 64")


def test_formats_that_kernels_do_not_take_are_one_line(packable, tmp_path):
    done = run("--model", str(packable), "--ops", "fused", "--dtype", "float16", "--prompt", "x")
    assert_one_line(done, "--ops fused computes in float32 or bfloat16, not float16", "--dtype float32")
    folder = make_checkpoint(tmp_path, np.random.default_rng(0), PACKABLE, quantization=Quantization(64, 8))
    for ops in ("flash", "metal"):
        done = run("--model", str(folder), "--ops", ops, "--prompt", "x")
        assert_one_line(done, f"--ops {ops} takes 4-bit weights, not 8: try --ops packed")


def test_extension_that_does_not_build_names_the_compilers_error(packable, learner):
    path = learner("model/mlp.py", "return x * mx.sigmoid(x)", "return x * mx.sigmoid(x)")
    (path / "extensions").mkdir()
    project = "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\nadd_library(_ext MODULE broken.cpp)\n"
    (path / "extensions" / "CMakeLists.txt").write_text(project)
    (path / "extensions" / "broken.cpp").write_text("int broken( { return 1; }\n")
    done = run("--model", str(packable), "--solution", "tiny_llm", "--ops", "cpu", "--prompt", "x", path=path)
    text = done.stderr.decode()
    assert done.returncode == 2, text
    assert "does not build" in text
    assert "broken.cpp:1" in text
    assert "Traceback" not in text


def test_learner_of_week_1_needs_no_cache(model, learner):
    """Without --cache a learner's package is run without one, so that Week 1's program never meets Week 2's tasks."""
    path = learner(
        "cache/cached.py", "        if tokens.ndim", "        raise NotImplementedError\n        if tokens.ndim"
    )
    arguments = ("--model", str(model), "--solution", "tiny_llm", "--prompt", "x", "--max-tokens", "2")
    assert run(*arguments, path=path).returncode == 0
    assert run(*arguments, "--cache", "dense", path=path).returncode == 2


def test_same_seed_same_text_other_seed_other_text(model):
    outputs = [
        run("--model", str(model), "--prompt", "Hi", "--max-tokens", "12", "--temperature", "1", "--seed", seed).stdout
        for seed in ("1", "1", "2")
    ]
    assert outputs[0] == outputs[1] != outputs[2]


def test_lines_of_standard_input_are_messages_with_history(model):
    chat = ("--model", str(model), "--max-tokens", "4", "--temperature", "0", "--stats")
    done = run(*chat, stdin="one\n\n  \ntwo\n/clear\ntwo\n/quit\nnever\n")
    assert done.returncode == 0, done.stderr
    sizes = [int(line.split()[1]) for line in done.stderr.decode().splitlines() if line.startswith("prompt ")]
    assert len(sizes) == 3
    assert sizes[1] > sizes[0] == sizes[2]


def test_end_of_input_ends_at_once(model):
    done = run("--model", str(model))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_closed_standard_input_is_empty_input(model):
    for arguments, wanted in ((), False), (("--prompt", "x", "--max-tokens", "1"), True):
        line = " ".join(command("--model", str(model), *arguments))
        done = subprocess.run(
            ["sh", "-c", f"{line} <&-"], capture_output=True, timeout=60, env=environment(), check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert bool(done.stdout) == wanted


def test_stop_text_and_raw_text(model):
    arguments = ("--model", str(model), "--temperature", "0", "--max-tokens", "20", "--prompt", "abc", "--raw")
    full = run(*arguments).stdout.decode().removesuffix("\n")
    middle = full[len(full) // 2 :][:2]
    assert run(*arguments, "--stop", middle).stdout.decode() == full[: full.index(middle)] + "\n"


def test_reader_that_goes_away_is_no_error(model):
    line = " ".join(command("--model", str(model), "--max-tokens", "100", "--seed", "1", "--temperature", "2"))
    done = subprocess.run(
        ["bash", "-c", f"yes hello | head -50 | {line} | head -c 1; echo ${{PIPESTATUS[2]}}"],
        capture_output=True,
        timeout=60,
        env=environment(),
        check=False,
    )
    assert done.stdout[1:].strip() == b"141"
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("both", [False, True], ids=["output", "output and errors"])
def test_output_that_cannot_be_written_is_one_line(model, both):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command("--model", str(model), "--prompt", "x", "--max-tokens", "100"),
            stdout=full,
            stderr=full if both else subprocess.PIPE,
            timeout=60,
            env=environment(),
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == (None if both else b"error: No space left on device: the output\n")


@pytest.mark.parametrize("line", ["/help", "/bogus now"])
def test_unknown_slash_command_lists_the_known_ones(model, line):
    done = run("--model", str(model), "--max-tokens", "1", stdin=f"{line}\n")
    assert_one_line(done, f"no command {line.split()[0]}: there are /clear and /quit")


def test_path_is_no_slash_command(model):
    assert run("--model", str(model), "--max-tokens", "1", stdin="/usr/bin is what?\n").returncode == 0


def test_bytes_that_are_no_text_are_replaced(model):
    done = subprocess.run(
        command("--model", str(model), "--max-tokens", "2"),
        input=b"\xff\xfe\n",
        capture_output=True,
        timeout=60,
        env=environment(LC_ALL="C"),
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--temperature", "-1"], ["--temperature", "'-1'", "at least 0", "try"]),
        (["--temperature", "nan"], ["'nan'", "at least 0"]),
        (["--top-p", "0"], ["--top-p", "'0'", "above 0 and at most 1"]),
        (["--top-k", "2.5"], ["--top-k", "whole number"]),
        (["--min-p", "1.1"], ["--min-p", "between 0 and 1"]),
        (["--repetition-penalty", "0"], ["--repetition-penalty", "above 0"]),
        (["--max-tokens", "0"], ["--max-tokens", "at least 1"]),
        (["--seed", "-1"], ["--seed", "from 0"]),
        (["--stop", ""], ["--stop", "empty"]),
        (["--prompt", ""], ["--prompt", "empty"]),
        (["--prompt", " \n"], ["--prompt", "empty"]),
        (["--dtype", "int8"], ["--dtype", "int8", "bfloat16"]),
        (["--solution", "mine"], ["--solution", "mine", "tiny_llm"]),
        (["--ops", "turbo"], ["--ops", "turbo", "flash"]),
        (["--cache", "paged"], ["--cache", "paged", "dense"]),
        (["--no-such-flag"], ["--no-such-flag", "--help"]),
        (["--model", "no-such-model"], ["no-such-model", "tiny", "0.6b"]),
        (["--model", "/"], ["no config.json in /"]),
    ],
)
def test_wrong_arguments_are_one_line(arguments, parts):
    assert_one_line(run(*arguments), *parts)


def test_prompt_longer_than_the_context_is_one_line(model):
    assert_one_line(run("--model", str(model), "--raw", "--prompt", "x" * CONTEXT), f"{CONTEXT} tokens", "shorten")


def test_reply_ends_at_the_end_of_the_context(model):
    prompt = "x" * (CONTEXT - 5)
    done = run("--model", str(model), "--raw", "--prompt", prompt, "--stats", "--temperature", "1", "--seed", "0")
    assert done.returncode == 0, done.stderr
    assert "generated 5 tokens" in done.stderr.decode()


@pytest.mark.parametrize(
    ("damage", "part"),
    [
        ("cut", "cut off"),
        ("no tokenizer", "no tokenizer.json"),
        ("not a tokenizer", "tokenizer.json is not a tokenizer"),
        ("config", "config.json"),
        ("missing tensor", "missing"),
        ("other type", "'llama' is not supported"),
    ],
)
def test_damaged_checkpoint_is_one_line(model, tmp_path, damage, part):
    folder = tmp_path / "damaged"
    shutil.copytree(model, folder)
    shard = sorted(folder.glob("*.safetensors"))[-1]
    index = folder / "model.safetensors.index.json"
    if damage == "cut":
        os.truncate(shard, shard.stat().st_size - 10)
    elif damage == "no tokenizer":
        (folder / "tokenizer.json").unlink()
    elif damage == "not a tokenizer":
        (folder / "tokenizer.json").write_text("{}")
    elif damage == "config":
        (folder / "config.json").write_text("{")
    elif damage == "missing tensor":
        index.unlink()
        sorted(folder.glob("*.safetensors"))[0].rename(folder / "model.safetensors")
    else:
        config = folder / "config.json"
        config.write_text(config.read_text().replace('"qwen3"', '"llama"'))
    assert_one_line(run("--model", str(folder), "--prompt", "x"), part, str(folder))


@pytest.mark.parametrize(
    ("file", "key", "value", "part"),
    [
        ("config.json", "num_hidden_layers", "four", "Expected int | null, got str - at $.num_hidden_layers"),
        ("config.json", "vocab_size", 0, "Expected int >= 1 - at $.vocab_size"),
        ("config.json", "rope_parameters", {"rope_theta": []}, "got array - at $.rope_parameters.rope_theta"),
        ("config.json", "quantization", {"bits": "4"}, "got str - at $.quantization.bits"),
        ("generation_config.json", "temperature", "hot", "Expected float | null, got str - at $.temperature"),
        ("generation_config.json", "top_p", 0, "Expected float > 0.0 - at $.top_p"),
        ("generation_config.json", "eos_token_id", ["x"], "got str - at $.eos_token_id[0]"),
        ("model.safetensors.index.json", "weight_map", [], "got array - at $.weight_map"),
    ],
)
def test_wrong_value_in_a_json_file_is_told_with_file_and_key(model, tmp_path, file, key, value, part):
    folder = shutil.copytree(model, tmp_path / "wrong")
    path = folder / file
    values = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(values | {key: value}))
    with pytest.raises(CourseError) as caught:
        Assistant(folder, Variant())
    assert str(path) in str(caught.value)
    assert part in str(caught.value)


def test_token_beyond_the_vocabulary_of_the_model_is_refused(model, tmp_path):
    folder = shutil.copytree(model, tmp_path / "wrong")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    size = tokenizer.get_vocab_size()
    tokenizer.add_tokens(["hi"])
    tokenizer.save(str(folder / "tokenizer.json"))
    assert_one_line(run("--model", str(folder), "--prompt", "hi"), f"has a token {size}", f"vocab_size is {size}")


def test_stub_names_its_task_and_chapter(model, learner):
    stub = "Week 1 Day 4 Task 2: silu - see book/src/week1-04-norm-mlp.md#task-2"
    path = learner("model/mlp.py", "return x * mx.sigmoid(x)", f'raise NotImplementedError("{stub}")')
    done = run("--model", str(model), "--solution", "tiny_llm", "--prompt", "x", "--max-tokens", "1", path=path)
    assert_one_line(done, stub, "--week 1 --day 4 --task 2")


def test_learners_exception_shows_their_lines_only(model, learner):
    path = learner("model/mlp.py", "return x * mx.sigmoid(x)", "return x * mx.zeros((7, 7, 7, 7))")
    done = run("--model", str(model), "--solution", "tiny_llm", "--prompt", "x", "--max-tokens", "1", path=path)
    text = done.stderr.decode()
    assert done.returncode == 2
    assert "tiny_llm/model/mlp.py" in text
    assert "in silu: return x * mx.zeros((7, 7, 7, 7))" in text
    assert "Traceback" not in text
    assert "course/" not in text
    assert text.count("\n") <= 7


def test_crash_in_c_code_shows_where_it_was_called(model, learner):
    path = learner("model/mlp.py", "return x * mx.sigmoid(x)", "import ctypes; ctypes.string_at(8)")
    done = run("--model", str(model), "--solution", "tiny_llm", "--prompt", "x", "--max-tokens", "1", path=path)
    assert done.returncode < 0
    assert b"Segmentation fault" in done.stderr
    assert b"tiny_llm/model/mlp.py" in done.stderr


def test_learners_syntax_error_shows_its_line(model, learner):
    path = learner("model/mlp.py", "return x * mx.sigmoid(x)", "return x *")
    done = run("--model", str(model), "--solution", "tiny_llm", "--prompt", "x", path=path)
    text = done.stderr.decode()
    assert done.returncode == 2
    assert "SyntaxError" in text
    assert "tiny_llm/model/mlp.py:" in text
    assert "Traceback" not in text


@pytest.fixture
def terminal():
    opened = []

    def start(*arguments: str, **settings) -> Terminal:
        opened.append(Terminal(command(*arguments), environment(**settings)))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture
def slow(learner) -> Path:
    """A package whose every step takes 20 seconds after the first, as a large model on a small machine may."""
    return learner(
        "text/generate.py",
        "        tokens.append(token)\n        yield token\n",
        "        tokens.append(token)\n        yield token\n        __import__('time').sleep(20)\n",
    )


def test_ctrl_c_ends_the_reply_within_a_second_and_again_the_program(model, slow, terminal):
    program = terminal("--model", str(model), "--solution", "tiny_llm", path=slow)
    program.wait_for("> ")
    assert "Ctrl-D" in program.output
    program.type("hello\r")
    time.sleep(1.5)
    program.type("\x03")
    assert program.wait_for("stopped") < 1.0
    program.wait_for("> ", count=2)
    program.type("\x03")
    assert program.exit_status(1.0) == 130
    assert "Traceback" not in program.output


def test_ctrl_c_during_a_single_reply_or_loading_ends_the_program(model, slow, terminal):
    for wait in (0.3, 2.5):
        program = terminal("--model", str(model), "--solution", "tiny_llm", "--prompt", "x", path=slow)
        time.sleep(wait)
        program.type("\x03")
        assert program.exit_status(1.5) == 130
        assert "Traceback" not in program.output


def test_ctrl_c_at_the_prompt_ends_the_program_and_ctrl_d_too(model, terminal):
    for key, status in (("\x03", 130), ("\x04", 0)):
        program = terminal("--model", str(model))
        program.wait_for("> ")
        program.type(key)
        assert program.exit_status() == status
        assert "Traceback" not in program.output


def test_mistake_at_a_terminal_does_not_end_the_conversation(model, terminal):
    program = terminal("--model", str(model), "--max-tokens", "3", "--temperature", "0")
    program.wait_for("> ")
    program.type("y" * CONTEXT + "\r")
    program.wait_for("do not fit")
    program.wait_for("> ", count=2)
    program.type("short\r")
    program.wait_for("> ", count=3)
    program.type("/quit\r")
    assert program.exit_status() == 0
