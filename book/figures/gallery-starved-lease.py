"""Workers that discovery lists, against time, in two runs with four workers and a long prompt every 20 seconds.
Broken: four for 24 seconds, then three, two, and one or two to the end. Repaired: four all the time.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("starved-lease", theme)
