"""`pdm run watch` as a learner uses it, in a checkout of the real course: saves and keys."""

import fcntl
import json
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator

import pytest
from loop_checkout import Checkout
from loop_watch import READY, Watch, gone, watching
from terminal import Terminal

BASICS = "model/basics.py"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("a course") / "with spaces")


@pytest.fixture
def checkout(shared: Checkout) -> Checkout:
    shared.start_over()
    return shared


@pytest.fixture
def watch(checkout: Checkout) -> Iterator[Callable[..., Watch]]:
    with watching(checkout) as start:
        yield start


def states(checkout: Checkout) -> dict[str, str]:
    kept = json.loads(checkout.state.read_text())["progress"]["tiny_llm"]
    return {name: entry["state"] for name, entry in kept.items()}


def test_a_learner_goes_from_red_to_green_through_the_first_day(checkout: Checkout, watch: Callable[..., Watch]):
    program = watch()
    shown = program.expect("Week 1 Day 1 Task 1: A stable softmax", "still to be written", "0/22 cases")
    assert "  src/tiny_llm/model/basics.py:18: Week 1 Day 1 Task 1: softmax" in shown
    assert "s solution" not in shown
    right = checkout.written(BASICS, "softmax")
    checkout.file(BASICS).write_text(right.replace("mx.max(", "mx.min("))
    program.expect("basics.py: testing", "failing", "likely mistake", "go on with")
    checkout.file(BASICS).write_text(right)
    program.expect("22/22 cases", "10/10 points", "10 of the 45 points", "next: Week 1 Day 1 Task 2", "s solution")
    checkout.write(BASICS, "linear")  # its code is another task's: watch goes there
    program.expect("testing Week 1 Day 1 Task 2", "5/5 points", "next: Week 1 Day 1 Task 3")
    program.type("n")
    program.expect("testing Week 1 Day 1 Task 3", "still to be written")
    checkout.write("model/attention.py", "scaled_dot_product_attention")
    program.expect("15/15 points", "next: Week 1 Day 1 Task 4")
    checkout.file("model/attention.py").write_text((checkout.root / "src/tiny_llm_ref/model/attention.py").read_text())
    program.expect("testing Week 1 Day 1 Task 4", "45 of the 45 points", "next: Week 1 Day 2 Task 1")
    program.type("p")
    program.expect("testing Week 1 Day 1 Task 3", "done")
    program.type("q")
    assert program.exit_status() == 0
    assert gone(checkout)
    assert states(checkout) == {f"1.1.{n}": "done" for n in (1, 2, 3, 4)}


def test_saves_of_every_kind(checkout: Checkout, watch: Callable[..., Watch]):
    program = watch("--week", "1", "--day", "1", "--task", "2")
    program.expect("Task 2", "still to be written")
    file = checkout.file(BASICS)
    right = checkout.written(BASICS, "linear")
    wrong = right.replace("@ w.T", "+ w.T")
    assert len(wrong) == len(right)
    assert wrong != right
    file.write_text(right.replace("def linear(", "def linear(:"))
    program.expect("failing", "SyntaxError", "src/tiny_llm/model/basics.py:")
    temporary = file.with_name(".basics.py.tmp")
    temporary.write_text(right)
    temporary.rename(file)
    program.expect("13/13 cases", "all is done here")
    file.write_text(wrong)  # the same size, and perhaps the same second
    program.expect("failing")
    file.unlink()
    program.expect("failing", "ModuleNotFoundError")
    file.write_text(right)
    program.expect("13/13 cases")
    for number in range(8):
        file.write_text(wrong if number % 2 == 0 else right)
        time.sleep(0.05)
    program.forget()
    program.expect("13/13 cases")
    (file.parent / "__pycache__").mkdir(exist_ok=True)
    (file.parent / "__pycache__" / "basics.cpython-311.pyc").write_bytes(b"")
    (file.parent / ".basics.py.swp").write_bytes(b"")
    file.parent.joinpath("4913").write_bytes(b"")
    (checkout.root / "src" / "extensions" / "src" / "qmv.cpp").touch()
    program.expect("qmv.cpp: testing", "13/13 cases")
    assert "basics" not in program.output
    folder = checkout.file("")
    folder.rename(folder.with_name("away"))
    program.expect("tiny_llm: testing")
    folder.with_name("away").rename(folder)
    program.expect("13/13 cases")
    program.type("\x03")
    assert program.exit_status() == 130
    assert "Traceback" not in program.output
    assert gone(checkout)


def test_keys(checkout: Checkout, watch: Callable[..., Watch]):
    program = watch()
    program.expect("to do")
    program.type("h")
    program.expect("hint 1 of 3: nudge")
    program.type("a")
    shown = program.expect("still to be written", "hint 1 of 3: nudge: ", "--task 1 --level 1")
    assert len(shown.splitlines()) <= 23
    program.type("hs")
    program.expect("hint 2 of 3: invariant  (seen: nudge, invariant)")
    program.expect("the solution can be seen once the task has passed")
    program.type("l")
    program.expect("> 1 A stable softmax", "2 hints")
    program.type("?")
    program.expect("A save during a run stops that run.")
    program.type("\x1b[A")
    program.type("x")
    assert program.expect().strip().startswith("h hint")
    checkout.write(BASICS, "softmax")
    assert "hint 2" not in program.expect("22/22 cases")
    program.type("s")
    program.expect("src/tiny_llm/model/basics.py and src/tiny_llm_ref/model/basics.py are alike")
    program.type("r")
    program.wait_for("y: yes, any other key: no")
    program.type("x")
    program.wait_for("nothing was changed")
    program.type("ry")
    program.expect("testing Week 1 Day 1 Task 1", "still to be written")
    assert "raise NotImplementedError" in checkout.text(BASICS)
    program.type("a")
    program.expect("testing Week 1 Day 1 Task 1", "still to be written")
    program.type("p")
    program.wait_for("this is the first task")
    program.type("q")
    assert program.exit_status() == 0


def test_a_reset_says_what_goes_and_how_to_get_it_back(checkout: Checkout, watch: Callable[..., Watch]):
    checkout.write(BASICS, "linear")
    file = checkout.file(BASICS)
    file.write_text(file.read_text().replace("def softmax(", "def softmax((", 1))
    program = watch()
    program.expect("SyntaxError")
    program.type("r")
    program.wait_for("any other key: no")
    assert "the WHOLE of src/tiny_llm/model/basics.py would go back" in program.output
    assert "with it goes your code of Week 1 Day 1 Task 2\r\n" in program.output
    program.type("y")
    shown = program.expect("testing Week 1 Day 1 Task 1", "still to be written")
    assert "your files are saved: pdm run restore" in shown.partition("still to be written")[2]
    program.type("a")
    assert "pdm run restore" not in program.expect("still to be written")
    program.type("q")
    assert program.exit_status() == 0


def test_once_leaves_the_screen_and_no_color_is_text_alone(
    checkout: Checkout, watch: Callable[..., Watch], monkeypatch: pytest.MonkeyPatch
):
    program = watch("--once", terminal="xterm-256color")
    assert program.exit_status(60) == 1
    assert "\x1b[2J" not in program.output
    assert "\x1b[" in program.output
    command = [sys.executable, "-m", "course"]
    for arguments in (["status"], ["hint", "--week", "1", "--day", "1", "--task", "1"], ["watch", "--help"], ["watch"]):
        settings = ["TERM=xterm-256color", "NO_COLOR=1"]
        monkeypatch.chdir(checkout.root)
        plain = Terminal(["/usr/bin/env", *settings, *command, *arguments], checkout.environment)
        try:
            if arguments == ["watch"]:
                plain.wait_for(READY)
                plain.type("hl?q")
            assert plain.exit_status(30) == 0
        finally:
            plain.close()
        assert "\x1b" not in plain.output, arguments
        assert len(plain.output.splitlines()) > 5


def test_a_broken_file_of_another_task_is_told(checkout: Checkout, watch: Callable[..., Watch]):
    checkout.write(BASICS, "softmax")
    program = watch("--week", "1", "--day", "1", "--task", "1")
    program.expect("22/22 cases", "all is done here; next: Week 1 Day 1 Task 2", "read", "pdm run watch --week 1")
    file = checkout.file("model/attention.py")
    right = file.read_text()
    file.write_text(right + "def broken(:\n")
    program.expect("22/22 cases", f"src/tiny_llm/model/attention.py:{right.count(chr(10)) + 1}: SyntaxError: ")
    file.write_text(right)
    assert "SyntaxError" not in program.expect("22/22 cases")
    file = checkout.file(BASICS)
    file.write_text(file.read_text().replace("def softmax(", "def softmax((", 1))
    shown = program.expect("failing", "SyntaxError")
    assert shown.count("SyntaxError") == 1
    assert "more of this task" not in shown
    assert max(len(line) for line in shown.splitlines()) <= 80
    program.type("q")
    assert program.exit_status() == 0


def test_a_window_of_another_size_is_filled_anew(checkout: Checkout, watch: Callable[..., Watch]):
    program = watch(terminal="xterm")
    program.expect("\x1b[2J", "still to be written")
    fcntl.ioctl(program.file, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 50, 0, 0))  # which tells the program
    shown = program.expect("\x1b[2J", "still to be written")
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown)
    assert max(len(line) for line in plain.splitlines() if "──" in line) == 50
    program.type("q")
    assert program.exit_status() == 0


def test_without_a_terminal_outcomes_come_one_below_the_other(checkout: Checkout):
    command = [sys.executable, "-m", "course", "watch", "--week", "1"]
    with (checkout.root / "said.txt").open("w") as said:
        process = subprocess.Popen(
            command, cwd=checkout.root, env=checkout.environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )

    def wait_for(text: str) -> str:
        deadline = time.monotonic() + 60
        while text not in (shown := (checkout.root / "said.txt").read_text()):
            assert time.monotonic() < deadline, shown
            time.sleep(0.05)
        return shown

    wait_for("go on with")
    checkout.write(BASICS, "softmax")
    shown = wait_for("next: Week 1 Day 1 Task 2")
    process.terminate()
    assert process.wait(10) == 143
    assert "\x1b" not in shown
    assert READY not in shown
    assert gone(checkout)


def test_once_tests_once(checkout: Checkout):
    done = checkout.run("watch", "--once")
    assert (done.returncode, done.stderr) == (1, "")
    assert "still to be written" in done.stdout
    checkout.write(BASICS, "softmax")
    assert checkout.run("watch", "--once").returncode == 0
    assert states(checkout) == {"1.1.1": "done"}
    assert "testing Week 1 Day 1 Task 2" in checkout.run("watch", "--once").stdout
    assert gone(checkout)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--day", "1"], "error: --day 1 needs --week"),
        (["--week", "1", "--task", "1"], "error: --task 1 needs --day"),
        (["--week", "99"], "error: week 99 does not exist"),
    ],
)
def test_mistakes_are_one_line(checkout: Checkout, arguments: list[str], text: str):
    done = checkout.run("watch", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(text)
