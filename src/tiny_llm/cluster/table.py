# This file is yours to edit. Read book/src/week4-01-virtual-time.md.
"""A step's time from measured kernels: tables of microseconds, and straight lines between their entries.

Knows numbers; nothing of the files that they come from.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from .cost import Formula, Nanoseconds, StepShape

US = 1e3
"""Nanoseconds of a microsecond."""


class Line:
    """A function of one number by its values at some: straight between them, and beyond the last; constant before."""

    def __init__(self, points: Iterable[tuple[float, float]]):
        xs, ys = zip(*sorted(points), strict=True)
        if len(xs) > 1:  # one more point far away, on the line of the last two
            far = xs[-1] + 1000 * (xs[-1] - xs[-2])
            xs, ys = (*xs, far), (*ys, ys[-1] + 1000 * (ys[-1] - ys[-2]))
        self.xs = np.array(xs, float)
        self.ys = np.array(ys, float)

    def __call__(self, x: float | np.ndarray) -> Nanoseconds:
        return np.interp(x, self.xs, self.ys)


def blend(keys: Sequence[int], x: float) -> list[tuple[int, float]]:
    """The keys next to `x` with their weights: one, or two whose weights give 1. Constant before the first key.

    Beyond the last key the weights of the last two go on along their line.
    """
    raise NotImplementedError("Week 4 Day 1 Task 3: blend - see book/src/week4-01-virtual-time.md#task-3")


class Attention:
    """Microseconds of attention in one layer, by chunk, positions before it, decodes, and positions of each decode.

    Entries need not be a grid: at each value of one number those of the next may differ.
    """

    def __init__(self, entries: Mapping[tuple[int, int, int, int], float]):
        tree: dict[int, dict[int, dict[int, list[tuple[int, float]]]]] = {}
        for (chunk, before, decodes, context), time in sorted(entries.items()):
            row = tree.setdefault(chunk, {}).setdefault(before, {}).setdefault(decodes, [])
            row.append((context, time))
        self.tree = {
            chunk: {before: {n: Line(row) for n, row in by_n.items()} for before, by_n in by_before.items()}
            for chunk, by_before in tree.items()
        }
        self._lines: dict[tuple[float, float, int], list[tuple[Line, float]]] = {}

    def __call__(self, chunk: float, before: float, decodes: int, context: float | np.ndarray) -> Nanoseconds:
        """Microseconds; an array where `context`, the mean of all decodes, is one."""
        lines = self._lines.get((0, 0, decodes)) if not chunk else None
        if lines is None:
            lines = self.lines(chunk, before, decodes)
            if not chunk:
                self._lines[0, 0, decodes] = lines
        time = 0.0
        for line, weight in lines:
            time = time + weight * line(context)
        return time

    def lines(self, chunk: float, before: float, decodes: int) -> list[tuple[Line, float]]:
        """The lines to add, with their weights."""
        found = []
        for c, u in blend(list(self.tree), chunk):
            for b, v in blend(list(self.tree[c]), before):
                for n, w in blend(list(self.tree[c][b]), decodes):
                    found.append((self.tree[c][b][n], u * v * w))
        return found


class Table(Formula):
    """A `StepCost` of measured kernels.

    dense, sequence: microseconds of all layers' kernels, by the tokens and by the sequences of a batch.
    overhead: microseconds of each step that no kernel accounts for.
    """

    def __init__(self, dense: Line, sequence: Line, attention: Attention, layers: int, overhead: float = 0.0):
        self.dense = dense
        self.sequence = sequence
        self.attention = attention
        self.layers = layers
        self.overhead = overhead

    def time(self, shape: StepShape) -> Nanoseconds:
        """Nanoseconds. All chunks of prompts count as one with the same tokens, and the same context if that can be."""
        raise NotImplementedError("Week 4 Day 1 Task 3: Table.time - see book/src/week4-01-virtual-time.md#task-3")
