"""Chat markup in Qwen's format, as pieces of text with a loss weight each.

This module renders what `chat_template.jinja` renders, in plain Python, so that the corpus needs no template engine.
A piece ends only where the tokenizer always splits, so pieces can be tokenized one by one.
"""

import json
from dataclasses import dataclass

ANSWER, TEXT, PROMPT = 1.0, 0.3, 0.1  # loss weights: what the assistant says, plain text, everything else
EMPTY_THINK = "<think>\n\n</think>\n\n"
Tool = dict[str, object]


@dataclass(frozen=True)
class Piece:
    """A stretch of a document and the weight of its tokens in the training loss."""

    text: str
    weight: float


@dataclass(frozen=True)
class Turn:
    """One chat turn; `think` is the reasoning that an assistant turn may show before its content."""

    role: str
    content: str
    think: str = ""


def tools_text(tools: list[Tool]) -> str:
    """The part of the system turn that lists the functions, one JSON object a line."""
    lines = "\n".join(json.dumps({"type": "function", "function": tool}) for tool in tools)
    return (
        f"You may call these functions:\n<tools>\n{lines}\n</tools>\n\nTo call one, answer with:\n"
        '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )


def system_text(system: str, tools: list[Tool]) -> str:
    """Content of the system turn, empty where there is neither a system message nor a tool."""
    return "\n\n".join(part for part in (system, tools_text(tools) if tools else "") if part)


def call_text(name: str, arguments: dict[str, object]) -> str:
    """The assistant content that calls a function."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def response_text(result: dict[str, object]) -> str:
    """The user content that carries a function's result."""
    return f"<tool_response>\n{json.dumps(result)}\n</tool_response>"


def prompt_text(turns: list[Turn], system: str = "", tools: list[Tool] | None = None, *, thinking: bool = False) -> str:
    """The prompt that the template makes of `turns`, up to where the assistant speaks next.

    `thinking=False` ends in an assistant header with an empty think block, `thinking=True` in the plain header.
    """
    head = system_text(system, tools or [])
    text = f"<|im_start|>system\n{head}<|im_end|>\n" if head else ""
    for turn in turns:
        text += f"<|im_start|>{turn.role}\n{turn.content}<|im_end|>\n"
    return text + "<|im_start|>assistant\n" + ("" if thinking else EMPTY_THINK)


def chat_pieces(turns: list[Turn], style: str, system: str = "", tools: list[Tool] | None = None) -> list[Piece]:
    """Render a whole chat for training.

    `style` says which assistant headers it has:
    - "off": every assistant turn has the empty think block;
    - "last": only the last one has it, as the template leaves a chat with `enable_thinking=False`;
    - "raw": plain headers, and each turn shows its thoughts where it has any;
    - "plain": plain headers, thoughts only in the last turn, as the template leaves a chat.
    An answer whose thoughts were stripped is context only: the model must not learn to skip them.
    """
    head = system_text(system, tools or [])
    context = f"<|im_start|>system\n{head}<|im_end|>\n" if head else ""
    pieces: list[Piece] = []
    for i, turn in enumerate(turns):
        if turn.role != "assistant":
            context += f"<|im_start|>{turn.role}\n{turn.content}<|im_end|>\n"
            continue
        last = i == len(turns) - 1
        blank = style == "off" or (style == "last" and last)
        thoughts = turn.think if style == "raw" or (style == "plain" and last) else ""
        pieces.append(Piece(context + "<|im_start|>assistant\n" + (EMPTY_THINK if blank else ""), PROMPT))
        said = (f"<think>\n{thoughts}\n</think>\n\n" if thoughts else "") + turn.content + "<|im_end|>"
        learn = blank or bool(thoughts) or not turn.think
        pieces.append(Piece(said, ANSWER if learn else 0.0))
        context = "\n"
    return pieces
