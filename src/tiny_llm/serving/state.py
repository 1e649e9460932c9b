"""What an engine tells about itself: a few numbers after each step, and a full picture when somebody asks.

All plain values, made in the engine's thread, so that another thread can read them while the engine goes on.
"""

from typing import NamedTuple

from .engine import Engine
from .request import Request

PlainState = dict[str, object]
DEEPEST = 100
"""Levels of the prefix tree in a picture."""


class Stats(NamedTuple):
    """Counts. pages: of the memory. used_pages: those that could not be handed out now.

    hit_tokens of asked_tokens: tokens that a prefix cache had, of all prompts that were begun.
    """

    running: int = 0
    waiting: int = 0
    used_pages: int = 0
    pages: int = 0
    hit_tokens: int = 0
    asked_tokens: int = 0


def stats_of(engine: Engine, pages: int) -> Stats:
    """The numbers now. pages: those that were available before the first request."""
    scheduler, memory = engine.scheduler, engine.scheduler.memory
    return Stats(
        running=len(scheduler.running),
        waiting=len(scheduler.requests) - len(scheduler.running),
        used_pages=pages - memory.available,
        pages=pages,
        hit_tokens=scheduler.hit_tokens,
        asked_tokens=scheduler.asked_tokens,
    )


def state_of(engine: Engine) -> PlainState:
    """Requests, page map and prefix tree, for a picture of the engine. A memory without pages or tree has None there.

    requests: in the order of their arrival. pages: the page numbers of each row that is in use, by uid. tree: nested
    nodes, {"pages", "tokens" (of the first page key), "locked", "children"}.
    """
    scheduler, memory = engine.scheduler, engine.scheduler.memory
    requests = list(scheduler.requests.values())
    table, tree = getattr(memory, "table", None), getattr(memory, "tree", None)
    admitted = [request for request in requests if request.row is not None]
    return {
        "running": [_request(request) for request in scheduler.running.values()],
        "waiting": [_request(request) for request in requests if request.uid not in scheduler.running],
        "page_size": memory.page_size,
        "available": memory.available,
        "pages": table and {request.uid: table.pages(request.row) for request in admitted},
        "tree": tree and _tree(tree.root),
    }


def _request(request: Request) -> PlainState:
    names = ("uid", "row", "prompt_len", "cached_len", "device_len", "max_device_len", "in_flight")
    return {name: getattr(request, name) for name in names}


def _tree(root: object) -> PlainState:
    """The radix tree. Below DEEPEST levels, all nodes stand side by side: JSON can be read no deeper everywhere."""
    top = _node(root)
    waiting = [(child, top["children"], 1) for child in reversed(root.children.values())]
    while waiting:
        node, place, depth = waiting.pop()
        plain = _node(node)
        place.append(plain)
        below = place if depth == DEEPEST else plain["children"]
        waiting += [(child, below, min(depth + 1, DEEPEST)) for child in reversed(node.children.values())]
    return top


def _node(node: object) -> PlainState:
    """One node alone."""
    return {
        "pages": list(node.pages),
        "tokens": list(node.keys[0]) if node.keys and isinstance(node.keys[0], tuple) else [],
        "locked": node.ref_count,
        "children": [],
    }
