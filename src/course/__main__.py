"""`python -m course COMMAND`: finds the command's module and runs it."""

from course.cli import main

raise SystemExit(main())
