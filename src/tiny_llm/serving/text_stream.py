# This file is yours to edit. Read book/src/week3-07-server.md.
"""Text that leaves as soon as it may: stop strings over a stream of tokens that somebody else drives.

Week 1's `stream_text` asks for tokens itself. A server gets them one by one, and must say at once what it can send.
"""

from collections.abc import Sequence

from tokenizers import Tokenizer

from ..text.detokenizer import Detokenizer


class TextStream:
    """The text of one stream of tokens, which ends before the first stop string.

    stop: non-empty strings; the text ends before the one that is complete first (the longest of those that end at the
    same place), and nothing of it is ever returned. Raises ValueError for an empty one.
    stopped: whether a stop string has been found. length: characters of all tokens so far, a stop string included.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()):
        if "" in stop:
            raise ValueError("a stop string is empty: it would stop before the first character")
        self.stop = tuple(stop)
        self.stopped = False
        self.length = 0
        self.detokenizer = Detokenizer(tokenizer)
        self.held = ""
        """Text that is known but may be the beginning of a stop string."""

    def add(self, token: int) -> str:
        """Take one more token. Returns all text that is sure by now, perhaps none; "" once `stopped`."""
        raise NotImplementedError("Week 3 Day 7 Task 1: TextStream.add - see book/src/week3-07-server.md#task-1")

    def finish(self) -> str:
        """The stream has ended: the text still held back, up to a stop string. Then "" again."""
        raise NotImplementedError("Week 3 Day 7 Task 1: TextStream.finish - see book/src/week3-07-server.md#task-1")
