"""Real clients against a real server with the embedded model: the `openai` package, curl, and 500 streams at once."""

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator

import httpx
import openai
import pytest
from serving_program import Server, serving

QUESTION = [{"role": "user", "content": "What is 3 + 4?"}]
STORY = "Once upon a time"
IDLE = 10.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--rows", "32", "--pages", "1200", "--queue", "512") as started:
        yield started


@pytest.fixture
def client(server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=60) as made:
        yield made


@pytest.fixture(autouse=True)
def idle(server) -> Iterator[None]:
    """After every test nothing is left in the engine, and no page is held but by the unlocked prefix tree."""
    yield
    deadline = time.monotonic() + IDLE
    while held(state := server.ask("/state")[1]) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not held(state), state
    assert locked(state["tree"]) == [1]  # the root's own
    assert server.ask("/health") == (200, {"status": "ok"})


def held(state: dict) -> bool:
    """Whether anything is left in the engine, or on its way."""
    requests = state["running"] or state["waiting"] or state["open"]
    return bool(requests or state["available"] != state["stats"]["pages"])


def locked(node: dict) -> list[int]:
    """Reference counts of the tree's nodes that are in use."""
    return [node["locked"]] * bool(node["locked"]) + [n for child in node["children"] for n in locked(child)]


def said(stream) -> tuple[str, list[str]]:
    """Text and finish reasons of a chat stream."""
    choices = [choice for chunk in stream for choice in chunk.choices]
    return "".join(c.delta.content or "" for c in choices), [c.finish_reason for c in choices if c.finish_reason]


def test_models(client):
    assert [model.id for model in client.models.list()] == ["tiny"]


def test_small_answers_do_not_wait_for_acknowledgements(server):
    """Nagle's algorithm would hold the second part of each answer back, for 40 ms on Linux."""
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        times = []
        for _ in range(15):
            start = time.perf_counter()
            client.get("/health")
            times.append(time.perf_counter() - start)
    assert sorted(times)[3] < 0.03, times


def test_chat(client):
    reply = client.chat.completions.create(model="tiny", messages=QUESTION, temperature=0)
    assert "7" in reply.choices[0].message.content
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_a_stream_says_the_same(client):
    reply = client.chat.completions.create(model="tiny", messages=QUESTION, temperature=0)
    stream = client.chat.completions.create(
        model="tiny", messages=QUESTION, temperature=0, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert said(chunks) == (reply.choices[0].message.content, ["stop"])
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].usage == reply.usage


def test_completion_with_everything(client):
    options = {"model": "tiny", "prompt": STORY, "max_tokens": 12, "temperature": 1.0, "seed": 7, "n": 3, "logprobs": 2}
    first, again = (client.completions.create(**options) for _ in range(2))
    texts = [choice.text for choice in first.choices]
    assert texts == [choice.text for choice in again.choices]
    assert len(set(texts)) == 3
    assert first.usage.completion_tokens == 36
    for choice in first.choices:
        logprobs = choice.logprobs
        assert "".join(logprobs.tokens) == choice.text
        assert all(p <= 0 for p in logprobs.token_logprobs)
        for token, p, top in zip(logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs, strict=True):
            assert max(top.values()) >= p - 1e-4
            assert token not in top or abs(top[token] - p) < 1e-4


def test_greedy_tokens_have_the_best_logprobs(client):
    reply = client.chat.completions.create(
        model="tiny", messages=QUESTION, temperature=0, logprobs=True, top_logprobs=3
    )
    for row in reply.choices[0].logprobs.content:
        assert row.top_logprobs[0].token == row.token
        assert abs(row.top_logprobs[0].logprob - row.logprob) < 1e-4


def test_stop_string(client):
    whole = client.completions.create(model="tiny", prompt=STORY, max_tokens=60, temperature=0).choices[0].text
    stop = whole[20:23]
    reply = client.completions.create(model="tiny", prompt=STORY, max_tokens=60, temperature=0, stop=stop)
    assert reply.choices[0].text == whole[: whole.index(stop)]
    assert reply.choices[0].finish_reason == "stop"


def test_errors_are_the_clients_own(client):
    with pytest.raises(openai.NotFoundError, match="no model 'gpt'"):
        client.chat.completions.create(model="gpt", messages=QUESTION)
    with pytest.raises(openai.BadRequestError, match=r"<= 2.0.*temperature"):
        client.chat.completions.create(model="tiny", messages=QUESTION, temperature=3)
    with pytest.raises(openai.BadRequestError, match=r"at least|>= 1"):
        client.chat.completions.create(model="tiny", messages=QUESTION, max_tokens=0)
    with pytest.raises(openai.BadRequestError, match="at most 2047 fit"):
        client.completions.create(model="tiny", prompt=[5] * 3000)
    with pytest.raises(openai.BadRequestError, match="tools"):
        client.chat.completions.create(
            model="tiny", messages=QUESTION, tools=[{"type": "function", "function": {"name": "f"}}]
        )


def test_prefix_hits_are_measured(client, server):
    def rate() -> float:
        text = httpx.get(f"{server.url}/metrics", trust_env=False).text
        (line,) = [line for line in text.splitlines() if line.startswith("tiny_llm_prefix_cache_hit_rate ")]
        return float(line.split()[1])

    for i in range(3):
        client.completions.create(model="tiny", prompt=f"{STORY} " * 30 + str(i), max_tokens=1)
    assert 0 < rate() < 1


def test_cancelled_streams_free_the_engine(client, server):
    streams = [
        client.completions.create(model="tiny", prompt=f"{i} {STORY}", max_tokens=1500, stream=True) for i in range(4)
    ]
    for stream in streams:
        next(iter(stream))
        stream.close()


def test_concurrent_clients(server):
    async def one(client: openai.AsyncOpenAI, a: int, b: int) -> tuple[str, list[str]]:
        stream = await client.chat.completions.create(
            model="tiny", messages=[{"role": "user", "content": f"What is {a} + {b}?"}], temperature=0, stream=True
        )
        return said([chunk async for chunk in stream])

    async def main() -> list[tuple[str, list[str]]]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            return await asyncio.gather(*[one(client, a, b) for a in range(1, 6) for b in range(1, 5)])

    sums = [a + b for a in range(1, 6) for b in range(1, 5)]
    for total, (text, reasons) in zip(sums, asyncio.run(main()), strict=True):
        assert str(total) in text
        assert reasons == ["stop"]


def curl(server: Server, path: str, body: str, *options: str) -> str:
    command = ["curl", "-sS", "--max-time", "60", "-N", "-d", "@-", "-H", "content-type: application/json", *options]
    return subprocess.run(
        [*command, server.url + path], input=body, capture_output=True, text=True, check=True, timeout=70
    ).stdout


def test_curl(server):
    body = {"model": "tiny", "messages": QUESTION, "temperature": 0}
    reply = json.loads(curl(server, "/v1/chat/completions", json.dumps(body)))
    assert "7" in reply["choices"][0]["message"]["content"]
    events = curl(server, "/v1/chat/completions", json.dumps({**body, "stream": True})).split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    deltas = [json.loads(event[6:])["choices"][0]["delta"] for event in events[:-2]]
    assert "".join(delta.get("content", "") for delta in deltas) == reply["choices"][0]["message"]["content"]
    assert curl(server, "/v1/completions", "{", "-o", "/dev/null", "-w", "%{http_code}") == "400"
    large = json.dumps({"model": "tiny", "prompt": "x" * (2 << 20)})
    assert curl(server, "/v1/completions", large, "-o", "/dev/null", "-w", "%{http_code}").endswith("413")


PROMPTS = [f"What is {a} + {b}?" for a in range(2, 10) for b in range(3, 8)]


async def crowd(url: str, prompts: list[str]) -> list[tuple[str, list[str]]]:
    """Ask all at the same time, each over a connection of its own."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)

    async def one(client: httpx.AsyncClient, prompt: str) -> tuple[str, list[str]]:
        body = {"model": "tiny", "messages": [{"role": "user", "content": prompt}], "temperature": 0, "stream": True}
        text, ends = "", []
        async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as response:
            assert response.status_code == 200, await response.aread()
            async for line in response.aiter_lines():
                if line == "data: [DONE]":
                    ends.append("[DONE]")
                elif line:
                    (choice,) = json.loads(line[6:])["choices"]
                    text += choice["delta"].get("content", "")
                    ends += [choice["finish_reason"]] * bool(choice["finish_reason"])
        return text, ends

    async with httpx.AsyncClient(timeout=120, limits=limits, trust_env=False) as client:
        return await asyncio.gather(*[one(client, prompt) for prompt in prompts])


def test_500_streams_at_once(server):
    """Each says what the model says when it is asked alone."""
    alone = {}
    for prompt in PROMPTS:
        body = {"model": "tiny", "messages": [{"role": "user", "content": prompt}], "temperature": 0}
        alone[prompt] = server.ask("/v1/chat/completions", body)[1]["choices"][0]["message"]["content"]
    prompts = [PROMPTS[i % len(PROMPTS)] for i in range(500)]
    for prompt, (text, ends) in zip(prompts, asyncio.run(crowd(server.url, prompts)), strict=True):
        assert ends == ["stop", "[DONE]"]
        assert text == alone[prompt]
