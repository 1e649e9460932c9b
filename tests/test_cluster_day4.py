"""The router beside what is graded: engines that tell their caches, long random channels, other policies, a trace."""

import gc
import json
import os
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from reference import Reference

from course.cluster_case.caches import Channel, chained, random_change, score
from tiny_llm_ref.cluster.active import Added
from tiny_llm_ref.cluster.balance import LeastLoaded, PowerOfTwo, RandomChoice, RoundRobin
from tiny_llm_ref.cluster.cost import Mocker
from tiny_llm_ref.cluster.events import Event, EventFeed, Question
from tiny_llm_ref.cluster.hashing import key_hashes, local_hashes, salt_for, sequence_hashes, traced_hashes
from tiny_llm_ref.cluster.indexer import Block, PrefixIndex, Removed, Stored
from tiny_llm_ref.cluster.kernel import Phase, Simulation
from tiny_llm_ref.cluster.policies import Balanced, KvAware
from tiny_llm_ref.cluster.recent_index import RecentIndex
from tiny_llm_ref.cluster.replica import Replica
from tiny_llm_ref.cluster.router import Router, RouterConfig
from tiny_llm_ref.cluster.routing import CostConfig, RouteRequest
from tiny_llm_ref.cluster.trace_memory import TraceMemory
from tiny_llm_ref.cluster.trace_request import TraceRequest
from tiny_llm_ref.cluster.worker_cache import tell
from tiny_llm_ref.serving.mixed import MixedScheduler
from tiny_llm_ref.serving.prefix_memory import PrefixMemory
from tiny_llm_ref.serving.request import Batch, Request, Sampled

REFERENCE = Reference()

# --- hashes


def test_hashes_are_the_same_in_every_process():
    assert local_hashes([1, 2], 2) == [17194678563286049698]
    assert sequence_hashes([1, 2]) == [1, 477281783565308466]
    assert all(0 <= number < 1 << 64 for number in local_hashes(list(range(64)), 1))


def test_salts_differ():
    assert local_hashes([1, 2, 3, 4], 2, salt_for(lora="a")) != local_hashes([1, 2, 3, 4], 2)
    assert len({salt_for(), salt_for("a"), salt_for(None, "a"), salt_for("a", "a"), salt_for("b")}) == 5


# --- index and events


@pytest.mark.parametrize("capacity", [1, 3, 8, 1000])
@pytest.mark.parametrize("seed", range(12))
def test_a_bad_channel_loses_nothing(seed, capacity):
    """Longer and with more workers than the graded case; three of them leave, and others take their places."""
    rng, index = Random(seed), PrefixIndex()
    channel = Channel(REFERENCE, index, 6, capacity, seed)
    for step in range(400):
        worker = rng.choice(list(channel.caches))
        channel.change(worker, random_change(rng, channel.caches[worker]))
        while channel.flying and rng.random() < 0.6:
            channel.deliver()
        if step % 100 == 99:
            channel.leave(worker)
        if rng.random() < 0.05:
            worker = rng.choice(list(channel.caches))
            channel.ask(worker, channel.feed.repeat(worker))
    assert channel.settle(200)
    paths = dict.fromkeys(path for cache in channel.caches.values() for path in cache)
    for path in paths:
        want = {worker: own for worker, cache in channel.caches.items() if (own := score(cache, path))}
        assert index.match(chained(path)) == want
    assert len(index.holders) == len(paths)
    for worker in list(channel.caches):
        channel.leave(worker)
    assert not index.holders


def test_a_known_worker_cannot_come_again():
    index = PrefixIndex()
    index.add_worker("a")
    with pytest.raises(ValueError, match="in the index already"):
        index.add_worker("a")


# --- the engine's cache


@pytest.mark.parametrize("kind", [PrefixMemory, TraceMemory])
@pytest.mark.parametrize("seed", range(8))
def test_events_of_an_engine_describe_its_cache(seed, kind):
    """Random prompts with common beginnings, aborts, preemption and eviction: the index always equals the tree."""
    rng = Random(seed)
    feed = feed_of_one()
    sent: list[Event] = []

    def send(event: Event) -> None:
        sent.append(event)
        assert feed.receive("a", event) is None

    memory = kind(6, 64, 4, 24)
    log = tell(memory, 16, send)
    scheduler = MixedScheduler(memory, 16)
    stem = [rng.randrange(3) for _ in range(40)]
    for uid in range(40):
        ids = stem[: rng.randrange(30)] + [rng.randrange(3) for _ in range(rng.randrange(1, 12))]
        scheduler.add(Request(uid, ids, rng.randrange(1, 8)))
        for _ in range(rng.randrange(4)):
            step(scheduler, rng)
        if rng.random() < 0.2:
            scheduler.abort(uid)
        assert_tree(memory, feed.index)
    while step(scheduler, rng):
        assert_tree(memory, feed.index)
    assert any(isinstance(event.change, Removed) for event in sent)
    late = feed_of_one()  # another router, which comes now
    assert late.recover("a", log.answer(Question(0))) is None
    assert_tree(memory, late.index)
    with pytest.raises(ValueError, match="holds pages already"):
        tell(memory, 16, send)


def feed_of_one() -> EventFeed:
    feed = EventFeed(PrefixIndex())
    feed.add_worker("a")
    return feed


def step(scheduler: MixedScheduler, rng: Random) -> bool:
    if (batch := scheduler.next_batch()) is None:
        return False
    scheduler.commit(batch, [Sampled(rng.randrange(3)) for _ in batch.sampling])
    return True


def assert_tree(memory: PrefixMemory, index: PrefixIndex) -> None:
    """Each page of the radix tree is a node of the index, and no other."""
    paths, todo = [], [(memory.tree.root, ())]
    while todo:
        node, path = todo.pop()
        for key in key_hashes(node.keys):
            path = (*path, key)
            paths.append(path)
        todo += [(child, path) for child in node.children.values()]
    assert sorted(sequence_hashes(path)[-1] for path in paths) == sorted(index.blocks["a"])
    assert all(index.match(sequence_hashes(path)) == {"a": len(path)} for path in paths)
    assert len(memory.tree.names) == len(paths)


def test_a_split_and_a_duplicate_tell_nothing():
    told = []
    memory = PrefixMemory(4, 32, 2, 16)
    tell(memory, 16, lambda event: told.append(event.change))
    scheduler = MixedScheduler(memory, 64)
    for uid, ids in enumerate([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [1, 2, 9, 9, 9, 9]]):
        scheduler.add(Request(uid, ids, 1))  # all three in one batch: nobody finds anything
    batch = scheduler.next_batch()
    assert len(batch.steps) == 3
    scheduler.commit(batch, [Sampled(0)] * 3)
    one, two = local_hashes([1, 2, 3, 4, 5, 6], 2), local_hashes([9, 9, 9, 9], 2)
    names = sequence_hashes(one)
    assert told == [
        Stored(None, tuple(map(Block, names, one))),
        Stored(names[0], tuple(map(Block, sequence_hashes(two, names[0]), two))),
    ]


# --- router


POLICIES = {
    "random": lambda rng: Balanced(RandomChoice(rng)),
    "round robin": lambda rng: Balanced(RoundRobin()),
    "least loaded": lambda rng: Balanced(LeastLoaded(rng)),
    "power of two": lambda rng: Balanced(PowerOfTwo(rng)),
    "kv": KvAware,
}


def router(policy: str, workers=4, seed=0, index=None, queue=None, **config) -> Router:
    made = Router(POLICIES[policy](Random(seed)), RouterConfig(block_size=4, **config), index, queue)
    for n in range(workers):
        assert made.add_worker(n, 0) == []
    return made


@pytest.mark.parametrize("policy", POLICIES)
def test_same_seed_same_choices_and_all_workers_get_some(policy):
    def run(seed: int) -> list[Hashable]:
        one = router(policy, seed=seed, index=RecentIndex())
        return [one.submit(RouteRequest(uid, 40), uid).worker for uid in range(200)]

    assert run(1) == run(1)
    counts = Counter(run(1))
    assert len(counts) == 4
    assert min(counts.values()) >= 30
    if policy != "round robin":
        assert run(1) != run(2)
    if policy in ("least loaded", "round robin", "kv"):
        assert set(counts.values()) == {50}


def test_two_choices_are_nearly_even():
    worst = {}
    for policy in ("random", "power of two"):
        one = router(policy, workers=50)
        worst[policy] = max(Counter(one.submit(RouteRequest(uid, 1), 0).worker for uid in range(2500)).values())
    assert worst["power of two"] <= 54 < 60 <= worst["random"]


def test_a_cached_prefix_attracts_until_the_load_is_worth_more():
    feed = EventFeed(PrefixIndex())
    one = router("kv", workers=2, index=feed)
    feed.receive(1, Event(0, Stored(None, tuple(Block(n, n) for n in range(10)))))
    prompt = tuple(sequence_hashes(range(10)))
    request = RouteRequest(0, 40, prompt)
    decision = one.submit(request, 0)
    assert decision == (0, 1, 10)
    assert one.load.workers[1].prefill_tokens == 0
    for uid in range(1, 5):  # unlike ones go elsewhere
        assert one.submit(RouteRequest(uid, 4, (100 + uid,)), 0).worker == 0
    assert one.submit(RouteRequest(9, 40, prompt), 0).worker == 1
    one.free(9, 0)
    blind = replace(request, uid=10, cost=CostConfig(credit=0, track_prefill=False, assume_reuse=False))
    assert one.submit(blind, 0).worker == 0
    assert one.load.workers[0].prefill_tokens == 16


def test_busy_workers_let_requests_wait():
    one = router("least loaded", workers=2, busy_prefill_tokens=50)
    assert {one.submit(RouteRequest(uid, 60, arrival=uid), uid).worker for uid in (0, 1)} == {0, 1}
    assert one.submit(RouteRequest(2, 60, arrival=2), 2) is None
    assert one.submit(RouteRequest(3, 60, arrival=3), 3) is None
    assert one.submit(RouteRequest(4, 60, arrival=4, priority=1), 4) is None
    with pytest.raises(ValueError, match="here already"):
        one.submit(RouteRequest(3, 60), 4)
    assert [each.uid for each in one.prefill_done(0, 5)] == [4]
    assert [each.uid for each in one.free(1, 6)] == [2]
    assert one.free(3, 7) == []
    assert not one.queue
    assert one.merge(Added("other", 0, 99, (), 60), 8) == []


@pytest.mark.parametrize("seed", range(20))
def test_nobody_waits_while_a_worker_is_free_and_fcfs_never_overtakes(seed):
    rng = Random(seed)
    one = router(
        rng.choice(["kv", "least loaded", "round robin"]), seed=seed, index=RecentIndex(), busy_prefill_tokens=60
    )
    running, waiting = [], {}
    for now in range(400):
        roll, decisions = rng.random(), []
        if roll < 0.5:
            eligible = rng.choice([None, None, (0, 1), (2,)])
            priority, size = rng.randrange(2), rng.randrange(80)
            request = RouteRequest(now, size, (now,), now, priority, eligible=eligible)
            waiting[now] = request
            decision = one.submit(request, now)
            decisions = [decision] if decision else []
        elif roll < 0.75 and running:
            decisions = one.prefill_done(rng.choice(running), now)
        elif roll < 0.95 and running:
            decisions = one.free(running.pop(rng.randrange(len(running))), now)
        elif waiting:
            gone = rng.choice(list(waiting))
            del waiting[gone]
            decisions = one.free(gone, now)
        for decision in decisions:
            request = waiting.pop(decision.uid)
            running.append(decision.uid)
            assert request.eligible is None or decision.worker in request.eligible
            assert not [
                other.uid
                for other in waiting.values()
                if other.eligible in (None, request.eligible)
                and (-other.priority, other.arrival) < (-request.priority, request.arrival)
            ]
        free = [worker for worker in one.workers if one.load.workers[worker].prefill_tokens <= 60]
        assert not [each.uid for each in waiting.values() if each.eligible is None and free]
        assert not [each.uid for each in waiting.values() if each.eligible and set(each.eligible) & set(free)]
        assert sorted(waiting) == sorted(each.uid for each in one.queue)


def test_a_lost_worker_takes_its_requests_and_those_that_wait_for_it():
    one = router("random", workers=2, busy_prefill_tokens=0)
    one.submit(RouteRequest(0, 9, eligible=(0,)), 0)
    one.submit(RouteRequest(1, 9, eligible=(1,)), 0)
    assert one.submit(RouteRequest(2, 9, eligible=(0,)), 0) is None
    assert one.submit(RouteRequest(3, 9), 0) is None
    assert one.remove_worker(0) == [2]
    assert list(one.placed) == [1]
    assert [each.uid for each in one.queue] == [3]
    assert [each.uid for each in one.add_worker(2, 1)] == [3]
    assert one.expire(10**20) == []
    assert one.load.inflight == {1: 0, 2: 0}
    assert not one.placed


# --- a trace

TRACE = Path(os.environ.get("TINY_LLM_DATA", "no data")) / "mooncake_conversation_trace.jsonl"
WORKERS, PAGE, PAGES = 8, 64, 16_384


class Deployment:
    """A KV-aware router before simulated engines whose caches tell it everything at once."""

    def __init__(self, rows: list[dict]):
        self.rows, self.simulation = rows, Simulation()
        self.first, self.last = np.zeros(len(rows)), np.zeros(len(rows))
        self.feed = EventFeed(PrefixIndex(traced_hashes))
        self.router = Router(KvAware(Random(0)), RouterConfig(PAGE), self.feed)
        self.replicas = [self.replica(worker) for worker in range(WORKERS)]
        for uid, row in enumerate(rows):
            request = TraceRequest(uid, row["input_length"], 1 << 20, row["hash_ids"])
            self.simulation.at(row["timestamp"] * 10**6, Phase.ADMISSION, self.admit, request)

    def replica(self, worker: int) -> Replica:
        memory = TraceMemory(256, 1 << 20, PAGE, PAGES)
        tell(memory, 16, lambda event: self.feed.receive(worker, event), naming=traced_hashes)
        self.router.add_worker(worker, 0)
        finish = self.rows.__getitem__
        scheduler = MixedScheduler(memory, 8192)
        cost = Mocker(PAGES * PAGE)
        return Replica(self.simulation, scheduler, cost, lambda request: finish(request.uid)["output_length"], self)

    def admit(self, request: TraceRequest) -> None:
        blocks = key_hashes(request.page_keys(PAGE, request.prompt_len))
        now = self.simulation.now
        decision = self.router.submit(RouteRequest(request.uid, request.prompt_len, blocks, now), now)
        self.replicas[decision.worker].add(request)

    def ran(self, batch: Batch, start: int, ends: Sequence[int]) -> None:
        for each in batch.sampling:
            if not self.first[each.request.uid]:
                self.first[each.request.uid] = ends[0]
                self.router.prefill_done(each.request.uid, int(ends[0]))

    def ended(self, request: Request, time: int) -> None:
        self.last[request.uid] = time
        self.router.free(request.uid, time)


@pytest.mark.skipif(not TRACE.exists(), reason=f"{TRACE} is not there: set TINY_LLM_DATA")
def test_the_kv_router_is_that_of_dynamos_replay() -> None:
    rows = [json.loads(line) for line in TRACE.read_text().splitlines()]
    gc.disable()  # millions of nodes live long, and none is in a cycle that matters here
    try:
        one = Deployment(rows)
        one.simulation.run()
    finally:
        gc.enable()
    arrivals = np.array([row["timestamp"] for row in rows])
    outputs = np.array([row["output_length"] for row in rows])
    first, last = one.first / 1e6, one.last / 1e6
    tpot = (last - first)[outputs > 1] / (outputs[outputs > 1] - 1)
    means = np.array([(first - arrivals).mean(), tpot.mean(), (last - arrivals).mean()])
    assert (abs(means / (277, 8.22, 2757) - 1) < 0.03).all(), means
    asked, hit = (
        sum(getattr(each.scheduler, name) for each in one.replicas) for name in ("asked_tokens", "hit_tokens")
    )
    assert hit / asked == pytest.approx(0.20, abs=0.01)
    assert not one.router.placed
    assert not any(active.active_blocks or active.prefill_tokens for active in one.router.load.workers.values())
