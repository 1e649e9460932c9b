"""Workers whose event loop prepares long prompts itself, and renews no lease meanwhile."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING

from course.cluster_case.scene import Item, Scene
from course.sim.gallery.runs import MS, SECOND, Cluster
from course.sim.gallery.scenario import Outcome, Scenario

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.discovery import Registry
    from tiny_llm_ref.cluster.migration import Migration

WORKERS, RESTART, REQUESTS, EVERY = 4, 10 * SECOND, 300, 200 * MS
SHORT, LONG, EACH, PER_TOKEN = 20, 6_000, 100, 1 * MS
"""Tokens of prompts, every how many-th is a long one, and what it takes to prepare a token."""


class Cell:
    """A registry, workers that are started again, and one client. ends: how many requests ended, and how."""

    def __init__(self, cluster: Cluster, threads: bool):
        self.scene = Scene(SimpleNamespace(module=lambda name: cluster(name.removeprefix("cluster."))))
        self.threads = threads
        self.ends: Counter[str] = Counter()
        self.listed: list[tuple[float, int]] = [(0.0, 0)]

    async def generate(self, body: Item) -> AsyncIterator[Item]:
        """Prepare a prompt: in the loop, or in a thread, for which the loop only waits. Then answer with one token."""
        duration = len(body["token_ids"]) * PER_TOKEN
        if self.threads:
            await self.scene.wait(duration)
        else:
            asyncio.get_running_loop().block(duration)
        yield {"token": 0, "finish_reason": "length"}

    async def live(self, name: str) -> None:
        """Serve; whenever that has ended, begin again as another process."""
        while True:
            runtime = await self.scene.worker(name, self.generate)
            await runtime.stopped.wait()
            await self.scene.wait(RESTART)

    async def ask(self, migration: "Migration", tokens: int) -> None:
        """One request."""
        try:
            async for _ in migration.generate([0] * tokens, 1):
                self.ends["answered"] += 1
        except ConnectionError:
            self.ends["failed"] += 1

    async def main(self, scene: Scene) -> None:
        """Five requests a second."""
        registry, loop = await scene.open(), asyncio.get_running_loop()
        registry.watch("test", lambda _: self.look(registry), scene.now)
        for number in range(WORKERS):
            name = f"worker-{number}"
            loop.process(name).create_task(self.live(name))
        await scene.wait(SECOND)
        client = await scene.client(scene.part("balance.RoundRobin")())
        migration = scene.part("migration.Migration")(client.call, scene.clock())
        asks = []
        for number in range(1, REQUESTS + 1):
            await scene.wait(EVERY)
            asks.append(loop.create_task(self.ask(migration, SHORT if number % EACH else LONG)))
        await asyncio.wait(asks)
        self.look(registry)

    def look(self, registry: "Registry") -> None:
        """Note how many workers are listed now."""
        self.listed.append((self.scene.now / SECOND, len(registry.values)))


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """Four workers, short prompts, and a long one every 20 s that takes 6 s to prepare. Leases live 4 s."""
    cell = Cell(cluster, repaired)
    cell.scene.run(cell.main)
    times, counts = zip(*cell.listed, strict=True)
    lost = sum(before > after for before, after in pairwise(counts))
    numbers = {
        "leases lost": lost,
        "workers listed at least": min(counts[WORKERS:]),
        "requests answered": cell.ends["answered"],
        "requests failed": cell.ends["failed"],
    }
    return Outcome(numbers, {"workers": (times, counts)})


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """Who only works hard is not dead."""
    assert repaired["leases lost"] == repaired["requests failed"] == 0
    assert broken["leases lost"] > 3
    assert broken["requests failed"] > 0


SCENARIO = Scenario(
    title="Busy workers vanish from discovery",
    complaint="Dynamo's leases: under CPU load healthy workers disappear, and what they were asked takes others along",
    broken="the event loop prepares prompts itself",
    repaired="a thread prepares prompts, the loop is free",
    play=play,
    check=check,
    y="workers listed",
    kind="steps",
)
