"""Day 4, KV-aware routing: sets of paths are the oracle of the index, exact fractions that of the costs, and plain
books that of the router."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from hashlib import blake2b
from itertools import pairwise
from struct import pack

from course.case import case, error_of
from course.cluster_case.caches import (
    Channel,
    Held,
    NameSets,
    Path,
    Plain,
    alter,
    chained,
    change_of,
    external,
    random_change,
    score,
)
from course.suspects import named


def explain(got: object, want: object, text: str, mistakes: dict[str, object] | None = None) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    if got != want:
        raise AssertionError(f"{text}\n{named(m for m, value in (mistakes or {}).items() if value == got)}".strip())


def alike(got: Sequence[float], want: Sequence[float], text: str, mistakes: dict[str, Sequence[float]]) -> None:
    """As `explain`, for floats: the same to 1 part in 10 ** 9 of the largest."""

    def near(these: Sequence[float]) -> bool:
        scale = max(map(abs, these), default=0.0) or 1.0
        return len(got) == len(these) and all(abs(a - b) <= 1e-9 * scale for a, b in zip(got, these, strict=True))

    if not near(want):
        found = named(mistake for mistake, values in mistakes.items() if near(values))
        raise AssertionError(f"{text}: got {rounded(got)}, expected {rounded(want)}\n{found}".strip())


def rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 4) for value in values]


# Task 1


def digest_of(data: bytes) -> int:
    """What `digest` gives, from the definition."""
    return int.from_bytes(blake2b(data, digest_size=8, salt=(1337).to_bytes(8, "little")).digest(), "little")


def chain(locals_: Sequence[int], parent: int | None, join, first=lambda local: local) -> list[int]:
    """Names by a rule: `join(parent, local)`, and `first(local)` at a beginning."""
    names = []
    for local in locals_:
        parent = first(local) if parent is None else join(parent, local)
        names.append(parent)
    return names


@case(task=1, params=[{"parent": None}, {"parent": 0}, {"parent": 2**64 - 1}])
class NamesHoldAllThatIsBefore:
    """The name of a block is made from its local hash and the name of the block before it; the first is its own."""

    def inputs(rng, parent):
        return {"locals": [*rng.integers(0, 2**63, 6).tolist(), 0, 2**64 - 1], "parent": parent}

    def observe(solution, inputs):
        sequence_hashes = solution.module("cluster.hashing").sequence_hashes
        return [list(sequence_hashes(inputs["locals"], inputs["parent"])), list(sequence_hashes([], 5))]

    def verify(inputs, got):
        locals_, parent = inputs["locals"], inputs["parent"]

        def joined(before: int, local: int) -> int:
            return digest_of(pack("<QQ", before, local))

        text = f"the names of the local hashes {locals_} behind {parent} are {got[0]}"
        explain(got[0], chain(locals_, parent, joined), text, {
            "nothing of what is before goes in: equal blocks have one name after any prefix": locals_,
            "the block before goes in with its local hash, and so no more than two blocks do": [
                *chain(locals_[:1], parent, joined),
                *(joined(a, b) for a, b in pairwise(locals_)),
            ],
            "the local hash came before the parent": chain(locals_, parent, lambda a, b: joined(b, a)),
            "a parent of 0 was taken for none": chain(locals_, parent or None, joined),
            "the parent is not used": chain(locals_, None, joined),
            "the first block was hashed again, without a parent": chain(
                locals_, parent, joined, lambda local: digest_of(pack("<Q", local))
            ),
            "the first block was hashed with a parent of 0": chain(locals_, parent or 0, joined),
            "big-endian numbers": chain(locals_, parent, lambda a, b: digest_of(pack(">QQ", a, b))),
        })  # fmt: skip
        explain(got[1], [], f"no blocks have the names {got[1]}")


@case(task=1)
class NamesGoOnFromAParent:
    """A prompt cut anywhere has the names that it has in one piece, also for real tokens, and the salt changes all."""

    def inputs(rng):
        prompt = rng.integers(0, 1000, 35).tolist()
        return {"prompt": prompt, "other": [p + 1 for p in prompt[:4]] + prompt[4:], "at": int(rng.integers(1, 8))}

    def observe(solution, inputs):
        hashing, at = solution.module("cluster.hashing"), inputs["at"]

        def names(tokens, salt=hashing.SALT):
            return hashing.sequence_hashes(hashing.local_hashes(tokens, 4, salt))

        whole, locals_ = names(inputs["prompt"]), hashing.local_hashes(inputs["prompt"], 4)
        cut = [*hashing.sequence_hashes(locals_[:at]), *hashing.sequence_hashes(locals_[at:], whole[at - 1])]
        salted = names(inputs["prompt"], hashing.salt_for(lora="a"))
        return {"whole": whole, "cut": cut, "other": names(inputs["other"]), "salted": salted}

    def verify(inputs, got):
        whole = got["whole"]
        explain(len(whole), 8, f"35 tokens have {len(whole)} complete blocks of 4, expected 8")
        explain(got["cut"], whole, f"cut behind block {inputs['at']} the names are {got['cut']}, in one piece {whole}")
        for other, what in (("other", "after another first block"), ("salted", "with the salt of an adapter")):
            shared = len(set(whole) & set(got[other]))
            explain(shared, 0, f"{shared} of 8 blocks have the same name {what}: their keys and values are others")


def told(answer) -> list:
    """An answer as plain values."""
    kind = type(answer).__name__
    if kind == "Events":
        return [kind, [event.number for event in answer.events], [event.change.blocks[0] for event in answer.events]]
    return [kind, answer.last] + ([len(answer.changes)] if kind == "Dump" else [])


@case(task=1, params=[{"capacity": c, "events": n} for c, n in [(1, 0), (1, 3), (4, 3), (4, 4), (4, 9)]])
class AnswersComeByAge:
    """A question for events that are all in the ring is answered with them, up to the newest; one for older ones, or
    for everything, with the whole tree; one for a number to come with `TooNew`."""

    def inputs(rng, capacity, events):
        return {"capacity": capacity, "events": events, "blocks": rng.integers(1, 1000, events).tolist()}

    def observe(solution, inputs):
        events, of = solution.module("cluster.events"), solution.module("cluster.indexer")
        log = events.EventLog(inputs["capacity"], lambda: iter([of.Cleared()] * 3))
        for block in inputs["blocks"]:
            log.publish(of.Removed((block,)))
        return [told(log.answer(events.Question(first))) for first in [None, *range(inputs["events"] + 2)]]

    def verify(inputs, got):
        n, capacity, blocks = inputs["events"], inputs["capacity"], inputs["blocks"]
        dump, new = ["Dump", n - 1, 3], ["TooNew", n - 1]
        for first, answer in zip([None, *range(n + 2)], got, strict=True):
            events = ["Events", list(range(first or 0, n)), blocks[first or 0 :]]
            kept = range(max(n - capacity, 0), n)
            want = dump if first is None else new if first >= n else events if first in kept else dump
            text = f"events 0 to {n - 1} were published, the ring holds {capacity}. The answer to {first} is {answer}"
            explain(answer, want, f"{text}, expected {want}", {
                "the events that are still there were sent, though older ones were asked for: the gap stays": [
                    "Events", list(kept), [blocks[i] for i in kept],
                ],
                "the whole tree was sent, though the events are in the ring": dump,
                "no events at all were sent for a number to come: who asked would ask again": [
                    "Events", [], [],
                ],
                "the first event that was asked for is missing": [
                    "Events", list(range((first or 0) + 1, n)), blocks[(first or 0) + 1 :],
                ],
                "the newest number is asked for, and is no number to come": new,
            })  # fmt: skip


def feed_of(solution):
    """A feed with worker 0 and an index of names."""
    feed = solution.module("cluster.events").EventFeed(NameSets())
    feed.add_worker(0)
    return feed


def event_of(solution, number: int, plain: Plain):
    """An event of worker 0."""
    return solution.module("cluster.events").Event(number, change_of(solution, 0, plain))


def single(number: int, parent: Path = ()) -> Plain:
    """Block `number` was stored."""
    return ["stored", parent, [number]]


def asked(question) -> list | None:
    """A question as plain values."""
    return None if question is None else [question.first]


def held(feed, *numbers: int) -> list[int]:
    """Which of these single blocks the index of a feed has."""
    return [n for n in numbers if external(0, (n,)) in feed.index.held[0]]


@case(task=1)
class EventsApplyOnceAndInOrder:
    """Only the event after the last one that was applied is applied. Older ones came twice, newer ones show a gap."""

    def inputs(rng):
        return {"numbers": [0, 1, 1, 0, 3, 2, 3, 2, *rng.integers(0, 8, 60).tolist()]}

    def observe(solution, inputs):
        feed, seen = feed_of(solution), []
        for number in inputs["numbers"]:
            feed.receive(0, event_of(solution, number, single(number)))
            seen.append([len(feed.index.applied), feed.cursors[0].last])
        blocks = [change.blocks[0].local for _, change in feed.index.applied]
        return {"seen": seen, "blocks": blocks}

    def verify(inputs, got):
        last, want = -1, []
        for number in inputs["numbers"]:
            last += number == last + 1
            want.append([last + 1, last])
        numbers, blocks = inputs["numbers"], got["blocks"]
        text = f"events came in the order {numbers}, and {blocks} were applied, expected {list(range(last + 1))}"
        explain(blocks, list(range(last + 1)), text, {
            "one that came twice was applied twice": numbers,
            "one behind a gap was applied: what is between them is lost": [
                n for i, n in enumerate(numbers) if n > max(numbers[:i], default=-1)
            ],
        })  # fmt: skip
        explain(got["seen"], want, f"applied events and cursor after each: {got['seen']}, expected {want}")


@case(task=1)
class AGapIsAskedForOnce:
    """A gap leads to one question, from the first event that is missing; no more until its answer has come."""

    def inputs(rng):
        first = int(rng.integers(2, 9))
        return {"first": first, "newest": first + int(rng.integers(3, 6)), "early": int(rng.integers(0, 2))}

    def observe(solution, inputs):
        events, feed = solution.module("cluster.events"), feed_of(solution)
        first, newest = inputs["first"], inputs["newest"]
        questions = [asked(feed.receive(0, event_of(solution, n, single(n)))) for n in range(first)]
        questions += [asked(feed.receive(0, event_of(solution, n, single(n)))) for n in range(first + 1, newest + 1)]
        heard, again = asked(feed.hear(0, newest + 5)), asked(feed.repeat(0))
        end = newest - 1 - inputs["early"]  # the answer was made before the newest ones, which were dropped
        answer = events.Events(tuple(event_of(solution, n, single(n)) for n in range(first, end + 1)))
        next_ = asked(feed.recover(0, answer))
        rest = events.Events(tuple(event_of(solution, n, single(n)) for n in range(end + 1, newest + 6)))
        last = asked(feed.recover(0, rest))
        out = [heard, again, next_, last, asked(feed.repeat(0)), asked(feed.hear(0, newest + 5))]
        return {"questions": questions, "out": out, "end": end, "applied": len(feed.index.applied)}

    def verify(inputs, got):
        first, newest, end = inputs["first"], inputs["newest"], got["end"]
        want = [None] * first + [[first]] + [None] * (newest - first - 1)
        text = (
            f"events 0 to {first - 1} and {first + 1} to {newest} came, and after each was asked: {got['questions']}, "
            f"expected {want}"
        )
        explain(got["questions"], want, text, {
            "it asks again with each event behind the gap": [None] * first + [[first]] * (newest - first),
            "it asks from the event that came, not from the first that is missing": [
                *[None] * first, [first + 1], *[None] * (newest - first - 1),
            ],
            "it asks from the last event that it has": [
                *[None] * first, [first - 1], *[None] * (newest - first - 1),
            ],
            "it asks for the whole tree, though the events may still be there": [
                *[None] * first, [None], *[None] * (newest - first - 1),
            ],
            "it never asks": [None] * newest,
        })  # fmt: skip
        names = [
            "a newer number was heard of while a question is out",
            "the question is to be repeated",
            f"the answer had events up to {end}",
            "the rest came",
            "after that a question is to be repeated",
            "the newest number was heard of again",
        ]
        for what, question, right in zip(names, got["out"], [None, [first], [end + 1], None, None, None], strict=True):
            explain(question, right, f"{what}: asked {question}, expected {right}", {
                "a question is out: its answer must come first": None if right is None else [0],
                "events that were heard of are still missing: it must ask for the next": right and None,
            })  # fmt: skip
        explain(got["applied"], newest + 6, f"{got['applied']} events were applied, expected {newest + 6}")


@case(task=1)
class TheLastEventCanBeLost:
    """Who hears nothing cannot know that the last event was lost: so a worker's word of its newest number is enough."""

    def inputs(rng):
        return {"events": int(rng.integers(1, 6))}

    def observe(solution, inputs):
        feed, n = feed_of(solution), inputs["events"]
        log = [asked(feed.receive(0, event_of(solution, number, single(number)))) for number in range(n)]
        return log + [asked(feed.hear(0, number)) for number in (n - 2, n - 1, n + 2)]

    def verify(inputs, got):
        n = inputs["events"]
        want = [None] * (n + 2) + [[n]]
        text = f"{n} events came; then the number before the newest was heard, the newest, and one that is three more"
        explain(got, want, f"{text}. Asked after each: {got}, expected {want}", {
            "it asks although nothing is missing": [[1], *[None] * (n + 2)],
            "what was only heard of is never asked for": [None] * (n + 3),
        })  # fmt: skip


@case(task=1)
class AnOrphanAsksForTheTree:
    """A block whose parent is unknown is not taken, and is not counted either: the whole tree is asked for, once."""

    def inputs(rng):
        return {"parent": int(rng.integers(10, 20))}

    def observe(solution, inputs):
        events, feed = solution.module("cluster.events"), feed_of(solution)
        orphan = event_of(solution, 1, single(2, (inputs["parent"],)))
        log = [asked(feed.receive(0, event_of(solution, 0, single(1))))]
        log += [asked(feed.receive(0, one)) for one in (orphan, orphan, event_of(solution, 2, single(3)))]
        cursor = feed.cursors[0].last
        tree = events.Dump(2, (change_of(solution, 0, single(1)), change_of(solution, 0, single(3))))
        log.append(asked(feed.recover(0, tree)))
        log.append(asked(feed.receive(0, event_of(solution, 4, single(5)))))
        return {"log": log, "cursor": cursor, "held": held(feed, 1, 3, 5)}

    def verify(inputs, got):
        want = [None, [None], None, None, None, [3]]
        text = (
            "event 0 came, then 1, a block behind an unknown one, twice, then 2, the whole tree up to 2, and event 4. "
            f"Asked after each: {got['log']}, expected {want}"
        )
        explain(got["log"], want, text, {
            "it asks for the event again: the answer would be the same block without its parent, without end": [
                None, [1], None, None, None, [3],
            ],
            "the block was passed over in silence: the index lacks it, and nobody knows": [None] * 5 + [[3]],
            "it asks for the tree again, although it came": [None, [None], None, None, [None], None],
            "after the tree it still asks for everything, and not for the event that is missing": [
                None, [None], None, None, None, [None],
            ],
        })  # fmt: skip
        explain(got["cursor"], 0, f"the cursor is at {got['cursor']} then, expected 0: the event was not taken")
        explain(got["held"], [1, 3], f"in the end the index has {got['held']} of the blocks 1, 3 and 5")


@case(task=1)
class ATreeIsNoEvent:
    """A tree replaces all that was known of its worker, and its changes have no numbers: the next event is the one
    after the last that it covers."""

    def inputs(rng):
        return {"last": int(rng.integers(20, 40)), "blocks": rng.permutation(100)[: int(rng.integers(2, 8))].tolist()}

    def observe(solution, inputs):
        events, feed = solution.module("cluster.events"), feed_of(solution)
        feed.receive(0, event_of(solution, 0, single(500)))
        first = asked(feed.receive(0, event_of(solution, inputs["last"], single(501))))
        tree = tuple(change_of(solution, 0, single(block)) for block in inputs["blocks"])
        answer = events.Dump(inputs["last"], tree)
        after = asked(feed.recover(0, answer))
        cursor = feed.cursors[0].last
        next_ = asked(feed.receive(0, event_of(solution, inputs["last"] + 1, single(502))))
        return [first, after, cursor, next_, held(feed, 500, 502, *inputs["blocks"])]

    def verify(inputs, got):
        last, blocks = inputs["last"], inputs["blocks"]
        first, after, cursor, next_, has = got
        explain(first, [1], f"event 0 and event {last} came, and {first} was asked, expected [1]")
        text = f"a tree of {len(blocks)} changes that covers event {last} came: the cursor is at {cursor}"
        explain(cursor, last, f"{text}, expected {last}", {
            "its changes were counted as if they were events: then numbers do not fit any more, and it asks without "
            "end": len(blocks),
            "its changes were counted behind its last event": last + len(blocks),
            "the cursor did not move: it will ask for the same again": 0,
        })  # fmt: skip
        explain(after, None, f"after the tree {after} was asked, though nothing is missing")
        explain(next_, None, f"the next event came, number {last + 1}, and {next_} was asked")
        explain(has, [502, *blocks], f"the index has {has}, expected {[502, *blocks]}", {
            "a block that the worker has lost meanwhile stayed: the tree replaces all that was known": [
                500, 502, *blocks,
            ],
        })  # fmt: skip


@case(task=1, params=[{"last": 0}, {"last": 1}])
class AnOldTreeChangesNothing:
    """A tree that covers no more than the cursor comes too late: blocks that were removed since would come back."""

    def inputs(rng, last):
        return {"block": int(rng.integers(1, 100)), "last": last}

    def observe(solution, inputs):
        events, feed, block = solution.module("cluster.events"), feed_of(solution), inputs["block"]
        feed.receive(0, event_of(solution, 0, single(block)))
        feed.receive(0, event_of(solution, 1, ["removed", [(block,)]]))
        late = events.Dump(inputs["last"], (change_of(solution, 0, single(block)),))
        first = [asked(feed.recover(0, late)), held(feed, block), feed.cursors[0].last]
        gap = [asked(feed.receive(0, event_of(solution, 3, single(block + 200)))), asked(feed.recover(0, late))]
        full = events.Events(tuple(event_of(solution, n, single(block + 98 + n)) for n in (2, 3)))
        return [*first, [*gap, asked(feed.recover(0, full)), feed.cursors[0].last]]

    def verify(inputs, got):
        text = f"a tree came that covers event {inputs['last']}, and the index is at event 1"
        explain(got[1], [], f"{text}: block {inputs['block']}, which event 1 removed, is in the index again", {
            "a tree that came late was applied: removed blocks come back": [inputs["block"]],
        })  # fmt: skip
        explain(got[2], 1, f"{text}: the cursor went back to {got[2]}")
        explain(got[0], None, f"{text}: {got[0]} was asked, though nothing is missing")
        want = [[2], [2], None, 3]
        explain(got[3], want, "event 3 came, the tree once more, then events 2 and 3; asked after each, and the "
            f"cursor: {got[3]}, expected {want}", {
            "an answer that changes nothing must end the question, too: the router never asks again": [
                [2], None, None, 3],
        })  # fmt: skip


@case(task=1)
class TooNewEndsTheQuestions:
    """`TooNew` says that no such event exists: to ask for it again would never end."""

    def inputs(rng):
        return {"heard": int(rng.integers(3, 9))}

    def observe(solution, inputs):
        events, feed = solution.module("cluster.events"), feed_of(solution)
        log = [asked(feed.receive(0, event_of(solution, 0, single(1)))), asked(feed.hear(0, inputs["heard"]))]
        log += [asked(feed.recover(0, events.TooNew(0))), asked(feed.repeat(0))]
        log += [asked(feed.receive(0, event_of(solution, n, single(n)))) for n in (1, 3)]
        return log

    def verify(inputs, got):
        want = [None, [1], None, None, None, [2]]
        text = (
            f"event 0 came, somebody told of event {inputs['heard']}, the worker answered that 0 is its newest; then "
            f"event 1 came, and 3. Asked after each, with one to repeat in between: {got}, expected {want}"
        )
        explain(got, want, text, {
            "it asks again for what does not exist, without end": [None, [1], [1], [1], None, None],
            "after `TooNew` it never asks again": [None, [1], None, None, None, None],
        })  # fmt: skip


@case(task=1)
class GoneWorkersStayGone:
    """Answers and events of a worker that discovery has lost change nothing."""

    def inputs(rng):
        return {"number": int(rng.integers(0, 5))}

    def observe(solution, inputs):
        events, feed, n = solution.module("cluster.events"), feed_of(solution), inputs["number"]
        one = event_of(solution, n, single(1))
        feed.remove_worker(0)
        answers = [events.Events((one,)), events.Dump(n, (change_of(solution, 0, single(1)),)), events.TooNew(n)]
        results = [error_of(lambda a=answer: asked(feed.recover(0, a))) for answer in answers]
        return [results, list(feed.index.held), asked(feed.receive(0, one))]

    def verify(inputs, got):
        for result in got[0]:
            explain(result, {"type": None, "value": None}, f"a late answer of a removed worker gave {result}", {
                "the worker is looked up as if it were there": {"type": "KeyError", "message": "0"},
            })  # fmt: skip
        explain(got[1:], [[], None], f"the workers of the index are {got[1]} after all of them are gone")


def story(seed: int, steps: int, workers: int) -> list[list]:
    """What happens to a router's workers: [worker, change], and once [worker, None] where one leaves."""
    rng, caches = random.Random(seed), {worker: {} for worker in range(workers)}
    happens = []
    for step in range(steps):
        worker = rng.choice(list(caches))
        if step == steps * 2 // 3:
            del caches[worker]
            happens.append([worker, None])
            continue
        change = random_change(rng, caches[worker])
        alter(caches[worker], change)
        happens.append([worker, change])
    return happens


def ending(happens: list[list], workers: int) -> dict[int, Held]:
    """The caches at the end of a story."""
    caches: dict[int, Held] = {worker: {} for worker in range(workers)}
    for worker, change in happens:
        if change is None:
            del caches[worker]
        else:
            alter(caches[worker], change)
    return caches


MOST = 200
"""Questions after which a router that still asks is said never to end; it needs a few per worker."""


def broadcast(solution, index, inputs: dict) -> tuple[Channel, bool]:
    """Play a story over a channel; returns the channel when all is quiet, and whether it ever is."""
    channel = Channel(solution, index, inputs["workers"], inputs["capacity"], inputs["seed"])
    for worker, change in inputs["happens"]:
        if change is None:
            channel.leave(worker)
        else:
            channel.change(worker, change)
        while channel.flying and channel.rng.random() < 0.7:
            channel.deliver()
        if channel.rng.random() < 0.05:
            channel.ask(worker, channel.feed.repeat(worker))
    return channel, channel.settle(MOST)


def stories(rng, capacity: int, count: int) -> list[dict]:
    seeds = rng.integers(0, 2**31, count).tolist()
    return [{"happens": story(s, 90, 3), "workers": 3, "capacity": capacity, "seed": s} for s in seeds]


def assert_quiet(quiet: bool) -> None:
    if not quiet:
        raise AssertionError(
            "when nothing was lost any more, router and workers went on asking and answering: a question must follow "
            "only from an event that is missing, and an answer must bring it"
        )


CAPACITIES = [{"capacity": capacity} for capacity in (1, 8, 1000)]


@case(task=1, params=CAPACITIES, timeout=20.0)
class ALossyChannelLosesNothing:
    """Events are lost, doubled and reordered, questions and answers too, and a worker leaves. When all is quiet, the
    router has heard of exactly the blocks that the workers have."""

    def inputs(rng, capacity):
        return stories(rng, capacity, 8)

    def observe(solution, inputs):
        results = []
        for one in inputs:
            index = NameSets()
            _, quiet = broadcast(solution, index, one)
            results.append([quiet, {worker: sorted(names) for worker, names in index.held.items()}])
        return results

    def verify(inputs, got):
        for one, (quiet, has) in zip(inputs, got, strict=True):
            assert_quiet(quiet)
            caches = ending(one["happens"], one["workers"])
            explain(sorted(has), sorted(caches), f"the workers are {sorted(has)}, expected {sorted(caches)}")
            for worker, cache in caches.items():
                right = {external(worker, path) for path in cache}
                lost, extra = len(right - set(has[worker])), len(set(has[worker]) - right)
                text = f"worker {worker} has {len(right)} blocks: the router lacks {lost}, and believes in {extra} more"
                explain((lost, extra), (0, 0), text)


# Task 2


QUERY = 6


def queries(rng: random.Random, caches: dict[int, Held]) -> list[Path]:
    """Prompts: what workers have, cut, and gone on with, and any others."""
    paths = [path for cache in caches.values() for path in rng.sample(list(cache), min(4, len(cache)))]
    random_ones = [tuple(rng.randint(1, 3) for _ in range(rng.randrange(QUERY))) for _ in range(6)]
    return [*paths, *[(*path, rng.randint(1, 4)) for path in paths], *random_ones]


def deepest(cache: Held, path: Path) -> int:
    """A wrong score: the last block that is there, whatever is missing before it."""
    return max((i + 1 for i in range(len(path)) if path[: i + 1] in cache), default=0)


def members(cache: Held, path: Path) -> int:
    """A wrong score: how many of its blocks are there."""
    return sum(path[: i + 1] in cache for i in range(len(path)))


def content(cache: Held, path: Path) -> int:
    """A wrong score: leading blocks whose content is there, after whatever prefix."""
    there = {each[-1] for each in cache}
    return next((i for i, local in enumerate(path) if local not in there), len(path))


def scores(caches: dict[int, Held], path: Path, rule=score, least: int = 1) -> dict[int, int]:
    every = {worker: rule(cache, path) for worker, cache in caches.items()}
    return {worker: value for worker, value in every.items() if value >= least}


def judge_scores(caches: dict[int, Held], path: Path, got: dict[int, int]) -> None:
    """The scores of a prompt against brute force."""
    want = scores(caches, path)
    has = {worker: list(cache) for worker, cache in caches.items()}
    first = {worker: 1 if value else 0 for worker, value in scores(caches, path, least=0).items()}
    explain(got, want, f"workers have the paths {has}; the prompt {list(path)} has the scores {got}, expected {want}", {
        "blocks behind one that is missing were counted": scores(caches, path, members),
        "the last block that is there was taken, whatever is missing before it": scores(caches, path, deepest),
        "a block was found after another prefix than its own": scores(caches, path, content),
        "workers without the first block are there too": scores(caches, path, least=0),
        "all that have the first block have the score of the best": {w: max(want.values(), default=0) for w in want},
        "only those are there that have as much as the best": {
            w: v for w, v in want.items() if v == max(want.values())
        },
        "only the first block was counted": {w: v for w, v in first.items() if v},
        "one less than they have": {w: v - 1 for w, v in want.items() if v > 1},
    })  # fmt: skip


NO_SUCH_BIT = {"`holders` has a bit of no worker: a bit is set and taken away, not added and subtracted": "IndexError"}


@case(task=2, params=[{"any_order": False}, {"any_order": True}])
class ScoresAreLeadingBlocks:
    """A worker's score is the number of consecutive leading blocks of the prompt that it has, after any changes. With
    `any_order` workers also evict a block before those behind it."""

    def inputs(rng, any_order):
        draw = random.Random(int(rng.integers(2**31)))
        caches, script = {worker: {} for worker in range(3)}, []
        for step in range(150):
            worker = draw.randrange(3)
            change = random_change(draw, caches[worker], any_order)
            alter(caches[worker], change)
            script.append([worker, change, queries(draw, caches) if step % 5 == 4 else []])
        return script

    def observe(solution, inputs):
        index, results = solution.module("cluster.indexer").PrefixIndex(), []
        for worker in range(3):
            index.add_worker(worker)
        for worker, change, asks in inputs:
            took = index.apply(worker, change_of(solution, worker, change))
            results.append([took, [error_of(lambda p=path: index.match(chained(p))) for path in asks]])
        return results

    def verify(inputs, got):
        caches = {worker: {} for worker in range(3)}
        for (worker, change, asks), (took, answers) in zip(inputs, got, strict=True):
            alter(caches[worker], change)
            explain(took, True, f"{change} of worker {worker} was not taken, though it has the parent: {took}")
            for path, answer in zip(asks, answers, strict=True):
                explain(answer["type"], None, f"`match` raised {answer}", NO_SUCH_BIT)
                judge_scores(caches, tuple(path), answer["value"])


@case(task=2)
class NamesOfWorkersAreTheirOwn:
    """Each worker names blocks as it likes: the index finds a block by what is in it and before it, and removes it by
    the name that this worker gave it."""

    def inputs(rng):
        names = rng.permutation(100)[:4].tolist()
        return {"a": names[:2], "b": names[1::-1], "locals": [int(v) for v in rng.integers(100, 200, 2)]}

    def observe(solution, inputs):
        of = solution.module("cluster.indexer")
        index = of.PrefixIndex()
        for worker in ("a", "b"):
            index.add_worker(worker)
            blocks = tuple(of.Block(name, local) for name, local in zip(inputs[worker], inputs["locals"], strict=True))
            index.apply(worker, of.Stored(None, blocks[:1]))
            index.apply(worker, of.Stored(blocks[0].external, blocks[1:]))
        names = chained(inputs["locals"])
        before = index.match(names)
        index.apply("b", of.Removed((inputs["b"][1],)))
        return [before, index.match(names), index.match(inputs["a"])]

    def verify(inputs, got):
        text = f"workers a and b name the same two blocks {inputs['a']} and {inputs['b']}. "
        explain(got[0], {"a": 2, "b": 2}, f"{text}Their scores are {got[0]}, expected 2 and 2", {
            "what workers call their blocks was taken for what is in them": {},
            "the second block was found under its local hash only: its parent's name is a worker's own": {
                "a": 1, "b": 1,
            },
        })  # fmt: skip
        explain(got[1], {"a": 2, "b": 1}, f"{text}b removed its second, {inputs['b'][1]}: {got[1]}", {
            "the block of the other worker was removed": {"a": 1, "b": 2},
            "the first block of b was removed, which a calls so": {"a": 2},
            "removed for all workers, and not for the one that said so": {"a": 1, "b": 1},
            "nothing was removed": {"a": 2, "b": 2},
        })  # fmt: skip
        explain(got[2], {}, f"{text}A worker's names are no sequence hashes, but {got[2]} matches them")


@case(task=2)
class TheSameBlockElsewhereIsAnother:
    """A block is found only after the prefix that it was stored with: its keys and values depend on all before it."""

    def inputs(rng):
        return {"locals": rng.permutation(1000)[:4].tolist()}

    def observe(solution, inputs):
        of = solution.module("cluster.indexer")
        index, (a, b, c, d) = of.PrefixIndex(), inputs["locals"]
        index.add_worker(0)
        index.apply(0, change_of(solution, 0, ["stored", (), [a, b, c]]))
        return [index.match(chained(path)) for path in ([a, b, c, d], [d, b, c], [b, c], [a, c], [b], [])]

    def verify(inputs, got):
        a, b, c, d = inputs["locals"]
        for path, answer in zip(([a, b, c, d], [d, b, c], [b, c], [a, c], [b], []), got, strict=True):
            cache = {0: {(a,): None, (a, b): None, (a, b, c): None}}
            judge_scores(cache, tuple(path), answer)


@case(task=2)
class ABlockMayBeCalledNought:
    """0 is a name that a worker may give to a block, and None is none: a parent 0 must be there like any other."""

    def inputs(rng):
        return {"locals": rng.permutation(1000)[:2].tolist()}

    def observe(solution, inputs):
        module, (a, b) = solution.module("cluster.indexer"), inputs["locals"]
        index = module.PrefixIndex()
        index.add_worker(0)
        behind = module.Stored(0, (module.Block(1, b),))
        early = bool(index.apply(0, behind))
        orphan = index.match(chained((b,)))
        found = [bool(index.apply(0, change)) for change in (module.Stored(None, (module.Block(0, a),)), behind)]
        return [early, orphan, found, index.match(chained((a, b)))]

    def verify(inputs, got):
        early, orphan, found, score = got
        explain([early, orphan], [False, {}], f"a block behind an unknown block 0: apply gave {early}, and as a "
            f"beginning it has the scores {orphan}", {"a parent of 0 was taken for none": [True, {0: 1}]})  # fmt: skip
        explain([found, score], [[True, True], {0: 2}], f"block 0, then one behind it: {found}, scores {score}")


@case(task=2)
class WhatHappensTwiceHappensOnce:
    """Stored twice is stored, and removed at once; what is not there can be removed. Blocks behind an unknown one are
    not taken, none of them, and the answer is False."""

    def inputs(rng):
        return {"locals": rng.permutation(1000)[:5].tolist()}

    def observe(solution, inputs):
        a, b, c, d, e = inputs["locals"]
        index = solution.module("cluster.indexer").PrefixIndex()
        index.add_worker(0)

        def match(*path):
            found = error_of(lambda: index.match(chained(path)))
            return found.get("value", found["type"])

        script = [["stored", (), [a, b]], ["stored", (), [a, b]], ["removed", [(a, b), (c,)]], ["removed", [(a, b)]],
                  ["stored", (c,), [d, e]], ["stored", (a,), [c]]]  # fmt: skip
        log = []
        for change in script:
            took = error_of(lambda one=change: index.apply(0, change_of(solution, 0, one)))
            log.append([took, match(a, b), len(index.holders)])
        unknown = error_of(lambda: index.apply(9, change_of(solution, 9, script[0])))["type"]
        return {"log": log, "deeper": match(a, c), "orphans": match(d, e), "unknown": unknown}

    def verify(inputs, got):
        a, b, *_ = inputs["locals"]
        names = ["two blocks stored", "stored again", "the second removed, and one that is not there", "removed again",
                 "two blocks behind an unknown one", "one behind the first"]  # fmt: skip
        want = [[True, {0: 2}, 2], [True, {0: 2}, 2], [True, {0: 1}, 1], [True, {0: 1}, 1], [False, {0: 1}, 1],
                [True, {0: 1}, 2]]  # fmt: skip
        for what, (took, match, kept), (answer, match_want, kept_want) in zip(names, got["log"], want, strict=True):
            text = f"{what}: apply gave {took.get('value', took)}, expected {answer}"
            explain(took, {"type": None, "value": answer}, text, {
                "to remove what is not there is no mistake": took if took["type"] == "KeyError" and answer else None,
                "blocks whose parent is unknown were taken: nobody knows what is before them": {
                    "type": None, "value": True,
                },
            })  # fmt: skip
            explain(match, match_want, f"{what}: then {[a, b]} has the scores {match}, expected {match_want}", {
                "what was stored twice must be removed twice": {0: 2}, **NO_SUCH_BIT,
            })  # fmt: skip
            text = f"{what}: the index then holds {kept} blocks, expected {kept_want}"
            explain(kept, kept_want, text, {"blocks that nobody has stay in the index for ever": kept_want + 1})
        explain(got["deeper"], {0: 2}, f"the first block and the last one have the scores {got['deeper']}")
        explain(got["orphans"], {}, f"blocks whose parent is unknown are found as a beginning: {got['orphans']}")
        explain(got["unknown"], "KeyError", f"an event of an unknown worker gave {got['unknown']}, expected a KeyError")


@case(task=2)
class NothingIsLeftBehind:
    """A worker that clears its cache or leaves takes its blocks with it, and no others; the next one begins empty."""

    def inputs(rng):
        draw = random.Random(int(rng.integers(2**31)))
        caches, script = {worker: {} for worker in range(4)}, []
        for _ in range(80):
            worker = draw.randrange(4)
            change = ["stored", draw.choice([(), *caches[worker]]), [draw.randint(1, 3) for _ in range(2)]]
            alter(caches[worker], change)
            script.append([worker, change])
        return {"script": script, "queries": queries(draw, caches)}

    def observe(solution, inputs):
        of = solution.module("cluster.indexer")
        index, sizes = of.PrefixIndex(), []
        for worker in range(4):
            index.add_worker(worker)
        for worker, change in inputs["script"]:
            index.apply(worker, change_of(solution, worker, change))

        def look():
            return [index.match(chained(path)) for path in inputs["queries"]], len(index.holders)

        sizes.append(look())
        index.apply(0, of.Cleared())
        sizes.append(look())
        index.remove_worker(1)
        sizes.append(look())
        index.add_worker(5)  # may take the place of the one that left
        sizes.append(look())
        for worker in (0, 2, 3, 5):
            index.remove_worker(worker)
        sizes.append(look())
        return sizes

    def verify(inputs, got):
        caches: dict[int, Held] = {worker: {} for worker in range(4)}
        for worker, change in inputs["script"]:
            alter(caches[worker], change)
        names = ["all are there", "worker 0 has cleared", "worker 1 has left", "another one came", "all have left"]
        for gone, (what, (answers, kept)) in enumerate(zip(names, got, strict=True)):
            if gone == 4:
                caches = {}
            elif gone in (1, 2):
                caches[gone - 1].clear()
            for path, answer in zip(inputs["queries"], answers, strict=True):
                judge_scores(caches, tuple(path), answer)
            right = len({path for cache in caches.values() for path in cache})
            text = f"{what}: the index holds {kept} blocks, expected {right}"
            explain(kept, right, text, {"blocks that nobody has stay in the index for ever": max(kept, right + 1)})


@case(task=2, params=CAPACITIES, timeout=20.0)
class TheIndexIsTheUnionOfTheCaches:
    """Behind a channel that loses, doubles and reorders, the index equals the workers' caches when all is quiet."""

    def inputs(rng, capacity):
        return stories(rng, capacity, 5)

    def observe(solution, inputs):
        results = []
        for one in inputs:
            index = solution.module("cluster.indexer").PrefixIndex()
            _, quiet = broadcast(solution, index, one)
            paths = queries(random.Random(one["seed"]), ending(one["happens"], one["workers"]))
            results.append([quiet, [index.match(chained(path)) for path in paths], len(index.holders)])
        return results

    def verify(inputs, got):
        for one, (quiet, answers, kept) in zip(inputs, got, strict=True):
            assert_quiet(quiet)
            caches = ending(one["happens"], one["workers"])
            for path, answer in zip(queries(random.Random(one["seed"]), caches), answers, strict=True):
                judge_scores(caches, path, answer)
            right = len({path for cache in caches.values() for path in cache})
            explain(kept, right, f"the index holds {kept} blocks, the caches together {right} different ones")


def sends(rng: random.Random, most: int) -> list[list]:
    """[time, worker, path] of prompts, some at one time, and [time, None, path] of questions; times go up."""
    now, script = 0, []
    for _ in range(120):
        now += rng.choice([0, 1, 5, 20, 49, 50])
        path = [rng.randint(1, 2) for _ in range(rng.randint(1, most))]
        script.append([now, rng.choice([0, 1, None, None]), path])
    return script


def believed(script: list[list], ttl: int, limit: int, fresh=lambda sent, now, ttl: now < sent + ttl) -> list[dict]:
    """The answers to the questions of a script by brute force: whole prompts that are remembered, the oldest first."""
    prompts: list[tuple[int, int, Path]] = []
    answers = []
    for now, worker, path in script:
        if worker is not None:
            prompts.append((now, worker, tuple(path)))
        prompts = [one for one in prompts if fresh(one[0], now, ttl)]
        while len({(w, p[: i + 1]) for _, w, p in prompts for i in range(len(p))}) > limit:
            del prompts[0]
        if worker is None:
            caches = {w: {p[: i + 1]: None for _, v, p in prompts for i in range(len(p)) if v == w} for w in (0, 1)}
            answers.append(scores(caches, tuple(path)))
    return answers


@case(task=2, params=[{"limit": 1000}, {"limit": 8}])
class DecisionsAreBelievedForAWhile:
    """Without events a worker is believed to have what it was sent, `ttl` ns from the last prompt that had the block;
    the oldest prompts go earlier where more than `limit` blocks are remembered."""

    def inputs(rng, limit):
        return {"script": sends(random.Random(int(rng.integers(2**31))), 6), "ttl": 100, "limit": limit}

    def observe(solution, inputs):
        index = solution.module("cluster.recent_index").RecentIndex(inputs["ttl"], inputs["limit"])
        answers, most = [], 0
        for worker in (0, 1):
            index.add_worker(worker)
        for now, worker, path in inputs["script"]:
            if worker is None:
                answers.append(index.match(chained(path), now))
            else:
                index.sent(worker, chained(path), now)
            most = max(most, index.blocks)
        index.match([], inputs["script"][-1][0] + inputs["ttl"])
        return {"answers": answers, "most": most, "left": [index.blocks, len(index.index.holders)]}

    def verify(inputs, got):
        script, ttl, limit = inputs["script"], inputs["ttl"], inputs["limit"]
        want = believed(script, ttl, limit)
        wrong = {
            "a block counts until its end, and not before it: at `ttl` ns it is over": believed(
                script, ttl, limit, lambda sent, now, ttl: now <= sent + ttl
            ),
            "nothing is ever forgotten": believed(script, 10**9, 10**9),
            "the limit is not kept": believed(script, ttl, 10**9),
            "a block is forgotten with the first prompt that had it, though a later one had it too": first_only(
                script, ttl, limit
            ),
        }
        asks = [[now, path] for now, worker, path in script if worker is None]
        for ask, answer, right in zip(asks, got["answers"], want, strict=True):
            if answer != right:
                sent = [one for one in script if one[1] is not None and one[0] <= ask[0]]
                text = f"at {ask[0]} ns the prompt {ask[1]} has the scores {answer}, expected {right}"
                explain(got["answers"], want, f"{text}; sent were [time, worker, blocks] {sent}", wrong)
        text = f"up to {got['most']} blocks were remembered at a time: the limit is {limit}"
        explain(got["most"] <= limit, True, text)
        text = f"after the last prompt was over, {got['left'][0]} blocks are counted and {got['left'][1]} in the index"
        explain(got["left"], [0, 0], text, {"blocks are forgotten in the count only": [0, max(got["left"][1], 1)]})


def first_only(script: list[list], ttl: int, limit: int) -> list[dict]:
    """Answers where each prompt takes all of its blocks with it at its end."""
    have: dict[int, Held] = {0: {}, 1: {}}
    prompts: list[tuple[int, int, Path]] = []
    answers = []
    for now, worker, path in script:
        if worker is not None:
            prompts.append((now, worker, tuple(path)))
            have[worker].update({tuple(path[: i + 1]): None for i in range(len(path))})
        while prompts and (prompts[0][0] + ttl <= now or sum(map(len, have.values())) > limit):
            _, owner, old = prompts.pop(0)
            for i in range(len(old)):
                have[owner].pop(old[: i + 1], None)
        if worker is None:
            answers.append(scores(have, tuple(path)))
    return answers


# Task 3


def work(rng: random.Random, steps: int, again: bool) -> list[list]:
    """What happens to one worker: ["add", uid, path, tokens, now], ["done", uid], ["free", uid], ["expire", now].

    again: also what has happened already, and what concerns requests that are not there.
    """
    here: dict[int, int] = {}
    script, fresh = [], 0
    for now in range(steps):
        roll = rng.random()
        old = rng.randrange(fresh + 1) if again else rng.choice(list(here) or [0])
        if roll < 0.5:
            uid = old if again and rng.random() < 0.4 else fresh
            fresh += uid == fresh
            path = [rng.randint(1, 2) for _ in range(rng.randint(0, 5))]
            script.append(["add", uid, path, rng.randint(0, 90), now])
            here.setdefault(uid, now)
        elif roll < 0.7 and here:
            script.append(["done", old])
        elif roll < 0.97 and here:
            script.append(["free", old])
            here.pop(old, None)
        elif again:
            script.append(["expire", now])
            here = {uid: start for uid, start in here.items() if now - start < AGE}
    return script


AGE = 30


def books(script: list[list]) -> list[dict]:
    """What is true after each operation: requests, the names that they hold, prompt tokens, who was expired."""
    here: dict[int, list] = {}
    after = []
    for name, *rest in script:
        result = None
        if name == "add":
            uid, path, tokens, now = rest
            result = uid not in here
            here.setdefault(uid, [chained(path), tokens, now])
        elif name == "done" and rest[0] in here:
            here[rest[0]][1] = 0
        elif name == "free":
            here.pop(rest[0], None)
        elif name == "expire":
            result = [uid for uid, (_, _, start) in here.items() if rest[0] - start >= AGE]
            here = {uid: one for uid, one in here.items() if uid not in result}
        held = [name for names, _, _ in here.values() for name in names]
        after.append({"held": held, "tokens": sum(one[1] for one in here.values()), "uids": list(here), "r": result})
    return after


def run_active(solution, script: list[list], asks: list[Path]) -> list[list]:
    """[result, active blocks, blocks with each of `asks`, prompt tokens, uids] after each operation."""
    active, log = solution.module("cluster.active").ActiveSequences(), []
    for name, *rest in script:
        result = None
        if name == "add":
            uid, path, tokens, now = rest
            result = active.add(uid, tuple(chained(path)), tokens, now)
        elif name == "done":
            active.prefill_done(rest[0])
        elif name == "free":
            active.free(rest[0])
        else:
            result = list(active.expire(rest[0], AGE))
        with_ = [active.blocks_with(chained(path)) for path in asks]
        log.append([result, active.active_blocks, with_, active.prefill_tokens, list(active.requests)])
    return log


def judge_active(script: list[list], asks: list[Path], log: list[list]) -> None:
    """Each line of a log against the books."""
    for i, (one, (result, blocks, with_, tokens, uids)) in enumerate(zip(books(script), log, strict=True)):
        what = f"after {script[: i + 1][-8:]}"
        held, distinct = one["held"], set(one["held"])
        explain(blocks, len(distinct), f"{what}: {blocks} blocks are active, expected {len(distinct)}", {
            "a block that several requests share counts once": len(held),
        })  # fmt: skip
        want = [len(distinct | set(chained(path))) for path in asks]
        text = f"{what}: with the prompts {asks} of another request {with_} blocks would be active, expected {want}"
        explain(with_, want, text, {
            "blocks that are active already were counted again": [len(distinct) + len(path) for path in asks],
            "only the new blocks were counted": [len(set(chained(path)) - distinct) for path in asks],
        })  # fmt: skip
        explain(tokens, one["tokens"], f"{what}: {tokens} prompt tokens are to be computed, expected {one['tokens']}")
        explain(uids, one["uids"], f"{what}: the requests are {uids}, expected {one['uids']}")
        explain(result, one["r"], f"{what}: the last one returned {result}, expected {one['r']}")


@case(task=3, params=[{"again": False}, {"again": True}])
class ABlockCountsOnce:
    """Active blocks are the different blocks of all requests, each as long as somebody holds it; prompt tokens count
    until the first token or the end. With `again` everything may be told twice, or late."""

    def inputs(rng, again):
        draw = random.Random(int(rng.integers(2**31)))
        asks = [[draw.randint(1, 2) for _ in range(n)] for n in (0, 2, 4, 6)]
        return {"script": work(draw, 300, again), "asks": asks}

    def observe(solution, inputs):
        return run_active(solution, inputs["script"], inputs["asks"])

    def verify(inputs, got):
        judge_active(inputs["script"], inputs["asks"], got)


TWICE = {
    "a request was added twice": ([["add", 1, [1, 2], 50, 0], ["add", 1, [1, 3], 70, 0]], 2, 50, {
        "the second one was added, too": (3, 120), "the second one took the place of the first": (2, 70),
    }),
    "a prompt was computed twice": ([["add", 1, [1, 2], 50, 0], ["done", 1], ["done", 1]], 2, 0, {
        "its tokens were taken off twice": (2, -50),
    }),
    "a request ended twice": (
        [["add", 1, [1, 2], 50, 0], ["add", 2, [1, 2], 0, 0], ["free", 1], ["free", 1]], 2, 0, {
        "its blocks were given back twice, though another request holds them": (0, 0),
        "its tokens were taken off twice": (2, -50),
    }),
    "a request ended before its first token": ([["add", 1, [1, 2], 50, 0], ["free", 1]], 0, 0, {
        "its prompt still counts as work: `free` implies that prefill is done": (0, 50),
        "its blocks are still held": (2, 0),
    }),
    "a request ended that was never added": ([["add", 1, [1, 2], 50, 0], ["free", 2]], 2, 50, {}),
    "its first token came after its end": ([["add", 1, [1], 50, 0], ["free", 1], ["done", 1]], 0, 0, {
        "its tokens were taken off twice": (0, -50),
    }),
}  # fmt: skip


@case(task=3, params=[{"what": what} for what in TWICE])
class ToldTwiceIsToldOnce:
    """News come twice, or for requests that are not there (any more): they change nothing, and raise nothing."""

    def inputs(rng, what):
        return {"what": what}

    def observe(solution, inputs):
        return error_of(lambda: run_active(solution, TWICE[inputs["what"]][0], [])[-1])

    def verify(inputs, got):
        _, blocks, tokens, mistakes = TWICE[inputs["what"]]
        if got["type"] is not None:
            raise AssertionError(f"{inputs['what']}: {got['type']}: {got['message']}: that is no error")
        seen = (got["value"][1], got["value"][3])
        text = f"{inputs['what']}: active blocks and prompt tokens are {seen}, expected {(blocks, tokens)}"
        explain(seen, (blocks, tokens), text, mistakes)


@case(task=3)
class LostEndsExpire:
    """A request is freed when it came `age` ns ago or earlier, the others stay; after an hour if nothing is said."""

    def inputs(rng):
        return {"starts": sorted(rng.integers(0, 50, 8).tolist()), "now": 100}

    def observe(solution, inputs):
        active, starts, now = solution.module("cluster.active").ActiveSequences(), inputs["starts"], inputs["now"]
        for uid, start in enumerate(starts):
            active.add(uid, (uid,), 10, start)
        old = list(active.expire(now, now - starts[4]))
        books = [old, list(active.requests), active.active_blocks, active.prefill_tokens]
        hour = 3600 * 10**9
        return [*books, list(active.expire(starts[-1] + hour - 1)), list(active.expire(starts[-1] + hour))]

    def verify(inputs, got):
        starts, uids = inputs["starts"], list(range(8))
        old = [uid for uid in uids if starts[uid] <= starts[4]]
        left = [uid for uid in uids if uid not in old]
        age = inputs["now"] - starts[4]
        text = f"requests came at {starts}; at {inputs['now']} those {age} ns old are freed: {got[0]}, expected {old}"
        explain(got[0], old, text, {
            "one that is exactly that old stays": [uid for uid in uids if starts[uid] < starts[4]],
            "the young ones were freed": left,
        })  # fmt: skip
        explain(got[1:4], [left, len(left), 10 * len(left)], f"uids, active blocks and prompt tokens are {got[1:4]}", {
            "they left the list, and their blocks and tokens stayed": [left, 8, 80],
        })  # fmt: skip
        last = [uid for uid in left if starts[uid] == starts[-1]]
        want = [[uid for uid in left if uid not in last], last]
        explain(got[4:], want, f"an hour after the last came, less 1 ns, and then: {got[4:]}, expected {want}")


@case(task=3)
class EchoesAreDropped:
    """Routers tell each other what they sent where. What a router has told comes back to it, maybe late: it must not
    count again, nor revive a request that has ended."""

    def inputs(rng):
        return {"tokens": int(rng.integers(10, 99)), "blocks": int(rng.integers(2, 6))}

    def observe(solution, inputs):
        of = solution.module("cluster.active")
        loads = {name: of.Load(name) for name in ("x", "y")}
        for load in loads.values():
            load.add_worker("w")
        names, log = tuple(range(inputs["blocks"])), []

        def look():
            log.append([[load.workers["w"].prefill_tokens, load.workers["w"].active_blocks, load.inflight["w"]]
                        for load in loads.values()])  # fmt: skip

        added = loads["x"].own(of.Added("x", "w", 7, names, inputs["tokens"]), 0)
        other = loads["y"].own(of.Added("y", "w", 8, names, 1), 0)
        look()
        for load in loads.values():
            load.merge(added, 1)
            load.merge(other, 1)
        look()
        for load in loads.values():
            load.merge(of.PrefillDone("x", "w", 7), 2) if load.router != "x" else load.own(
                of.PrefillDone("x", "w", 7), 2
            )
        look()
        freed = loads["x"].own(of.Freed("x", "w", 7), 3)
        loads["y"].merge(freed, 4)
        for load in loads.values():
            load.merge(of.Freed("y", "gone", 8), 5)
        loads["x"].merge(added, 6)  # its own word, after the end
        look()
        return log

    def verify(inputs, got):
        tokens, blocks = inputs["tokens"], inputs["blocks"]
        both = [[tokens + 1, blocks, 2]] * 2
        want = [[[tokens, blocks, 1], [1, blocks, 1]], both, [[1, blocks, 2]] * 2, [[1, blocks, 1]] * 2]
        names = ["each has its own request", "each has heard of the other's", "x's prompt is computed",
                 "x's request has ended, and x hears its own first word once more"]  # fmt: skip
        for what, seen, right in zip(names, got, want, strict=True):
            text = f"{what}: prompt tokens, active blocks and requests of the worker are {seen} for x and y"
            explain(seen, right, f"{text}, expected {right}", {
                "the news of other routers are not taken: each sees only its own load": [
                    [tokens, blocks, 1], [1, blocks, 1],
                ],
                "x's own word came back, and was taken for news: the request lives again, and never ends": [
                    [1 + tokens, blocks, 2], right[1],
                ],
            })  # fmt: skip


def candidate_of(solution, worker: str, **values):
    return solution.module("cluster.routing").Candidate(worker, **values)


VECTORS = [(2, 10), (5, 5), (8, 9)]
"""DY-8's three workers: overlap and decode blocks, for a prompt of ten blocks."""


@case(task=3)
class CostsOfTheWorkedExample:
    """A prompt of ten blocks, workers with 2, 5 and 8 of them and 10, 5 and 9 active blocks: costs of 18, 10, 11."""

    def inputs(rng):
        return {"size": int(rng.integers(1, 65))}

    def observe(solution, inputs):
        routing, size = solution.module("cluster.routing"), inputs["size"]
        workers = [candidate_of(solution, str(i), overlap=o, decode_blocks=d) for i, (o, d) in enumerate(VECTORS)]
        configs = [routing.CostConfig(), routing.CostConfig(credit=0), routing.CostConfig(prefill_scale=2)]
        return [list(map(float, routing.costs(workers, 10 * size, size, config))) for config in configs]

    def verify(inputs, got):
        want = [[18, 10, 11], [20, 15, 19], [26, 15, 13]]
        names = ["by default", "with credit 0", "with prefill_scale 2"]
        scales = [(1, 1), (0, 1), (1, 2)]
        for name, values, right, (w, s) in zip(names, got, want, scales, strict=True):
            text = f"{name} the costs are {values}, expected {right}"
            explain(values, [float(v) for v in right], text, {
                "cached blocks count as work": [float(s * 10 + d) for _, d in VECTORS],
                "decode blocks are left out": [float(s * (10 - w * o)) for o, _ in VECTORS],
                "the scale holds for decode blocks, too": [float(s * (10 - w * o + d)) for o, d in VECTORS],
                "blocks were multiplied with their size: costs are in blocks, not in tokens": [
                    float(s * inputs["size"] * (10 - w * o) + d) for o, d in VECTORS
                ],
                "the credit was added": [float(s * (10 + w * o) + d) for o, d in VECTORS],
                "the overlap is taken off after the scale": [float(s * 10 - w * o + d) for o, d in VECTORS],
            })  # fmt: skip


KNOBS = ("credit", "decay", "prefill_scale", "active", "host", "disk", "shared")
STATE = ("overlap", "prefill_tokens", "decode_blocks", "requests", "host", "disk", "shared")


def exact(inputs: dict, clip: bool = True, least=min, decayed=lambda w, d: w * d, slower: int = 1) -> list[float]:
    """The costs in exact fractions; the arguments make well-known mistakes."""
    size, knob = inputs["size"], {name: Fraction(value) for name, value in inputs["config"].items()}
    isl, workers = Fraction(inputs["tokens"], size), [dict(zip(STATE, one, strict=True)) for one in inputs["workers"]]
    low = least(one["prefill_tokens"] for one in workers)
    result = []
    for one in workers:
        raw = Fraction(one["prefill_tokens"], size) + isl
        decay = 1 / (1 + knob["decay"] * Fraction(one["prefill_tokens"] - low, size) / max(isl, 1))
        credit = decayed(knob["credit"], decay) * one["overlap"]
        credit += slower * sum(knob[name] * one[name] for name in ("host", "disk", "shared"))
        prefill = raw - credit
        prefill = max(prefill, 0) if clip else prefill
        result.append(float(knob["prefill_scale"] * prefill + one["decode_blocks"] + knob["active"] * one["requests"]))
    return result


@case(task=3, params=[{"kind": kind} for kind in ("plain", "all", "cached", "short")])
class CostsEqualExactFractions:
    """scale * max(raw - credits, 0) + decode blocks + active * requests, for any weights. raw: all prompt tokens, of
    the worker and of this request, in blocks. "cached": more credit than work; "short": a prompt below one block."""

    def inputs(rng, kind):
        size = int(rng.choice([16, 64]))
        tokens = int(rng.integers(1, size)) if kind == "short" else int(rng.integers(size, 40 * size))
        blocks = tokens // size
        values = dict(zip(KNOBS, (rng.integers(1, 17, 7) / 16).tolist(), strict=True))
        if kind == "plain":
            values |= {"decay": 0.0, "host": 0.75, "disk": 0.25, "shared": 0.0, "active": 0.0}
        workers = []
        for _ in range(6):
            overlap = blocks if kind == "cached" else int(rng.integers(0, blocks + 1))
            busy = 0 if kind == "cached" else int(rng.integers(0, 30)) * 100
            tiers = rng.integers(0, blocks + 4, 3).tolist() if kind in ("all", "cached") else [0, 0, 0]
            workers.append([overlap, busy, int(rng.integers(0, 90)), int(rng.integers(0, 9)), *tiers])
        return {"size": size, "tokens": tokens, "config": values, "workers": workers}

    def observe(solution, inputs):
        routing = solution.module("cluster.routing")
        workers = [routing.Candidate(str(i), *one) for i, one in enumerate(inputs["workers"])]
        config = routing.CostConfig(**inputs["config"])
        empty = error_of(lambda: list(routing.costs([], inputs["tokens"], inputs["size"], config)))
        return [list(map(float, routing.costs(workers, inputs["tokens"], inputs["size"], config))), empty]

    def verify(inputs, got):
        without = inputs | {"config": inputs["config"] | {"active": 0.0}}
        idle = inputs | {"workers": [[one[0], 0, *one[2:]] for one in inputs["workers"]]}
        text = f"{inputs['tokens']} tokens, blocks of {inputs['size']}, {inputs['config']}, workers {inputs['workers']}"
        alike(got[0], exact(inputs), f"{text}: the costs", {
            "work is never less than nothing, whatever is cached": exact(inputs, clip=False),
            "the credit falls with all prefill work, and not with what is more than the least": exact(
                inputs, least=lambda values: 0
            ),
            "the credit falls with what is more than the mean": exact(
                inputs, least=lambda values: (lambda v: Fraction(sum(v), len(v)))(list(values))
            ),
            "the credit does not fall with the load: `decay` is not used": exact(inputs, decayed=lambda w, d: w),
            "the credit falls, but its weight is not used": exact(inputs, decayed=lambda w, d: d),
            "what slower tiers have is not counted": exact(inputs, slower=0),
            "active requests are not counted": exact(without),
            "prompts that the worker has still to compute are not counted": exact(idle),
        })  # fmt: skip
        explain(got[1], {"type": None, "value": []}, f"costs of no candidates: expected [], got {got[1]}", {
            "`min` of nothing raises: give it a default": {**got[1], "type": "ValueError"},
        })  # fmt: skip


@case(task=3)
class DecayOfTheWorkedExample:
    """A request of 16 blocks of 64, and workers with 0, 1024 and 4096 prompt tokens more than the least busy."""

    def inputs(rng):
        return {"size": int(2 ** rng.integers(0, 8))}

    def observe(solution, inputs):
        routing, size = solution.module("cluster.routing"), inputs["size"]
        rows = []
        for k in (0, 0.5, 1.0):
            config = routing.CostConfig(decay=k, credit=0.5)
            rows.append([float(routing.credit_decay(config, n * size, 16 * size, size)) for n in (0, 16, 64)])
        config = routing.CostConfig(decay=1.0)
        short = [float(routing.credit_decay(config, 4 * size, tokens, size)) for tokens in (1, size, 4 * size)]
        return [*rows, short]

    def verify(inputs, got):
        want = [[1, 1, 1], [1, 2 / 3, 1 / 3], [1, 0.5, 0.2], [0.2, 0.2, 0.5]]
        size = inputs["size"]
        for k, values, right in zip((0, 0.5, 1.0, 1.0), got[:3], want, strict=False):
            alike(values, right, f"decay {k}, blocks of {size}", {
                "the excess was not divided by the request's own blocks": [1 / (1 + k * n) for n in (0, 16, 64)],
                "tokens were taken for blocks": [1 / (1 + k * n * size / 16) for n in (0, 16, 64)],
                "an exponential": [math.exp(-k * n / 16) for n in (0, 16, 64)],
                "the credit's weight is in there: it comes in elsewhere": [v / 2 for v in right],
            })  # fmt: skip
        alike(got[3], want[3], "requests of 1 token, one block and four blocks, an excess of four blocks, decay 1", {
            "a request counts as one block at least": [1 / (1 + 4 * size / tokens) for tokens in (1, size, 4 * size)],
        })  # fmt: skip


SHARES = {
    0.1: [0.0, 0.7773, 0.2227],
    0.5: [0.0707, 0.5224, 0.4069],
    1.0: [0.1635, 0.4444, 0.3922],
    2.0: [0.2382, 0.3928, 0.3690],
}


@case(task=3, params=[{"temperature": t} for t in SHARES])
class ProbabilitiesOfTheWorkedExample:
    """Costs 18, 10 and 11 at four temperatures, to four digits. Only differences count: not what is added to all, nor
    in what unit they are."""

    def inputs(rng, temperature):
        return {"temperature": temperature, "add": int(rng.integers(0, 10**6)), "factor": int(rng.integers(2, 10**6))}

    def observe(solution, inputs):
        probabilities, t = solution.module("cluster.routing").probabilities, inputs["temperature"]
        scaled = [inputs["add"] + inputs["factor"] * cost for cost in (18.0, 10.0, 11.0)]
        return [list(map(float, probabilities(costs, t))) for costs in ([18.0, 10.0, 11.0], scaled)]

    def verify(inputs, got):
        t, costs = inputs["temperature"], (18, 10, 11)

        def softmax(values: Sequence[float]) -> list[float]:
            weights = [math.exp(value - max(values)) for value in values]
            return [round(weight / sum(weights), 4) for weight in weights]

        for name, values in zip(("", f" times {inputs['factor']} plus {inputs['add']}"), got, strict=True):
            text = f"costs {costs}{name} at temperature {t}: {rounded(values)}, expected {SHARES[t]}"
            explain(rounded(values), SHARES[t], text, {
                "costs were not divided by highest less lowest: then their unit decides": softmax(
                    [-c / t for c in costs]
                ),
                "costs were divided by the highest": softmax([-c / 18 / t for c in costs]),
                "the temperature was multiplied, not divided by": softmax([-(c - 10) / 8 * t for c in costs]),
                "the dearest is the likeliest": softmax([(c - 10) / 8 / t for c in costs]),
            })  # fmt: skip


LIMITS = {
    "temperature 0": ([18, 10, 11], 0.0, [0, 1, 0]),
    "two cheapest": ([5, 9, 5], 0.0, [0.5, 0, 0.5]),
    "all equal, 0": ([3, 3, 3, 3], 0.0, [0.25] * 4),
    "all equal, 1": ([3, 3, 3, 3], 1.0, [0.25] * 4),
    "one worker": ([7], 0.5, [1]),
    "nearly 0": ([0, 1, 2], 1e-300, [1, 0, 0]),
    "large and close": ([1000, 1001, 1002], 0.001, [1, 0, 0]),
    "far apart": ([0, 1e300], 1.0, [1 / (1 + math.exp(-1)), 1 / (1 + math.e)]),
    "very hot": ([18, 10, 11], 1e12, [1 / 3] * 3),
}


@case(task=3, params=[{"what": what} for what in LIMITS])
class ProbabilitiesAtTheLimits:
    """At temperature 0 the cheapest, in equal parts where several cost the same; equal costs in equal parts at any
    temperature; no overflow."""

    def inputs(rng, what):
        return {"what": what}

    def observe(solution, inputs):
        costs, temperature, _ = LIMITS[inputs["what"]]
        return error_of(lambda: list(map(float, solution.module("cluster.routing").probabilities(costs, temperature))))

    def verify(inputs, got):
        costs, temperature, want = LIMITS[inputs["what"]]
        if got["type"] is not None:
            raise AssertionError(f"costs {costs} at temperature {temperature}: {got['type']}: {got['message']}")
        first = [float(i == costs.index(min(costs))) for i in range(len(costs))]
        alike(got["value"], want, f"costs {costs} at temperature {temperature}", {
            "the first of the cheapest takes all: ties must be drawn at random": first,
            "the last of the cheapest takes all: ties must be drawn at random": first[::-1],
        })  # fmt: skip


@case(task=3)
class NegativeTemperatureIsRefused:
    """A negative temperature would prefer the dearest: it raises ValueError and says the value."""

    def inputs(rng):
        return {"temperature": -float(rng.integers(1, 50)) / 10}

    def observe(solution, inputs):
        probabilities = solution.module("cluster.routing").probabilities
        return error_of(lambda: list(probabilities([1.0, 2.0], inputs["temperature"])))

    def verify(inputs, got):
        explain(got["type"], "ValueError", f"temperature {inputs['temperature']} gave {got}, expected a ValueError")
        if str(inputs["temperature"]) not in got["message"]:
            raise AssertionError(f"the message does not name {inputs['temperature']}: {got['message']}")


# Task 4


class Scores:
    """An index that knows these scores, whatever the prompt."""

    def __init__(self, scores: dict):
        self.scores = scores

    def add_worker(self, worker) -> None:
        """Known already."""

    def remove_worker(self, worker) -> None:
        """Nothing to forget."""

    def match(self, names, now: int) -> dict:
        """The scores."""
        return dict(self.scores)

    def sent(self, worker, names, now: int) -> None:
        """Nothing to learn."""


def router_of(solution, workers: Sequence, temperature: float = 0.0, seed: int = 0, index=None, queue=None, **config):
    """A KV-aware router with these workers and blocks of 4 tokens."""
    policy = solution.module("cluster.policies").KvAware(random.Random(seed), temperature)
    of = solution.module("cluster.router")
    router = of.Router(policy, of.RouterConfig(block_size=4, **config), index, queue)
    for worker in workers:
        router.add_worker(worker, 0)
    return router


def route(solution, uid: int, tokens: int, names: Sequence[int] = (), **more):
    """A request as a router sees it."""
    return solution.module("cluster.routing").RouteRequest(uid, tokens, tuple(names), **more)


DRAWS = 600


def judge_shares(counts: dict, want: dict, draws: int, text: str, mistakes: dict[str, dict]) -> None:
    """Counts of random choices against probabilities, within 5 standard deviations."""

    def fits(shares: dict) -> bool:
        return all(
            abs(counts.get(worker, 0) - draws * p) <= 5 * math.sqrt(draws * p * (1 - p)) + 1e-9
            for worker, p in shares.items()
        )

    if not fits(want) or set(counts) - set(want):
        found = named(mistake for mistake, shares in mistakes.items() if fits(shares))
        right = {worker: round(draws * p) for worker, p in want.items()}
        raise AssertionError(f"{text}: {draws} draws gave {counts}, expected about {right}\n{found}".strip())


def choices(solution, temperature: float, overlaps: Sequence[int], held: Sequence[int], seed: int, draws: int) -> list:
    """What `KvAware` chooses for a prompt of ten blocks, where workers have leading blocks and hold others."""
    active, query = solution.module("cluster.active"), solution.module("cluster.query")
    load = active.Load()
    for worker, blocks in enumerate(held):
        load.add_worker(worker)
        load.own(active.Added("router", worker, f"old {worker}", tuple(range(900, 900 + blocks)), 0), 0)
    policy = solution.module("cluster.policies").KvAware(random.Random(seed), temperature)
    index = Scores({worker: overlap for worker, overlap in enumerate(overlaps) if overlap})
    asked = query.Query(route(solution, 0, 40, range(10)), list(range(len(held))),
                        solution.module("cluster.routing").CostConfig(), 4, load, index, 0)  # fmt: skip
    return [policy.choose(asked) for _ in range(draws)]


@case(task=4, params=[{"temperature": 0.0}, {"temperature": 1.0}])
class TiesAreDrawnAtRandom:
    """Workers that cost the same get the same share, at any temperature: in a fixed order the first one would get
    all prompts that nobody has cached."""

    def inputs(rng, temperature):
        return {"temperature": temperature, "seed": int(rng.integers(2**31))}

    def observe(solution, inputs):
        return choices(solution, inputs["temperature"], [0] * 4, [3] * 4, inputs["seed"], DRAWS)

    def verify(inputs, got):
        counts = dict(Counter(got))
        judge_shares(counts, dict.fromkeys(range(4), 0.25), DRAWS, "four workers cost the same", {
            "a fixed order decides ties: the first gets all": {0: 1.0},
            "a fixed order decides ties: the last gets all": {3: 1.0},
        })  # fmt: skip
        runs = sum(a != b for a, b in pairwise(got))
        if runs > 0.95 * DRAWS or runs < 0.55 * DRAWS:
            raise AssertionError(f"{runs} of {DRAWS} choices differ from the one before: they are not drawn apart")


@case(task=4, params=[{"temperature": t} for t in (0.0, 0.5, 2.0)])
class TemperatureSpreadsTheChoice:
    """Workers that cost 18, 10 and 11 (and 5 more each) are chosen as often as their probabilities say."""

    def inputs(rng, temperature):
        return {"temperature": temperature, "seed": int(rng.integers(2**31))}

    def observe(solution, inputs):
        held = [decode + 5 - 10 for _, decode in VECTORS]  # with the prompt's ten blocks: 5 more than in the example
        return choices(solution, inputs["temperature"], [o for o, _ in VECTORS], held, inputs["seed"], DRAWS)

    def verify(inputs, got):
        shares = SHARES | {0.0: [0.0, 1.0, 0.0]}
        want = dict(enumerate(shares[inputs["temperature"]]))
        judge_shares(dict(Counter(got)), want, DRAWS, f"temperature {inputs['temperature']}", {
            "the temperature is not used": {1: 1.0},
            "chosen without looking at the costs": dict.fromkeys(range(3), 1 / 3),
            "what workers have cached is not looked at": {1: 1.0, 2: 0.0},
        })  # fmt: skip


@case(task=4)
class ASeedRepeatsEveryChoice:
    """All chance comes from the generator that the policy was made with."""

    def inputs(rng):
        return {"seeds": rng.permutation(1000)[:2].tolist()}

    def observe(solution, inputs):
        runs = []
        for seed, other in ((0, 1), (0, 2), (1, 1)):
            random.seed(other)
            runs.append(choices(solution, 1.0, [0, 1, 2], [1, 1, 1], inputs["seeds"][seed], 40))
        return runs

    def verify(inputs, got):
        text = "two policies with the same seed chose differently: chance was taken from elsewhere"
        explain(got[0] == got[1], True, text)
        explain(got[0] == got[2], False, "two policies with different seeds chose the same 40 times")


@case(task=4)
class DecodeWorkersShareTheLoad:
    """Prompts with one system prompt, which three of five workers have cached. For decode workers, which get the keys
    and values from elsewhere, a cost without credit, prefill and reuse spreads them over all five."""

    def inputs(rng):
        return {"seed": int(rng.integers(2**31)), "requests": 100}

    def observe(solution, inputs):
        index = Scores({0: 8, 1: 8, 2: 8})
        router = router_of(solution, range(5), seed=inputs["seed"], index=index)
        blind = solution.module("cluster.routing").CostConfig(credit=0, track_prefill=False, assume_reuse=False)
        placed = []
        for uid in range(inputs["requests"]):
            request = route(solution, uid, 40, [*range(8), 1000 + uid, 2000 + uid], cost=blind)
            placed.append(router.submit(request, uid).worker)
        return placed

    def verify(inputs, got):
        counts, each = dict(sorted(Counter(got).items())), inputs["requests"] // 5
        text = f"requests of each decode worker: {counts}, expected {each} each"
        explain(counts, dict.fromkeys(range(5), each), text)


@case(task=4)
class RoutersThatTellEachOtherDoNotHerd:
    """Four routers get a burst of equal requests. If each tells the others at once what it sends, all workers get the
    same; if they tell nothing, each spreads its own."""

    def inputs(rng):
        return {"seed": int(rng.integers(2**31))}

    def observe(solution, inputs):
        results = []
        for sync in (True, False):
            of, routers = solution.module("cluster.router"), []
            for name in range(4):
                policy = solution.module("cluster.policies").KvAware(random.Random(inputs["seed"] + name))
                router = of.Router(policy, of.RouterConfig(block_size=4), name=f"router {name}")
                told: list = []
                router.tell = told.append
                for worker in range(8):
                    router.add_worker(worker, 0)
                routers.append([router, told])
            counts = Counter()
            for uid in range(64):
                router, told = routers[uid % 4]
                counts[router.submit(route(solution, uid, 8, (uid, 100 + uid)), uid).worker] += 1
                for news in told:
                    for other, _ in routers if sync else []:
                        other.merge(news, uid)  # its own, too: an echo
                told.clear()
            results.append([counts[worker] for worker in range(8)])
        return results

    def verify(inputs, got):
        explain(got[0], [8] * 8, f"64 equal requests by four routers that tell each other: {got[0]}, expected 8 each")
        if sum(got[1]) != 64 or min(got[1]) < 4 or max(got[1]) > 16:
            raise AssertionError(f"64 equal requests by four routers that tell each other nothing: {got[1]}")


ORDERS = {
    "fcfs": lambda arrival, jump, new: arrival - jump,
    "lcfs": lambda arrival, jump, new: -(arrival + jump),
    "wspt": lambda arrival, jump, new: -Fraction(1 + jump, max(1, new)),
}


@case(task=4, params=[{"policy": policy} for policy in ORDERS])
class TheQueueHasAnOrder:
    """A higher priority goes first, whatever the others waited. Within one: fcfs by arrival, lcfs the reverse, wspt by
    (1 + jump) / new tokens, the largest first; a jump is a head start. Equal ones go as they came."""

    def inputs(rng, policy):
        rows = []
        for uid in range(40):
            rows.append([uid, int(rng.integers(0, 30)), int(rng.choice([0, 0, 7, 20])), int(rng.integers(-1, 2)),
                         int(rng.choice([0, 1, 5, 30, 90]))])  # fmt: skip
        return {"policy": policy, "rows": rows}

    def observe(solution, inputs):
        of = solution.module("cluster.router_queue")
        queue, gone = of.RouterQueue(of.SCORES[inputs["policy"]]), []
        for uid, arrival, jump, priority, new in inputs["rows"]:
            queue.push(route(solution, uid, 100, arrival=arrival, jump=jump, priority=priority), new)
        queue.release(lambda request: gone.append(request.uid) is None)
        return [gone, len(queue)]

    def verify(inputs, got):
        rows, policy = inputs["rows"], inputs["policy"]

        def order(key) -> list[int]:
            return [row[0] for row in sorted(rows, key=key)]

        want = order(lambda r: (-r[3], ORDERS[policy](r[1], r[2], r[4]), r[0]))
        text = f"[uid, arrival, jump, priority, new tokens]: {rows}\nthey went in the order {got[0]}, expected {want}"
        explain(got[0], want, text, {
            f"that is the order of {other}": order(lambda r, o=other: (-r[3], ORDERS[o](r[1], r[2], r[4]), r[0]))
            for other in ORDERS if other != policy
        } | {
            "a low priority goes first": order(lambda r: (r[3], ORDERS[policy](r[1], r[2], r[4]), r[0])),
            "the priority is not looked at": order(lambda r: (ORDERS[policy](r[1], r[2], r[4]), r[0])),
            "the jump is not looked at": order(lambda r: (-r[3], ORDERS[policy](r[1], 0, r[4]), r[0])),
            "the jump holds them back": order(lambda r: (-r[3], ORDERS[policy](r[1], -r[2], r[4]), r[0])),
        })  # fmt: skip
        explain(got[1], 0, f"{got[1]} still wait, though all were ready")


@case(task=4)
class ReleaseAsksWhoCouldGo:
    """Requests are asked in their order. One that may go to few workers and finds none is passed over; one that may go
    to any and finds none ends the round: those behind it have no better chance. Who was removed is not asked."""

    def inputs(rng):
        return {"stop": int(rng.integers(6, 9))}

    def observe(solution, inputs):
        queue, stop = solution.module("cluster.router_queue").RouterQueue(), inputs["stop"]
        for uid in range(10):
            queue.push(route(solution, uid, 10, arrival=uid, eligible=("w",) if uid in (1, 3) else None), 10)
        queue.remove(0)
        queue.remove(5)
        queue.push(route(solution, 5, 10, arrival=20), 10)  # its uid again, at the end
        log = []
        for ready in ((2, 4), (1, 3, 6, 7, 8, 9, 5), ()):
            asks = []
            queue.release(lambda r, a=asks, go=ready: a.append(r.uid) is None and r.uid in go and r.uid != stop)
            log.append([asks, [request.uid for request in queue]])
        last = []
        queue.release(lambda r: last.append(r.uid) is None)
        return [log, last, len(queue), queue.tokens]

    def verify(inputs, got):
        stop = inputs["stop"]
        log, last, length, tokens = got
        left = list(range(stop, 10))
        want = [
            [[1, 2, 3, 4, 6], [1, 3, 6, 7, 8, 9, 5]],
            [[1, 3, *range(6, stop + 1)], [*left, 5]],
            [[stop], [*left, 5]],
        ]
        texts = ["2 and 4 find a worker", f"all but {stop} do", "nobody does"]
        for text, (asks, waits), (right, stay) in zip(texts, log, want, strict=True):
            explain(asks, right, f"1 and 3 may have one worker, the others any; {text}. Asked were {asks}, expected "
                f"{right}", {
                "the first that was not ready ended the round, though others may go elsewhere": right[:1],
                "one that was removed was asked": [0],
                "those that were passed over are lost": [uid for uid in right if uid > 6] or [7, 8, 9, 5],
                "all were asked: a request for any worker that finds none ends the round": [
                    uid for uid in right if uid != 5] + [u for u in range(right[-1] + 1, 10) if u != 5] + [5],
            })  # fmt: skip
            explain(waits, stay, f"{text}: then {waits} wait, expected {stay}", {
                "those that were passed over are lost": [uid for uid in stay if uid not in (1, 3)],
            })  # fmt: skip
        explain(last, [*left, 5], f"in the end all went, in the order {last}, expected {[*left, 5]}", {
            "a removed entry came back under its uid": [5, *left], "those that were passed over are lost": left[1:],
        })  # fmt: skip
        explain([length, tokens], [0, {0: 0}], f"then {length} wait, and tokens that wait by priority are {tokens}")


@case(task=4)
class NewTokensDecideWhoIsShort:
    """A request waits with the prompt tokens that its best eligible worker has still to compute, so that wspt takes a
    long prompt that is cached before a short one that is not."""

    def inputs(rng):
        return {"seed": int(rng.integers(2**31))}

    def observe(solution, inputs):
        of = solution.module("cluster.router_queue")
        index = Scores({"a": 20, "b": 22})
        router = router_of(solution, ["a", "b", "c"], seed=inputs["seed"], index=index,
                           queue=of.RouterQueue(of.wspt), busy_prefill_tokens=0)  # fmt: skip
        for uid, worker in enumerate("abc"):
            router.submit(route(solution, uid, 100, eligible=(worker,)), 0)
        waits = [
            route(solution, 10, 100, eligible=("a", "c")),  # 20 new tokens at best: a has 20 blocks of 4
            route(solution, 11, 50, eligible=("c",)),
            route(solution, 12, 18, eligible=("c",)),
            route(solution, 13, 105, eligible=("b",)),  # 17
            route(solution, 14, 98),  # 10
        ]
        parked = [router.submit(request, 1) for request in waits]
        order = []
        router.queue.release(lambda request: order.append(request.uid) is None)
        return [parked, order]

    def verify(inputs, got):
        explain(got[0], [None] * 5, f"all workers are busy, and submit gave {got[0]}: a request that waits gives None")
        want = [14, 13, 12, 10, 11]
        text = f"requests 10 to 14 have 20, 50, 18, 17 and 10 new tokens; they went in the order {got[1]}"
        explain(got[1], want, f"{text}, expected {want}", {
            "cached tokens were not taken off": [12, 11, 14, 10, 13],
            "the best of all workers was taken, also of those that may not have it": [11, 12, 14, 10, 13],
        })  # fmt: skip


REFUSED = ["overloaded", "some overloaded", "nobody", "known", "waiting", "full", "full elsewhere"]


@case(task=4, params=[{"what": what} for what in REFUSED])
class RefusesWhatNobodyCanTake:
    """`OverloadedError` where all eligible workers are overloaded, none is eligible, or too much waits in a priority;
    ValueError for a uid that is here; and nothing has changed then. An overloaded worker gets nothing."""

    def inputs(rng, what):
        return {"what": what, "seed": int(rng.integers(2**31))}

    def observe(solution, inputs):
        what, of = inputs["what"], solution.module("cluster.router_queue")
        limits = {"overload_blocks": 2} if "overloaded" in what else {}
        if what in ("waiting", "full", "full elsewhere"):
            limits = {"busy_prefill_tokens": 0}
        queue = of.RouterQueue(limit=50)
        router = router_of(solution, ["a", "b"], seed=inputs["seed"], queue=queue, **limits)
        for uid, worker in enumerate("ab"):
            blocks = 2 if what == "some overloaded" and worker == "b" else 3
            router.submit(route(solution, uid, 12, range(10 * uid, 10 * uid + blocks), eligible=(worker,)), 0)
        if "full" in what:
            router.submit(route(solution, 5, 30), 1)
        if what == "waiting":
            router.submit(route(solution, 5, 30, eligible=("a",)), 1)
            router.prefill_done(1, 1)  # b is not busy any more
        changes = {"nobody": {"eligible": ("c",)}, "full elsewhere": {"priority": 1}}.get(what, {})
        uid = {"known": 0, "waiting": 5}.get(what, 9)
        result = error_of(lambda: router.submit(route(solution, uid, 30, **changes), 2))
        if result["type"] is None and result["value"] is not None:
            result = result | {"value": [result["value"].uid, result["value"].worker]}
        books = [list(router.placed), [request.uid for request in queue], dict(router.load.inflight), queue.tokens]
        return [result, books]

    def verify(inputs, got):
        what, (result, books) = inputs["what"], got
        kind = {"some overloaded": None, "full elsewhere": None, "known": "ValueError", "waiting": "ValueError"}
        texts = {
            "overloaded": "both workers hold 3 blocks, and more than 2 is overload",
            "some overloaded": "a holds 3 blocks and b 2, and more than 2 is overload",
            "nobody": "no worker may have the request",
            "known": "its uid is placed already",
            "waiting": "its uid waits already",
            "full": "30 tokens wait, 50 may, and it has 30",
            "full elsewhere": "30 tokens wait at priority 0, 50 may, and it has 30 at priority 1",
        }
        want = kind.get(what, "OverloadedError")
        explain(result["type"], want, f"{texts[what]}: {result}, expected {want or 'no error'}", {
            "a request that nobody can take waits for ever": result["type"] if want else "-",
            "whoever waits at another priority was counted": "OverloadedError" if want is None else "-",
        })  # fmt: skip
        if what == "some overloaded":
            explain(result["value"], [9, "b"], f"{texts[what]}: the request went to {result['value']}, expected b", {
                "an overloaded worker was chosen": [9, "a"],
            })  # fmt: skip
            return
        waits = [5] if what in ("waiting", "full", "full elsewhere") else []
        waits += [9] if what == "full elsewhere" else []
        right = [[0, 1], waits, {"a": 1, "b": 1}, dict.fromkeys([0, 1][: len(waits)], 30)]
        text = f"{texts[what]}: then placed, waiting, requests of each worker and tokens that wait are {books}"
        explain(books, right, f"{text}, expected {right}")


LIMIT = 60
"""Prompt tokens of a worker that is not busy yet."""


def day(rng: random.Random, steps: int) -> list[list]:
    """What happens to a router with workers 0, 1 and 2: ["submit", uid, tokens, priority, eligible], and ["done"],
    ["free"] or ["leave", share], which concern one of those that are placed, or wait, at that share of them."""
    script = []
    for now in range(steps):
        roll, share = rng.random(), rng.random()
        if roll < 0.5:
            eligible = rng.choice([None, None, None, (0, 1), (2,)])
            script.append(["submit", now, rng.randint(0, 80), rng.randint(0, 1), eligible])
        else:
            script.append(["done" if roll < 0.72 else "free" if roll < 0.95 else "leave", share])
    return script


def run_router(solution, script: list[list], seed: int, queue=None) -> list[dict]:
    """What a router did: for each operation who it was about, the decisions, and who waits."""
    router = router_of(solution, range(3), seed=seed, queue=queue, busy_prefill_tokens=LIMIT)
    log = []
    for now, (name, *rest) in enumerate(script):
        about, decisions = None, []
        waiting = [request.uid for request in router.queue]
        if name == "submit":
            uid, tokens, priority, eligible = rest
            about, eligible = uid, None if eligible is None else tuple(eligible)
            request = route(solution, uid, tokens, (uid,), arrival=now, priority=priority, eligible=eligible)
            decision = router.submit(request, now)
            decisions = [decision] if decision else []
        elif here := list(router.placed) if name != "leave" else waiting:
            about = here[int(rest[0] * len(here))]
            decisions = router.prefill_done(about, now) if name == "done" else router.free(about, now)
        log.append({"about": about, "went": [[one.uid, one.worker] for one in decisions],
                    "waits": [request.uid for request in router.queue]})  # fmt: skip
    return log


def judge_router(script: list[list], log: list[dict]) -> None:
    """The invariants of a queue, from books that are kept here."""
    loads: dict[int, dict[int, int]] = {0: {}, 1: {}, 2: {}}
    requests: dict[int, list] = {}
    waiting: list[int] = []
    for now, ((name, *rest), seen) in enumerate(zip(script, log, strict=True)):
        about = seen["about"]
        if name == "submit":
            requests[about] = [rest[1], rest[2], range(3) if rest[3] is None else rest[3]]
            waiting.append(about)
        for load in loads.values():
            if name == "done" and about in load:
                load[about] = 0
            elif name == "free":
                load.pop(about, None)
        if name == "leave" and about in waiting:
            waiting.remove(about)
        for uid, worker in seen["went"]:
            what = f"operation {now}, {[name, *rest]}: request {uid} went to worker {worker}"
            explain(uid in waiting, True, f"{what}, though it does not wait")
            tokens, priority, eligible = requests[uid]
            explain(worker in eligible, True, f"{what}, but it may have {list(eligible)} only")
            busy = sum(loads[worker].values())
            explain(busy <= LIMIT, True, f"{what}, which is busy with {busy} prompt tokens: more than {LIMIT}")
            ahead = [other for other in waiting if set(requests[other][2]) >= set(eligible)
                     and (-requests[other][1], other) < (-priority, uid)]  # fmt: skip
            text = f"{what}, and overtook {ahead}, which came earlier or have a higher priority"
            explain(ahead, [], text)
            waiting.remove(uid)
            loads[worker][uid] = tokens
        explain(sorted(seen["waits"]), sorted(waiting), f"operation {now}: {seen['waits']} wait, expected {waiting}")
        free = [worker for worker, load in loads.items() if sum(load.values()) <= LIMIT]
        parked = [uid for uid in waiting if set(requests[uid][2]) & set(free)]
        text = f"operation {now}, {[name, *rest]}: {parked} wait, though workers {free} may have them and are not busy"
        explain(parked, [], f"{text}. Those that wait must be looked at again whenever something ends")


@case(task=4, params=[{"seed": seed} for seed in range(3)], timeout=20.0)
class NobodyWaitsForNothing:
    """At no time does a request wait while a worker that may have it is not busy, and within a priority nobody who may
    go to the same workers is overtaken."""

    def inputs(rng, seed):
        draw = random.Random(int(rng.integers(2**31)))
        return {"script": day(draw, 250), "seed": seed}

    def observe(solution, inputs):
        return run_router(solution, inputs["script"], inputs["seed"])

    def verify(inputs, got):
        judge_router(inputs["script"], got)


@case(task=4)
class DecisionsSayWhatIsCached:
    """A decision names the request, the worker, and the leading blocks that are believed to be there; the worker is
    busy with the rest of the prompt."""

    def inputs(rng):
        return {"seed": int(rng.integers(2**31)), "overlap": int(rng.integers(2, 9))}

    def observe(solution, inputs):
        router = router_of(solution, ["a", "b"], seed=inputs["seed"], index=Scores({"b": inputs["overlap"]}))
        one = router.submit(route(solution, 3, 42, range(10)), 0)
        books = [one.uid, one.worker, one.overlap, router.load.workers["b"].prefill_tokens]
        late = [[each.uid for each in router.release(1)], router.free(3, 2), router.load.inflight["b"]]
        return [books, late]

    def verify(inputs, got):
        want = [3, "b", inputs["overlap"], 42 - 4 * inputs["overlap"]]
        text = f"uid, worker, overlap, prompt tokens of a prompt of 42 tokens in blocks of 4: {got[0]}, expected {want}"
        explain(got[0], want, text)
        explain(got[1], [[], [], 0], f"with nobody waiting, release, free and the requests of b are {got[1]}")
