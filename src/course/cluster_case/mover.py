"""Moves pages between two devices, page by page, slowly, and with failures; sees who frees a page that is moved."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from course.cluster_case.connector_prefill import PrefillWorker
    from course.cluster_case.connector_worker import Worker
    from course.cluster_case.connector_world import World


@dataclass(eq=False)
class Moving:
    """A copy under way. sources, targets: (page, how often it was allocated) when it was ordered, or asked for."""

    copy: object
    source: "PrefillWorker"
    target: "Worker"
    sources: list[tuple[int, int]]
    targets: list[tuple[int, int]]
    fails_at: int
    written: int = 0
    ended: bool = False


class Mover:
    """Carries copies out. sent: how many of each transfer arrived."""

    def __init__(self, world: "World"):
        self.world = world
        self.moving: list[Moving] = []
        self.sent: Counter[object] = Counter()

    def complete(self, transfer: object) -> bool:
        """Whether every heads of every page of a transfer arrived, or none was asked for by any rank."""
        needed = self.world.needed(transfer)
        return needed is not None and self.sent[transfer] == needed

    def under_way(self, transfer: object) -> bool:
        """Whether something is being copied."""
        return any(moving.copy.transfer == transfer for moving in self.moving)

    def start(self, source: "PrefillWorker", copy) -> None:
        """Begin a copy, unless it should not."""
        world, transfer = self.world, copy.transfer
        ask, target = world.asks[transfer, copy.part.target], world.askers[transfer]
        if world.now >= source.ready[transfer] + world.expiry:
            world.violate(f"{source.name} begins to send {transfer} after its expiry")
        if world.now >= ask.until:
            world.violate(f"{source.name} begins to send {transfer} after the time that the question allows")
        pages = [page for page, _ in copy.pages]
        fails = world.rng.randrange(len(pages)) if world.rng.random() < world.copy_failures else len(pages)
        marks = dict(world.marks[transfer])
        targets = [(page, marks.get(page, -1)) for _, page in copy.pages]
        moving = Moving(copy, source, target, source.device.mark(pages), targets, fails)
        self.moving.append(moving)
        world.agenda.after(max(copy.until - 1 - world.now, 0), self.end, moving)
        world.agenda.after(world.some_time(0, world.slow), self.write, moving)

    def write(self, moving: Moving) -> None:
        """Write the next page."""
        world, at = self.world, moving.written
        if moving.ended:
            return
        wait = world.cut(moving.source, moving.target)
        if wait:
            world.agenda.after(wait, self.write, moving)
            return
        if moving.source.dead or moving.target.dead or at == moving.fails_at:
            self.end(moving)
            return
        (page, life), (into, other) = moving.sources[at], moving.targets[at]
        if not moving.source.device.same(page, life):
            world.violate(f"{moving.copy.transfer}: page {page} is sent, but {moving.source.name} has freed it")
        if not moving.target.device.same(into, other):
            world.violate(f"{moving.copy.transfer}: late write into page {into}, which {moving.target.name} has freed")
        moving.source.device.copy(page, moving.copy.part, moving.target.device, into)
        moving.written += 1
        world.agenda.after(world.some_time(0, world.slow), self.write, moving)

    def end(self, moving: Moving) -> None:
        """A copy has ended, well or not: tell both sides."""
        if moving.ended:
            return
        moving.ended = True
        self.moving.remove(moving)
        ok = moving.written == len(moving.copy.pages)
        self.sent[moving.copy.transfer] += ok
        self.world.counts["copies"] += 1
        moving.source.moved(moving.copy, ok)
        self.world.send(moving.source, moving.target, moving.target.moved, moving.copy, moving.written, lasts=True)

    def check_free(self, worker: "Worker", pages: Sequence[int]) -> None:
        """Pages become free: none may be read or written by a copy."""
        for moving in self.moving:
            name, freed = moving.copy.transfer, dict.fromkeys(pages)
            if moving.source is worker and any(page in freed for page, _ in moving.sources):
                self.world.violate(f"{worker.name} frees pages of {name} while they are sent")
            if moving.target is worker and any(page in freed for page, _ in moving.targets[moving.written :]):
                self.world.violate(f"{worker.name} frees pages of {name} while they are written to")
