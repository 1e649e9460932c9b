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
        return self._take(self.detokenizer.add(token), last=False)

    def finish(self) -> str:
        """The stream has ended: the text still held back, up to a stop string. Then "" again."""
        return self._take(self.detokenizer.finish(), last=True)

    def _take(self, text: str, last: bool) -> str:
        if self.stopped:
            return ""
        self.length += len(text)
        held = self.held + text
        if found := [(at + len(s), at) for s in self.stop if (at := held.find(s)) >= 0]:
            held, self.stopped = held[: min(found)[1]], True
        sure = len(held) if last or self.stopped else len(held) - self._possible_start(held)
        self.held = held[sure:]
        return held[:sure]

    def _possible_start(self, text: str) -> int:
        """Length of the longest end of `text` that is the beginning of a stop string."""
        return max((n for s in self.stop for n in range(1, len(s)) if text.endswith(s[:n])), default=0)
