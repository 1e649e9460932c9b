"""Scripts for a page allocator, a page table and a paged memory, and the plain books to hold their traces against.

Knows the public names of the package under test; the books are sets, lists and counts.
"""

from collections.abc import Callable, Sequence

import numpy as np

from course.case import error_of
from course.compare import close
from course.solution import Solution
from course.suspects import named

Op = list
"""[name, argument, ...]"""


def for_all(scripts: object, number: int, examples: int, judge: Callable[[list], None]) -> None:
    """Give `judge` that many random scripts, and a smaller one that fails, too, where one fails.

    scripts: a strategy of Hypothesis, which is imported only where scripts are made, not where they run.
    """
    from hypothesis import HealthCheck, Phase, given, seed, settings

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),  # an explanation would name lines of this file
        suppress_health_check=[HealthCheck.too_slow],  # a busy machine is no fault of the strategy
    )
    @given(scripts)
    def judged(script: list) -> None:
        judge(script)

    judged()


def fail_unless(right: bool, text: str) -> None:
    """Raise AssertionError with `text` where something is not right."""
    if not right:
        raise AssertionError(text)


# Allocator: ["allocate", n], and ["free", i, ...], which are indices into all pages that were ever handed out.


def run_allocator(solution: Solution, pages: int, script: Sequence[Op]) -> list[dict[str, object]]:
    """What each operation did: {"pages" it was about, "error", "available" after it}."""
    allocator = solution.module("cache.paged").PageAllocator(pages)
    history: list[int] = []
    trace = []
    for name, *arguments in script:
        if name == "allocate":
            result = error_of(lambda n=arguments[0]: [int(page) for page in allocator.allocate(n)])
            about = result.get("value") or []
            history += about
        else:
            about = [history[i % len(history)] if history else i for i in arguments]
            result = error_of(lambda about=about: allocator.free(about))
        trace.append({"pages": about, "error": result["type"], "available": allocator.available})
    return trace


def judge_allocator(pages: int, script: Sequence[Op], trace: list[dict[str, object]]) -> None:
    """Raise AssertionError where the trace is not that of an allocator whose books are a set."""
    taken: set[int] = set()
    for at, ((name, *arguments), did) in enumerate(zip(script, trace, strict=True), 1):
        about = did["pages"]
        call = f"operation {at}, {name}({arguments[0] if name == 'allocate' else about})"
        if name == "allocate":
            _judge_allocate(call, pages, taken, arguments[0], did)
            taken |= set(about)
        else:
            _judge_free(call, taken, about, did["error"])
            taken -= set(about) if did["error"] is None else set()
        left = pages - len(taken)
        fail_unless(did["available"] == left, f"{call}: {did['available']} pages are available, expected {left}")


def _judge_allocate(call: str, pages: int, taken: set[int], n: int, did: dict[str, object]) -> None:
    free = pages - len(taken)
    if not 0 <= n <= free:
        fail_unless(did["error"] == "ValueError", f"{call} with {free} free pages: expected a ValueError")
        return
    fail_unless(did["error"] is None, f"{call} with {free} free pages was refused: {did['error']}")
    about = did["pages"]
    fail_unless(len(about) == n, f"{call} returned {len(about)} pages")
    fail_unless(pages not in about, f"{call} gave out page {pages}, the dummy page: pages are 0 .. {pages - 1}")
    fail_unless(all(0 <= page < pages for page in about), f"{call} returned {about}: pages are 0 .. {pages - 1}")
    fail_unless(len(set(about)) == n, f"{call} returned a page twice: {about}")
    both = sorted(taken & set(about))
    fail_unless(not both, f"{call} gave out pages {both} that somebody has: two requests would write there")


def _judge_free(call: str, taken: set[int], about: list[int], error: str | None) -> None:
    strangers = [page for page in about if page not in taken]
    if strangers:
        fail_unless(error == "ValueError", f"{call}: page {strangers[0]} is free already, so this needs a ValueError")
    elif len(set(about)) < len(about):
        fail_unless(error == "ValueError", f"{call}: a page is named twice, so this needs a ValueError")
    else:
        fail_unless(error is None, f"{call} was refused with {error}: all these pages are allocated")


# Table: ["append", row, pages], ["replace", row, start, pages], ["clear", row], ["slots", row, start, end].


def run_table(solution: Solution, sizes: dict[str, int], script: Sequence[Op]) -> list[dict[str, object]]:
    """What each operation gave: {"error", "value", and "entries" and "counts" after it}."""
    table = solution.module("cache.paged").PageTable(**sizes)
    trace = []
    for name, *arguments in script:
        result = error_of(lambda name=name, arguments=arguments: _plain(getattr(table, name)(*arguments)))
        books = {"entries": np.array(table.entries), "counts": [int(count) for count in table.counts]}
        trace.append(books | {"error": result["type"], "value": result.get("value")})
    return trace


def _plain(value: object) -> object:
    return None if value is None else [int(x) for x in value]


class TableBooks:
    """A page table of lists. Refuses with ValueError what a table refuses."""

    def __init__(self, rows: int, max_len: int, page_size: int, dummy_page: int):
        self.page_size, self.dummy_page, self.columns = page_size, dummy_page, -(-max_len // page_size)
        self.rows: list[list[int]] = [[] for _ in range(rows)] + [[dummy_page] * self.columns]

    def append(self, row: int, pages: list[int]) -> None:
        if len(self.rows[row]) + len(pages) > self.columns:
            raise ValueError
        self.rows[row] += pages

    def replace(self, row: int, start: int, pages: list[int]) -> None:
        if start < 0 or start + len(pages) > len(self.rows[row]):
            raise ValueError
        self.rows[row][start : start + len(pages)] = pages

    def clear(self, row: int) -> list[int]:
        pages, self.rows[row] = self.rows[row], []
        return pages

    def slots(self, row: int, start: int, end: int) -> list[int]:
        pages, s = self.rows[row], self.page_size
        if not 0 <= start <= end <= len(pages) * s:
            raise ValueError
        return [pages[p // s] * s + p % s for p in range(start, end)]

    def entries(self) -> np.ndarray:
        """What stands in the table."""
        padded = [pages + [self.dummy_page] * (self.columns - len(pages)) for pages in self.rows]
        return np.array(padded, np.int32)


def judge_table(sizes: dict[str, int], script: Sequence[Op], trace: list[dict[str, object]]) -> None:
    """Raise AssertionError where the trace is not that of a table whose books are lists of pages."""
    books = TableBooks(**sizes)
    for at, ((name, row, *arguments), did) in enumerate(zip(script, trace, strict=True), 1):
        call = (
            f"operation {at}, {name}({', '.join(map(str, (row, *arguments)))}), on a row with pages {books.rows[row]}"
        )
        want = error_of(lambda name=name, arguments=(row, *arguments): getattr(books, name)(*arguments))
        if want["type"]:
            fail_unless(did["error"] == "ValueError", f"{call}: expected a ValueError, got {did['error'] or 'none'}")
        else:
            fail_unless(did["error"] is None, f"{call} was refused with {did['error']}")
            value = want["value"]
            fail_unless(did["value"] == value, f"{call} returned {did['value']}, expected {value}")
        counts = [len(pages) for pages in books.rows]
        fail_unless(did["counts"] == counts, f"after {call} the counts are {did['counts']}, expected {counts}")
        close(did["entries"], books.entries(), what=f"the entries after {call}")


# Memory: ["open", uid], ["grow", uid, length], ["close", uid].


def run_memory(solution: Solution, sizes: dict[str, int], script: Sequence[Op]) -> list[dict[str, object]]:
    """What each operation left behind: {"error", "available", "free_rows", "pages" of each request with a row}."""
    memory = solution.module("serving.paged_memory").PagedMemory(**sizes)
    Request = solution.module("serving.request").Request
    requests: dict[int, object] = {}
    trace = []
    for name, uid, *arguments in script:
        request = requests.setdefault(uid, Request(uid, [0], 1))
        if name == "open":
            arguments = [memory.match(request)]
        result = error_of(lambda name=name, to=(request, *arguments): getattr(memory, name)(*to))
        rows = {str(uid): memory.table.pages(r.row) for uid, r in requests.items() if r.row is not None}
        state = {"available": int(memory.available), "free_rows": int(memory.free_rows), "pages": rows}
        trace.append(state | {"error": result["type"]})
    return trace


def judge_memory(sizes: dict[str, int], script: Sequence[Op], trace: list[dict[str, object]]) -> None:
    """Raise AssertionError where the trace is not that of a memory whose books are counts of pages."""
    s, limit = sizes["page_size"], min(sizes["max_len"], sizes["pages"] * sizes["page_size"])
    held: dict[str, list[int]] = {}
    for at, ((name, uid, *arguments), did) in enumerate(zip(script, trace, strict=True), 1):
        key, free = str(uid), sizes["pages"] - sum(map(len, held.values()))
        call = f"operation {at}, {name}(request {uid}{''.join(f', {x}' for x in arguments)})"
        length = arguments[0] if arguments else 0
        need = max(-(-length // s), len(held.get(key, [])))
        if name == "open":
            want = "ValueError" if key in held or len(held) == sizes["rows"] else None
        elif key not in held or length > limit:
            want = "ValueError"
        else:
            want = "OutOfPagesError" if need - len(held[key]) > free else None
        text = f"{call} gave {did['error'] or 'no error'}, expected {want or 'none'}: {free} pages are free"
        fail_unless(did["error"] == want, text)
        if want is None and name == "close":
            held = {other: pages for other, pages in held.items() if other != key}
        elif want is None:
            now = did["pages"].get(key, [])
            held = held | {key: _grown(call, held[key], now, need, length, s) if name == "grow" else []}
        why = "changed something, though it was refused" if want else "left wrong books"
        _judge_books(call, sizes, held, did, why)


def _grown(call: str, old: list[int], new: list[int], need: int, length: int, s: int) -> list[int]:
    """The row after a grow, if it is right."""
    if len(new) != need:
        mistakes = {
            "a page that is partly used counts as a whole one: round up": length // s,
            "a page that is just full is no reason to take another": length // s + 1,
            "positions were counted as pages": length,
            "the pages that the row has already were not counted": len(old) + -(-length // s),
        }
        likely = named(text for text, count in mistakes.items() if count == len(new))
        raise AssertionError(
            f"{call}: the row has {len(new)} pages of {s} positions for {length}, expected {need}\n{likely}"
        )
    fail_unless(new[: len(old)] == old, f"{call}: the row had pages {old}, now {new}: those it has must stay")
    return new


def _judge_books(
    call: str, sizes: dict[str, int], held: dict[str, list[int]], did: dict[str, object], why: str
) -> None:
    pages = [page for row in held.values() for page in row]
    fail_unless(len(set(pages)) == len(pages), f"{call}: a page stands in two rows: {held}")
    strangers = [page for page in pages if not 0 <= page < sizes["pages"]]
    fail_unless(not strangers, f"{call}: page {strangers[:1]} was given out, pages are 0 .. {sizes['pages'] - 1}")
    fail_unless(did["pages"] == held, f"{call} {why}: the rows are {did['pages']}, expected {held}")
    left = sizes["pages"] - len(pages)
    if did["available"] != left:
        leak = f"{left - did['available']} pages leak" if did["available"] < left else "some were given back twice"
        raise AssertionError(f"{call} {why}: {did['available']} pages are free, expected {left}: {leak}")
    rows = sizes["rows"] - len(held)
    fail_unless(did["free_rows"] == rows, f"{call} {why}: {did['free_rows']} rows are free, expected {rows}")
