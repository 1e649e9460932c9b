"""Standard streams that the caller has closed: Python has None there, which many libraries do not expect."""

import os
import sys


def open_closed_streams() -> None:
    """Have each of the three that is closed lead nowhere, under its own number if that is still free."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - for as long as the program runs
