"""Pages that were overwritten, against time, in two runs in which one client in five leaves early. Broken: a stair
that climbs to more than a thousand in 30 seconds. Repaired: none.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("late-write", theme)
