"""A request of a trace: how many tokens it has, and which of its blocks equal those of others. No tokens.

Knows counts and hashes. A scheduler and a memory take it for any other `Request`.
"""

from collections.abc import Hashable, Sequence

from ..serving.request import Request

TOKEN = 0
"""Stands for any token."""
STOP = -1
"""The token that ends a request of a trace."""


class Counted:
    """Stands for a list of ids of which nobody asks more than how many they are."""

    def __init__(self, length: int):
        self.length = length

    def __len__(self) -> int:
        return self.length

    def append(self, token: int) -> None:
        """Count one more."""
        self.length += 1

    def extend(self, tokens: Sequence[int]) -> None:
        """Count as many more."""
        self.length += len(tokens)


class TraceRequest(Request):
    """A `Request` without tokens.

    max_tokens: what the client allows; how many there will be is not known here. hashes: what identifies each block of
    `block` positions of the prompt, given the blocks before it; the last block may be cut, and blocks without a hash
    are like no others. Raises ValueError as `Request` does.
    """

    def __init__(self, uid: int, prompt_len: int, max_tokens: int, hashes: Sequence[int] = (), block: int = 512):
        super().__init__(uid, Counted(prompt_len), max_tokens, stop_tokens=frozenset({STOP}))
        self.hashes = hashes
        self.block = block
        self._keys: dict[int, list[Hashable]] = {}

    def clone(self, max_tokens: int) -> "TraceRequest":
        """The same request from its beginning, for another engine. They share what they find out about blocks."""
        other = TraceRequest(self.uid, self.prompt_len, max_tokens, self.hashes, self.block)
        other._keys = self._keys
        return other

    def page_keys(self, page_size: int, tokens: int) -> list[Hashable]:
        """Keys of the whole pages of the first `tokens` positions, of any page size that divides the block.

        A page of the prompt has a number that its block and its place there give. A page that reaches into the answer
        is this request's own. Raises ValueError for a page size that does not divide the block.
        """
        keys = self._keys.get(page_size)
        if keys is None:
            keys = self._keys[page_size] = self.prompt_keys(page_size)
        count = tokens // page_size
        keys += [(self.uid, page) for page in range(len(keys), count)]
        return keys[:count]

    def prompt_keys(self, page_size: int) -> list[Hashable]:
        """Keys of the pages that a known block covers and that hold nothing but the prompt."""
        if self.block % page_size:
            raise ValueError(f"pages of {page_size} do not divide the trace's blocks of {self.block}")
        share = self.block // page_size
        keys = [first + page for first in (number * share for number in self.hashes) for page in range(share)]
        return keys[: self.prompt_len // page_size]
