"""Requests at each of four workers over six seconds of two simulated runs with eight routers. Broken: one worker after
the other has a hill of 20 to 45 requests while others have none. Repaired: all four stay between none and about 20,
close together.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("herding", theme)
