"""Clients of a soak: patient ones, whose answers are checked, and those that leave or ask for what cannot be."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import httpx

from course.soak.questions import Question

SECONDS = 60.0
"""For one answer: a server that keeps a client waiting for longer is wrong."""
MOST_PROBLEMS = 10


class Clients:
    """Asks a server until told to stop. counts: what was done, by name. problems: what was wrong, in words."""

    def __init__(self, client: httpx.AsyncClient, model: str, questions: list[Question], seed: int):
        self.client, self.model, self.questions = client, model, questions
        self.rng = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.ways: dict[str, tuple[Callable[[], Awaitable[None]], int]] = {
            "whole answers": (self.whole, 4),
            "streams": (self.stream, 4),
            "stop strings": (self.stopped, 2),
            "sampled, with n": (self.sampled, 2),
            "left a stream": (self.leave_stream, 4),
            "left before the answer": (self.leave_whole, 3),
            "left in the body": (self.leave_body, 1),
            "refused": (self.refused, 2),
        }

    async def work(self, until: Callable[[], bool]) -> None:
        """One client that asks again and again, each time in another way."""
        weights = [weight for _, weight in self.ways.values()]
        while not until() and len(self.problems) < MOST_PROBLEMS:
            (name,) = self.rng.choices(list(self.ways), weights)
            try:
                async with asyncio.timeout(SECONDS):
                    await self.ways[name][0]()
            except TimeoutError:
                self.problem(f"{name}: no end within {SECONDS:g} s")
            except httpx.HTTPError as error:
                self.problem(f"{name}: {type(error).__name__}: {error}")
            self.counts[name] += 1

    def problem(self, text: str) -> None:
        """Note what was wrong."""
        self.problems.append(text)

    def pick(self, **more: object) -> tuple[Question, int, dict[str, object]]:
        """A question, how many tokens to ask for, and the body of the request."""
        question = self.rng.choice(self.questions)
        tokens = self.rng.randint(1, len(question.pieces))
        return question, tokens, question.body(self.model, tokens, **more)

    def compare(self, question: Question, got: str, want: str, how: str) -> None:
        """Note a text that is not what it was alone."""
        if got != want:
            self.problem(f"{how}: {question.prompt[:30]!r} gave {got!r}, alone {want!r}")

    async def whole(self) -> None:
        """An answer at once."""
        question, tokens, body = self.pick()
        reply = await self.client.post(question.path, json=body)
        if reply.status_code != 200:
            return self.problem(f"status {reply.status_code}: {reply.text[:200]}")
        self.compare(question, _text(reply.json()["choices"][0]), question.answer(tokens), "whole")

    async def stream(self) -> None:
        """An answer as a stream, with its usage."""
        question, tokens, body = self.pick(stream=True, stream_options={"include_usage": True})
        events = [event async for event in self.events(question.path, body)]
        if not events or events[-1] != "[DONE]":
            return self.problem(f"a stream ended without [DONE] after {len(events)} events")
        chunks = [json.loads(event) for event in events[:-1]]
        if errors := [chunk["error"] for chunk in chunks if "error" in chunk]:
            return self.problem(f"a stream held an error: {errors[0]}")
        text = "".join(_text(choice) for chunk in chunks for choice in chunk["choices"])
        self.compare(question, text, question.answer(tokens), "stream")
        if chunks[-1]["usage"]["completion_tokens"] != tokens:
            self.problem(f"a stream of {tokens} tokens counts {chunks[-1]['usage']}")

    async def stopped(self) -> None:
        """A stop string somewhere in the answer ends it there."""
        question, tokens, body = self.pick()
        answer = question.answer(tokens)
        begin = self.rng.randrange(len(answer))
        stop = answer[begin : begin + self.rng.randint(1, 6)]
        reply = await self.client.post(question.path, json=body | {"stop": [stop, "\u2603"]})
        self.compare(question, _text(reply.json()["choices"][0]), answer[: answer.find(stop)], f"stop {stop!r}")

    async def sampled(self) -> None:
        """Several choices of a prompt, drawn at random."""
        n = self.rng.randint(1, 3)
        question, tokens, body = self.pick(n=n, temperature=1, top_p=0.9, seed=self.rng.randrange(99))
        reply = (await self.client.post(question.path, json=body)).json()
        ends = [choice["finish_reason"] for choice in reply.get("choices", [])]
        if ends != ["length"] * n or reply["usage"]["completion_tokens"] != n * tokens:
            self.problem(f"{n} choices of {tokens} tokens gave {reply}")

    async def leave_stream(self) -> None:
        """Leaves after some events."""
        question, _, body = self.pick(stream=True)
        left = self.rng.randrange(8)
        async for _ in self.events(question.path, body | {"max_tokens": 200}):
            left -= 1
            if left < 0:
                break

    async def leave_whole(self) -> None:
        """Leaves after some time, perhaps before anything has begun."""
        question, _, body = self.pick()
        wait = self.rng.choice((0.0, 0.001, 0.01, self.rng.random() / 4))
        try:
            async with asyncio.timeout(wait):
                await self.client.post(question.path, json=body | {"max_tokens": 200, "n": self.rng.randint(1, 2)})
        except TimeoutError:
            pass

    async def leave_body(self) -> None:
        """Leaves before all of the request was sent."""
        url = self.client.base_url
        _, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(b'POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n{"model":')
        await writer.drain()
        await asyncio.sleep(self.rng.random() / 10)
        writer.close()

    async def refused(self) -> None:
        """What no server may accept."""
        question, _, body = self.pick()
        content, status = self.rng.choice(
            (
                (b"{", 400),
                (b"\xff\xfe", 400),
                (json.dumps(body | {"max_tokens": 0}), 400),
                (json.dumps(body | {"temperature": -1}), 400),
                (json.dumps(body | {"model": "none"}), 404),
                (
                    json.dumps(body | {"prompt": "a " * 9000, "messages": [{"role": "user", "content": "a " * 9000}]}),
                    400,
                ),
            )
        )
        reply = await self.client.post(question.path, content=content)
        if reply.status_code != status or "error" not in reply.json():
            self.problem(f"{content[:80]!r} gave {reply.status_code}, expected {status}")

    async def events(self, path: str, body: dict[str, object]):
        """The data of the events of a stream. Whoever stops listening leaves."""
        async with self.client.stream("POST", path, json=body) as reply:
            if reply.status_code != 200:
                await reply.aread()
                self.problem(f"status {reply.status_code}: {reply.text[:200]}")
            async for line in reply.aiter_lines():
                if line.startswith("data: "):
                    yield line.removeprefix("data: ")


def _text(choice: dict) -> str:
    part = choice.get("message") or choice.get("delta")
    return choice.get("text", "") if part is None else part.get("content") or ""
