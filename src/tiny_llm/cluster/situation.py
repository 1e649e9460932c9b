"""What the routers of two pools know of a prompt, for a rule that says where it goes."""

from .conditional import Situation
from .router import Router
from .routing import RouteRequest


def situation_of(request: RouteRequest, prefill: Router, decode: Router, now: int) -> Situation:
    """Seen from the decode worker that has most of the prompt, the least busy of equals. There must be one.

    Before `prefill` has been asked for a worker, nothing is ahead of the prompt.
    """
    load = decode.load.workers
    scores = decode.index.match(request.blocks, now) if decode.index else {}
    best = max(decode.workers, key=lambda worker: (scores.get(worker, 0), -load[worker].active_blocks))
    cached = scores.get(best, 0) * decode.config.block_size
    mine = request.uid in prefill.placed or request.uid in prefill.queue
    queued = max(len(prefill.placed) + len(prefill.queue) - mine - len(prefill.workers), 0)
    return Situation(request.tokens, cached, queued, ahead(request, prefill) if mine else 0, load[best].active_blocks)


def ahead(request: RouteRequest, prefill: Router) -> int:
    """Prompt tokens before this one at the worker that was chosen; at the least busy one while it waits."""
    loads = prefill.load.workers
    worker = prefill.placed.get(request.uid)
    if worker is None:
        return min(load.prefill_tokens for load in loads.values())
    return loads[worker].prefill_tokens - loads[worker].requests[request.uid].prefill_tokens
