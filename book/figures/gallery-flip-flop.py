"""Workers that serve against time in two simulated runs with the same steady load. Broken: one, two, one, two, one,
two, three, two, one, two, three. Repaired: one for 35 seconds, and then two.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("flip-flop", theme)
