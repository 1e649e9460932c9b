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
        self.tokens.append(token)
        text = self._pending()
        if not text or text.endswith(REPLACEMENT):
            return ""
        self.start, self.read = self.read, len(self.tokens)
        return text

    def finish(self) -> str:
        """The text still held back, at the end of the stream: broken characters become U+FFFD. Then "" again."""
        text = self._pending()
        self.start, self.read = self.read, len(self.tokens)
        return text

    def _pending(self) -> str:
        """Text after what was handed out. Decoding starts earlier, as some decoders treat a first token differently."""
        known = self._decode(self.tokens[self.start : self.read])
        return self._decode(self.tokens[self.start :])[len(known) :]

    def _decode(self, tokens: list[int]) -> str:
        return self.tokenizer.decode(tokens, skip_special_tokens=True)
