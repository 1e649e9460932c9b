"""Runs a coroutine on an AsyncEngine of the package under test, with a time limit, and takes it down again."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable

from course.solution import Solution
from course.stub import stub_of

from .scripted import ScriptedRunner
from .watch import Watch

SECONDS = 4.0
PATIENCE = 1.5
"""s: for what should come at once."""


def build_engine(solution: Solution, runner: ScriptedRunner, rows: int, max_len: int) -> object:
    """The engine of the package, on rows that are only counted."""
    memory = solution.module("serving.memory").RowMemory(rows, max_len)
    scheduler = solution.module("serving.scheduler").Scheduler(memory)
    return solution.module("serving.engine").Engine(scheduler, runner)


class Bridge:
    """What `main` gets: the AsyncEngine, and shorthands to use it."""

    def __init__(self, solution: Solution, engine: object):
        self.engine = engine
        self._request = solution.module("serving.request").Request

    def request(self, prompt: list[int], max_tokens: int = 4, **options: object) -> object:
        """A request with a fresh uid."""
        return self._request(next(self.engine.uids), list(prompt), max_tokens, **options)

    async def take(self, outputs: AsyncIterator[object], count: int | None = None) -> list[object]:
        """The next `count` outputs, or all: [uid, token, finish reason]; then "hung" if nothing comes, or an error."""
        taken: list[object] = []
        while count is None or len(taken) < count:
            try:
                output = await asyncio.wait_for(anext(outputs), PATIENCE)
            except StopAsyncIteration:
                break
            except TimeoutError as error:
                taken.append(f"TimeoutError: {error}" if str(error) else "hung")
                break
            except RuntimeError as error:
                taken.append(told(error))
                break
            token = None if output.sampled is None else output.sampled.token
            taken.append([output.uid, token, output.finish_reason])
        return taken

    async def answer(self, *requests: object, seconds: float | None = None) -> list[object]:
        """All outputs of requests that are submitted together; an error in words where they are not accepted."""
        try:
            with self.engine.submit(requests, seconds) as outputs:
                return await self.take(outputs)
        except RuntimeError as error:
            return [told(error)]

    async def settled(self) -> dict[str, int]:
        """What is left in the engine once it has done what it was told, as counts. It has `PATIENCE` to be idle."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while True:
            left = await self.engine.ask(_left, PATIENCE)
            if not left["requests"] or asyncio.get_running_loop().time() > deadline:
                return left
            await asyncio.sleep(0.005)

    def objects(self, kind: type | None = None) -> int:
        """Things of this kind that anything still refers to; None for requests of the package."""
        gc.collect()
        return sum(type(thing) is (kind or self._request) for thing in gc.get_objects())


def told(error: Exception) -> str:
    """An error in words; a stub is raised again."""
    if stub_of(error):
        raise error
    return f"{type(error).__name__}: {error}"


def _left(engine: object) -> dict[str, int]:
    memory, scheduler = engine.scheduler.memory, engine.scheduler
    return {
        "requests": len(scheduler.requests),
        "pages": memory.pages - memory.available,
        "free_rows": memory.free_rows,
    }


def bridged(
    solution: Solution,
    main: Callable[[Bridge], Awaitable[object]],
    runner: ScriptedRunner,
    rows: int = 4,
    max_len: int = 64,
    limit: int = 16,
    build: Callable[[], object] | None = None,
) -> object:
    """What `main` returns, run with a started engine. build: makes another engine than `build_engine`."""
    make = build or (lambda: build_engine(solution, runner, rows, max_len))

    async def whole() -> object:
        engine = solution.module("serving.async_engine").AsyncEngine(make, limit)
        try:
            await engine.start()
            result = await main(Bridge(solution, engine))
        finally:
            runner.release()
            await engine.stop(1.0)
        if engine.thread.is_alive():
            raise AssertionError("the engine's thread goes on after `stop`: a None in the inbox ends it")
        return result

    async def limited(watch: Watch) -> object:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(whole())
        watch.on_stub = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            return await asyncio.wait_for(task, SECONDS)
        except TimeoutError:
            raise AssertionError(f"the engine or a stream did not end within {SECONDS} s") from None

    with Watch(solution.package) as watch:
        return asyncio.run(limited(watch))
