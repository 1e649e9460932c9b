"""Two charts from runs of the scheduler with a prefix cache and pages of 16. Left: the share of all prompt tokens
that still had to run. All of them for 64 unrelated prompts, 27 percent for 64 prompts behind one system prompt of 200
tokens, 20 percent for eight chats of eight turns. Right: the share of the chats' prompt tokens that was found, against
the pages of the pool. It stays at 80 percent down to 256 pages, and falls to 7 percent at 64.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from matplotlib.figure import Figure

from course.book.style import Theme
from tiny_llm_ref.serving.chunked import ChunkedScheduler
from tiny_llm_ref.serving.prefix_memory import PrefixMemory
from tiny_llm_ref.serving.request import Request, Sampled

SIZE, ROWS, CHATS, TURNS, ANSWER = 16, 8, 8, 8, 24
AMPLE = 1024
POOLS = (64, 96, 128, 160, 192, 224, 256, 320, 384)
Rounds = list[Callable[[int, list[int]], list[int]]]
"""For each round: a chat's number and all its tokens so far -> the tokens that it adds."""


def serve(rounds: Rounds, pages: int) -> tuple[int, int]:
    """Serve eight clients at once, round by round. Returns the prompt tokens that came in, and those that ran."""
    memory = PrefixMemory(ROWS, 1024, SIZE, pages)
    histories: list[list[int]] = [[] for _ in range(CHATS)]
    asked, ran, rng = 0, 0, np.random.default_rng(0)
    for round_, turn in enumerate(rounds):
        scheduler = ChunkedScheduler(memory, token_budget=512)
        requests = []
        for chat, history in enumerate(histories):
            requests.append(Request(round_ * CHATS + chat, turn(chat, history), ANSWER))
            scheduler.add(requests[-1])
            asked += requests[-1].prompt_len
        while batch := scheduler.next_batch():
            ran += sum(max(min(end, r.prompt_len) - start, 0) for r, start, end, _ in batch.steps)
            scheduler.commit(batch, [Sampled(int(rng.integers(10**6))) for _ in batch.sampling])
        histories = [request.ids for request in requests]
    return asked, ran


def workloads() -> dict[str, Rounds]:
    """Each gives 64 prompts."""
    rng = np.random.default_rng(1)

    def fresh(n: int) -> list[int]:
        return rng.integers(10**6, size=n).tolist()

    system = fresh(200)
    return {
        "unrelated": [lambda chat, history: fresh(256)] * TURNS,
        "one system\nprompt": [lambda chat, history: system + fresh(56)] * TURNS,
        "chats": [lambda chat, history: history + fresh(40)] * TURNS,
    }


@cache
def measured() -> tuple[dict[str, float], list[float]]:
    """The share that ran for each workload with an ample pool, and the share of the chats that was found by pool."""
    shares = {}
    for name, rounds in workloads().items():
        asked, ran = serve(rounds, AMPLE)
        shares[name] = ran / asked
    found = []
    for pages in POOLS:
        asked, ran = serve(workloads()["chats"], pages)
        found.append(1 - ran / asked)
    return shares, found


def draw(theme: Theme) -> Figure:
    """The figure."""
    shares, found = measured()
    figure = Figure(figsize=(6.8, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    bars = left.bar(list(shares), list(shares.values()), color=theme.series[0], width=0.6)
    left.bar_label(bars, [f"{share:.0%}" for share in shares.values()], padding=2, fontsize=9)
    left.set(ylim=(0, 1.12), yticks=[0, 0.5, 1], yticklabels=["0", "50 %", "100 %"])
    left.set_title("prompt tokens that ran", fontsize=10, loc="left")
    left.tick_params(axis="x", labelsize=9)
    right.plot(POOLS, found, color=theme.series[1], marker="o", markersize=4)
    right.set(ylim=(0, 1), xlim=(0, POOLS[-1] + 10), xlabel="pages of the pool")
    right.set(yticks=[0, 0.5, 1], yticklabels=["0", "50 %", "100 %"])
    right.set_title("chats: prompt tokens found", fontsize=10, loc="left")
    return figure
