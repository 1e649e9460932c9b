"""Admission asks for pages for the first chunk only: more prompts begin than can end, and they chase each other out."""

from collections.abc import Mapping
from itertools import accumulate

from course.sim.gallery.runs import SECOND, Cluster, requests, ttft_ms
from course.sim.gallery.scenario import Outcome, Scenario

REQUESTS, PROMPT, ANSWER = 40, 8000, 50
BLOCKS, CHUNK = 400, 256
"""The memory holds three prompts, or the first chunks of a hundred."""


def play(cluster: Cluster, repaired: bool) -> Outcome:
    """Long prompts, all in the first second, on one engine with a small memory."""
    parts, costs = cluster("deployment"), cluster("roofline")
    pool = parts.Pool(
        costs.Roofline(costs.MACHINES["H100"], costs.QWEN3["32B"]),
        scheduler="chunked" if repaired else "mixed",
        chunk=CHUNK,
        kv_blocks=BLOCKS,
        max_len=PROMPT + ANSWER + 1,
    )
    load = requests(cluster, 50, REQUESTS, (PROMPT, 0.0), (ANSWER, 0.0))
    run = cluster("simulator").simulate(parts.Deployment(pool), load)
    steps = [step for step in run.workers["worker-0"].steps if step.prefill_tokens]
    computed = list(accumulate(step.prefill_tokens / 1000 for step in steps))
    first = sorted(record.first_token / SECOND for record in run.records.values())
    numbers = {
        "computed / asked prompt tokens": computed[-1] * 1000 / (REQUESTS * PROMPT),
        "all is done after, s": run.end / SECOND,
        "answers, tokens/s": REQUESTS * ANSWER * SECOND / run.end,
        "mean TTFT, s": ttft_ms(run) / 1000,
    }
    lines = {
        "prompt tokens computed": ([step.end / SECOND for step in steps], computed),
        "in prompts that have an answer": (first, [(n + 1) * PROMPT / 1000 for n in range(REQUESTS)]),
    }
    return Outcome(numbers, lines)


def check(broken: Mapping[str, float], repaired: Mapping[str, float]) -> None:
    """Nothing is computed twice, and all are faster."""
    assert repaired["computed / asked prompt tokens"] == 1 < 2 < broken["computed / asked prompt tokens"]
    assert repaired["answers, tokens/s"] > 1.5 * broken["answers, tokens/s"]
    assert repaired["mean TTFT, s"] < 0.6 * broken["mean TTFT, s"]


SCENARIO = Scenario(
    title="Prompts are preempted and computed again",
    complaint="vLLM 37307: with many long prompts and little memory, output falls from 100 to 1.5 tokens/s",
    broken="admitted as soon as the first chunk has pages",
    repaired="admitted when the worst case has pages",
    play=play,
    check=check,
    y="thousands of tokens",
    kind="steps",
)
