"""How long each of 30 transfers takes, by the second at which it begins, in two runs with a slow NIC from 2 to 4
seconds. Broken: 10 ms, then 101 ms while the NIC is slow, then 10 ms. Repaired: 10, 14, and 10 ms.
"""

from matplotlib.figure import Figure

from course.book.style import Theme
from course.sim.gallery.picture import of_book


def draw(theme: Theme) -> Figure:
    """The figure."""
    return of_book("slow-nic", theme)
