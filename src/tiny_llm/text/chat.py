# This file is yours to edit. Read book/src/week1-06-generation.md.
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
    raise NotImplementedError("Week 1 Day 6 Task 3: render_chat - see book/src/week1-06-generation.md#task-3")
