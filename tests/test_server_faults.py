"""Clients and requests that would hurt others, or stay for ever: the server outlives them, and forgets them."""

import json
import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from course.serving_case.http import MODEL, Served, served
from course.serving_case.scripted import ScriptedRunner, text_tokenizer
from course.solution import Solution

REFERENCE = Solution("tiny_llm_ref")


@pytest.fixture
def server() -> Iterator[Served]:
    with served(REFERENCE, text_tokenizer()[0], ScriptedRunner(), rows=16, limits={"seconds": 0.5}) as it:
        yield it


@pytest.mark.parametrize(
    ("field", "value"), [("top_k", 2**31), ("top_k", 2**63), ("top_k", 2**70), ("repetition_penalty", 1e-320)]
)
def test_numbers_that_no_sampler_can_hold_are_refused(server, field, value):
    """One such request would fail the whole batch, and everybody in it."""
    answer = server.complete(prompt="abc", **{field: value})
    assert answer["status"] == 400
    assert answer["json"]["error"]["param"] == field


def test_tiny_numbers_are_what_they_are_nearly():
    decode, kind = (getattr(REFERENCE.module("serving.protocol"), name) for name in ("decode", "CompletionRequest"))
    sampling = REFERENCE.module("serving.server").sampling_of
    for temperature, top_p, expected in ((1e-320, 1e-320, (0.0, 1e-6)), (1e-40, 0.5, (0.0, 0.5)), (0.01, 1, (0.01, 1))):
        body = {"model": "m", "prompt": "x", "temperature": temperature, "top_p": top_p}
        params = sampling(decode(json.dumps(body).encode(), kind), 0, 0)
        assert (params.temperature, params.top_p) == expected


def test_a_client_that_reads_nothing_is_left(server):
    """Its answer does not wait in the server for as long as it likes."""
    body = {"model": MODEL, "prompt": "abc", "n": 16, "max_tokens": 200, "stream": True, "logprobs": 5}
    data = json.dumps(body).encode()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(("127.0.0.1", server.port))
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(data) + data)
        tasks = server.server.server_state.tasks
        assert server.until(lambda: len(tasks) == 1)
        assert server.until(lambda: not tasks, 5.0)
        assert server.idle()
        assert not server.engine.queues
        assert server.complete(prompt="abc", max_tokens=2)["status"] == 200


def test_connections_that_ask_for_nothing_are_closed(server):
    """Without a request, in the middle of the headers, or behind an answer whose request never ended."""
    server.server.quiet_seconds = 0.5
    large = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + b"100000\r\n" * 2
    for sent in (b"", b"GET /health HTTP/1.1\r\nhost:", large + b"x" * (1 << 20)):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            client.sendall(sent)
            while client.recv(1 << 16):
                pass
    assert server.complete(prompt="abc", max_tokens=2)["status"] == 200


class Leaving(ScriptedRunner):
    """Ends its thread instead of a batch."""

    def launch(self, batch: object) -> object:
        raise SystemExit(3)


def test_an_engine_that_leaves_ends_its_requests():
    """Nobody waits for a thread that is no more, whatever ended it."""
    with served(REFERENCE, text_tokenizer()[0], Leaving()) as server:
        answer = server.complete(prompt="abc")
        assert (answer["status"], answer["json"]["error"]["message"]) == (503, "the engine has died: SystemExit(3)")
        assert server.get("/health")["status"] == 503
        assert not server.engine.queues


def test_a_deep_tree_can_be_drawn():
    """A chain of nodes, as prompts leave it that each are one token longer: too deep for a reader of JSON."""
    root = below = SimpleNamespace(keys=[], pages=[], ref_count=0, children={})
    for page in range(2000):
        child = SimpleNamespace(keys=[(page,)], pages=[page], ref_count=page % 2, children={})
        below.children[page] = child
        below = child
    memory = REFERENCE.module("serving.memory").RowMemory(1, 8)
    memory.tree = SimpleNamespace(root=root)
    engine = SimpleNamespace(scheduler=REFERENCE.module("serving.scheduler").Scheduler(memory))
    tree = json.loads(json.dumps(REFERENCE.module("serving.state").state_of(engine)))["tree"]
    nodes, waiting = [], [tree]
    while waiting:
        nodes.append(waiting.pop())
        waiting += nodes[-1]["children"]
    assert [node["pages"] for node in nodes[1:100]] == [[page] for page in range(99)]
    assert sorted(page for node in nodes for page in node["pages"]) == list(range(2000))
    assert sum(node["locked"] for node in nodes) == 1000
