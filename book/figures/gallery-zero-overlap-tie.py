"""Cached KV blocks of four workers over four minutes of two simulated runs. Broken: the first worker is full at its 512
blocks after one minute, the second fills up later, the other two stay empty. Repaired: all four fill up side by side.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("zero-overlap-tie", theme)
