"""Recorded workloads: what is read, and what is refused."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from course.sim.trace_file import TraceError, read_azure, read_mooncake, read_trace
from tiny_llm_ref.cluster import workload
from tiny_llm_ref.cluster.workload import SECOND, Arrival


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def mooncake_line(**fields):
    line = {"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}
    return json.dumps({key: value for key, value in {**line, **fields}.items() if value is not None})


def test_a_mooncake_trace(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join([mooncake_line(timestamp=3000), "", mooncake_line(hash_ids=[3, 4])]) + "\n")
    assert read_mooncake(workload, path) == [Arrival(0, 600, 5, (3, 4)), Arrival(3 * SECOND, 600, 5, (1, 2))]


def test_jitter_stays_inside_a_tick(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(mooncake_line(timestamp=tick * 3000) for tick in range(40) for _ in range(50)))
    moved = read_mooncake(workload, path, rng())
    times = np.array([arrival.time_ns for arrival in moved])
    assert (np.diff(times) >= 0).all()
    assert len(np.unique(times)) > 1900
    assert np.bincount(times // (3 * SECOND)).tolist() == [50] * 40
    assert read_mooncake(workload, path, rng()) == moved


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "trace.jsonl:2: "),
        (mooncake_line(output_length=None), "output_length"),
        (mooncake_line(input_length="12"), "input_length"),
        (mooncake_line(hash_ids=[1, 2, 3]), "3 hash_ids for 600 tokens: expected 2"),
        (mooncake_line(input_length=0, hash_ids=[]), "at least one token"),
        (mooncake_line(output_length=0), "at least one token"),
        (mooncake_line(timestamp=-1), "from 0 on"),
        (mooncake_line(timestamp=None), "timestamp"),
    ],
)
def test_a_broken_mooncake_line_is_named(tmp_path, line, words):
    path = tmp_path / "trace.jsonl"
    path.write_text(mooncake_line() + "\n" + line + "\n")
    with pytest.raises(TraceError, match=r"trace\.jsonl:2: ") as caught:
        read_mooncake(workload, path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"


def test_an_azure_trace_keeps_nanoseconds(tmp_path):
    path = tmp_path / "azure.csv"
    rows = ["2023-11-16 23:59:59.9999999,10,3", "2023-11-17 00:00:01,20,4", "2023-11-17 00:00:02,9,0"]
    path.write_text("\r\n".join([AZURE, *rows]) + "\r\n")
    assert read_azure(workload, path) == [Arrival(0, 10, 3), Arrival(SECOND + 100, 20, 4)]
    path.write_text(f"{AZURE}\n2024-05-10 00:00:00.009930+00:00,2162,5\n")
    assert read_azure(workload, path) == [Arrival(0, 2162, 5)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the header is ''"),
        ("time,in,out\n", "TIMESTAMP,ContextTokens"),
        (f"{AZURE}\nyesterday,1,2\n", "azure.csv:2: "),
        (f"{AZURE}\n2023-11-16 18:15:46.68,1\n", "azure.csv:2: "),
        (f"{AZURE}\n2023-11-16 18:15:46.6x,1,2\n", "azure.csv:2: "),
        (f"{AZURE}\n2023-11-16 18:15:46,1.5,2\n", "two counts"),
        (f"{AZURE}\n2023-11-16 18:15:46,0,2\n", "at least one token"),
    ],
)
def test_a_broken_azure_file_is_named(tmp_path, text, words):
    path = tmp_path / "azure.csv"
    path.write_text(text)
    with pytest.raises(TraceError) as caught:
        read_azure(workload, path)
    assert words in str(caught.value)


def test_a_packed_file_is_no_trace(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"\x1f\x8b\xff\xfe")
    with pytest.raises(TraceError, match="unpacked"):
        read_mooncake(workload, path)


def test_the_public_conversation_trace():
    path = Path(os.environ.get("TINY_LLM_DATA", "none")) / "mooncake_conversation_trace.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    arrivals = read_mooncake(workload, path)
    ids = [i for arrival in arrivals for i in arrival.hash_ids]
    assert (len(arrivals), len(ids), len(set(ids))) == (12_031, 288_500, 182_790)
    assert np.mean([arrival.input_length for arrival in arrivals]) == pytest.approx(12_035, abs=1)
    assert np.mean([arrival.output_length for arrival in arrivals]) == pytest.approx(343, abs=1)
    assert len({arrival.time_ns for arrival in read_mooncake(workload, path, rng())}) > 12_000


def test_the_first_line_tells_the_format(tmp_path):
    path = tmp_path / "trace"
    path.write_text(mooncake_line())
    assert read_trace(workload, path) == [Arrival(0, 600, 5, (1, 2))]
    path.write_text(f"{AZURE}\n2024-05-10 00:00:00,2162,5\n")
    assert read_trace(workload, path) == [Arrival(0, 2162, 5)]
