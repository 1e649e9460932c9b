"""Names of signals, as they are told to learners."""

import signal


def signal_name(number: int) -> str:
    """`SIGKILL`; the number itself for one that has no name, as those of real time."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
