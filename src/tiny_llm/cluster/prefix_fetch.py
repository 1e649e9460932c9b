"""Cached blocks that another worker has: fetched over the network, where that is wanted, and not computed again.

With it all caches of a deployment are one (Mooncake's global cache-aware scheduling, Qin et al., 2025).
"""

from collections.abc import Callable, Mapping

from .deployment import Deployment
from .hashing import key_hashes
from .kernel import Phase, Simulation
from .query import Index
from .run import Moved, Run
from .trace_request import TraceRequest
from .transfer import Op
from .worker import Worker


class PrefixFetch:
    """Fetches for the workers of a deployment, by number, if its routing says so."""

    def __init__(self, simulation: Simulation, deployment: Deployment, run: Run, workers: Mapping[int, Worker]):
        self.simulation, self.deployment, self.run, self.workers = simulation, deployment, run, workers

    def bring(self, request: TraceRequest, worker: Worker, index: Index | None, then: Callable[[], object]) -> None:
        """Take blocks of a prompt from the worker that has most of them, and cache them at `worker`; `then` go on."""
        if not self.deployment.routing.fetch or index is None:
            then()
            return
        size, now = self.deployment.pool.block_size, self.simulation.now
        scores = index.match(key_hashes(request.page_keys(size, request.prompt_len)), now)
        peer = self.workers[max(scores, key=scores.get)] if scores else worker
        most, own = scores.get(peer.number, 0), scores.get(worker.number, 0)
        if most <= own or peer.silent_until > now:
            then()
            return
        moved = (most - own) * size * self.deployment.transport.bytes_per_token

        def done(ok: bool) -> None:
            reached = max(peer.silent_until, worker.silent_until)
            if ok and reached > self.simulation.now:  # nothing reaches or leaves a silent worker
                self.simulation.at(reached, Phase.TRANSFER_DONE, done, ok)
                return
            ok = ok and peer.alive and worker.alive
            status = "done" if ok else "failed"
            self.run.moves.append(Moved(request.uid, peer.name, worker.name, now, self.simulation.now, moved, status))
            if ok:
                worker.adopt(request, most)
            then()

        worker.courier.move(Op.READ, peer.name, moved, done)
