"""Qwen's chat format: a conversation as one string that ends where the assistant is to speak.

Knows roles and markers; the tokenizer turns each marker into one special token.
"""

from collections.abc import Sequence
from dataclasses import dataclass

ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class Message:
    """One turn of a conversation. role: "system", "user" or "assistant"."""

    role: str
    content: str


def render_chat(messages: Sequence[Message], enable_thinking: bool = True) -> str:
    """Write a conversation in Qwen's chat format (ChatML), followed by the header of the reply.

    Each turn is `<|im_start|>ROLE\\nCONTENT<|im_end|>\\n`. Of an assistant's turn that holds `</think>` only what
    follows the last one is kept, without leading newlines. The reply starts with `<|im_start|>assistant\\n`; with
    enable_thinking False an empty block `<think>\\n\\n</think>\\n\\n` follows, so that the model answers at once.
    Raises ValueError for no messages, an unknown role, a system message that is not the first, or a last message
    that is not the user's.
    """
    if not messages or messages[-1].role != "user":
        raise ValueError("the last message must be the user's: there is nothing to reply to")
    turns = [_turn(message, first=i == 0) for i, message in enumerate(messages)]
    header = "<|im_start|>assistant\n" + ("" if enable_thinking else "<think>\n\n</think>\n\n")
    return "".join(turns) + header


def _turn(message: Message, first: bool) -> str:
    if message.role not in ROLES:
        raise ValueError(f"role {message.role!r} is unknown: use one of {', '.join(ROLES)}")
    if message.role == "system" and not first:
        raise ValueError("a system message must be the first message")
    content = message.content
    if message.role == "assistant" and "</think>" in content:
        content = content.rpartition("</think>")[2].lstrip("\n")
    return f"<|im_start|>{message.role}\n{content}<|im_end|>\n"
