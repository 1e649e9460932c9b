"""Bodies that no client should send, to both endpoints: always an answer, never a 5xx, and the engine is idle after."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from course.serving_case.http import MODEL, Served, served
from course.serving_case.scripted import ScriptedRunner, text_tokenizer
from course.solution import Solution

PATHS = ["/v1/completions", "/v1/chat/completions"]
SOME = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

numbers = st.one_of(
    st.integers(),
    st.sampled_from([0, 1, -1, 2**31, 2**63, -(2**63), 2**64, 10**30, 1e308, -0.0, 1e-320]),
    st.floats(allow_nan=False, allow_infinity=False),
)
texts = st.one_of(st.text(max_size=20), st.sampled_from(["", "\0", "\ud83e", "<|special|>", "🦊", "a" * 3000]))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)
FIELDS = [
    "model", "prompt", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "min_p",
    "repetition_penalty", "seed", "n", "stop", "stop_token_ids", "ignore_eos", "stream", "stream_options", "logprobs",
    "top_logprobs", "logit_bias", "tools", "response_format", "chat_template_kwargs", "unknown",
]  # fmt: skip
NEAR = {
    "prompt": st.one_of(
        st.lists(st.integers(-1, 300), max_size=300), st.lists(st.lists(st.integers(0, 256), max_size=4))
    ),
    "messages": st.lists(
        st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant", "tool", ""]), "content": texts}),
        max_size=4,
    ),
    "temperature": st.floats(-0.1, 2.1),
    "top_p": st.floats(-0.1, 1.1),
    "n": st.integers(-1, 20),
    "max_tokens": st.integers(-1, 300),
    "stop": st.lists(texts, max_size=5),
    "stream": st.booleans(),
    "logprobs": st.one_of(st.booleans(), st.integers(-1, 6)),
}
GOOD = {"model": MODEL, "prompt": "abc", "messages": [{"role": "user", "content": "abc"}], "max_tokens": 3}


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A good body with some fields replaced, left out, or near the edge; sometimes with bytes broken."""
    body = dict(GOOD)
    for field in draw(st.lists(st.sampled_from(FIELDS), max_size=4)):
        body[field] = draw(st.one_of(values, NEAR.get(field, values), NEAR.get(field, values)))
    if draw(st.integers(0, 9)) == 0:
        body.pop(draw(st.sampled_from(list(body))), None)
    data = json.dumps(body, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=4)) + data[at + draw(st.integers(0, 3)) :]
    return data


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    limits = {"body_bytes": 20_000}
    with served(
        Solution("tiny_llm_ref"), text_tokenizer()[0], ScriptedRunner(), rows=16, limit=32, limits=limits
    ) as it:
        yield it


def check(server: Served, path: str, body: bytes) -> dict[str, object]:
    """Ask, and see that there was an answer of a kind that is allowed."""
    answer = server.post(path, body)
    assert answer["status"] in (200, 400, 404, 413), answer
    if "events" in answer:
        assert answer["events"][-1] == "[DONE]"
        assert not any("error" in event for event in answer["events"][:-1])
    elif answer["status"] == 200:
        assert answer["json"]["choices"], answer
    else:
        assert answer["json"]["error"]["message"], answer
    assert not server.watch.errors
    return answer


@SOME
@given(path=st.sampled_from(PATHS), body=bodies())
def test_bodies_near_good_ones(server, path, body):
    check(server, path, body)


@SOME
@given(
    path=st.sampled_from(PATHS), body=st.one_of(st.binary(max_size=200), values.map(lambda v: json.dumps(v).encode()))
)
@example(path=PATHS[0], body=b"[" * 15_000)
@example(path=PATHS[0], body=b'{"x":' * 3_000)
@example(path=PATHS[1], body=b'{"model": "scripted", "messages": [{"role": "user", "content": "\xff"}]}')
@example(path=PATHS[0], body=b"x" * 20_001)
@example(path=PATHS[0], body=b'{"model": "scripted", "prompt": "x", "max_tokens": ' + b"9" * 5000 + b"}")
@example(path=PATHS[0], body=b'{"model": "scripted", "prompt": "x", "temperature": NaN}')
def test_bodies_of_any_kind(server, path, body):
    check(server, path, body)


def test_a_good_request_after_all_that(server):
    assert check(server, PATHS[0], json.dumps(GOOD).encode())["status"] == 200
    assert check(server, PATHS[1], json.dumps(GOOD).encode())["status"] == 200
    assert server.idle()
    assert not server.engine.queues
