"""Block hashes, cache events, the index, active sequences, the router: worked examples, random schedules, a trace."""

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

from tiny_llm_ref.cluster.active import ActiveSequences, Added, Freed, Load, PrefillDone
from tiny_llm_ref.cluster.balance import LeastLoaded, PowerOfTwo, RandomChoice, RoundRobin
from tiny_llm_ref.cluster.cost import Mocker
from tiny_llm_ref.cluster.events import Dump, Event, EventFeed, EventLog, Events, Question, TooNew
from tiny_llm_ref.cluster.hashing import key_hashes, local_hashes, salt_for, sequence_hashes, traced_hashes
from tiny_llm_ref.cluster.indexer import Block, Cleared, PrefixIndex, Removed, Stored
from tiny_llm_ref.cluster.kernel import Phase, Simulation
from tiny_llm_ref.cluster.policies import Balanced, KvAware
from tiny_llm_ref.cluster.recent_index import RecentIndex
from tiny_llm_ref.cluster.replica import Replica
from tiny_llm_ref.cluster.router import Router, RouterConfig
from tiny_llm_ref.cluster.router_queue import SCORES, OverloadedError, RouterQueue
from tiny_llm_ref.cluster.routing import Candidate, CostConfig, RouteRequest, costs, credit_decay, probabilities
from tiny_llm_ref.cluster.trace_memory import TraceMemory
from tiny_llm_ref.cluster.trace_request import TraceRequest
from tiny_llm_ref.cluster.worker_cache import tell
from tiny_llm_ref.serving.mixed import MixedScheduler
from tiny_llm_ref.serving.prefix_memory import PrefixMemory
from tiny_llm_ref.serving.request import Batch, Request, Sampled

# --- hashes


def test_a_local_hash_forgets_what_is_before_and_a_sequence_hash_does_not():
    one, two = local_hashes([1, 2, 3, 4, 9], 2), local_hashes([7, 7, 3, 4], 2)
    assert len(one) == len(two) == 2  # the fifth token has no complete block
    assert one[1] == two[1]
    assert one[0] != two[0]
    first, second = sequence_hashes(one), sequence_hashes(two)
    assert first[0] == one[0]
    assert first[1] != second[1]
    assert sequence_hashes(one[1:], first[0]) == first[1:]
    assert local_hashes([1, 2, 3, 4], 2, salt_for(lora="a")) != local_hashes([1, 2, 3, 4], 2)
    assert len({salt_for(), salt_for("a"), salt_for(None, "a"), salt_for("a", "a"), salt_for("b")}) == 5


def test_hashes_are_the_same_in_every_process():
    assert local_hashes([1, 2], 2) == [17194678563286049698]
    assert sequence_hashes([1, 2]) == [1, 477281783565308466]
    assert all(0 <= number < 1 << 64 for number in local_hashes(list(range(64)), 1))


# --- index


class Truth:
    """A worker's cache by brute force: a set of paths of local hashes."""

    def __init__(self) -> None:
        self.paths: dict[tuple[int, ...], None] = {}

    def change(self, rng: Random) -> Stored | Removed | Cleared:
        """A random change that a worker may make: also one that evicts a parent before what is behind it."""
        roll = rng.random()
        if roll < 0.02:
            self.paths.clear()
            return Cleared()
        if roll < 0.4 and self.paths:
            gone = rng.sample(sorted(self.paths), rng.randint(1, min(3, len(self.paths))))
            for path in gone:
                del self.paths[path]
            return Removed(tuple(map(name, gone)))
        start = rng.choice([(), *sorted(self.paths)])
        blocks, path = [], start
        for _ in range(rng.randint(1, 3)):
            path = (*path, rng.randint(0, 2))
            self.paths[path] = None
            blocks.append(Block(name(path), path[-1]))
        return Stored(name(start) if start else None, tuple(blocks))

    def dump(self) -> list[Stored | Removed]:
        """Blocks that it lost before those behind them are stored, then removed: what is behind them needs a place."""
        every = dict.fromkeys(path[: i + 1] for path in self.paths for i in range(len(path)))
        stored = [Stored(name(path[:-1]) if path[1:] else None, (Block(name(path), path[-1]),)) for path in every]
        return [*stored, Removed(tuple(name(path) for path in every if path not in self.paths))]

    def score(self, query: tuple[int, ...]) -> int:
        """Consecutive leading blocks that it has."""
        return next((i for i in range(len(query)) if query[: i + 1] not in self.paths), len(query))


def name(path: tuple[int, ...]) -> int:
    return sequence_hashes([1000, *path])[-1]


def names(path: tuple[int, ...]) -> list[int]:
    """What the index calls the blocks; the workers use other names."""
    return sequence_hashes(path)


def assert_equal(index: PrefixIndex, truths: dict[Hashable, Truth], rng: Random) -> None:
    for _ in range(20):
        query = tuple(rng.randint(0, 2) for _ in range(rng.randint(0, 6)))
        want = {worker: score for worker, truth in truths.items() if (score := truth.score(query))}
        assert index.match(names(query)) == want
    for worker, truth in truths.items():
        assert sorted(index.blocks[worker]) == sorted(map(name, truth.paths))


@pytest.mark.parametrize("seed", range(20))
def test_scores_equal_those_of_brute_force(seed):
    rng = Random(seed)
    index, truths = PrefixIndex(), {}
    for step in range(200):
        if step % 40 == 0:
            truths[f"w{step}"] = Truth()
            index.add_worker(f"w{step}")
        if step == 170:
            gone = rng.choice(list(truths))
            del truths[gone]
            index.remove_worker(gone)
        worker = rng.choice(list(truths))
        assert index.apply(worker, truths[worker].change(rng))
        if step % 10 == 0:
            assert_equal(index, truths, rng)
    assert_equal(index, truths, rng)
    for worker, truth in truths.items():  # a dump gives another index the same blocks
        copy = PrefixIndex()
        copy.add_worker(worker)
        assert all(copy.apply(worker, change) for change in truth.dump())
        assert_equal(copy, {worker: truth}, rng)
    for worker in list(truths):
        index.remove_worker(worker)
    assert not index.holders  # nothing is left behind


# --- events


class Wire:
    """A channel that loses, doubles and reorders what workers and a router tell each other."""

    def __init__(self, seed: int, workers: int, capacity: int):
        self.rng = Random(seed)
        self.feed = EventFeed(PrefixIndex())
        self.truths = {f"w{i}": Truth() for i in range(workers)}
        self.logs = {worker: EventLog(capacity, truth.dump) for worker, truth in self.truths.items()}
        for worker in self.logs:
            self.feed.add_worker(worker)
        self.flying: list[tuple] = []
        self.questions = 0

    def send(self, message: tuple, lossy: bool = True) -> None:
        for _ in range(self.rng.choice([0, 1, 1, 1, 2]) if lossy else 1):
            self.flying.append(message)

    def deliver(self, lossy: bool = True) -> None:
        kind, worker, what = self.flying.pop(self.rng.randrange(len(self.flying)))
        if worker not in self.logs:
            return
        if kind == "question":
            self.send(("answer", worker, self.logs[worker].answer(what)), lossy)
            return
        question = self.feed.receive(worker, what) if kind == "event" else self.feed.recover(worker, what)
        self.ask(worker, question, lossy)

    def ask(self, worker: Hashable, question: Question | None, lossy: bool) -> None:
        if question is not None:
            self.questions += 1
            self.send(("question", worker, question), lossy)

    def settle(self) -> None:
        """No more changes; what flies arrives; each worker tells its newest number; questions are repeated."""
        for _ in range(4):
            while self.flying:
                self.deliver(lossy=False)
            for worker, log in self.logs.items():
                self.ask(worker, self.feed.repeat(worker), lossy=False)
                self.ask(worker, self.feed.hear(worker, log.last), lossy=False)
        assert not self.flying, "the index and the workers ask and answer without end"


@pytest.mark.parametrize("capacity", [1, 8, 1000])
@pytest.mark.parametrize("seed", range(25))
def test_after_quiescence_the_index_is_the_union_of_the_caches(seed, capacity):
    wire = Wire(seed, workers=3, capacity=capacity)
    rng = wire.rng
    for step in range(150):
        worker = rng.choice(list(wire.logs))
        wire.send(("event", worker, wire.logs[worker].publish(wire.truths[worker].change(rng))))
        while wire.flying and rng.random() < 0.7:
            wire.deliver()
        if step == 100:
            gone = rng.choice(list(wire.logs))
            wire.feed.remove_worker(gone)
            del wire.logs[gone], wire.truths[gone]
        if rng.random() < 0.05:
            worker = rng.choice(list(wire.logs))
            wire.ask(worker, wire.feed.repeat(worker), lossy=True)
    wire.settle()
    assert_equal(wire.feed.index, wire.truths, rng)
    assert wire.questions < 400


def stored(number: int, parent: int | None = None) -> Stored:
    return Stored(parent, (Block(number, number),))


def joined(capacity: int = 8, cache: Sequence[Stored] = ()) -> tuple[EventFeed, EventLog]:
    feed = EventFeed(PrefixIndex())
    feed.add_worker("a")
    return feed, EventLog(capacity, lambda: cache)


def test_numbers_decide_what_is_applied():
    feed, log = joined()
    events = [log.publish(stored(n)) for n in range(4)]
    assert feed.receive("a", events[0]) is None
    assert feed.receive("a", events[0]) is None  # again
    assert feed.receive("a", events[2]) == Question(1)
    assert feed.receive("a", events[3]) is None  # one question at a time
    assert feed.match([2], 0) == {}
    answer = log.answer(Question(1))
    assert answer == Events(tuple(events[1:]))
    assert feed.recover("a", answer) is None
    assert [feed.match([n], 0) for n in range(4)] == [{"a": 1}] * 4
    assert feed.cursors["a"].last == 3


def test_answers_by_age():
    _, log = joined(capacity=2, cache=[stored(0), stored(3)])
    assert log.answer(Question(0)) == TooNew(-1)
    for n in range(4):
        log.publish(stored(n))
    assert log.answer(Question(2)) == Events((Event(2, stored(2)), Event(3, stored(3))))
    assert log.answer(Question(1)) == Dump(3, (stored(0), stored(3)))
    assert log.answer(Question(None)) == log.answer(Question(0))
    assert log.answer(Question(4)) == TooNew(3)


def test_first_contact_in_the_middle_takes_the_whole_tree_and_goes_on_from_there():
    feed, log = joined(capacity=2, cache=[stored(n) for n in range(5)])
    events = [log.publish(stored(n)) for n in range(5)]
    question = feed.receive("a", events[4])
    assert question == Question(0)
    assert feed.recover("a", log.answer(question)) is None
    assert feed.cursors["a"].last == 4
    assert feed.receive("a", log.publish(Removed((0,)))) is None  # the next number, not a gap
    assert feed.match([0], 0) == {}


def test_a_late_tree_does_not_bring_removed_blocks_back():
    feed, log = joined(cache=[stored(1)])
    feed.receive("a", log.publish(stored(1)))
    late = log.answer(Question(None))
    feed.receive("a", log.publish(Removed((1,))))
    assert feed.recover("a", late) is None
    assert feed.match([1], 0) == {}
    assert feed.cursors["a"].last == 1


def test_an_orphan_asks_once_for_the_tree():
    feed, log = joined(cache=[stored(2, parent=1), stored(3)])  # a worker that knows no better itself
    assert feed.receive("a", Event(0, stored(2, parent=1))) == Question(None)
    assert feed.receive("a", Event(1, stored(3))) is None
    log.publish(stored(2, parent=1))
    log.publish(stored(3))
    assert feed.recover("a", log.answer(Question(None))) is None
    assert feed.match([3], 0) == {"a": 1}
    assert feed.match([2], 0) == {}


def test_too_new_ends_the_questions():
    feed, log = joined()
    assert feed.hear("a", 7) == Question(0)
    assert feed.recover("a", log.answer(Question(0))) is None
    assert feed.repeat("a") is None


def test_events_of_a_removed_worker_change_nothing():
    feed, log = joined(cache=[stored(1)])
    event = log.publish(stored(1))
    feed.remove_worker("a")
    assert feed.receive("a", event) is None
    assert feed.recover("a", log.answer(Question(None))) is None
    assert feed.match([1], 0) == {}


# --- the engine's cache


@pytest.mark.parametrize("kind", [PrefixMemory, TraceMemory])
@pytest.mark.parametrize("seed", range(8))
def test_events_of_an_engine_describe_its_cache(seed, kind):
    """Random prompts with common beginnings, aborts, preemption and eviction: the index always equals the tree."""
    rng = Random(seed)
    feed, _ = joined()
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
    late, _ = joined()  # another router, which comes now
    assert late.recover("a", log.answer(Question(0))) is None
    assert_tree(memory, late.index)
    with pytest.raises(ValueError, match="holds pages already"):
        tell(memory, 16, send)


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


# --- approximate index


def test_decisions_are_believed_for_a_while():
    index = RecentIndex(ttl=100, limit=5)
    for worker in ("a", "b"):
        index.add_worker(worker)
    index.sent("a", [1, 2, 3], now=0)
    index.sent("b", [1, 2], now=50)
    index.sent("a", [1], now=90)
    assert index.match([1, 2, 3], 99) == {"a": 3, "b": 2}
    assert index.match([1, 2, 3], 100) == {"a": 1, "b": 2}
    index.sent("b", [7, 8, 9], now=110)  # six blocks: the oldest prompt goes before its time
    assert index.match([1, 2, 3], 110) == {"a": 1}
    assert index.blocks == 4
    index.remove_worker("a")
    assert index.match([1], 151) == {}
    assert index.match([7], 210) == {}
    assert not index.index.holders
    assert index.blocks == 0


# --- active sequences


@pytest.mark.parametrize("seed", range(10))
def test_active_blocks_equal_those_of_brute_force(seed):
    rng = Random(seed)
    active, truth = ActiveSequences(), {}
    for now in range(300):
        uid = rng.randrange(20)
        roll = rng.random()
        if roll < 0.5:
            path = tuple(sequence_hashes([rng.randrange(2) for _ in range(rng.randrange(6))]))
            assert active.add(uid, path, 10 * uid, now) == (uid not in truth)
            truth.setdefault(uid, [list(path), 10 * uid, now])
        elif roll < 0.7:
            active.prefill_done(uid)
            if uid in truth:
                truth[uid][1] = 0
        elif roll < 0.98:
            active.free(uid)
            truth.pop(uid, None)
        else:
            old = active.expire(now, 40)
            assert old == [uid for uid, (_, _, start) in truth.items() if now - start >= 40]
            truth = {uid: each for uid, each in truth.items() if uid not in old}
        blocks = {block for each, _, _ in truth.values() for block in each}
        query = sequence_hashes([rng.randrange(2) for _ in range(rng.randrange(6))])
        assert active.active_blocks == len(blocks)
        assert active.blocks_with(query) == len(blocks | set(query))
        assert active.prefill_tokens == sum(tokens for _, tokens, _ in truth.values())
        assert list(active.requests) == list(truth)


def test_routers_tell_each_other_and_ignore_echoes():
    loads = [Load("x"), Load("y")]
    for load in loads:
        load.add_worker("w")
    news = loads[0].own(Added("x", "w", 7, (1, 2), 30), 0)
    for load in loads:
        load.merge(news, 0)
    assert [load.workers["w"].prefill_tokens for load in loads] == [30, 30]
    for news in (PrefillDone("y", "w", 7), Freed("y", "w", 7), Freed("y", "gone", 7)):
        loads[1].own(news, 1)
        loads[0].merge(news, 1)
    assert [load.workers["w"].active_blocks for load in loads] == [0, 0]
    loads[0].merge(Added("x", "w", 7, (1, 2), 30), 2)  # its own word, late: the request would never end
    assert not loads[0].workers["w"].requests


# --- cost


def test_costs_of_the_worked_example():
    workers = [Candidate("a", 2, 0, 10), Candidate("b", 5, 0, 5), Candidate("c", 8, 0, 9)]
    assert costs(workers, 640, 64, CostConfig()) == [18, 10, 11]
    assert costs(workers, 640, 64, CostConfig(credit=0)) == [20, 15, 19]
    assert costs(workers, 640, 64, CostConfig(prefill_scale=2)) == [26, 15, 13]
    wide = [Candidate("a", 0, 64, 0, 3, host=4, disk=8, shared=2)]
    assert costs(wide, 640, 64, CostConfig(active=2, shared=0.5)) == [11 - 3 - 2 - 1 + 6]
    assert costs([Candidate("a", 8, 0, 1)], 64, 64, CostConfig()) == [1]
    busy = [Candidate("a", 8, 640), Candidate("b", 8, 1280)]  # only what one has more than the other counts
    assert costs(busy, 640, 64, CostConfig(decay=1)) == [20 - 8, 30 - 4]


def test_probabilities_of_the_worked_example():
    wanted = {
        0.1: [0.0, 0.7773, 0.2227],
        0.5: [0.0707, 0.5224, 0.4069],
        1.0: [0.1635, 0.4444, 0.3922],
        2.0: [0.2382, 0.3928, 0.3690],
    }
    for temperature, want in wanted.items():
        assert [round(p, 4) for p in probabilities([18, 10, 11], temperature)] == want
    assert probabilities([18, 10, 11], 0) == [0, 1, 0]
    assert probabilities([5, 9, 5], 0) == [0.5, 0, 0.5]
    assert probabilities([3, 3], 1.0) == [0.5, 0.5]
    assert probabilities([0, 1, 2], 1e-300) == [1, 0, 0]
    with pytest.raises(ValueError, match="below 0"):
        probabilities([1.0], -1)


@pytest.mark.parametrize(("k", "wanted"), [(0, [1, 1, 1]), (0.5, [1, 0.6667, 0.3333]), (1.0, [1, 0.5, 0.2])])
def test_credit_decay_of_the_worked_example(k, wanted):
    config = CostConfig(decay=k)
    assert [round(credit_decay(config, excess, 1024, 64), 4) for excess in (0, 1024, 4096)] == wanted


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


def test_ties_at_zero_overlap_spread():
    counts: Counter = Counter()
    for seed in range(400):
        one = router("kv", seed=seed, index=EventFeed(PrefixIndex()))
        counts[one.submit(RouteRequest(0, 40, (1, 2)), 0).worker] += 1
    assert min(counts.values()) > 70


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


def test_overloaded_workers_are_left_out_and_all_of_them_refuse():
    one = router("least loaded", workers=2, overload_blocks=2)
    assert one.submit(RouteRequest(0, 12, (1, 2, 3)), 0)
    free = next(worker for worker in one.workers if worker != one.placed[0])
    assert [one.submit(RouteRequest(uid, 4, (1,)), 0).worker for uid in (1, 2)] == [free] * 2
    one.submit(RouteRequest(3, 12, (5, 6, 7)), 0)
    with pytest.raises(OverloadedError, match="all are overloaded"):
        one.submit(RouteRequest(4, 4), 0)
    one.free(0, 1)
    assert one.submit(RouteRequest(4, 4), 1)
    with pytest.raises(OverloadedError):
        one.submit(RouteRequest(5, 4, eligible=("nobody",)), 1)


def test_the_queue_has_a_limit_in_each_priority():
    one = router("random", workers=1, busy_prefill_tokens=0, queue=RouterQueue(limit=100))
    one.submit(RouteRequest(0, 1), 0)
    assert one.submit(RouteRequest(1, 90), 0) is None
    with pytest.raises(OverloadedError, match="limit is 100"):
        one.submit(RouteRequest(2, 20), 0)
    assert one.submit(RouteRequest(2, 20, priority=1), 0) is None
    one.free(1, 0)
    assert one.submit(RouteRequest(3, 20), 0) is None


@pytest.mark.parametrize(("policy", "order"), [("fcfs", [1, 2, 0]), ("lcfs", [2, 0, 1]), ("wspt", [1, 2, 0])])
def test_orders_of_the_queue(policy, order):
    queue = RouterQueue(SCORES[policy])
    for uid, (arrival, jump, new) in enumerate([(30, 0, 90), (10, 0, 10), (40, 25, 500)]):
        queue.push(RouteRequest(uid, new, arrival=arrival, jump=jump), new)
    gone = []
    queue.release(lambda request: gone.append(request.uid) or True)
    assert gone == order
    assert not queue


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
