"""`python -m course COMMAND`: finds the command's module and runs it. Ctrl-C before that is one line, too."""

import sys

try:
    import course.route  # noqa: F401 - before any command imports mlx.core
    from course.cli import main
    from course.streams import open_closed_streams

    open_closed_streams()
    status = main()
except KeyboardInterrupt:
    print("stopped by Ctrl-C", file=sys.stderr)
    status = 130
raise SystemExit(status)
