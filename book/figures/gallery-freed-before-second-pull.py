"""Pages read by the second of two ranks that held another prompt, against time, in two runs. Broken: 128 more at the
end of each of four slow spells of the network. Repaired: none.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("freed-before-second-pull", theme)
