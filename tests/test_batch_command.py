"""`batch` as a user meets it: every line is answered once, bad ones are told by number, a stopped run goes on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from serving_program import SIZES, course, environment
from small_model import small_model
from terminal import Terminal

from course.batch_file import Results, answer_line, error_line, read_lines
from course.errors import CourseError
from course.paths import SRC

CHAT = {"messages": [{"role": "user", "content": "What is 3 + 4?"}], "temperature": 0}


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return small_model(tmp_path_factory.mktemp("random-model"), max_positions=100)


def asked(path: Path, *lines: object) -> Path:
    """A file of these lines: bytes as they are, all else as JSON."""
    file = path / "asked.jsonl"
    file.write_bytes(b"\n".join(x if isinstance(x, bytes) else json.dumps(x).encode() for x in lines))
    return file


def answers(file: Path) -> dict[str, dict]:
    """The lines of an output file by custom_id, each once."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert max(Counter(line["custom_id"] for line in lines).values()) == 1
    return {line["custom_id"]: line for line in lines}


def batch(file: Path, *options: str, model: object = "tiny", path: Path | None = None) -> subprocess.CompletedProcess:
    return course("batch", str(file), *SIZES, "--model", str(model), *options, path=path)


def test_lines_of_both_kinds_are_answered(tmp_path):
    openai = {"custom_id": "mine", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "tiny", **CHAT}}
    file = asked(tmp_path, {"prompt": "Once upon", "max_tokens": 5, "temperature": 0}, openai, CHAT, b"", b"  ")
    done = batch(file)
    assert (done.returncode, done.stderr) == (0, b"")
    out = answers(tmp_path / "asked.out.jsonl")
    assert sorted(out) == ["line-1", "line-3", "mine"]
    assert out["line-1"]["response"]["body"]["choices"][0]["text"].startswith(" a time")
    for name in ("mine", "line-3"):
        assert out[name]["response"]["status_code"] == 200
        assert "7" in out[name]["response"]["body"]["choices"][0]["message"]["content"]
    assert b"asked.out.jsonl: 3 answers; " in done.stdout


def test_bad_lines_are_told_by_number_and_nothing_is_lost(tmp_path, model):
    bad = {
        1: (b"{oops", "no JSON"),
        2: (b"\xff\xfe", "no JSON"),
        3: ([1, 2], "no JSON object"),
        4: ({"custom_id": 7, "prompt": "x"}, "custom_id 7 is no text"),
        5: ({"custom_id": "a", "method": "GET", "url": "/v1/completions", "body": {"prompt": "x"}}, "method 'GET'"),
        6: ({"custom_id": "b", "url": "/v1/embeddings", "body": {"prompt": "x"}}, "url '/v1/embeddings'"),
        7: ({"text": "x"}, 'there is neither a "prompt" nor "messages"'),
        8: ({"prompt": "x", "stream": True}, '"stream" is not possible'),
        9: ({"custom_id": "a", "prompt": "x"}, "custom_id 'a' is that of line 5"),
        10: ({"prompt": "x", "max_tokens": 0}, "max_tokens"),
        11: ({"prompt": "x", "model": "other"}, "no model 'other'"),
        12: ({"prompt": "x" * 200}, "shorten it"),
        13: ({"prompt": "x", "temperature": float("nan")}, "JSON"),
    }
    good = {"prompt": "\ud800 half a pair", "max_tokens": 3, "custom_id": "\ud800"}, {"prompt": "x", "max_tokens": 3}
    done = batch(asked(tmp_path, *(line for line, _ in bad.values()), *good), model=model)
    assert done.returncode == 1
    said = done.stderr.decode().splitlines()
    assert len(said) >= len(bad)
    for number, (_, part) in bad.items():
        assert any(line.startswith(f"line {number}: ") and part in line for line in said), (number, said)
    out = answers(tmp_path / "asked.out.jsonl")
    assert {line["line"] for line in out.values()} == set(range(1, 16))
    assert out["line-15"]["response"]["status_code"] == 200
    assert out["line-1"]["error"]["code"] == "invalid_line"
    assert out["line-10"]["response"]["status_code"] == 400


def test_a_second_run_asks_only_what_failed_or_was_cut(tmp_path, model):
    lines = [{"prompt": str(i), "max_tokens": 4, "temperature": 0} for i in range(6)]
    file, out = asked(tmp_path, *lines, b"oops"), tmp_path / "answers.jsonl"
    assert batch(file, "--out", str(out), model=model).returncode == 1
    first = answers(out)
    kept = [line for line in out.read_text().splitlines() if json.loads(line)["line"] in (1, 2, 3, 7)]
    out.write_text("\n".join(kept) + '\n{"custom_id": "line-4", "li')
    file = asked(tmp_path, *lines, lines[0])
    done = batch(file, "--out", str(out), model=model)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"4 answers, 3 were there before" in done.stdout
    second = answers(out)
    assert set(second) == {f"line-{i}" for i in range(1, 8)}
    for name in ("line-1", "line-2", "line-3"):
        assert second[name] == first[name]
    for name in ("line-4", "line-5", "line-6"):
        texts = [run[name]["response"]["body"]["choices"][0]["text"] for run in (first, second)]
        assert texts[0] == texts[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_goes_on_where_it_was(tmp_path, model, number):
    file = asked(tmp_path, *({"prompt": str(i), "max_tokens": 90, "ignore_eos": True} for i in range(100)))
    out = tmp_path / "asked.out.jsonl"
    command = [sys.executable, "-m", "course", "batch", str(file), *SIZES, "--model", str(model)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
    deadline = time.monotonic() + 40
    while not (out.exists() and out.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    said = process.communicate(timeout=30)[1].decode()
    before = out.read_bytes().rpartition(b"\n")[0].splitlines()
    assert 0 < len(before) < 100
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert said == f"stopped: run the same command again to go on ({out} has what was answered)\n"
    assert batch(file, model=model).returncode == 0
    assert {line["line"] for line in answers(out).values()} == set(range(1, 101))
    assert set(before) <= set(out.read_bytes().splitlines())


def test_a_terminal_shows_a_bar(tmp_path, model):
    file = asked(tmp_path, *({"prompt": str(i), "max_tokens": 3} for i in range(5)))
    command = [sys.executable, "-m", "course", "batch", str(file), *SIZES, "--model", str(model)]
    terminal = Terminal(command, environment())
    try:
        assert terminal.exit_status(30) == 0
    finally:
        terminal.close()
    assert "5/5" in terminal.output
    assert "tokens/s" in terminal.output


def assert_one_line(done: subprocess.CompletedProcess, *parts: str) -> None:
    text = done.stderr.decode()
    assert done.returncode == 2, text
    assert text.startswith("error: "), text
    for part in parts:
        assert part in text, text


def test_mistakes_are_told(tmp_path):
    file = asked(tmp_path, CHAT)
    assert_one_line(batch(tmp_path / "none.jsonl"), "cannot read", "none.jsonl")
    assert_one_line(batch(tmp_path), "cannot read")
    assert_one_line(batch(file, "--out", str(file)), "is the file of the requests")
    assert_one_line(batch(file, "--out", "/no/such/folder/x"), "cannot write /no/such/folder/x")
    assert_one_line(batch(file, model="huge"), "no model 'huge'")
    notes = tmp_path / "notes.txt"
    notes.write_text("my own notes\nand more\n")
    assert_one_line(batch(file, "--out", str(notes)), "notes.txt, line 1, is no answer of a batch")
    assert notes.read_text() == "my own notes\nand more\n"


def test_the_requests_are_never_overwritten(tmp_path):
    """One line without an end looks like an answer that was cut, whatever the path to it looks like."""
    file = tmp_path / "asked.jsonl"
    file.write_text('{"prompt": "x"}')
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "hard").hardlink_to(file)
    for out in ("sub/../asked.jsonl", "link", "hard"):
        assert_one_line(batch(file, "--out", str(tmp_path / out)), "is the file of the requests")
    assert file.read_text() == '{"prompt": "x"}'


@pytest.mark.parametrize(
    "text",
    [
        "notes of one line",
        '{"custom_id": [1], "response": {"status_code": 200}, "error": null}\n',
        '{"custom_id": "a", "response": "yes", "error": null}\n',
        "[" * 100_000 + "\n",
    ],
)
def test_what_is_no_answer_stays_as_it_is(tmp_path, text):
    file = tmp_path / "out.jsonl"
    file.write_text(text)
    with pytest.raises(CourseError, match="line 1, is no answer of a batch"):
        Results(file)
    assert file.read_text() == text


def test_an_answer_that_was_cut_is_asked_again(tmp_path):
    file = tmp_path / "out.jsonl"
    for text in ('{"cus', '{"custom_id": "a", "response": {"stat'):
        file.write_text(text)
        results = Results(file)
        results.close()
        assert (results.done, file.read_text()) == (set(), "")


@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="needs /dev/stdin")
def test_only_files_on_the_disk(tmp_path):
    """A pipe can be read once, and a device is never at its end: neither may be replaced."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    file = asked(tmp_path, CHAT)
    assert_one_line(course("batch", "/dev/stdin", stdin=b'{"prompt": "x"}\n'), "cannot read /dev/stdin: it is")
    for path in (str(pipe), "/", "."):
        assert_one_line(course("batch", path), f"cannot read {path}: it is a folder, a pipe or a device")
    assert_one_line(batch(file, "--out", str(pipe)), f"cannot read {pipe}: it is a folder, a pipe or a device")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told(tmp_path):
    results = Results.__new__(Results)
    results.path, results.file = Path("/dev/full"), open("/dev/full", "a")  # noqa: SIM115
    (line,) = read_lines(asked(tmp_path, {"prompt": "x"}), "m")
    with pytest.raises(CourseError, match="cannot write /dev/full: No space left"):
        results.write(error_line(line, "no"))
    with pytest.raises(CourseError, match="No space left"):
        results.close()


def test_an_engine_that_dies_is_told(tmp_path, model):
    """A bug in a learner's scheduler: the program says so, and what was answered stays."""
    shutil.copytree(SRC / "tiny_llm_ref", tmp_path / "tiny_llm", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    file = tmp_path / "tiny_llm" / "serving" / "scheduler.py"
    old = "        outputs = []\n        results = iter(results)\n"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, f'        raise KeyError("a bug")\n{old}'))
    options = ("--solution", "tiny_llm", "--attention", "gather")
    done = batch(asked(tmp_path, {"prompt": "x"}), *options, model=model, path=tmp_path)
    assert_one_line(done, "the engine has died", "a bug")


def test_answers_know_their_lines(tmp_path):
    (line,) = read_lines(asked(tmp_path, {"prompt": "x"}), "m")
    assert line.body == {"model": "m", "prompt": "x"}
    results = Results(tmp_path / "out.jsonl")
    results.write(answer_line(line, 200, {"text": "ü\u2028"}))
    results.close()
    assert Results(tmp_path / "out.jsonl").done == {"line-1"}
    (kept,) = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(kept)["response"]["body"] == {"text": "ü\u2028"}
