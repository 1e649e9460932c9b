"""Workers that serve against time in two simulated runs with the same steady load. Broken: a staircase from two to
eight in three and a half minutes. Repaired: two all the time.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("cold-start-planner", theme)
