"""Thousands of prompt tokens against time in two simulated runs: those that were computed, and those in prompts that
have an answer. Broken: 780 thousand are computed in 105 seconds for 320 thousand in answered prompts, and the lines
drift apart. Repaired: both lines are one, and end at 320 thousand after 57 seconds.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("admission-thrash", theme)
