"""Random scripts for a radix tree and for a prefix memory, made by Hypothesis, which is not imported where they run."""

from collections.abc import Callable

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from course.radix_books import PrefixBooks
from course.radix_case import Op

KEYS = (0, 1, -1, -2, "a", (1, 2))
"""Opaque keys. In CPython hash(-1) == hash(-2): only a comparison tells them apart."""


@st.composite
def tree_scripts(draw: st.DrawFn, most: int = 30) -> list[Op]:
    """Operations that are all allowed: what may be unlocked and evicted is looked up in books that run along."""
    books, script, paths, held = PrefixBooks(), [], {}, []
    sizes = st.lists(st.sampled_from(KEYS[: draw(st.integers(1, len(KEYS)))]), max_size=8)
    for at in range(draw(st.integers(1, most))):
        names = ["insert", "match", *["lock"] * bool(paths), *["unlock"] * bool(held), *["evict"] * bool(books.pages)]
        match draw(st.sampled_from(names)):
            case "insert":
                keys = draw(sizes)
                script.append(["insert", keys, [100 * at + n for n in range(len(keys))]])
                books.insert(keys, script[-1][2])
                paths[at] = tuple(keys)
            case "match":
                keys = draw(sizes)
                paths[at] = tuple(keys[: books.walk(keys)])
                script.append(["match", keys])
            case "lock":
                number = draw(st.sampled_from(sorted(paths)))
                held.append(number)
                books.locks.append(paths[number])
                script.append(["lock", number])
            case "unlock":
                number = held.pop(draw(st.integers(0, len(held) - 1)))
                books.locks.remove(paths[number])
                script.append(["unlock", number])
            case "evict":
                script.append(["evict", draw(st.integers(0, books.evictable))])
                books.evict(script[-1][1])
                # a node may be gone now, or have lost its end: nobody may use it who holds no lock on it
                paths = {i: path for i, path in paths.items() if i in held}
    return script


@st.composite
def memory_scripts(draw: st.DrawFn, page_size: int) -> dict[str, object]:
    """A script for `AnyScheduler`, with prompts that begin alike and a memory that is sometimes too small for them."""
    tokens = st.integers(0, 2)
    stem = draw(st.lists(tokens, min_size=1, max_size=3 * page_size))
    cut = st.integers(0, len(stem))
    tail = st.lists(tokens, min_size=1, max_size=page_size + 1)
    prompts = [stem[: draw(cut)] + draw(tail) for _ in range(draw(st.integers(1, 4)))]
    op = st.one_of(
        st.tuples(st.just("add"), st.integers(0, 3), st.integers(0, 19)),
        st.tuples(st.just("run"), st.sampled_from((15, 1, 2, 4, 8)), st.sampled_from((100, 1, 5))),
        st.tuples(st.just("read"), st.just(0), st.just(0)),
        st.tuples(st.sampled_from(("run", "read", "abort", "preempt")), st.integers(0, 3), st.integers(1, 20)),
    )
    longest = max(map(len, prompts)) + 20
    pages = -(-longest // page_size)
    return {
        "rows": draw(st.integers(1, 4)), "pages": draw(st.integers(pages, 3 * pages)), "page_size": page_size,
        "max_len": longest, "prompts": prompts, "stop": draw(st.lists(st.integers(0, 5), max_size=2)),
        "ops": [list(o) for o in draw(st.lists(op, min_size=20, max_size=60))],
    }  # fmt: skip


def for_some(
    scripts: st.SearchStrategy[dict[str, object]],
    number: int,
    examples: int,
    judge: Callable[[dict[str, object]], None],
) -> None:
    """Give `judge` that many random scripts. The first that fails is shown as it is: to shrink one takes minutes."""

    @seed(number)
    @settings(max_examples=examples, deadline=None, database=None, phases=(Phase.generate,))
    @given(scripts)
    def judged(script: dict[str, object]) -> None:
        judge(script)

    judged()
