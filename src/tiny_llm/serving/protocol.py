"""OpenAI's requests as types: what a client may send, and in which range. Null is the default of an optional field.

Other fields are ignored, save those that would change the answer: they are refused.

Where a field is not OpenAI's, it is named as in vLLM: top_k, min_p, repetition_penalty, stop_token_ids, ignore_eos,
chat_template_kwargs.
"""

import re
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from ..text.chat import Message
from .errors import ApiError

Name = Annotated[str, Meta(max_length=256)]
Count = Annotated[int, Meta(ge=1)]
Token = Annotated[int, Meta(ge=0)]
Seed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Stop = Annotated[str, Meta(min_length=1, max_length=256)]
Stops = Stop | Annotated[list[Stop], Meta(max_length=4)]

LEAST = 1e-6
"""Below it, a temperature is greedy, and top_p keeps the best token alone."""

REFUSED: dict[str, tuple[object, ...]] = {
    "best_of": (None, 1),
    "echo": (None, False),
    "suffix": (None, ""),
    "logit_bias": (None, {}),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "tools": (None, []),
    "functions": (None, []),
    "response_format": (None, {"type": "text"}),
}
"""Fields that would change the answer and are not built here, with the values that change nothing."""


class StreamOptions(Struct):
    """What a stream holds beside its text."""

    include_usage: bool | None = None


# ANCHOR: generation
class GenerationRequest(Struct, kw_only=True):
    """What both endpoints take."""

    model: Name
    max_tokens: Count | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=2**31 - 1)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Meta(ge=0.01, le=10)] | None = None
    seed: Seed | None = None
    n: Annotated[int, Meta(ge=1, le=16)] | None = None
    stop: Stops | None = None
    stop_token_ids: list[Token] | None = None
    ignore_eos: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    def __post_init__(self) -> None:
        """What float32 cannot tell from 0 would divide by it, or keep no token: it becomes what it is nearly."""
        if self.temperature is not None and self.temperature < LEAST:
            self.temperature = 0.0
        if self.top_p is not None:
            self.top_p = max(self.top_p, LEAST)

    @property
    def stops(self) -> list[str]:
        """Its stop strings."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with its usage."""
        return bool(self.stream_options and self.stream_options.include_usage)


# ANCHOR_END: generation


class CompletionRequest(GenerationRequest, kw_only=True):
    """POST /v1/completions. prompt: a text or its tokens, or a list of such."""

    prompt: str | Annotated[list[str | Token | list[Token]], Meta(min_length=1)]
    logprobs: Annotated[int, Meta(ge=0, le=5)] | None = None

    @property
    def prompts(self) -> list[str | list[int]]:
        """One or more prompts. Raises ApiError for a list of different kinds."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        kinds = {type(item) for item in self.prompt}
        if len(kinds) > 1:
            raise ApiError(400, "the list mixes texts, tokens and lists of tokens: use one kind", "prompt")
        return [self.prompt] if int in kinds else self.prompt


class TextPart(Struct, tag="text", tag_field="type"):
    """A part of a message. There are no other parts than text here."""

    text: str


class ChatMessage(Struct):
    """One turn."""

    role: str
    content: str | list[TextPart]


class TemplateOptions(Struct):
    """Of the chat template."""

    enable_thinking: bool = False


class ChatRequest(GenerationRequest, kw_only=True):
    """POST /v1/chat/completions."""

    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    max_completion_tokens: Count | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    chat_template_kwargs: TemplateOptions | None = None

    @property
    def turns(self) -> list[Message]:
        """The conversation, as the chat format takes it."""
        return [Message("system" if m.role == "developer" else m.role, _text(m.content)) for m in self.messages]


def _text(content: str | list[TextPart]) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)


R = TypeVar("R", bound=GenerationRequest)


def decode(body: bytes, kind: type[R]) -> R:
    """A request from JSON. Raises ApiError 400 that names the field and its limit."""
    try:
        request = msgspec.json.decode(body, type=kind)
        extra = msgspec.json.decode(body, type=dict[str, object])
    except RecursionError:
        raise ApiError(400, "the JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        found = re.search(r"`\$\.(\w+)", str(error))
        raise ApiError(400, f"this is no valid request: {error}", found and found[1]) from None
    for name, neutral in REFUSED.items():
        if name in extra and extra[name] not in neutral:
            raise ApiError(400, f"{name} {str(extra[name])[:50]!r} is not supported here: leave it out", name)
    return request
