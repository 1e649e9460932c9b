"""Async code called from threads that are not: the caller waits, the loop does not."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


# ANCHOR: call
def call(loop: asyncio.AbstractEventLoop, work: Coroutine[object, object, T], timeout: float | None = None) -> T:
    """Run `work` on a loop of another thread, and wait at most `timeout` seconds.

    Raises what it raises, and TimeoutError, after which it is cancelled. Raises
    RuntimeError on a thread that runs a loop itself: on this loop's the wait
    would never end, on another's nothing else would run meanwhile.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        work.close()
        raise RuntimeError("a loop runs on this thread, and a wait would block it: use await")
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result(timeout)
    except TimeoutError:
        future.cancel()
        raise
        # ANCHOR_END: call
