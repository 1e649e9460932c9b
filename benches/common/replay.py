"""Drives a scheduler of the course in virtual time: no model, only the time that a step would take.

A step takes `base + per_token * tokens` seconds: weights are read once per step, and each token is computed. This is
the simplest model that shows what batching and chunks do; it leaves out that attention grows with the context.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from types import ModuleType
from typing import NamedTuple

GO_ON, STOP = 0, 1  # the only two tokens


class Arrival(NamedTuple):
    """A request that comes at `at` seconds with `prompt` tokens, and stops by itself after `answer` tokens."""

    at: float
    prompt: int
    answer: int
    max_tokens: int
    kind: str = "request"


class StepTime(NamedTuple):
    """Seconds of a step, and of each of its tokens."""

    base: float
    per_token: float

    def of(self, tokens: int) -> float:
        """Of a step that runs so many tokens."""
        return self.base + self.per_token * tokens


@dataclass
class Run:
    """What happened. times: when each request got its tokens, by uid. running: requests in each step."""

    arrivals: Sequence[Arrival]
    times: dict[int, list[float]] = field(default_factory=dict)
    end: float = 0.0
    running: list[int] = field(default_factory=list)
    preemptions: int = 0
    recomputed: int = 0

    def of(self, kind: str) -> list[int]:
        """The uids of a kind."""
        return [uid for uid, arrival in enumerate(self.arrivals) if arrival.kind == kind]

    def ttft(self, kind: str = "request") -> float:
        """Median seconds from arrival to the first token."""
        return median(self.times[uid][0] - self.arrivals[uid].at for uid in self.of(kind))

    def longest_gap(self, kind: str = "request") -> float:
        """The longest time between two tokens of one request."""
        lists = [self.times[uid] for uid in self.of(kind)]
        return max(b - a for times in lists for a, b in pairwise(times))

    @property
    def tokens_per_second(self) -> float:
        """Tokens that reached somebody, over the whole time."""
        return sum(map(len, self.times.values())) / self.end


def replay(requests: ModuleType, scheduler: object, arrivals: Sequence[Arrival], step_time: StepTime) -> Run:
    """Let all requests arrive and run to their ends. requests: `serving.request` of the package under test."""
    run, now, due = Run(arrivals), 0.0, 0
    computed = [0] * len(arrivals)
    while due < len(arrivals) or scheduler.requests:
        while due < len(arrivals) and (arrivals[due].at <= now or not scheduler.requests):
            now = max(now, arrivals[due].at)
            scheduler.add(_request(requests, due, arrivals[due]))
            due += 1
        batch = scheduler.next_batch()
        now += step_time.of(batch.tokens)
        _count(run, batch, computed)
        results = [requests.Sampled(_token(run, step.request.uid)) for step in batch.sampling]
        for output in scheduler.commit(batch, results):
            run.times.setdefault(output.uid, []).append(now)
    run.end = now
    return run


def _request(requests: ModuleType, uid: int, arrival: Arrival) -> object:
    return requests.Request(uid, [GO_ON] * arrival.prompt, arrival.max_tokens, stop_tokens=frozenset({STOP}))


def _token(run: Run, uid: int) -> int:
    return STOP if len(run.times.get(uid, ())) + 1 >= run.arrivals[uid].answer else GO_ON


def _count(run: Run, batch: object, computed: list[int]) -> None:
    run.running.append(len(batch.steps))
    for step in batch.steps:
        uid = step.request.uid
        run.preemptions += step.start == 0 < computed[uid]
        run.recomputed += max(min(step.end, computed[uid]) - step.start, 0)
        computed[uid] = max(computed[uid], step.end)
