"""`pdm run watch` with code that hangs, dies, or starts programs, and how it ends: nothing is left behind."""

import os
import shlex
import signal
import sys
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


@pytest.mark.parametrize("loop", ["while True: pass", "sum(iter(int, 1))"], ids=["python", "c"])
def test_a_save_stops_a_run_that_hangs(checkout: Checkout, watch: Callable[..., Watch], loop: str):
    program = watch()
    program.expect("to do")
    right = checkout.written(BASICS, "softmax")
    checkout.file(BASICS).write_text(right.replace('    """Turn', f'    {loop}\n    """Turn'))
    program.wait_for("s: SoftmaxMatchesFloat64[0] of Week 1 Day 1 Task 1")
    start = time.monotonic()
    checkout.file(BASICS).write_text(right)
    program.expect("22/22 cases")
    assert time.monotonic() - start < 8
    assert sum("worker" in line for line in checkout.processes()) <= 2


@pytest.mark.parametrize("end", ["q", "term", "hangup"])
def test_a_hanging_run_and_what_it_started_are_gone_at_the_end(
    checkout: Checkout, watch: Callable[..., Watch], end: str
):
    program = watch()
    before = program.settings()
    program.expect("to do")
    assert program.settings() != before
    started = "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True); sum(iter(int, 1))"
    text = checkout.written(BASICS, "softmax").replace('    """Turn', f'    {started}\n    """Turn')
    checkout.file(BASICS).write_text(text)
    program.wait_for("s: SoftmaxMatchesFloat64[0] of Week 1 Day 1 Task 1")
    assert "sleep 1000" in checkout.processes()
    if end == "q":
        program.type("q")
        assert program.exit_status() == 0
        assert program.settings() == before
    elif end == "term":
        os.kill(program.pid, signal.SIGTERM)
        assert program.exit_status() == 143
        assert program.settings() == before
    else:
        os.close(program.file)  # the window is closed
        program.file = os.open(os.devnull, os.O_RDONLY)
    assert gone(checkout)


def test_a_killed_watch_leaves_nothing_either(checkout: Checkout, watch: Callable[..., Watch]):
    program = watch()
    program.expect("to do")
    started = "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)"
    text = checkout.written(BASICS, "softmax").replace(
        '    """Turn', f'    {started}\n    while True: pass\n    """Turn'
    )
    checkout.file(BASICS).write_text(text)
    program.wait_for("s: SoftmaxMatchesFloat64[0] of Week 1 Day 1 Task 1")
    os.kill(program.pid, signal.SIGKILL)
    program.exit_status()
    assert gone(checkout)


def test_code_that_ends_its_process_is_told(checkout: Checkout, watch: Callable[..., Watch]):
    program = watch()
    program.expect("to do")
    right = checkout.written(BASICS, "softmax")
    checkout.file(BASICS).write_text(right.replace('    """Turn', '    __import__("os")._exit(0)\n    """Turn'))
    program.expect("your code ended the whole run (exit status 0) in SoftmaxMatchesFloat64[0]", "no verdict")
    threads = "import threading, time; threading.Thread(target=lambda: time.sleep(1000)).start()"
    checkout.file(BASICS).write_text(right.replace('    """Turn', f'    {threads}\n    """Turn'))
    program.expect("22/22 cases")
    program.type("q")
    assert program.exit_status() == 0
    assert gone(checkout)


def test_a_shell_can_stop_it_and_go_on_with_it(checkout: Checkout):
    bash = "/bin/bash"
    if not os.path.exists(bash):
        pytest.skip("needs a shell with job control")
    program = Terminal([bash, "--norc", "--noprofile", "-i"], checkout.environment | {"PS1": "$ "})
    try:
        program.type(f"cd {shlex.quote(str(checkout.root))}; {sys.executable} -m course watch\n")
        program.wait_for(READY)
        program.type("\x1a")
        program.wait_for("Stopped")
        program.type("bg\n")
        checkout.write(BASICS, "softmax")
        program.wait_for("22/22 cases")
        program.type("fg\n")
        time.sleep(1)  # within which it takes the keys again, though no signal told it
        program.output = ""
        program.type("l")
        program.wait_for("> 1 A stable softmax")
        program.type("q")
        program.wait_for("$ ")
        program.type("exit\n")
        assert program.exit_status() == 0
    finally:
        program.close()
    assert gone(checkout)
