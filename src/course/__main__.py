"""`python -m course COMMAND`: finds the command's module and runs it."""

import course.route  # noqa: F401 - before any command imports mlx.core
from course.cli import main
from course.streams import open_closed_streams

open_closed_streams()
raise SystemExit(main())
