"""Answers the lines of a batch with the server's own application, without a socket: every request means the same there.

Knows HTTP and the batch's lines; the engine decides what runs together.
"""

import asyncio
import json
from collections.abc import Callable, Iterator

import httpx

from course.batch_file import Line, Results, answer_line, error_line
from course.errors import CourseError
from course.served import Served

AT_ONCE = 4
"""Lines in the engine for each row: the scheduler always finds some that wait."""
Watch = Callable[[Line, str | None, int], None]
"""Called for each line that is done: with what was wrong, and the tokens of its answer."""


async def run_batch(served: Served, lines: Iterator[Line], results: Results, watch: Watch) -> None:
    """Ask all lines that `results` does not know yet; a few at a time, so that no file is too long.

    Raises CourseError where the model cannot be loaded, or the engine dies.
    """
    at_once = AT_ONCE * served.options["rows"]
    engine, startup = served.start(limit=1 << 30)
    limits = served.module("serving.limits").Limits(1 << 30, 1e6, 1e9, 0.0)
    app = served.app(engine, limits)
    life = app.router.lifespan_context(app)
    try:
        await life.__aenter__()
    except Exception:
        startup.check()
        raise
    try:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        client = httpx.AsyncClient(transport=transport, base_url="http://batch", timeout=None)
        async with client, asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(_work(client, engine, lines, results, watch))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        await life.__aexit__(None, None, None)


async def _work(
    client: httpx.AsyncClient, engine: object, lines: Iterator[Line], results: Results, watch: Watch
) -> None:
    """One of several that share the lines: each line goes to whoever is free."""
    for line in lines:
        if line.custom_id in results.done:
            continue
        if line.error:
            results.write(error_line(line, line.error))
            watch(line, line.error, 0)
            continue
        reply = await client.post(line.url, content=json.dumps(line.body))  # ASCII, whatever the text is
        if engine.error:
            raise CourseError(f"the engine has died at line {line.number} or one beside it: {engine.error}")
        body = reply.json()
        results.write(answer_line(line, reply.status_code, body))
        wrong = None if reply.status_code == 200 else body["error"]["message"]
        watch(line, wrong, 0 if wrong else body["usage"]["completion_tokens"])
