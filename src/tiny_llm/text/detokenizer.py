# This file is yours to edit. Read book/src/week1-06-generation.md.
"""From tokens back to text, one token at a time.

A byte-level token may hold a part of a character, so text is handed out only where characters are whole.
"""

from tokenizers import Tokenizer

REPLACEMENT = "\ufffd"
"""What decoders write for bytes that are not, or not yet, a character."""


class Detokenizer:
    """Incremental decoding of one stream of tokens. Special tokens give no text."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self.tokens: list[int] = []
        self.start = 0
        """First token that is still decoded: earlier ones cannot change any more."""
        self.read = 0
        """Tokens before this one have been handed out."""

    def add(self, token: int) -> str:
        """Take one more token. Returns the new text that is complete, perhaps none.

        The text of `add` calls and of `finish`, joined, is the text of all tokens decoded at once. But they are not
        decoded at once each time: whatever the length of the stream, one call asks `tokenizer.decode` for fewer than
        50 tokens on average.
        """
        raise NotImplementedError("Week 1 Day 6 Task 2: Detokenizer.add - see book/src/week1-06-generation.md#task-2")

    def finish(self) -> str:
        """The text still held back, at the end of the stream: broken characters become U+FFFD. Then "" again."""
        raise NotImplementedError(
            "Week 1 Day 6 Task 2: Detokenizer.finish - see book/src/week1-06-generation.md#task-2"
        )
