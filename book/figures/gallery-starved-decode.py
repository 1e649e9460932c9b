"""Tokens of a chat against time in two simulated runs. Broken: the line climbs to 80 tokens in two seconds, is flat for
25 seconds, and climbs again to 400. Repaired: it climbs all the time, slowly while prompts come, and ends earlier.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("starved-decode", theme)
