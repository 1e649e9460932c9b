"""`python -m course COMMAND`: finds the command's module and runs it."""

import course.route  # noqa: F401 - before any command imports mlx.core
from course.cli import main

raise SystemExit(main())
