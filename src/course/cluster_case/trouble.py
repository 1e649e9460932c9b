"""What befalls a process in the tests of the runtime: connections that break, workers that die, and waiting for it."""

import asyncio
from collections.abc import AsyncIterator, Callable

from course.cluster_case.greedy import next_token
from course.cluster_case.network import SECOND, End, Host
from course.cluster_case.scene import MS, Item, Scene


class Flaky:
    """A transport whose connections can be broken, and which reaches nobody until some time. tries: to connect."""

    def __init__(self, scene: Scene, host: Host):
        self.scene, self.host, self.until, self.tries = scene, host, 0, 0
        self.listen, self.close = host.listen, host.close

    async def connect(self, address: str) -> End:
        """As the host does, where it can."""
        self.tries += 1
        if self.scene.now < self.until:
            raise ConnectionRefusedError("nobody can be reached")
        return await self.host.connect(address)

    def break_all(self, span: int) -> None:
        """Break what there is, and reach nobody for so long."""
        self.until = self.scene.now + span
        for end in list(self.host.ends):
            end.close()


def noted(scene: Scene):
    """The package's registry, which notes when renewals came in."""

    class Noted(scene.part("discovery.Registry")):
        def __init__(self) -> None:
            super().__init__(scene.ttl)
            self.came: list[int] = []

        def renew(self, lease: int, now: int) -> None:
            self.came.append(now)
            super().renew(lease, now)

    return Noted()


async def ended(scene: Scene, task: asyncio.Task, within: int) -> int | None:
    """When a task ends, None if it does not within some ns. Raises what it raises."""
    done, _ = await asyncio.wait([task], timeout=within / SECOND)
    if not done:
        task.cancel()
        return None
    task.result()
    return scene.now


async def until(scene: Scene, holds: Callable[[], bool], task: asyncio.Task) -> None:
    """Wait until something holds, or a task has ended, for a minute at most. Raises what the task raised."""
    end = scene.now + 60 * SECOND
    while not (holds() or task.done() or scene.now > end):
        await scene.wait(MS)
    if task.done():
        task.result()


def fragile(deaths: list[int], error: type[Exception] | None = None, stop: int | None = None):
    """A route whose n-th worker dies after deaths[n] tokens, also after its last one, and what it was asked."""
    asked: list[list[object]] = []
    error = error or ConnectionResetError

    async def route(body: Item) -> AsyncIterator[Item]:
        asked.append([list(body["token_ids"]), body["max_tokens"]])
        dies = deaths[len(asked) - 1] if len(asked) <= len(deaths) else None
        ids = list(body["token_ids"])
        for i in range(body["max_tokens"]):
            if i == dies:
                raise error("dead")
            ids.append(next_token(ids))
            last = ids[-1] == stop or i + 1 == body["max_tokens"]
            yield {"token": ids[-1], "finish_reason": ("stop" if ids[-1] == stop else "length") if last else None}
            if last:
                break
        if dies is not None:
            raise error("dead after the last token")

    return route, asked
