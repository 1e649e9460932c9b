# This file is yours to edit. Read book/src/week3-07-server.md.
"""An OpenAI-compatible HTTP server on an engine: routes, and from what a client sends to requests in the engine."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from tokenizers import Tokenizer

from ..text.chat import render_chat
from ..text.sampler import SamplingParams
from .answer import Answer, json_response
from .async_engine import AsyncEngine, EngineError
from .errors import ApiError, api_error
from .generation import Choice
from .limits import Limits, check_prompt, read_body
from .metrics import Metrics, Timing
from .protocol import ChatRequest, CompletionRequest, GenerationRequest, decode
from .replies import ChatReply, CompletionReply, Reply
from .request import Request
from .text_stream import TextStream

_LONG = 10_000
"""Characters of a text that is encoded in a thread of its own."""


def sampling_of(asked: GenerationRequest, seed: int, number: int) -> SamplingParams:
    """How to choose the tokens of choice `number` of a prompt, as asked; what was left out is OpenAI's default.

    seed: the client's, or a random one. Each choice has a seed of its own, the first one `seed`; modulo 2**64.
    """
    raise NotImplementedError("Week 3 Day 7 Task 4: sampling_of - see book/src/week3-07-server.md#task-4")


@dataclass(frozen=True)
class Service:
    """What the routes share. model: its name. stop_tokens: those that end an answer."""

    engine: AsyncEngine
    tokenizer: Tokenizer
    model: str
    stop_tokens: frozenset[int]
    limits: Limits
    metrics: Metrics

    async def completions(self, http: HttpRequest) -> Response:
        """POST /v1/completions."""
        arrived = self.metrics.clock()
        asked = decode(await read_body(http, self.limits), CompletionRequest)
        prompts = [await self.encode(p) if isinstance(p, str) else p for p in asked.prompts]
        reply = CompletionReply(self.model, self.tokenizer, asked.logprobs is not None, asked.include_usage)
        return self.answer(asked, prompts, reply, arrived, asked.max_tokens or 16, asked.logprobs)

    async def chat(self, http: HttpRequest) -> Response:
        """POST /v1/chat/completions."""
        arrived = self.metrics.clock()
        asked = decode(await read_body(http, self.limits), ChatRequest)
        if asked.top_logprobs is not None and not asked.logprobs:
            raise ApiError(400, "top_logprobs needs logprobs to be true", "top_logprobs")
        options = asked.chat_template_kwargs
        try:
            text = render_chat(asked.turns, enable_thinking=bool(options and options.enable_thinking))
        except ValueError as error:
            raise ApiError(400, str(error), "messages") from None
        reply = ChatReply(self.model, self.tokenizer, bool(asked.logprobs), asked.include_usage)
        logprobs = (asked.top_logprobs or 0) if asked.logprobs else None
        max_tokens = asked.max_completion_tokens or asked.max_tokens or self.engine.max_len
        return self.answer(asked, [await self.encode(text)], reply, arrived, max_tokens, logprobs)

    async def encode(self, text: str) -> list[int]:
        """Tokens of `text` as it is. A megabyte takes a second: all streams would stand still for so long."""
        if len(text) < _LONG:
            return self.tokenizer.encode(text, add_special_tokens=False).ids
        encode = self.tokenizer.encode_batch  # unlike `encode`, it lets other threads run
        (encoding,) = await asyncio.to_thread(encode, [text], add_special_tokens=False)
        return encoding.ids

    def answer(
        self,
        asked: GenerationRequest,
        prompts: Sequence[list[int]],
        reply: Reply,
        arrived: float,
        max_tokens: int,
        logprobs: int | None,
    ) -> Answer:
        """n choices for each prompt. Raises ApiError: 404 for another model, 400 for prompts that cannot be served."""
        if asked.model != self.model:
            raise ApiError(404, f"no model {asked.model!r}: this server has {self.model!r}", "model", "model_not_found")
        n = asked.n or 1
        if n * len(prompts) > self.engine.limit:
            raise ApiError(400, f"{n * len(prompts)} choices: this server runs at most {self.engine.limit}", "n")
        for ids in prompts:
            check_prompt(ids, self.engine.max_len, self.tokenizer.get_vocab_size())
        seed = secrets.randbits(63) if asked.seed is None else asked.seed
        stop = frozenset(asked.stop_token_ids or ()) | (frozenset() if asked.ignore_eos else self.stop_tokens)
        requests, choices = [], {}
        for index in range(n * len(prompts)):
            sampling, ids = sampling_of(asked, seed, index % n), list(prompts[index // n])
            request = Request(next(self.engine.uids), ids, max_tokens, sampling, stop, logprobs)
            requests.append(request)
            text = TextStream(self.tokenizer, asked.stops)
            choices[request.uid] = Choice(index, text, Timing(self.metrics, arrived))
        return Answer(
            engine=self.engine,
            metrics=self.metrics,
            requests=requests,
            choices=choices,
            reply=reply,
            prompt_tokens=sum(map(len, prompts)),
            stream=bool(asked.stream),
            seconds=self.limits.seconds,
        )

    async def models(self, http: HttpRequest) -> Response:
        """GET /v1/models."""
        model = {"id": self.model, "object": "model", "owned_by": "tiny-llm", "max_model_len": self.engine.max_len}
        return json_response({"object": "list", "data": [model]})

    async def health(self, http: HttpRequest) -> Response:
        """GET /health: 200 while requests are accepted, else 503 and why not."""
        if self.engine.error:
            return json_response({"status": "dead", "error": str(self.engine.error)}, 503)
        if self.engine.draining:
            return json_response({"status": "draining"}, 503)
        return json_response({"status": "ok"})

    async def scrape(self, http: HttpRequest) -> Response:
        """GET /metrics."""
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

    async def failed(self, http: HttpRequest, error: Exception) -> Response:
        """OpenAI's error object instead of an answer."""
        if isinstance(error, HTTPException):
            error = ApiError(error.status_code, f"{http.method} {http.url.path}: {error.detail}")
        told = api_error(error)
        self.metrics.rejected.labels(str(told.status)).inc()
        return json_response(told.body(), told.status)


async def nobody(http: HttpRequest, error: Exception) -> Response:
    """For a client that left while it sent its request: it reads no answer."""
    return Response(status_code=400)


def create_app(
    engine: AsyncEngine,
    tokenizer: Tokenizer,
    model: str,
    stop_tokens: frozenset[int] = frozenset(),
    limits: Limits | None = None,
    routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """The application. `engine` starts and stops with it. routes: of others, such as a page."""
    metrics = Metrics(lambda: engine.stats)
    service = Service(engine, tokenizer, model, stop_tokens, limits or Limits(), metrics)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        await engine.start()
        try:
            yield
        finally:
            await engine.stop()

    own = [
        Route("/v1/completions", service.completions, methods=["POST"]),
        Route("/v1/chat/completions", service.chat, methods=["POST"]),
        Route("/v1/models", service.models),
        Route("/health", service.health),
        Route("/metrics", service.scrape),
    ]
    errors = [ApiError, EngineError, TimeoutError, HTTPException, Exception]
    handlers = {**dict.fromkeys(errors, service.failed), ClientDisconnect: nobody}
    return Starlette(routes=[*own, *routes], exception_handlers=handlers, lifespan=life)
