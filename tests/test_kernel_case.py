"""The judgement of kernel cases, on values that no kernel made."""

import mlx.core as mx
import numpy as np
import pytest

from course.kernel_case import judge, judge_proof, judge_traffic

RIGHT = np.array([1.0, 2.0, 3.0])
FINDING = {"kind": "race_write_write", "message": "x.metal:3: data race", "file": "x.metal", "line": 3, "fatal": False}


def launch(findings: tuple[dict, ...] = (), **counters: int) -> dict[str, object]:
    return {"kernel": "x", "findings": list(findings), "counters": counters}


def values(*launches: dict[str, object], result: np.ndarray = RIGHT) -> dict[str, object]:
    return {"result": mx.array(result.astype(np.float32)), "launches": list(launches)}


def test_right_values_without_findings_pass():
    judge(values(launch()), RIGHT)


def test_right_values_with_a_finding_fail():
    with pytest.raises(AssertionError, match=r"(?s)the values are right.*data race"):
        judge(values(launch((FINDING,))), RIGHT)


def test_a_finding_is_told_before_wrong_values():
    with pytest.raises(AssertionError, match=r"(?s)\A[^\n]*data race.*first wrong"):
        judge(values(launch((FINDING,)), result=RIGHT + 1), RIGHT)


def test_a_run_without_any_launch_fails():
    with pytest.raises(AssertionError, match="no Metal kernel was launched"):
        judge(values(), RIGHT)


def test_counters_add_up_over_launches_and_have_a_limit():
    run = values(launch(device_read_bytes=600), launch(device_read_bytes=400))
    judge_traffic(run, "x", {"device_read_bytes": 500})
    with pytest.raises(AssertionError, match="1,000 device read bytes, expected about 499"):
        judge_traffic(run, "x", {"device_read_bytes": 499})
    with pytest.raises(AssertionError, match="y was never launched"):
        judge_traffic(run, "y", {"device_read_bytes": 499})


@pytest.mark.parametrize(
    ("counts", "disturbed", "message"),
    [
        ({}, RIGHT + 8, "never called"),
        ({"x": 1}, RIGHT, "does not depend"),
        ({"x": 1}, RIGHT + 1e-6, "does not depend"),
    ],
)
def test_a_kernel_must_be_called_and_must_matter(counts: dict[str, int], disturbed: np.ndarray, message: str):
    arrays = {"result": mx.array(RIGHT), "disturbed": {"x": mx.array(disturbed)}}
    with pytest.raises(AssertionError, match=message):
        judge_proof({"counts": counts, **arrays}, ["x"])


def test_a_kernel_that_matters_passes():
    arrays = {"result": mx.array(RIGHT), "disturbed": {"x": mx.array(RIGHT + np.array([8.0, 0.0, 0.0]))}}
    judge_proof({"counts": {"x": 1}, **arrays}, ["x"])
