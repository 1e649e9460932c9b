"""A command that ends, with all that it starts, when whoever started it ends, by whatever signal.

Start it with `start_new_session=True` and `stdin=subprocess.PIPE`: nobody writes there, and its closing is the sign."""

from collections.abc import Sequence

_SCRIPT = 'exec 3<&0; { read -r line <&3; kill -s KILL 0; } & exec "$@" </dev/null 3<&-'


def tied(command: Sequence[str]) -> list[str]:
    """The command to start instead; it keeps its process id and exit status, and has nothing to read."""
    return ["/bin/sh", "-c", _SCRIPT, "sh", *command]
