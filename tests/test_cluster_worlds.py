"""`soak cluster`: a thousand random schedules of faults break nothing, and each kind of mistake is found."""

import asyncio
from itertools import count

import pytest
from serving_program import course

from course.cluster_case.scene import TTL
from course.cluster_case.world import World
from course.commands.soak import WORLDS as TOLD
from course.soak.cluster import WORLDS, run_worlds
from course.soak.schedules import ScheduleError
from course.solution import Solution

COUNT = 1000
SECOND = 1_000_000_000


@pytest.mark.timeout(900)
def test_many_random_schedules_violate_nothing():
    counts = run_worlds("tiny_llm_ref", "discovery", range(COUNT))
    assert counts["requests"] == 10 * COUNT
    assert counts["migrations"] > COUNT, "the schedules hardly harm anybody"
    assert min(counts[kind] for kind in ("crash", "cut", "block", "leave", "cut client", "strand")) > COUNT / 2


def test_a_schedule_repeats():
    def log(seed):
        world = World(Solution("tiny_llm_ref"), seed)
        return world.run(), world.registry.renewed

    assert log(3) == log(3) != log(4)


def never_alone(patch, module):
    patch(module("runtime").Runtime, "alive", property(lambda self: self.state not in ("starting", "stopped")))


def no_self_cancel(patch, module):
    patch(module("lease").Discovery, "keep_alive", lambda self: asyncio.sleep(1e6))


def believes_for_longer(patch, module):
    patch(module("lease").Discovery, "alive", property(lambda self: self.clock.now < self.deadline + TTL))
    never_alone(patch, module)


def forgets_what_was_generated(patch, module):
    progress = module("migration").Progress
    rest = lambda self: {"token_ids": self.prompt, "max_tokens": self.max_tokens - len(self.tokens)}  # noqa: E731
    patch(progress, "request", rest)


def expires_late(patch, module):
    registry = module("discovery").Registry
    expire = registry.expire
    patch(registry, "expire", lambda self, now: expire(self, now - SECOND))


def reuses_ids(patch, module):
    registry = module("discovery").Registry
    grant = registry.grant

    def again(self, now):
        self.numbers = count(len(self.leases) + 1)
        return grant(self, now)

    patch(registry, "grant", again)


def misses_removals(patch, module):
    view = module("discovery").View
    apply = view.apply
    patch(view, "apply", lambda self, change: [] if change.value is None else apply(self, change))
    patch(module("client").Client, "report_down", lambda self, instance_id: None)


MISTAKES = [
    never_alone,
    no_self_cancel,
    believes_for_longer,
    forgets_what_was_generated,
    expires_late,
    reuses_ids,
    misses_removals,
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_schedules_find_mistakes(monkeypatch, mistake):
    solution = Solution("tiny_llm_ref")
    monkeypatch.setattr("course.soak.cluster.Solution", lambda package: solution)
    mistake(monkeypatch.setattr, lambda name: solution.module(f"cluster.{name}"))
    with pytest.raises(
        ScheduleError, match=r"pdm run soak cluster --world discovery --solution tiny_llm_ref --seed \d+"
    ):
        run_worlds("tiny_llm_ref", "discovery", range(60))


def test_the_command_tells_what_it_ran():
    done = course("soak", "cluster", "--count", "5", "--solution", "tiny_llm_ref")
    assert (done.returncode, done.stderr) == (0, b"")
    for name, holds in TOLD.items():
        assert f"{name}: 5 schedules: " in done.stdout.decode()
        assert holds in done.stdout.decode()
    assert TOLD.keys() == WORLDS.keys()


def test_a_seed_is_replayed_alone():
    done = course("soak", "cluster", "--world", "discovery", "--seed", "7", "--solution", "tiny_llm_ref")
    assert b"discovery: 1 schedules: " in done.stdout
    wrong = course("soak", "cluster", "--world", "nowhere")
    assert wrong.returncode == 2
    assert "nowhere" in wrong.stderr.decode()
