"""The load generator and the comparison of engines run on a small model; the numbers themselves are not judged here."""

import asyncio
import itertools
import json

import httpx
import pytest
from benches.common.load_client import Answer, Target, ask
from benches.common.load_plan import Plan, plain_tokens
from benches.common.load_report import report
from test_bench import assert_one_line, assert_spread, bench
from tokenizers import Tokenizer

from course.models import EMBEDDED
from course.paths import REFERENCE
from course.variant import build


@pytest.fixture(scope="module", autouse=True)
def extension() -> None:
    build(REFERENCE.name)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(EMBEDDED["tiny"] / "tokenizer.json"))


def test_prompts_have_their_length_and_share_their_prefix(tokenizer):
    plan = Plan(requests=6, input_length=40, output_length=4, prefix=24, prefixes=2, seed=3)
    prompts = plan.prompts(tokenizer)
    assert len(set(prompts)) == 6
    shared = [tokenizer.decode(tokenizer.encode(p, add_special_tokens=False).ids[:16]) for p in prompts]
    assert len(set(shared)) == 2
    assert shared[0] == shared[2] == shared[4]
    for prompt in prompts:
        assert 36 <= len(tokenizer.encode(prompt, add_special_tokens=False).ids) <= 44
    assert prompts == plan.prompts(tokenizer)


def test_prompts_hold_no_special_token(tokenizer):
    special = tokenizer.token_to_id("<|im_end|>")
    assert special is not None
    assert special not in plain_tokens(tokenizer)


def test_poisson_arrivals_have_the_rate_that_was_asked_for():
    arrivals = Plan(requests=4000, input_length=1, output_length=1, rate=50.0).arrivals()
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] == pytest.approx(4000 / 50, rel=0.1)
    gaps = [b - a for a, b in itertools.pairwise(arrivals)]
    assert sum(gap < 0.01 for gap in gaps) / len(gaps) == pytest.approx(0.393, abs=0.03)  # 1 - exp(-1/2)


def test_a_report_by_hand():
    fast = Answer(sent=1.0, pieces=[1.1, 1.2, 1.4], done=1.5, input_tokens=10, output_tokens=3)
    slow = Answer(sent=1.0, pieces=[2.0, 3.0], done=3.0, input_tokens=10, output_tokens=2)
    failed = Answer(sent=1.0, done=1.2, error="status 429")
    numbers = report([fast, slow, failed], {"ttft": 500, "tpot": 200})
    assert (numbers["completed"], numbers["failed"], numbers["errors"]) == (2, 1, ["status 429"])
    assert numbers["duration_s"] == pytest.approx(2.0)
    assert numbers["output_tokens_per_s"] == pytest.approx(2.5)
    assert numbers["total_tokens_per_s"] == pytest.approx(12.5)
    assert numbers["goodput_requests_per_s"] == pytest.approx(0.5)
    assert numbers["ttft_ms"]["mean"] == pytest.approx((100 + 1000) / 2)
    assert numbers["tpot_ms"]["mean"] == pytest.approx((150 + 1000) / 2)
    assert numbers["itl_ms"]["mean"] == pytest.approx((100 + 200 + 1000) / 3)


@pytest.mark.parametrize(
    ("events", "error"),
    [
        (['{"choices": [{"text": "a"}]}', "[DONE]"], None),
        (['{"choices": [{"text": "a"}]}'], "the answer was cut off"),
        (["[DONE]"], "the answer held no text"),
        (['{"choices": [{"text": "a"}]}', '{"error": {"message": "no"}}', "[DONE]"], "{'message': 'no'}"),
        (["{oops", "[DONE]"], "JSONDecodeError"),
        (["null", "[DONE]"], "an event holds no object"),
    ],
)
def test_only_a_whole_answer_counts(events, error):
    """A server that breaks off is not a fast one."""
    text = "".join(f"data: {event}\n\n" for event in events)

    async def asked() -> Answer:
        transport = httpx.MockTransport(lambda request: httpx.Response(200, text=text))
        async with httpx.AsyncClient(transport=transport) as client:
            return await ask(client, Target("http://x", "m", 4), "prompt")

    got = asyncio.run(asked()).error
    assert got is None if error is None else error in got


def test_serve_bench_measures_a_server_of_ours(tmp_path):
    file, plot = tmp_path / "numbers.json", tmp_path / "plot.svg"
    load = ("--requests", "6", "--rate", "50", "--concurrency", "3", "--input-length", "20", "--output-length", "4")
    out = ("--json", str(file), "--plot", str(plot), "--goodput", "ttft:60000")
    done = bench("serve", *load, *out, "--", "--ops", "python", "--scheduler", "mixed")
    assert done.returncode == 0, done.stderr
    found = json.loads(file.read_text())["results"]
    assert (found["completed"], found["failed"], found["output_tokens"]) == (6, 0, 24)
    assert found["goodput_requests_per_s"] == pytest.approx(found["requests_per_s"])
    assert 0 < found["ttft_ms"]["p50"] <= found["ttft_ms"]["p99"] < found["e2el_ms"]["p99"] + 1
    assert "</svg>" in plot.read_text()


def test_engine_bench_compares_with_mlx_lm(tmp_path):
    file, plot = tmp_path / "numbers.json", tmp_path / "plot.svg"
    small = (
        "--concurrency",
        "1",
        "3",
        "--input-length",
        "6",
        "--prefix",
        "16",
        "--output-length",
        "3",
        "--rounds",
        "1",
    )
    done = bench("engine", *small, "--json", str(file), "--plot", str(plot))
    assert done.returncode == 0, done.stderr
    results = json.loads(file.read_text())["results"]
    assert [result["concurrency"] for result in results] == [1, 3]
    for result in results:
        for name in ("ours", "mlx-lm", "ratio"):
            assert_spread(result[name])
    assert "</svg>" in plot.read_text()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--prefix", "8", "--input-length", "8"), "--prefix 8 must be below --input-length 8"),
        (("--url", "http://127.0.0.1:9", "--requests", "2"), "all 2 requests failed, the first error is ConnectError"),
        (("--", "--scheduler", "lottery"), "the server did not start"),
    ],
)
def test_serve_bench_says_what_is_wrong(options, part):
    assert_one_line(bench("serve", *options), part)
