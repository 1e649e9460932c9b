"""The reference's sampler of a batch: what a request draws depends on nothing but itself."""

import mlx.core as mx
import numpy as np
import pytest

from tiny_llm_ref.serving.batch_sampler import BatchSampler
from tiny_llm_ref.serving.request import Request, Sampled, Step
from tiny_llm_ref.text.sampler import Sampler, SamplingParams, log_probabilities

V = 40
MIXED = [
    SamplingParams(temperature=0.0),
    SamplingParams(temperature=0.8, seed=3),
    SamplingParams(temperature=0.0, repetition_penalty=1.5),
    SamplingParams(temperature=1.2, top_k=7, top_p=0.9, min_p=0.01, repetition_penalty=1.2, seed=4),
    SamplingParams(temperature=1.0, seed=3),
]


def requests_of(logprobs: list[int | None] | None = None) -> list[Request]:
    wishes = logprobs or [None] * len(MIXED)
    return [
        Request(uid, [uid, 7, 9], 99, params, logprobs=wish)
        for uid, (params, wish) in enumerate(zip(MIXED, wishes, strict=True))
    ]


def logits_of(request: Request, dtype: mx.Dtype) -> mx.array:
    """Numbers that depend on the request's ids alone, with ties."""
    rng = np.random.default_rng([request.uid, len(request.ids)])
    return mx.array((rng.standard_normal(V) * 3).round(1).astype(np.float32)).astype(dtype)


def draw(sampler: BatchSampler, requests: list[Request], dtype: mx.Dtype = mx.float32) -> list[Sampled]:
    steps = [Step(request, 0, len(request.ids), True) for request in requests]
    return sampler(mx.stack([logits_of(request, dtype) for request in requests]), steps).results()


def alone(request: Request, draws: int, dtype: mx.Dtype = mx.float32) -> list[int]:
    own, sampler = Request(request.uid, list(request.ids), 99), Sampler([request.sampling])
    for _ in range(draws):
        own.ids.append(int(sampler(logits_of(own, dtype)[None], [own.ids])[0]))
    return own.ids[len(request.ids) :]


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
def test_any_mix_draws_what_each_draws_alone(dtype: mx.Dtype) -> None:
    requests, rng, sampler = requests_of(), np.random.default_rng(0), BatchSampler()
    want = [alone(request, 12, dtype) for request in requests]
    while chosen := [r for r in requests if len(r.ids) < 15 and rng.random() < 0.6] or [
        r for r in requests if len(r.ids) < 15
    ]:
        for request, result in zip(chosen, draw(sampler, chosen, dtype), strict=True):
            request.ids.append(result.token)
    assert [request.ids[3:] for request in requests] == want


def test_a_request_that_was_reset_draws_on() -> None:
    request, sampler = requests_of()[3], BatchSampler()
    want = alone(request, 6)
    for i in range(6):
        if i == 3:
            request.reset()
        request.ids.append(draw(sampler, [request])[0].token)
    assert request.ids[3:] == want


def test_an_equal_uid_is_another_stream() -> None:
    first, second, sampler = requests_of()[1], requests_of()[1], BatchSampler()
    assert draw(sampler, [first]) == draw(sampler, [second])


def test_log_probabilities_are_those_of_raw_logits_and_only_where_asked() -> None:
    requests = requests_of([None, 0, 2, 5, 3])
    raw = [np.array(log_probabilities(logits_of(request, mx.float32))) for request in requests]
    results = draw(BatchSampler(), requests)
    assert results[0] == Sampled(results[0].token)
    for request, scores, result in zip(requests[1:], raw[1:], results[1:], strict=True):
        assert result.logprob == pytest.approx(scores[result.token], rel=1e-6)
        best = np.sort(scores)[::-1][: request.logprobs]
        assert [value for _, value in result.top] == pytest.approx(best, rel=1e-6)
        assert [scores[token] for token, _ in result.top] == pytest.approx(best, rel=1e-6)


def test_greedy_rows_need_no_history() -> None:
    request = Request(1, [1, 2], 9)
    request.ids.clear()  # the device is ahead of the host
    logits = mx.array([[0.0, 2.0, 2.0, 1.0]])
    assert BatchSampler()(logits, [Step(request, 1, 2, True)]).results() == [Sampled(1)]
