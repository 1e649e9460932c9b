"""Questions that a router has asked, against time, in two runs in which it joins after 5 seconds. Broken: a straight
line up to 150 at 20 seconds, though nothing has happened since 10. Repaired: one.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("recovery-loop", theme)
