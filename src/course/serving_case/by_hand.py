"""Schedulers driven step by step: requests, batches and results made by hand, and a memory that notes what it is asked.

Works with either package, through its public names only.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from course.solution import Solution


def request_of(
    solution: Solution, ids: Sequence[int], max_tokens: int, uid: int = 0, stop: Iterable[int] = ()
) -> object:
    """A request of the solution, greedy."""
    return solution.module("serving.request").Request(uid, list(ids), max_tokens, stop_tokens=frozenset(stop))


def noted(solution: Solution, rows: int, max_len: int, prefix: int = 0) -> tuple[object, list[list]]:
    """The solution's RowMemory, and a list of what it was asked. prefix: tokens that it always matches."""
    memory = solution.module("serving.memory")
    log: list[list] = []

    class Noted:
        """Notes [what, uid, number]: tokens matched, the length, the ids, or the steps in flight. Has no more names
        than a `Memory` has: what a RowMemory keeps for itself is no business of a scheduler."""

        def __init__(self, inner):
            self._inner = inner
            self.page_size, self.max_len = inner.page_size, inner.max_len

        @property
        def free_rows(self):
            return self._inner.free_rows

        @property
        def available(self):
            return self._inner.available

        def match(self, request):
            return memory.Prefix(min(prefix, request.prompt_len - 1))

        def open(self, request, found):
            log.append(["open", request.uid, found.tokens])
            self._inner.open(request, found)

        def held(self, request):
            return self._inner.held(request)

        def grow(self, request, length):
            log.append(["grow", request.uid, length])
            self._inner.grow(request, length)

        def share(self, request):
            log.append(["share", request.uid, len(request.ids)])

        def close(self, request):
            log.append(["close", request.uid, request.in_flight])
            self._inner.close(request)

    return Noted(memory.RowMemory(rows, max_len)), log


def scheduler_of(solution: Solution, memory: object, adds: Sequence[dict] = (), **options: int) -> object:
    """The solution's first-come-first-served Scheduler, to which `adds` were added."""
    scheduler = solution.module("serving.scheduler").Scheduler(memory, **options)
    for add in adds:
        scheduler.add(request_of(solution, add["ids"], add["max_tokens"], add["uid"], add.get("stop", ())))
    return scheduler


def adds_of(
    rng: np.random.Generator, prompts: list[int], max_tokens: list[int], at: list[int] | None = None
) -> list[dict]:
    """Requests with uids that are in no order."""
    uids = rng.permutation(100)[: len(prompts)].tolist()
    rest = zip(prompts, max_tokens, at or [0] * len(prompts), strict=True)
    return [
        {"uid": uid, "ids": rng.integers(10, 1000, n).tolist(), "max_tokens": m, "at": start}
        for uid, (n, m, start) in zip(uids, rest, strict=True)
    ]


def plain(steps: Iterable[object]) -> list[list]:
    """[uid, start, end, samples] of each step."""
    return [[step.request.uid, step.start, step.end, bool(step.samples)] for step in steps]


def read(scheduler: object, batch: object, token: int = 5) -> None:
    """What a commit does to a batch, where every end is the length."""
    for request, *_, samples in batch.steps:
        request.in_flight -= 1
        if samples:
            request.append(token)
        if len(request.ids) == request.max_device_len:
            del scheduler.requests[request.uid]
            scheduler.running.pop(request.uid)
            scheduler.memory.close(request)


def admitted(scheduler: object) -> None:
    """Admit all that wait, without launching anything."""
    while scheduler.waiting:
        request = scheduler.waiting.popleft()
        scheduler.memory.open(request, scheduler.memory.match(request))


def sampled(solution: Solution, token: int, logprob: float | None = None, top: tuple = ()) -> object:
    """A result."""
    return solution.module("serving.request").Sampled(token, logprob, top)


def batch_of(solution: Solution, scheduler: object, launches: Iterable[tuple[int, int]]) -> object:
    """A launched batch made by hand: (uid, tokens) of each step."""
    steps = [scheduler.launch(scheduler.requests[uid], tokens) for uid, tokens in launches]
    return solution.module("serving.request").Batch(tuple(steps))


def told(outputs: Iterable[object]) -> list[list]:
    """[uid, token, finish reason] of each output."""
    return [[o.uid, None if o.sampled is None else o.sampled.token, o.finish_reason] for o in outputs]


def ended(scheduler: object, uid: int) -> list[list]:
    """What an abort will do: end a request that has not ended, wherever it is. Returns its last output, as `told`."""
    request = scheduler.requests.get(uid)
    if request is None:
        return []
    request.finish_reason = "abort"
    if request in scheduler.waiting:
        scheduler.waiting.remove(request)
    scheduler.retire(request)
    return [[uid, None, "abort"]]
