"""Prompts before answers: while prompts keep coming, a chat that was quick stands still."""

from collections.abc import Mapping

from course.sim.gallery.runs import SECOND, Cluster, chat_beside_prompts, gaps_ms
from course.sim.gallery.scenario import Outcome, Scenario

EVERY, PROMPTS, PROMPT = 0.9, 26, 8000


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """A chat of 400 tokens on one engine; from 2 s on long prompts, a little faster than it can take them."""
    parts, costs = cluster("deployment"), cluster("roofline")
    load = chat_beside_prompts(cluster, 400, [2 + EVERY * number for number in range(PROMPTS)], PROMPT)
    pool = parts.Pool(
        costs.Roofline(costs.MACHINES["H100"], costs.QWEN3["32B"]),
        scheduler="mixed" if repaired else "chunked",
        max_num_batched_tokens=2048,
        max_len=10_000,
    )
    records = list(cluster("simulator").simulate(parts.Deployment(pool), load).records.values())
    times, gaps = gaps_ms(records[0])
    numbers = {
        "chat stands still, s": max(gaps) / 1000,
        "chat is done after, s": times[-1],
        "slowest prompt, s": max(record.ttft for record in records[1:]) / SECOND,
    }
    return Outcome(numbers, {"chat": (times, list(range(2, len(times) + 2)))})


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """The chat goes on, and the prompts are hardly later."""
    assert broken["chat stands still, s"] > 10 > 1 > repaired["chat stands still, s"]
    assert repaired["slowest prompt, s"] < 1.1 * broken["slowest prompt, s"]


SCENARIO = Scenario(
    title="An answer stops while prompts come",
    complaint="SGLang 32549: under steady long prompts the log shows one decode batch in 24 s",
    broken="prompts first, in chunks of 2,048 tokens",
    repaired="a token of each answer in every batch of 2,048 tokens",
    play=play,
    check=check,
    y="tokens of the chat",
    kind="steps",
)
