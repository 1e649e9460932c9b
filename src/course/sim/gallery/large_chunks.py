"""Mixed batches with too large a budget: an answer gets a token with each batch, and each batch takes long."""

from collections.abc import Mapping

from course.sim.gallery.runs import SECOND, Cluster, chat_beside_prompts, gaps_ms
from course.sim.gallery.scenario import Outcome, Scenario

PROMPTS, PROMPT = 4, 32_000
WHOLE, SMALL = 8192, 512
"""Tokens of a batch."""


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """A chat of 700 tokens on one engine, and four long prompts, each 8 s after the one before."""
    parts, costs = cluster("deployment"), cluster("roofline")
    load = chat_beside_prompts(cluster, 700, [2 + 8 * number for number in range(PROMPTS)], PROMPT)
    pool = parts.Pool(
        costs.Roofline(costs.MACHINES["H100"], costs.QWEN3["32B"]),
        max_num_batched_tokens=SMALL if repaired else WHOLE,
    )
    run = cluster("simulator").simulate(parts.Deployment(pool), load)
    records = list(run.records.values())
    times, gaps = gaps_ms(records[0])
    one = records[1]
    during = sum(one.arrival < time * SECOND < one.first_token for time in times)
    numbers = {
        "longest gap of the chat, ms": max(gaps),
        "the chat during a prompt, tokens/s": during * SECOND / one.ttft,
        "mean TTFT of the prompts, s": sum(record.ttft for record in records[1:]) / len(records[1:]) / SECOND,
    }
    return Outcome(numbers, {"chat": (times, gaps)})


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """The gaps are a fifth at most, and the prompts wait little longer."""
    assert repaired["longest gap of the chat, ms"] < 0.2 * broken["longest gap of the chat, ms"]
    assert repaired["mean TTFT of the prompts, s"] < 1.1 * broken["mean TTFT of the prompts, s"]


SCENARIO = Scenario(
    title="An answer stutters while a prompt is computed",
    complaint="Qwen3.8-Flash-DGX 9: decode falls from 30 to 0.2 tokens/s during chunks of 8,192 tokens",
    broken="batches of up to 8,192 tokens",
    repaired="batches of up to 512 tokens",
    play=play,
    check=check,
    y="ms since the last token",
    kind="steps",
)
