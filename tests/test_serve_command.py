"""`serve` as a user meets it: where it says it is, what it answers, how it ends, and each mistake in one line."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from serving_program import SIZES, Server, course, environment, serving
from small_model import small_model

from course.paths import SRC

CHAT = {"model": "tiny", "messages": [{"role": "user", "content": "What is 3 + 4?"}], "temperature": 0}


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return small_model(tmp_path_factory.mktemp("random-model"), max_positions=100)


@pytest.fixture(scope="module")
def server():
    with serving(*SIZES) as started:
        yield started


def assert_one_line(done, *parts: str) -> None:
    text = done.stderr.decode()
    assert done.returncode == 2, text
    assert text.startswith("error: "), text
    assert text.count("\n") == 1, text
    for part in parts:
        assert part in text, text


def test_it_answers_as_the_reference_model_does(server):
    status, reply = server.ask("/v1/chat/completions", CHAT)
    assert status == 200
    assert "7" in reply["choices"][0]["message"]["content"]
    assert server.ask("/v1/models")[1]["data"][0]["id"] == "tiny"
    assert server.ask("/health") == (200, {"status": "ok"})


def test_the_state_shows_pages_and_prefixes(server):
    long = {**CHAT, "messages": [{"role": "user", "content": "Once upon a time " * 20}], "max_tokens": 1}
    server.ask("/v1/chat/completions", long)
    status, state = server.ask("/state")
    assert status == 200
    assert (state["running"], state["waiting"], state["open"], state["draining"]) == ([], [], 0, False)
    assert state["available"] == state["stats"]["pages"] == 300
    assert state["options"] == {"scheduler": "chunked", "memory": "prefix", "attention": "kernel", "loop": "overlap"}
    texts = [node["text"] for node in state["tree"]["children"]]
    assert any(text.startswith("<|im_start|>user") for text in texts)


def test_prefix_hits_are_counted(server):
    body = {"model": "tiny", "prompt": list(range(100, 140)), "max_tokens": 2}
    before = server.ask("/state")[1]["stats"]
    server.ask("/v1/completions", body)
    server.ask("/v1/completions", body)
    after = server.ask("/state")[1]["stats"]
    assert after["asked_tokens"] - before["asked_tokens"] == 80
    assert after["hit_tokens"] - before["hit_tokens"] == 32  # two whole pages, the second time


def test_a_long_prompt_does_not_stop_the_others(server):
    """A megabyte takes the tokenizer a second; a stream beside it goes on."""
    large = {"model": "tiny", "prompt": "ab " * 330_000}
    beside = threading.Thread(target=server.ask, args=("/v1/completions", large))
    beside.start()
    answers = 0
    while beside.is_alive():
        assert server.ask("/health") == (200, {"status": "ok"})
        answers += 1
    assert answers >= 5
    assert server.ask("/v1/completions", large)[1]["error"]["code"] == "context_length_exceeded"


def test_unknown_paths_are_errors_in_json(server):
    assert server.ask("/v1/nothing")[0] == 404
    assert "error" in server.ask("/v1/nothing")[1]


@pytest.mark.parametrize("parts", [("fcfs", "rows", "normal"), ("mixed", "paged", "overlap")])
def test_every_part_can_be_chosen(parts):
    scheduler, memory, loop = parts
    with serving(*SIZES, "--scheduler", scheduler, "--memory", memory, "--loop", loop) as started:
        assert "7" in started.ask("/v1/chat/completions", CHAT)[1]["choices"][0]["message"]["content"]
        state = started.ask("/state")[1]
        assert state["tree"] is None
        assert (state["pages"] is None) == (memory == "rows")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_lets_running_requests_end(model, number):
    """The client gets its whole answer, new requests are turned away meanwhile, and the trace is complete."""
    trace = model / f"trace-{number}.json"
    with serving(*SIZES, "--trace", str(trace), model=model) as server:
        body = {"model": str(model), "prompt": "abc", "max_tokens": 90, "ignore_eos": True}
        replies = []
        client = threading.Thread(target=lambda: replies.append(server.ask("/v1/completions", body)))
        client.start()
        deadline = time.monotonic() + 20
        while not server.ask("/state")[1]["running"] and time.monotonic() < deadline:
            time.sleep(0.005)
        server.process.send_signal(number)
        client.join(30)
        _, said = server.process.communicate(timeout=30)
    assert (server.process.returncode, said) == (0, "")
    status, reply = replies[0]
    assert status == 200
    assert reply["usage"]["completion_tokens"] == 90
    events = json.loads(trace.read_text())
    assert {"launch 1", "read 1", "batch 1", "prefill", "decode"} <= {event["name"] for event in events}


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_it_now(tmp_path, second):
    """The client is told why its stream ends, and the trace is complete."""
    trace = tmp_path / "trace.json"
    with (
        serving("--rows", "2", "--pages", "300", "--drain-seconds", "60", "--trace", str(trace)) as server,
        socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=30) as client,
    ):
        body = {"model": "tiny", "prompt": "a", "max_tokens": 2000, "n": 16, "ignore_eos": True, "stream": True}
        data = json.dumps(body).encode()
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(data) + data)
        while not server.ask("/state")[1]["running"]:
            time.sleep(0.005)
        server.process.send_signal(signal.SIGTERM)
        while not server.ask("/state")[1]["draining"]:
            time.sleep(0.005)
        server.process.send_signal(second)
        asked = time.monotonic()
        said = b""
        while part := client.recv(1 << 16):
            said += part
        server.process.communicate(timeout=20)
        assert server.process.returncode == 130
        assert time.monotonic() - asked < 10
    assert b"it is shutting down" in said
    assert b"data: [DONE]\n\n" in said
    assert json.loads(trace.read_text())


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--model", "huge"), ("no model 'huge'",)),
        (("--port", "70000"), ("'70000'", "from 0 to 65535")),
        (("--host", "192.0.2.1"), ("cannot listen at '192.0.2.1'",)),
        (("--host", "no.such.host.invalid"), ("cannot listen at",)),
        (("--pages", "0"), ("'0'", "at least 1")),
        (("--pages", "1", "--page-size", "1"), ("--pages 1 of one token", "at least --pages 2")),
        (("--rows", "100000000"), ("'100000000'", "from 1 to 4096")),
        (("--page-size", "5000"), ("'5000'", "from 1 to 4096")),
        (("--pages", "1000000000"), ("--pages 1000000000 takes", "free")),
        (("--scheduler", "fcfs", "--rows", "4", "--pages", "511"), ("--scheduler fcfs", "need 512 pages, not 511")),
        (("--max-len", "5000"), ("--max-len 5000 exceeds the 2048 positions",)),
        (("--max-len", "1"), ("--max-len 1 leaves no room",)),
        (("--scheduler", "none"), ("invalid choice: 'none'",)),
        (("--trace", "/no/such/folder/trace.json"), ("cannot write /no/such/folder/trace.json",)),
        (("--ops", "cpu", "--dtype", "float16"), ("--ops cpu computes in float32 or bfloat16",)),
        (("--ops", "python", "--dtype", "float16"), ("--attention kernel computes in float32 or bfloat16",)),
    ],
)
def test_mistakes_are_told_in_one_line(options, parts):
    assert_one_line(course("serve", "--port", "0", *options), *parts)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("streams", ["<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
def test_it_serves_where_nobody_reads_what_it_says(model, streams):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = f'exec "$@" {streams}'
    serve = [sys.executable, "-m", "course", "serve", "--port", str(port), "--model", str(model), *SIZES]
    process = subprocess.Popen(["bash", "-c", command, "bash", *serve], env=environment())
    try:
        server = Server(process, f"http://127.0.0.1:{port}")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError):
                assert server.ask("/health") == (200, {"status": "ok"})
                break
            time.sleep(0.1)
        assert server.ask("/v1/completions", b"{")[0] == 400
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit")
def test_too_many_connections_are_told_once(model):
    """The server outlives them, and answers again once they have gone."""
    with serving(*SIZES, model=model) as server:
        subprocess.run(["prlimit", "--nofile=40", "--pid", str(server.process.pid)], check=True)
        port = int(server.url.rpartition(":")[2])
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(80)]
        time.sleep(1.5)
        for client in clients:
            client.close()
        time.sleep(1.5)
        assert server.ask("/health") == (200, {"status": "ok"})
        status, said = server.end()
    assert status == 0
    assert said.count("no more connections can be open") == said.count("\n") == 1


def test_a_port_in_use_is_told_before_the_model_is_loaded():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_one_line(course("serve", "--port", str(port)), f"port {port}", "--port 0")


def test_a_broken_checkpoint_is_told_in_one_line(model, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(model, broken, ignore=shutil.ignore_patterns("trace*"))
    weights = next(broken.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-100])
    assert_one_line(course("serve", "--port", "0", *SIZES, "--model", str(broken)), str(weights.name))
    weights.unlink()
    weights.mkdir()
    assert_one_line(course("serve", "--port", "0", *SIZES, "--model", str(broken)), "cannot read", "Is a directory")


STUB = "Week 3 Day 1 Task 2: this - see book/src/week3-01-x.md#task-2"
LEARNER = ("--solution", "tiny_llm", *SIZES, "--attention", "gather")


@pytest.fixture
def learner(tmp_path):
    """A function that makes a `tiny_llm` with a stub instead of the lines `old`, and returns where to find it."""

    def make(file: str, old: str) -> Path:
        unwanted = shutil.ignore_patterns("__pycache__", "*.so", ".built*")
        shutil.copytree(SRC / "tiny_llm_ref", tmp_path / "tiny_llm", ignore=unwanted)
        path = tmp_path / "tiny_llm" / file
        text = path.read_text()
        assert text.count(old) == 1
        indent = old[: len(old) - len(old.lstrip())]
        path.write_text(text.replace(old, f'{indent}raise NotImplementedError("{STUB}")\n'))
        return tmp_path

    return make


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("assemble.py", "    caches = make_caches(model, memory, options)\n"),  # in the engine's thread
        ("async_engine.py", "            self.run()\n"),  # instead of the thread
    ],
)
def test_a_learners_unfinished_part_is_named(learner, model, file, line):
    path = learner(f"serving/{file}", line)
    assert_one_line(course("serve", "--port", "0", "--model", str(model), *LEARNER, path=path), STUB, "to be written")


def test_a_learners_part_that_is_missing_later_is_named(learner, model):
    """The server says so to the client and on the terminal, and lives."""
    path = learner("serving/scheduler.py", "        outputs = []\n        results = iter(results)\n")
    with serving(*LEARNER, model=model, path=path) as server:
        status, reply = server.ask("/v1/completions", {"model": str(model), "prompt": "x"})
        assert (status, STUB in reply["error"]["message"]) == (503, True)
        assert server.ask("/health")[0] == 503
        status, said = server.end()
    assert status == 1
    assert f"{STUB} is still to be written" in said
    assert "Traceback" not in said
