"""Disaggregation over random schedules: the five invariants of the connector, whatever goes wrong, and when."""

from course.soak.cluster import run_worlds


def test_the_connector_keeps_its_invariants_over_random_schedules():
    counts = run_worlds("tiny_llm_ref", "connector", range(1000))
    assert min(counts[kind] for kind in ("copies", "crashes", "partitions", "false alarms", "left", "done")) > 200


def test_a_schedule_is_repeated_by_its_seed():
    assert run_worlds("tiny_llm_ref", "connector", range(7, 9)) == run_worlds("tiny_llm_ref", "connector", range(7, 9))
