"""KV blocks that a prefill worker holds over 160 seconds of two simulated runs, in which a decode worker falls silent
three times. Broken: the held blocks rise from none to 600, to 1,300, and to 1,493 of 1,500, and never fall. Repaired:
three low hills of about 200, and none afterwards.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("abort-between-hops", theme)
