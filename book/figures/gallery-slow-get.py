"""Gets with wrong bytes and gets whose lease ran out, against time, in two runs with a slow network from 15 to 45
seconds. Broken: wrong bytes climb from 31 seconds on to 36, and no lease is checked. Repaired: no wrong bytes, and 47
gets fail.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("slow-get", theme)
