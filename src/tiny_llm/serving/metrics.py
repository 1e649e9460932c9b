# This file is yours to edit. Read book/src/week3-07-server.md.
"""What Prometheus reads: gauges of the engine, counts and times of requests. One registry for each server.

Times are those that a client could measure: from the arrival of its request, and between tokens as they are sent.
"""

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from .state import Stats

GAUGES: dict[str, tuple[str, Callable[[Stats], float]]] = {
    "tiny_llm_requests_running": ("Requests whose prompt has been launched", lambda stats: stats.running),
    "tiny_llm_requests_waiting": ("Requests that wait for their prompt", lambda stats: stats.waiting),
    "tiny_llm_kv_cache_usage": (
        "Share of the pages that cannot be handed out now",
        lambda stats: stats.used_pages / max(stats.pages, 1),
    ),
    "tiny_llm_prefix_cache_hit_rate": (
        "Share of prompt tokens that were in the prefix cache",
        lambda stats: stats.hit_tokens / max(stats.asked_tokens, 1),
    ),
}
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """Everything that is counted. read: the newest stats of the engine. clock: seconds."""

    def __init__(self, read: Callable[[], Stats], clock: Callable[[], float] = time.perf_counter):
        self.clock = clock
        self.registry = CollectorRegistry()
        for name, (text, value) in GAUGES.items():
            gauge = Gauge(name, text, registry=self.registry)
            gauge.set_function(lambda value=value: value(read()))
        self.ttft = self._histogram("tiny_llm_time_to_first_token_seconds", "From arrival to the first token")
        self.itl = self._histogram("tiny_llm_inter_token_latency_seconds", "Between two tokens of one choice")
        self.finished = self._counter("tiny_llm_requests_finished", "Choices that ended", ["reason"])
        self.rejected = self._counter("tiny_llm_requests_rejected", "Requests answered with an error", ["status"])
        self.prompt_tokens = self._counter("tiny_llm_prompt_tokens", "Tokens of accepted prompts")
        self.generation_tokens = self._counter("tiny_llm_generation_tokens", "Tokens that were chosen")

    def text(self) -> bytes:
        """All of it in Prometheus's text format."""
        return generate_latest(self.registry)

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(name, text, registry=self.registry, buckets=SECONDS)

    def _counter(self, name: str, text: str, labels: tuple[str, ...] | list[str] = ()) -> Counter:
        return Counter(name, text, labels, registry=self.registry)


class Timing:
    """Times one choice. arrived: when its request came in, by the clock of `metrics`."""

    def __init__(self, metrics: Metrics, arrived: float):
        self.metrics = metrics
        self.arrived = arrived
        self.last: float | None = None
        """When its newest token came."""

    def token(self) -> None:
        """A token has come: the first is counted from the arrival, each other one from the one before."""
        raise NotImplementedError("Week 3 Day 7 Task 3: Timing.token - see book/src/week3-07-server.md#task-3")
