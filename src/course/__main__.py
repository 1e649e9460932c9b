"""`python -m course COMMAND`: finds the command's module and runs it."""

from course import blas
from course.cli import main

blas.activate()  # before any command imports mlx.core

raise SystemExit(main())
