"""Milliseconds between two tokens of a chat against time in two simulated runs. Broken: four towers of 1,000 to 1,500
milliseconds, one for each long prompt, rising in steps. Repaired: four low hills of about 100 milliseconds.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("large-chunks", theme)
