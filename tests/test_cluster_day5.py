"""Disaggregation over random schedules: the five invariants of the connector, whatever goes wrong, and when."""

from random import Random

from course.soak.cluster import run_worlds
from tiny_llm_ref.cluster.prefill_aware import PrefillAware
from tiny_llm_ref.cluster.router import Router, RouterConfig
from tiny_llm_ref.cluster.routing import RouteRequest


def test_the_connector_keeps_its_invariants_over_random_schedules():
    counts = run_worlds("tiny_llm_ref", "connector", range(1000))
    assert min(counts[kind] for kind in ("copies", "crashes", "partitions", "false alarms", "left", "done")) > 200


def test_a_schedule_is_repeated_by_its_seed():
    assert run_worlds("tiny_llm_ref", "connector", range(7, 9)) == run_worlds("tiny_llm_ref", "connector", range(7, 9))


def test_a_worker_that_only_computes_prompts_is_chosen_by_prompt_work_alone():
    router = Router(PrefillAware(Random(0)), RouterConfig(4))
    for worker in ("a", "b"):
        router.add_worker(worker, 0)
    first = router.submit(RouteRequest(0, 400, tuple(range(100))), 0).worker
    router.prefill_done(0, 0)  # its 100 blocks are held there still, and nothing is to compute
    chosen = {router.submit(RouteRequest(uid, 4, (1000 + uid,)), 0).worker for uid in (1, 2)}
    assert first in chosen
    assert chosen == {"a", "b"}
