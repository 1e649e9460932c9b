"""A model that is a hash: its next token depends on every token before it, as it reads them back from its memory.

Knows tokens, positions and pages; nothing of numbers. A wrong page, position, chunk or order changes the next token at
once, and all tokens after it. What it reads that it should not is also put into words.
"""

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol

import numpy as np

VOCAB = 1009
DUMMY = -1
"""The uid of the request that pads batches."""
MOST_FAULTS = 5


class Sampled(NamedTuple):
    """A chosen token, as the engine of the course hands it on."""

    token: int
    logprob: float | None = None
    top: Sequence[tuple[int, float]] = ()


class Entry(NamedTuple):
    """What one position leaves in memory: its token and place, and a hash of all tokens up to it, as keys do."""

    token: int
    position: int
    context: bytes
    uid: int


class Request(Protocol):
    """What the model needs to know of a request of the package under test."""

    uid: int
    ids: list[int]
    row: int | None


class Table(Protocol):
    """What the model needs to know of a page table."""

    entries: np.ndarray
    dummy_page: int


class Launched(NamedTuple):
    """A step as it was when it was launched: later changes on the host do not reach it."""

    request: Request
    row: int
    start: int
    end: int
    samples: bool
    tokens: list[int]
    """Those of its positions that the host knew; the others come from the token pool."""
    pages: list[int] | None
    history: list[int] | None
    """All ids the host knew, for a request with a repetition penalty."""


def _data(ids: Sequence[int]) -> bytes:
    return array("q", ids).tobytes()


def _token(data: bytes, vocab: int) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest()) % vocab


def next_token(ids: Sequence[int], vocab: int = VOCAB, history: Sequence[int] | None = None) -> int:
    """The token after `ids`. history: what the repetition penalty looks at, None without one."""
    data = _data(ids)
    return _token(data if history is None else data + b"penalty" + _data(history), vocab)


class HashRunner:
    """Runs batches of the package under test on the hash, one after another, when their results are asked.

    table: the page table of the package under test, None where each row is a memory of its own. page_size: positions of
    a page. faults: what it met that no engine may do, in words. between: called when a batch's results are asked,
    before it runs: where an abort may come.
    """

    def __init__(
        self,
        table: Table | None = None,
        page_size: int = 1,
        vocab: int = VOCAB,
        between: Callable[[], None] = lambda: None,
    ):
        self.table, self.page_size, self.vocab, self.between = table, page_size, vocab, between
        self.batches: list[list[tuple[int, int, int, bool]]] = []
        self.faults: list[str] = []
        self._memory: dict[tuple[object, int], Entry] = {}
        self._pool: dict[tuple[int, int], int] = {}
        self._queue: deque[tuple[list[Launched], list[Sampled]]] = deque()

    def launch(self, batch: object) -> "Pending":
        """Copy what the batch needs of the host. It runs later."""
        if not isinstance(batch.steps, tuple):
            self.fault(f"the steps of a batch are a {type(batch.steps).__name__}: a launched batch is a tuple of steps")
        steps = [self._copied(*step) for step in batch.steps]
        self.batches.append([(s.request.uid, s.start, s.end, s.samples) for s in steps])
        results: list[Sampled] = []
        self._queue.append((steps, results))
        return Pending(self, results)

    def run_until(self, results: list[Sampled]) -> None:
        """Run what was launched, in this order, up to the batch with these results."""
        while any(waiting is results for _, waiting in self._queue):
            steps, out = self._queue.popleft()
            for step in steps:  # all write before any reads, as a layer does
                self._write(step)
            out.extend(Sampled(token) for step in steps if (token := self._choose(step)) is not None)

    def _copied(self, request: Request, start: int, end: int, samples: bool) -> Launched:
        row = request.row
        if row is None:
            self.fault(f"request {request.uid} is in a batch without a row")
            row = -1 - request.uid
        pages = None if self.table is None else self._pages(request, row, end)
        penalty = request.sampling.repetition_penalty != 1.0
        history = list(request.ids) if penalty else None
        return Launched(request, row, start, end, samples, list(request.ids[start:end]), pages, history)

    def _pages(self, request: Request, row: int, end: int) -> list[int]:
        pages = self.table.entries[row, : -(-end // self.page_size)].tolist()
        if request.uid != DUMMY and self.table.dummy_page in pages:
            position = pages.index(self.table.dummy_page) * self.page_size
            self.fault(f"request {request.uid} runs to position {end - 1}, but its row has no page for {position}")
        return pages

    def _slot(self, step: Launched, position: int) -> tuple[object, int]:
        if step.pages is None:
            return ("row", step.row), position
        return step.pages[position // self.page_size], position % self.page_size

    def _write(self, step: Launched) -> None:
        if step.request.row != step.row:
            self.fault(
                f"request {step.request.uid} gave back its row {step.row} while a step of it was in flight: "
                "the device still writes there"
            )
        tokens = list(step.tokens)
        for position in range(step.start + len(tokens), step.end):
            tokens.append(self._pool.get((step.row, position), -1))
        before = [self._read(step, position) for position in range(step.start)]
        hashed = blake2b(_data([-1 if entry is None else entry.token for entry in before]), digest_size=8)
        for position, token in enumerate(tokens, step.start):
            hashed.update(_data([token]))
            entry = Entry(token, position, hashed.copy().digest(), step.request.uid)
            self._memory[self._slot(step, position)] = entry

    def _read(self, step: Launched, position: int) -> Entry | None:
        return self._memory.get(self._slot(step, position))

    def _choose(self, step: Launched) -> int | None:
        """The token after all that the step reads, kept in the token pool; None where it chooses none."""
        entries = [self._read(step, position) for position in range(step.end)]
        right = self._check(step, entries)
        if not step.samples:
            return None
        if right:
            token = next_token([entry.token for entry in entries], self.vocab, step.history)
        else:
            token = _token(repr([entry and entry[:3] for entry in entries]).encode(), self.vocab)
        self._pool[step.row, step.end] = token
        return token

    def _check(self, step: Launched, entries: list[Entry | None]) -> bool:
        hashed = blake2b(digest_size=8)
        for position, entry in enumerate(entries):
            if entry is not None:
                hashed.update(_data([entry.token]))
            if entry is None or entry.position != position or entry.context != hashed.copy().digest():
                self.fault(self._described(step, position, entry))
                return False
        return True

    def _described(self, step: Launched, position: int, entry: Entry | None) -> str:
        place = f"row {step.row}" if step.pages is None else f"page {step.pages[position // self.page_size]}"
        what = f"request {step.request.uid} reads position {position} from {place}"
        if entry is None:
            return f"{what}, where nothing was written: a position was skipped, or the page is another one"
        if entry.uid != step.request.uid and entry.position != position:
            return (
                f"{what}, which holds position {entry.position} of request {entry.uid}: "
                "two requests have one page, or it was freed too early"
            )
        if entry.uid != step.request.uid:
            return (
                f"{what}, which request {entry.uid} computed after other tokens: "
                "a prefix was found that is not the same, or two requests have one page"
            )
        if entry.position != position:
            return f"{what}, which holds position {entry.position}: the row's pages are in the wrong order"
        return f"{what}, which was computed after other tokens than those before it now"

    def fault(self, text: str) -> None:
        """Note what went wrong; the first few tell most."""
        if len(self.faults) < MOST_FAULTS and text not in self.faults:
            self.faults.append(text)


class Pending:
    """A launched batch."""

    def __init__(self, runner: HashRunner, results: list[Sampled]):
        self._runner, self._results = runner, results

    def results(self) -> list[Sampled]:
        """One token for each step that samples, in their order."""
        self._runner.between()
        self._runner.run_until(self._results)
        return list(self._results)
