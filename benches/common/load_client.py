"""Sends a planned load to an OpenAI-compatible server and keeps the time of every piece of every answer."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx

TIMEOUT = httpx.Timeout(600, connect=10)


@dataclass
class Answer:
    """One request, in seconds of one clock.

    pieces: when each piece of text came. ended: whether the server said that this was all. error: why it failed.
    """

    sent: float
    pieces: list[float] = field(default_factory=list)
    done: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    ended: bool = False
    error: str | None = None


@dataclass(frozen=True)
class Target:
    """A server, and what is asked of it with each prompt."""

    url: str
    model: str
    max_tokens: int

    def body(self, prompt: str) -> dict[str, object]:
        """A streamed completion that runs to its full length where the server can be told so."""
        return {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": self.max_tokens,
            "temperature": 0.0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }


async def send_all(
    target: Target, prompts: Sequence[str], arrivals: Sequence[float], concurrency: int | None
) -> list[Answer]:
    """Send each prompt at its arrival time, at most `concurrency` at once. A request that fails is an answer too."""
    places = asyncio.Semaphore(concurrency or len(prompts))
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=TIMEOUT, limits=limits, trust_env=False) as client:
        start = time.perf_counter()

        async def one(prompt: str, arrival: float) -> Answer:
            await asyncio.sleep(start + arrival - time.perf_counter())
            async with places:
                return await ask(client, target, prompt)

        return await asyncio.gather(*map(one, prompts, arrivals))


async def ask(client: httpx.AsyncClient, target: Target, prompt: str) -> Answer:
    """Send one request and read its stream to the end."""
    answer = Answer(sent=time.perf_counter())
    try:
        async with client.stream("POST", f"{target.url}/v1/completions", json=target.body(prompt)) as response:
            if response.status_code != 200:
                answer.error = f"status {response.status_code}: {(await response.aread())[:200]!r}"
            else:
                async for line in response.aiter_lines():
                    read_line(answer, line)
    except (httpx.HTTPError, ValueError) as error:
        answer.error = f"{type(error).__name__}: {error}"
    answer.done = time.perf_counter()
    if answer.error is None and not (answer.pieces and answer.ended):
        answer.error = "the answer was cut off" if answer.pieces else "the answer held no text"
    return answer


def read_line(answer: Answer, line: str) -> None:
    """Take one line of a server-sent stream into `answer`. Raises ValueError for an event that is none of OpenAI's."""
    if not line.startswith("data:"):
        return
    if line.removeprefix("data:").strip() == "[DONE]":
        answer.ended = True
        return
    event = json.loads(line.removeprefix("data:"))
    if not isinstance(event, dict):
        raise ValueError(f"an event holds no object: {line[:80]!r}")
    if "error" in event:
        answer.error = str(event["error"])
    if event.get("choices"):
        answer.pieces.append(time.perf_counter())
        answer.output_tokens = max(answer.output_tokens, len(answer.pieces))
    if usage := event.get("usage"):
        answer.input_tokens = usage["prompt_tokens"]
        answer.output_tokens = usage["completion_tokens"]
