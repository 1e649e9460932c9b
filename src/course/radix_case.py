"""What cases about the radix tree share: scripts, and what a tree did with them as plain values.

Knows the public names of the tree under test; judges nothing.
"""

from collections.abc import Hashable, Sequence
from typing import Protocol

from course.case import error_of
from course.solution import Solution

Op = list
"""["insert", keys, pages], ["match", keys], ["lock" or "unlock", number of the operation that gave the node],
["evict", pages]."""
MOST_NODES = 100_000


class Node(Protocol):
    """A node of the package under test."""

    keys: list[Hashable]
    pages: list[int]
    parent: "Node | None"
    children: dict[Hashable, "Node"]
    ref_count: int
    time: int


def path_of(node: Node) -> list[Hashable]:
    """All keys from the root to the end of a node."""
    parts = []
    while node is not None and len(parts) < MOST_NODES:
        parts.append(node.keys)
        node = node.parent
    return [key for part in reversed(parts) for key in part]


def snapshot(tree: object) -> dict[str, object]:
    """The tree as plain values: {"evictable", "protected", "nodes", "broken"}.

    nodes: for each but the root {"path" to its end, "keys", "pages", "locks", "time", "leaf"}. broken: what no tree may
    be, in words, or None.
    """
    nodes, broken = [], None
    stack: list[tuple[Node, list[Hashable]]] = [(tree.root, [])]
    while stack and len(nodes) < MOST_NODES:
        parent, before = stack.pop()
        for first, node in parent.children.items():
            broken = broken or _broken(parent, first, node)
            path = before + list(node.keys)
            nodes.append({
                "path": path, "keys": list(node.keys), "pages": [int(page) for page in node.pages],
                "locks": int(node.ref_count), "time": int(node.time), "leaf": not node.children,
            })  # fmt: skip
            stack.append((node, path))
    return {"evictable": int(tree.evictable), "protected": int(tree.protected), "nodes": nodes, "broken": broken}


def _broken(parent: Node, first: Hashable, node: Node) -> str | None:
    if not node.keys or len(node.keys) != len(node.pages):
        return f"a node has {len(node.keys)} keys and {len(node.pages)} pages"
    if node.keys[0] != first:
        return f"a child that begins with {node.keys[0]!r} is filed under {first!r}"
    if node.parent is not parent:
        return f"the node {list(node.keys)} hangs below one node and names another as its parent"
    return None


def run_tree(solution: Solution, script: Sequence[Op]) -> list[dict[str, object]]:
    """What each operation gave: {"error", "value", "path" of the node it gave, and the tree after it}."""
    tree = solution.module("cache.radix").RadixTree()
    nodes: dict[int, Node] = {}
    trace = []
    for at, op in enumerate(script):
        result = error_of(lambda at=at, op=op: _apply(tree, nodes, at, op))
        path = path_of(nodes[at]) if at in nodes else None
        trace.append({"error": result["type"], "value": result.get("value"), "path": path} | snapshot(tree))
    return trace


def _apply(tree: object, nodes: dict[int, Node], at: int, op: Op) -> object:
    match op:
        case ["insert", keys, pages]:
            already, nodes[at] = tree.insert(list(keys), list(pages))
            return int(already)
        case ["match", keys]:
            pages, nodes[at] = tree.match(list(keys))
            return [int(page) for page in pages]
        case ["lock" | "unlock" as name, number]:
            return getattr(tree, name)(nodes[number])
        case ["evict", pages]:
            return [int(page) for page in tree.evict(pages)]
