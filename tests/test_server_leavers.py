"""Clients that leave at random moments, from a server that goes on: nothing of them is left."""

import random
import threading
import time

import pytest

from course.serving_case.http import Served, served
from course.serving_case.scripted import ScriptedRunner, text_tokenizer
from course.solution import Solution


def client(server: Served, rng: random.Random, failures: list[str]) -> None:
    """A few requests, one after another; some are left alone after a while."""
    for _ in range(12):
        body = {
            "prompt": [rng.randrange(1, 250) for _ in range(rng.randrange(1, 40))],
            "max_tokens": rng.randrange(1, 60),
            "n": rng.randrange(1, 3),
            "stream": rng.random() < 0.7,
            "stop": ["zz", "q"] if rng.random() < 0.3 else None,
        }
        stream = server.stream("/v1/completions", body)
        if rng.random() < 0.5:
            time.sleep(rng.random() * 0.03)
        else:
            events = stream.read()
            if body["stream"] and stream.status == 200 and events[-1:] != ["[DONE]"]:
                failures.append(f"a stream ended with {events[-1:]}")
            if stream.status not in (200, 429):
                failures.append(f"status {stream.status}")
        stream.close()


@pytest.mark.parametrize("seed", range(3))
def test_leavers_leave_nothing(seed):
    runner, failures = ScriptedRunner(seconds=0.0005), []
    solution = Solution("tiny_llm_ref")
    with served(solution, text_tokenizer()[0], runner, rows=6, max_len=128, limit=24) as server:
        clients = [
            threading.Thread(target=client, args=(server, random.Random(f"{seed} {i}"), failures)) for i in range(8)
        ]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join(60)
        assert not any(thread.is_alive() for thread in clients)
        assert not failures
        assert server.idle()
        assert server.until(lambda: not server.engine.queues)
        assert server.watch.errors == []
        metrics = server.metrics()
        ended = {k.split('"')[1]: v for k, v in metrics.items() if k.startswith("tiny_llm_requests_finished_total")}
        assert set(ended) <= {"stop", "length", "abort"}
        assert ended["abort"] > 0
        uids = next(server.engine.uids)
        assert sum(ended.values()) <= uids
        assert server.complete(prompt="abc", max_tokens=2)["status"] == 200
