"""Two bar charts of the requests that eight workers got, the busiest first. Broken: four workers got 118, 101, 99 and
82, the others none. Repaired: all eight got 44 to 57.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("hot-prefix", theme)
