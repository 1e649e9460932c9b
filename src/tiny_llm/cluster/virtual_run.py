"""`asyncio.run` in virtual time."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from .kernel import Simulation
from .virtual_loop import VirtualLoop

T = TypeVar("T")


def run(main: Coroutine[object, object, T], simulation: Simulation | None = None) -> T:
    """Run `main` in a process of its own, then cancel what it left behind. Returns its result."""
    loop = VirtualLoop(simulation or Simulation())
    try:
        return loop.run_until_complete(main)
    finally:
        finish(loop)


def finish(loop: VirtualLoop) -> None:
    """Cancel the tasks of all processes of the simulation, and let them end."""
    for process in loop.processes:
        left = list(process.tasks) if not process.crashed else []
        for task in left:
            task.cancel()
        if left:
            process.run_until_complete(_settle(left))


async def _settle(tasks: list[asyncio.Task[object]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
