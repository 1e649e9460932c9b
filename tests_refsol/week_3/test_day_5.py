"""Day 5, the prefix cache: a set of prefixes is the oracle of the tree, and a hash model without a cache that of the
engine."""

from collections.abc import Hashable, Sequence
from itertools import pairwise, zip_longest

import mlx.core as mx
import numpy as np

from course.case import case, error_of
from course.compare import close, refused, same
from course.model_case import SMALL, config_of, model_inputs, model_of, oracle
from course.page_books import fail_unless, for_all
from course.prefix_case import AnyScheduler, judge_answers, owners
from course.radix_books import judge_match, judge_tree
from course.radix_case import path_of, run_tree, snapshot
from course.serving_case import judge
from course.serving_case.drive import drive
from course.serving_case.oracle import alone
from course.serving_case.workload import request, script, workload
from course.suspects import named


def explain(got: object, want: object, text: str, mistakes: dict[str, object]) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    fail_unless(got == want, f"{text}\n{named(mistake for mistake, value in mistakes.items() if value == got)}")


def node_at(trace: dict[str, object], path: Sequence[Hashable], call: str) -> dict[str, object]:
    """The node of a snapshot that ends a path."""
    for node in trace["nodes"]:
        if node["path"] == list(path):
            return node
    ends = [node["path"] for node in trace["nodes"]]
    raise AssertionError(f"after {call} no node ends at {list(path)}: nodes end at {ends}")


# Task 1: walk, split, insert


@case(task=1, params=[{"kind": kind} for kind in ("numbers", "ids", "texts", "alike")])
class MatchFindsTheLongestPrefix:
    """`match` gives the pages of the longest cached prefix, in their order; keys are compared, whatever they are."""

    def inputs(rng, kind):
        keys = {
            "numbers": [0, 1, 2],
            "ids": [(5, 7), (5, 8), (7, 5)],
            "texts": ["a", "b", "ab"],
            "alike": [-1, -2, 3],  # hash(-1) == hash(-2)
        }[kind]

        def prompt(length):
            return [keys[int(i)] for i in rng.integers(len(keys), size=length)]

        stem, numbers = prompt(6), rng.permutation(400)
        ops = []
        for at in range(24):
            tail = prompt(int(rng.integers(0, 4)))
            ids = stem[: int(rng.integers(0, 7))] + tail
            pages = [int(n) for n in numbers[16 * at : 16 * at + len(ids)]]
            ops.append(["match", ids] if at % 3 == 2 else ["insert", ids, pages])
        return [*ops, ["match", stem], ["match", []]]

    def observe(solution, inputs):
        return run_tree(solution, inputs)

    def verify(inputs, got):
        judge_tree(inputs, got)


@case(task=1, params=[{"length": length} for length in (2, 3, 9)])
class ASplitKeepsTheRest:
    """`split` puts the first pages into a new node above; the node itself keeps the rest, its locks and its time."""

    def inputs(rng, length):
        return {"pages": [int(n) for n in rng.permutation(100)[:length]], "locks": int(rng.integers(1, 4))}

    def observe(solution, inputs):
        pages, results = inputs["pages"], []
        for at in range(len(pages) + 1):
            tree = solution.module("cache.radix").RadixTree()
            Node = solution.module("cache.radix").Node
            node = Node(list("abcdefghi")[: len(pages)], list(pages), tree.root, 7, inputs["locks"])
            child = Node(["z"], [100], node, 5, 0)
            node.children["z"], tree.root.children["a"] = child, node
            fronts = []
            error = error_of(lambda node=node, at=at, tree=tree, fronts=fronts: fronts.append(tree.split(node, at)))
            result = {"error": error, "path": path_of(node), "below": path_of(child), "tree": snapshot(tree)}
            if fronts:
                result |= {"returned": path_of(fronts[0]), "time": fronts[0].time, "locks": fronts[0].ref_count}
            results.append(result)
        return results

    def verify(inputs, got):
        length, keys = len(inputs["pages"]), list("abcdefghi")
        for at, result in enumerate(got):
            what = f"a split of {length} pages at {at}"
            if at in (0, length):
                refused(result["error"], what, str(at), str(length))
                continue
            fail_unless(result["error"]["type"] is None, f"{what} raised {result['error']['type']}")
            text = f"after {what} the node that was split ends at {result['path']}, expected {keys[:length]}"
            mistakes = {
                "the node became the front: whoever holds it no longer holds all of it": keys[:at],
                "it names its old parent, so the front is not above it": keys[at:length],
            }
            explain(result["path"], keys[:length], text, mistakes)
            same(result["returned"], keys[:at], f"the end of the node that {what} returned")
            same(result["below"], [*keys[:length], "z"], f"the end of the child after {what}")
            fail_unless(result["tree"]["broken"] is None, f"after {what}: {result['tree']['broken']}")
            front, rest = (node_at(result["tree"], keys[:n], what) for n in (at, length))
            same(front["pages"], inputs["pages"][:at], f"the front's pages after {what}")
            same(rest["pages"], inputs["pages"][at:], f"the rest's pages after {what}")
            text = f"ref_count of the front after {what} is {front['locks']}: each lock on the rest holds the front too"
            fail_unless(front["locks"] == rest["locks"] == inputs["locks"], text)
            fail_unless(front["time"] == rest["time"] == 7, f"{what} changed a time: a split asks for nothing")


@case(task=1, params=[{"name": "match"}, {"name": "insert"}])
class AWalkStampsWhatItMatched:
    """Each node that a walk matched gets its time; the rest of a split node, and all others, keep theirs."""

    def inputs(rng, name):
        stem, cut = int(rng.integers(3, 9)), int(rng.integers(1, 3))
        keys = list(range(stem))
        deep = [*keys, 50, 51, 52]
        partly = [*keys, *deep[stem : stem + cut], 99]
        ops = [["insert", keys, list(range(stem))], ["insert", deep, list(range(100, 103 + stem))]]
        ops += [["insert", [*keys, 60], list(range(200, 201 + stem))]]
        ops += [["match", partly] if name == "match" else ["insert", partly, list(range(300, 300 + len(partly)))]]
        return {"ops": ops, "stem": keys, "deep": deep, "front": deep[: stem + cut], "other": [*keys, 60]}

    def observe(solution, inputs):
        return run_tree(solution, inputs["ops"])

    def verify(inputs, got):
        call = f"the walk along {inputs['ops'][-1][1]}"
        paths = {name: inputs[name] for name in ("stem", "front", "deep", "other")}
        nodes = {name: node_at(got[-1], path, call)["time"] for name, path in paths.items()}
        before = node_at(got[-2], inputs["deep"], "three inserts")["time"]
        if nodes["deep"] == nodes["front"] and nodes["deep"] != before:
            raise AssertionError(f"{call} stamped the rest of the node that it split: nobody asked for that part")
        if nodes["front"] == before:
            raise AssertionError(f"{call} did not stamp the front part of the node that it split: that was asked for")
        if nodes["stem"] > 10 * len(inputs["ops"]):
            raise AssertionError(
                f"the time of the last of {len(inputs['ops'])} walks is {nodes['stem']}: the tree counts walks. A wall "
                "clock would evict other pages when a trace is replayed"
            )
        if nodes["stem"] != nodes["front"]:
            raise AssertionError(f"{call} did not stamp every node on its way alike: {nodes}")
        judge_tree(inputs["ops"], got)


@case(task=1)
class InsertTakesOnlyWhatIsNew:
    """`insert` tells how many pages were there, takes the others as one leaf, and counts them as evictable."""

    def inputs(rng):
        length, cut, more = (int(n) for n in (rng.integers(4, 8), rng.integers(1, 4), rng.integers(1, 5)))
        first = [10 + i for i in range(length)]
        ops = [
            ["insert", first, [100 + i for i in range(length)]],
            ["insert", first, [200 + i for i in range(length)]],  # all there
            ["insert", first[:cut], [300 + i for i in range(cut)]],  # a part, and nothing new
            ["insert", [*first[:cut], *range(more)], [400 + i for i in range(cut + more)]],
            ["insert", [], []],
            ["match", first],
        ]
        return ops

    def observe(solution, inputs):
        return run_tree(solution, inputs)

    def verify(inputs, got):
        length, cut = len(inputs[0][1]), len(inputs[2][1])
        for op, result, want in zip(inputs, got, (0, length, cut, cut, 0), strict=False):
            fail_unless(result["error"] is None, f"insert of {op[1]} raised {result['error']}")
            mistakes = {"what is new was returned, not what was there": len(op[1]) - want}
            text = f"insert of {len(op[1])} pages, of which {want} are cached, returned {result['value']}"
            explain(result["value"], want, text, mistakes)
            same(result["path"], op[1], f"the end of the node that the insert of {op[1]} gave")
        fail_unless(len(got[0]["nodes"]) == 1, f"the insert of {length} pages made {len(got[0]['nodes'])} nodes, not 1")
        same(got[-1]["value"], inputs[0][2], "pages of the first prompt: those that came first stay")
        judge_tree(inputs, got)


@case(task=1, params=[{"kind": kind} for kind in ("lists", "row of the table")])
class TheTreeKeepsCopies:
    """What the caller does with its lists afterwards, or with a result, changes nothing in the tree."""

    def inputs(rng, kind):
        return {"pages": [int(n) for n in rng.permutation(50)[:5]], "table": kind != "lists"}

    def observe(solution, inputs):
        tree = solution.module("cache.radix").RadixTree()
        keys = list("abcde")
        pages = np.array(inputs["pages"]) if inputs["table"] else list(inputs["pages"])
        tree.insert(keys, pages if not inputs["table"] else pages[:])
        pages[:] = [77] * 5
        keys[:] = "zzzzz"
        tree.match(list("abcde"))[0].clear()
        matched = [int(page) for page in tree.match(list("abcde"))[0]]
        return {"matched": matched, "tree": snapshot(tree)}

    def verify(inputs, got):
        for page in got["matched"]:
            fail_unless(page != 77, f"the tree has page 77, which the caller wrote into its own row later: {got}")
        judge_match("match after the caller changed its lists", got["matched"], inputs["pages"])
        same(got["tree"]["nodes"][0]["keys"], list("abcde"), "keys of the node")


@case(task=1)
class PagesAndKeysMustBeAsMany:
    """Another number of pages than keys is refused with a ValueError that names both, and changes nothing."""

    def inputs(rng):
        return {"keys": [1, 2, 3, 4], "pages": [int(n) for n in rng.permutation(9)[: int(rng.integers(5, 9))]]}

    def observe(solution, inputs):
        tree = solution.module("cache.radix").RadixTree()
        errors = [error_of(lambda n=n: _plain(tree.insert(inputs["keys"], inputs["pages"][:n]))) for n in (3, None)]
        return {"errors": errors, "tree": snapshot(tree)}

    def verify(inputs, got):
        for error, n in zip(got["errors"], (3, len(inputs["pages"])), strict=True):
            refused(error, f"an insert of 4 keys with {n} pages", "4", str(n))
        same(got["tree"]["nodes"], [], "nodes after refused inserts")


def _plain(result: tuple[int, object]) -> int:
    return int(result[0])


@case(task=1, params=[{"pages": 20_000, "step": 20_000}, {"pages": 1_500, "step": 1}], timeout=8.0)
class LongPromptsAreFine:
    """A prompt of 20,000 pages, and a path of 1,500 nodes, are walked without recursion and in little time."""

    def inputs(rng, pages, step):
        return {"pages": pages, "step": step}

    def observe(solution, inputs):
        tree, n = solution.module("cache.radix").RadixTree(), inputs["pages"]
        keys = list(range(n))
        tree.insert(keys, keys)
        for end in range(n - inputs["step"], 0, -inputs["step"]):  # from the end: each walk is short
            tree.match(keys[:end])
        return [len(tree.match(prompt)[0]) for prompt in ([*keys, -1], [*keys[: n // 2], -5])]

    def verify(inputs, got):
        n = inputs["pages"]
        same(got, [n, n // 2], "matched pages of a long prefix, and of its first half")


# Task 2: lock and evict

STEM, LEFT, RIGHT = [1, 2], [1, 2, 3, 4, 5], [1, 2, 6]
FORK = [["insert", LEFT, [0, 1, 2, 3, 4]], ["insert", RIGHT, [9, 9, 5]]]


@case(task=2, params=[{"node": "left"}, {"node": "stem"}, {"node": "root"}])
class ALockHoldsThePathToTheRoot:
    """A lock protects its node and all above it, nothing else; the last unlock gives everything back."""

    def inputs(rng, node):
        path = {"left": LEFT, "stem": STEM, "root": []}[node]
        locks = int(rng.integers(2, 4))
        ops = [*FORK, ["match", path], *[["lock", 2]] * locks, *[["unlock", 2]] * locks]
        return {"ops": ops, "path": path, "locks": locks}

    def observe(solution, inputs):
        return run_tree(solution, inputs["ops"])

    def verify(inputs, got):
        length = len(inputs["path"])
        for n in range(1, inputs["locks"] + 1):
            state = got[2 + n]
            fail_unless(state["error"] is None, f"lock {n} raised {state['error']}")
            counts = state["evictable"], state["protected"]
            text = f"{n} locks on a node {length} pages deep: evictable, protected are {counts}"
            mistakes = {
                "the node itself was left out: the walk to the root began at its parent": (4, 2)
                if length > 2
                else (6, 0),
                "only the node itself was locked, not those above it": (3, 3) if length > 2 else (4, 2),
                "every lock moved the pages, not only the first": (6 - n * length, n * length),
                "nothing was moved from evictable to protected": (6, 0),
                "protected was counted up, evictable was not counted down": (6, length),
            }
            want = (6 - length, length)
            explain(counts, want, text, {name: value for name, value in mistakes.items() if value != want})
        judge_tree(inputs["ops"], got)


@case(task=2)
class UnlockNeedsALock:
    """`unlock` of a node that is not locked raises a ValueError and changes nothing."""

    def inputs(rng):
        return [*FORK, ["match", LEFT], ["lock", 2], ["unlock", 2], ["unlock", 2], ["lock", 1], ["unlock", 2]]

    def observe(solution, inputs):
        return run_tree(solution, inputs)

    def verify(inputs, got):
        for at in (5, 7):
            fail_unless(
                got[at]["error"] == "ValueError", f"an unlock without a lock gave {got[at]['error'] or 'no error'}"
            )
            for name in ("evictable", "protected", "nodes"):
                same(got[at][name], got[at - 1][name], f"{name} after a refused unlock")


@case(task=2)
class LocksSurviveASplit:
    """Whoever locked a node before it was split holds its front and its rest, and gives both back."""

    def inputs(rng):
        cut = int(rng.integers(1, 5))
        other = [*LEFT[:cut], 8]
        ops = [["insert", LEFT, [0, 1, 2, 3, 4]], ["lock", 0], ["insert", other, [*range(10, 11 + cut)]]]
        ops += [["lock", 2], ["evict", 0], ["unlock", 0], ["evict", 5 - cut], ["unlock", 2], ["evict", 1 + cut]]
        return {"ops": ops, "cut": cut}

    def observe(solution, inputs):
        return run_tree(solution, inputs["ops"])

    def verify(inputs, got):
        cut = inputs["cut"]
        counts = got[2]["evictable"], got[2]["protected"]
        text = f"a locked node was split at {cut} of 5, and 1 page added: evictable, protected are {counts}"
        mistakes = {"the front lost the lock": (1 + cut, 5 - cut), "the rest lost the lock": (6 - cut, cut)}
        explain(counts, (1, 5), text, mistakes)
        judge_tree(inputs["ops"], got)


@case(task=2)
class AnUnlockedLeafCanGo:
    """What was locked while others were evicted can be evicted after its unlock."""

    def inputs(rng):
        n, m = (int(k) for k in rng.integers(1, 4, size=2))
        ops = [["insert", list(range(n)), list(range(n))], ["lock", 0]]
        ops += [["insert", list(range(50, 50 + m)), list(range(10, 10 + m))], ["evict", m]]
        return [*ops, ["unlock", 0], ["evict", n]]

    def observe(solution, inputs):
        return run_tree(solution, inputs)

    def verify(inputs, got):
        judge_tree(inputs, got)


@case(task=2)
class EvictTakesTheOldestEnd:
    """Pages go one by one from the end of the unlocked leaf that nobody asked for longest."""

    def inputs(rng):
        order = [int(i) for i in rng.permutation(4)]
        leaves = [[7, 7, i, i] for i in range(4)]
        ops = [["insert", leaf, [10 * i + n for n in range(4)]] for i, leaf in enumerate(leaves)]
        ops += [["match", leaves[i]] for i in order]
        ops += [["evict", n] for n in (1, 2, 1, 3, 1, 2)]
        return ops

    def observe(solution, inputs):
        return run_tree(solution, inputs)

    def verify(inputs, got):
        judge_tree(inputs, got)


@case(task=2)
class AnUnmatchedEndGoesFirst:
    """After a hit on the front of a node, its rest is evicted before the front, and before what was asked for later."""

    def inputs(rng):
        cut = int(rng.integers(1, 4))
        ops = [["insert", [1, 2, 3, 4], [0, 1, 2, 3]], ["insert", [5, 6], [4, 5]], ["match", [1, 2, 3, 4][:cut]]]
        return [*ops, ["evict", 4 - cut], ["evict", 2], ["evict", cut]]

    def observe(solution, inputs):
        return run_tree(solution, inputs)

    def verify(inputs, got):
        judge_tree(inputs, got)


@case(task=2)
class EvictRefusesWhatIsLocked:
    """More pages than are evictable, or fewer than none, raise a ValueError, and nothing goes. Locked pages stay."""

    def inputs(rng):
        more = int(rng.integers(2, 9))
        ops = [*FORK, ["lock", 1], ["evict", 3 + more], ["evict", -1], ["evict", 4], ["evict", 3], ["match", LEFT]]
        return {"ops": [*ops, ["match", RIGHT], ["evict", 1]], "more": more}

    def observe(solution, inputs):
        return run_tree(solution, inputs["ops"])

    def verify(inputs, got):
        for at in (3, 4, 5, 9):
            call, error = inputs["ops"][at], got[at]["error"]
            evictable = got[at - 1]["evictable"]
            text = f"evict({call[1]}) with {evictable} evictable pages gave {error or 'no error'}, not a ValueError"
            fail_unless(error == "ValueError", text)
            for name in ("evictable", "protected", "nodes"):
                same(got[at][name], got[at - 1][name], f"{name} after a refused evict({call[1]})")
        same(sorted(got[6]["value"] or []), [2, 3, 4], "the pages that evict(3) gave")
        same([got[7]["value"], got[8]["value"]], [[0, 1], [0, 1, 5]], "what is found after the eviction")


@case(task=2, timeout=30.0)
class TheTreeIsASetOfPrefixes:
    """Whatever is inserted, matched, locked, unlocked and evicted: the tree is a set of prefixes with one page each."""

    def observe(solution, inputs):
        return run_tree(solution, inputs)

    def inputs(rng):
        return int(rng.integers(2**31))

    def check(observe, inputs):
        from course.radix_scripts import tree_scripts

        for_all(tree_scripts(), inputs, 100, lambda ops: judge_tree(ops, observe(ops)))


@case(task=2, timeout=8.0)
class EvictionIsQuick:
    """1,000 prompts go page by page, while others are matched, in little time."""

    def inputs(rng):
        return [int(i) for i in rng.permutation(1000)]

    def observe(solution, inputs):
        tree = solution.module("cache.radix").RadixTree()
        for i in inputs:
            tree.insert([0, i + 1, 0], [10**6, 2 * i, 2 * i + 1])
        for i in inputs[:250]:
            tree.match([0, i + 1])
        return [int(tree.evict(1)[0]) for _ in range(2001)]

    def verify(inputs, got):
        halves = [2 * i + 1 for i in inputs[:250]]
        want = [*halves, *[page for i in inputs[250:] for page in (2 * i + 1, 2 * i)], *[2 * i for i in inputs[:250]]]
        fail_unless(
            got[-1] == 10**6, f"the page that all prompts share went as number {got.index(10**6) + 1}, not last"
        )
        for at, (page, right) in enumerate(zip_longest(got[:2000], want)):
            fail_unless(page == right, f"page {page} was evicted as number {at + 1}: page {right} is older")


# Task 3: a prefix for a request


def memory_of(solution: object, inputs: dict[str, object]) -> object:
    """A prefix memory, with the prompts of "cached" in its tree as if they had been computed."""
    sizes = {"rows": 4, "max_len": 512, "page_size": 4, "pages": 64} | inputs["sizes"]
    memory = solution.module("serving.prefix_memory").PrefixMemory(**sizes)
    Request, s = solution.module("serving.request").Request, memory.page_size
    for ids in inputs["cached"]:
        keys = Request(99, list(ids), 1).page_keys(s, len(ids))
        pages = memory.allocator.allocate(len(keys))
        already, _ = memory.tree.insert(keys, pages)
        memory.allocator.free(pages[:already])
    return memory


def state_of(memory: object, requests: Sequence[object] = ()) -> dict[str, object]:
    """Counts, rows, and who owns what."""
    return {
        "available": int(memory.available),
        "free": int(memory.allocator.available),
        "free_rows": int(memory.free_rows),
        "evictable": int(memory.tree.evictable),
        "protected": int(memory.tree.protected),
        "locks": sum(node["locks"] for node in snapshot(memory.tree)["nodes"]),
        "rows": [memory.table.pages(r.row) if r.row is not None else None for r in requests],
        "held": [int(memory.held(r)) for r in requests],
        "problem": owners(memory, [r for r in requests if r.row is not None]),
    }


BEYOND = ("equal", "one more", "less", "else", "preempted")


@case(task=3, params=[{"page_size": s, "beyond": b} for s in (1, 4, 16) for b in BEYOND])
class MatchLeavesATokenToRun:
    """A match is whole pages of the cached prefix, and never all ids: the last token must run. After preemption the
    ids hold what was answered, and that is matched, too."""

    def inputs(rng, page_size, beyond):
        ids = [int(i) for i in rng.integers(0, 1000, size=5 * page_size)]
        shared = int(rng.integers(1, 5 * page_size))
        more = [*ids, 7]
        prompt = {
            "equal": ids, "one more": more, "less": ids[:shared], "else": [*ids[:shared], 2000, *ids],
            "preempted": more,
        }[beyond]  # fmt: skip
        first = int(rng.integers(1, page_size + 1)) if beyond == "preempted" else len(prompt)
        return {"sizes": {"page_size": page_size}, "cached": [ids], "prompt": prompt, "first": first}

    def observe(solution, inputs):
        memory = memory_of(solution, inputs)
        request = solution.module("serving.request").Request(1, inputs["prompt"][: inputs["first"]], 500)
        if answered := inputs["prompt"][inputs["first"] :]:
            request.ids += answered
            request.reset()
        full, _ = memory.tree.match(request.page_keys(memory.page_size, len(inputs["cached"][0])))
        prefix = memory.match(request)
        return {
            "tokens": int(prefix.tokens), "pages": [int(page) for page in prefix.pages],
            "full": [int(page) for page in full], "state": state_of(memory), "row": request.row,
        }  # fmt: skip

    def verify(inputs, got):
        s, prompt, ids = inputs["sizes"]["page_size"], inputs["prompt"], inputs["cached"][0]
        common = next(
            (i for i, (a, b) in enumerate(zip(prompt, ids, strict=False)) if a != b), min(len(prompt), len(ids))
        )
        pages = min(common, len(prompt) - 1) // s
        text = f"{common} of {len(prompt)} tokens are cached, pages hold {s}: matched {got['tokens']} tokens"
        mistakes = {
            "the whole prompt was matched: nothing is left to run, and there are no logits": common // s * s,
            "pages were counted, not tokens": pages,
            "a page was matched of which only a part is equal": -(-common // s) * s,
            "the last page is left out, also where another token would be left": max(pages - 1, 0) * s,
            "only the prompt was matched, not what was answered before": (inputs["first"] - 1) // s * s,
        }
        explain(got["tokens"], pages * s, text, {name: n for name, n in mistakes.items() if n != pages * s})
        same(got["pages"], got["full"][:pages], "the pages of the prefix")
        fail_unless(got["row"] is None and got["state"]["protected"] == 0, "a match must hold nothing: no row, no lock")


@case(task=3, params=[{"page_size": s} for s in (1, 4, 16)])
class OpenLocksWhatItFound:
    """`open` gives a row that begins with the cached pages, which can no longer be evicted from then on."""

    def inputs(rng, page_size):
        ids = [int(i) for i in rng.integers(0, 1000, size=4 * page_size)]
        pages, rest = int(rng.integers(1, 4)), int(rng.integers(1, page_size + 1))
        prompts = [[*ids[: pages * page_size], *range(2000, 2000 + rest)], [5000]]
        return {"sizes": {"page_size": page_size, "pages": 8}, "cached": [ids], "prompts": prompts, "pages": pages}

    def observe(solution, inputs):
        memory = memory_of(solution, inputs)
        names = solution.module("serving.request"), solution.module("serving.memory")
        hit, miss, plain = (names[0].Request(i, [*inputs["prompts"][min(i, 1)]], 3) for i in range(3))
        prefix = memory.match(hit)
        memory.open(hit, prefix)
        states = [state_of(memory, [hit])]
        memory.open(miss, memory.match(miss))
        memory.open(plain, names[1].Prefix())
        states.append(state_of(memory, [hit, miss, plain]))
        again = error_of(lambda: memory.open(hit, prefix))
        states.append(state_of(memory, [hit, miss, plain]))
        return {
            "pages": [int(page) for page in prefix.pages],
            "cached": hit.cached_len,
            "states": states,
            "again": again,
        }

    def verify(inputs, got):
        s, n = inputs["sizes"]["page_size"], inputs["pages"]
        first = got["states"][0]
        same(got["cached"], n * s, "cached_len of a request whose prefix is cached")
        same(first["rows"], [got["pages"]], "the row of a request after open")
        same(first["held"], [n], "pages held after open")
        text = f"{n} of 4 cached pages were matched and opened, 4 are free: available is {first['available']}"
        mistakes = {
            "the prefix was not locked: what the request reads may be evicted": 8,
            "what the tree could evict is not counted": 4,
            "positions were counted, not pages": 4 + (4 - n) * s,
            "all pages of the tree were counted, also locked ones": 8,
        }
        explain(first["available"], 8 - n, text, mistakes)
        fail_unless(first["problem"] is None, f"after open: {first['problem']}")
        refused(got["again"], "a second open of a request that has a row")
        same(got["states"][2], got["states"][1], "the state after a refused open")


@case(task=3, params=[{"page_size": s} for s in (1, 4, 16)])
class GrowEvictsWhatNobodyReads:
    """A `grow` evicts just the pages that are short, the oldest first, and never those that a row begins with."""

    def inputs(rng, page_size):
        s = page_size
        prompts = [[int(i) for i in rng.integers(1000 * n, 1000 * n + 999, size=2 * s)] for n in range(3)]
        mine = int(rng.integers(3))
        return {"sizes": {"page_size": s, "pages": 8}, "cached": prompts, "prompt": [*prompts[mine], 9], "mine": mine}

    def observe(solution, inputs):
        memory = memory_of(solution, inputs)
        Request = solution.module("serving.request").Request
        mine, other = Request(1, list(inputs["prompt"]), 3), Request(2, [7777], 3)
        memory.open(mine, memory.match(mine))
        memory.open(other, memory.match(other))
        memory.grow(other, 1)
        s, states = memory.page_size, []
        for pages in (3, 4, 8, 7):
            error = error_of(lambda pages=pages: memory.grow(mine, (pages - 1) * s + 1))["type"]
            nodes = snapshot(memory.tree)["nodes"]
            cached = [sum(len(n["pages"]) for n in nodes if n["path"][0][0] // 1000 == i) for i in range(3)]
            states.append(state_of(memory, [mine, other]) | {"cached": cached, "error": error})
        return states

    def verify(inputs, got):
        mine = inputs["mine"]
        old, new = (i for i in range(3) if i != mine)
        left = [{}, {old: 1}, {old: 1}, {old: 0, new: 0}]
        for pages, held, state, less in zip((3, 4, 8, 7), (3, 4, 4, 7), got, left, strict=True):
            what = f"a grow to {pages} of 8 pages: 2 are the row's prefix, 4 are cached for others, and 1 is taken"
            error = "OutOfPagesError" if pages == 8 else None
            fail_unless(
                state["error"] == error, f"{what}: expected {error or 'no error'}, got {state['error'] or 'none'}"
            )
            fail_unless(state["held"][0] == held, f"{what}: the row holds {state['held'][0]} pages, expected {held}")
            want, cached = [less.get(i, 2) for i in range(3)], state["cached"]
            likely = {
                "a page that the row begins with was evicted": cached[mine] < 2,
                "more pages were evicted than were short": sum(cached) < sum(want),
                "what was asked for last was evicted first": cached[new] < cached[old],
            }
            text = f"{what}: {cached} pages of the three prompts stay cached, expected {want}"
            fail_unless(cached == want, f"{text}\n{named(name for name, so in likely.items() if so)}")
            fail_unless(state["problem"] is None, f"{what}: {state['problem']}")


@case(task=3)
class KeysAreTheRequestsBusiness:
    """A request that names its pages by other keys, as a replayed trace does, is matched by those."""

    def inputs(rng):
        return {"sizes": {"pages": 16}, "cached": [], "hashes": [f"block {i}" for i in rng.permutation(5)]}

    def observe(solution, inputs):
        memory = memory_of(solution, inputs)

        class Traced(solution.module("serving.request").Request):
            def page_keys(self, page_size, tokens):
                return inputs["hashes"][: tokens // page_size]

        memory.tree.insert(inputs["hashes"][:3], memory.allocator.allocate(3))
        prefix = memory.match(Traced(1, [0] * 20, 5))
        return {"tokens": int(prefix.tokens), "ids": int(memory.match(Traced(1, [0] * 9, 5)).tokens)}

    def verify(inputs, got):
        same(got, {"tokens": 12, "ids": 8}, "tokens matched by the keys of a trace, with pages of 4")


# Task 4: hand over


def run_prompt(memory: object, request: object) -> None:
    """Admit a request, and count its prompt as launched."""
    memory.open(request, memory.match(request))
    memory.grow(request, request.device_len)
    request.launch(request.extend_len)


def take(request: object, token: int) -> None:
    """The result of a step was read."""
    request.in_flight -= 1
    request.append(token)


@case(task=4, params=[{"page_size": s, "length": n} for s in (1, 4, 16) for n in ("whole", "one more", "one less")])
class ShareGivesWholePages:
    """After the prompt its whole pages are in the tree, locked, and the row is as before; the rest stays its own."""

    def inputs(rng, page_size, length):
        size = 3 * page_size + {"whole": 0, "one more": 1, "one less": -1}[length]
        return {
            "sizes": {"page_size": page_size},
            "cached": [],
            "prompt": [int(i) for i in rng.integers(99, size=size)],
        }

    def observe(solution, inputs):
        memory = memory_of(solution, inputs)
        request = solution.module("serving.request").Request(1, list(inputs["prompt"]), 40)
        run_prompt(memory, request)
        take(request, 5)
        states = [state_of(memory, [request])]
        for _ in range(2):
            memory.share(request)
            states.append(state_of(memory, [request]))
        return states

    def verify(inputs, got):
        size, s = len(inputs["prompt"]), inputs["sizes"]["page_size"]
        before = got[0]
        for n, state in enumerate(got[1:], 1):
            what = f"after share number {n} of a prompt of {size} tokens with pages of {s}"
            fail_unless(state["problem"] is None, f"{what}: {state['problem']}")
            same(state["rows"], before["rows"], f"the row {what}")
            mistakes = {
                "a page that is not full was shared: its other positions are still to be written": -(-size // s),
                "a page was shared that holds the new token, which no step has computed": (size + 1) // s,
                "nothing is locked by the request any more": 0,
            }
            mistakes = {name: value for name, value in mistakes.items() if value != size // s}
            explain(state["protected"], size // s, f"{what}, {state['protected']} pages are locked", mistakes)
            same(state["evictable"], 0, f"pages that could be evicted {what}")
            same(state["free"], before["free"], f"free pages {what}")


@case(task=4, params=[{"page_size": s, "others": n} for s in (1, 4, 16) for n in (1, 2)])
class RowsGoToTheTreesPages:
    """Of equal prompts computed at once one page stays; the other rows point to it before theirs is freed."""

    def inputs(rng, page_size, others):
        size = int(rng.integers(2 * page_size, 4 * page_size))
        prompt = [int(i) for i in rng.integers(99, size=size)]
        return {"sizes": {"page_size": page_size}, "cached": [], "prompt": prompt, "others": others}

    def observe(solution, inputs):
        memory = memory_of(solution, inputs)
        Request = solution.module("serving.request").Request
        requests = [Request(i, list(inputs["prompt"]), 40) for i in range(1 + inputs["others"])]
        for each in requests:
            run_prompt(memory, each)
        states, early, free = [state_of(memory, requests)], [], memory.allocator.free

        def watched(pages):
            rows = [(r.uid, memory.table.pages(r.row)) for r in requests if r.row is not None]
            early.extend([uid, int(page)] for page in pages for uid, row in rows if page in row)
            free(pages)

        memory.allocator.free = watched
        for each in requests:
            take(each, 5)
            memory.share(each)
            states.append(state_of(memory, requests))
        return {"states": states, "early": early}

    def verify(inputs, got):
        pages = len(inputs["prompt"]) // inputs["sizes"]["page_size"]
        before, states = got["states"][0], got["states"][1:]
        first = before["rows"][0]
        for n, state in enumerate(states):
            row, own = state["rows"][n], before["rows"][n]
            if n and row == own and state["free"] > before["free"]:
                raise AssertionError(
                    f"request {n} computed {pages} pages that the tree had already. They were freed, and its row still "
                    "points to them: the next request writes there"
                )
            fail_unless(state["problem"] is None, f"after request {n} shared: {state['problem']}")
            want = [*first[:pages], *own[pages:]]
            text = f"the row of request {n} is {row}, expected the tree's pages and its own end: {want}"
            explain(row, want, text, {"it keeps its own pages beside the tree's": own, "its end was lost": first})
            same(state["free"], before["free"] + n * pages, f"free pages after {n} rows gave up duplicates")
        for uid, page in got["early"]:
            raise AssertionError(f"page {page} was freed while the row of request {uid} still pointed to it")


@case(task=4, params=[{"page_size": s, "kind": k} for s in (1, 4) for k in ("Scheduler", "ChunkedScheduler")])
class ThirdRequestTakesFreedPages:
    """Two equal prompts in one batch, then a third that takes the pages they freed: all answer as they do alone."""

    def inputs(rng, page_size, kind):
        prompt, other = ([int(i) for i in rng.integers(1000, size=4 * page_size)] for _ in range(2))
        adds = [request(0, prompt, 4 * page_size), request(1, prompt, 4 * page_size)]
        adds.append(request(2, other, 2 * page_size, at=1))
        pages = 4 * 2 + 4 * 2  # what the first two need to their end, of which 4 are freed
        return {"kind": kind, "page_size": page_size, "pages": pages, "script": script(*adds)}

    def observe(solution, inputs):
        return run_engine(solution, inputs | {"rows": 3, "max_len": 16 * inputs["page_size"]})

    def verify(inputs, got):
        judge.verify(inputs["script"], got["trace"])
        fail_unless(got["problem"] is None, f"at the end: {got['problem']}")


def run_engine(solution: object, inputs: dict[str, object]) -> dict[str, object]:
    """Drive a script with a scheduler over a prefix memory."""
    sizes = [inputs[name] for name in ("rows", "max_len", "page_size", "pages")]
    memory = solution.module("serving.prefix_memory").PrefixMemory(*sizes)
    module = {"Scheduler": "scheduler", "ChunkedScheduler": "chunked", "MixedScheduler": "mixed"}[inputs["kind"]]
    scheduler = getattr(solution.module(f"serving.{module}"), inputs["kind"])(memory, inputs.get("budget", 64))
    trace = drive(solution, scheduler, inputs["script"], depth=inputs.get("depth", 1))
    return {"trace": trace, "problem": owners(memory, [])}


def found(trace: dict[str, object]) -> dict[int, int]:
    """The tokens that each request found in the cache when it began first."""
    first: dict[int, int] = {}
    for batch in trace["batches"]:
        for uid, start, _, _ in batch:
            first.setdefault(uid, start)
    return first


@case(task=4, params=[{"page_size": s, "depth": d} for s in (1, 4, 16) for d in (1, 2)])
class TheNextTurnFindsTheAnswer:
    """A chat's next turn finds the pages of the whole conversation so far, the answer included."""

    def inputs(rng, page_size, depth):
        ids, adds, ends = [], [], []
        for turn in range(4):
            ids = ids + [int(i) for i in rng.integers(1000, size=int(rng.integers(1, 2 * page_size + 3)))]
            answer, _ = alone(ids, 20)
            stop = answer[int(rng.integers(20)) :][:1] if turn % 2 else []
            answer, _ = alone(ids, 20, stop)
            adds.append(request(turn, ids, 20, at=30 * turn, stop=stop))
            ids = ids + answer
            ends.append(len(ids))
        sizes = {"page_size": page_size, "pages": 400 // page_size, "rows": 2, "max_len": 400}
        return sizes | {"kind": "ChunkedScheduler", "depth": depth, "script": script(*adds), "ends": ends}

    def observe(solution, inputs):
        return run_engine(solution, inputs)

    def verify(inputs, got):
        judge.verify(inputs["script"], got["trace"])
        s, hits = inputs["page_size"], found(got["trace"])
        for turn, (end, _) in enumerate(pairwise(inputs["ends"]), 1):
            prompts = inputs["script"]["adds"]
            before, now = len(prompts[turn - 1]["ids"]), len(prompts[turn]["ids"])
            want = (end - 1) // s * s
            allowed = {want, min(end, now - 1) // s * s} if inputs["depth"] > 1 else {want}  # a wasted step computed it
            mistakes = {
                "nothing was found: not even the prompt was handed over": 0,
                "only the prompt is in the cache, not the answer": before // s * s,
            }
            text = f"turn {turn + 1} follows {end} tokens, pages hold {s}: it found {hits[turn]} of them, not {want}"
            if hits[turn] not in allowed:
                explain(hits[turn], want, text, {name: n for name, n in mistakes.items() if n not in allowed})


@case(
    task=4, params=[{"state": state} for state in ("share in flight", "half a prompt", "results dropped", "as it ends")]
)
class OnlyWhatWasComputedAndIsKnown:
    """Into the tree go pages whose ids are known and whose steps were read, whatever state a request ends in."""

    def inputs(rng, state):
        return {
            "sizes": {"page_size": 1},
            "cached": [],
            "state": state,
            "prompt": [int(i) for i in rng.integers(99, size=9)],
        }

    def observe(solution, inputs):
        memory = memory_of(solution, inputs)
        request = solution.module("serving.request").Request(1, list(inputs["prompt"]), 40)
        memory.open(request, memory.match(request))
        memory.grow(request, 20)
        if inputs["state"] == "half a prompt":
            request.launch(4)
            request.in_flight = 0
            request.finish_reason = "abort"
            memory.close(request)
        elif inputs["state"] == "share in flight":
            request.launch(9)
            request.launch(1)
            take(request, 500)
            memory.share(request)
        elif inputs["state"] == "results dropped":
            request.launch(9)
            request.launch(1)
            request.launch(1)
            request.finish_reason, request.in_flight = "abort", 0
            memory.close(request)
        else:
            request.launch(9)
            take(request, 500)
            request.launch(1)
            take(request, 501)
            request.finish_reason = "length"
            memory.close(request)
        rows = [request] if request.row is not None else []
        return state_of(memory, rows) | {"paths": [node["path"] for node in snapshot(memory.tree)["nodes"]]}

    def verify(inputs, got):
        fail_unless(got["problem"] is None, f"{inputs['state']}: {got['problem']}")
        # the last id counts nowhere: it is computed by a step that has not been read, or will never be
        want = {"half a prompt": (4,), "share in flight": (9,), "results dropped": (8, 9), "as it ends": (10,)}
        count = got["evictable"] + got["protected"]
        text = (
            f"{inputs['state']}: {count} positions are in the tree, pages hold 1, expected {want[inputs['state']][-1]}"
        )
        mistakes = {
            "a position was counted that a step in flight is writing now": 10
            if inputs["state"] == "share in flight"
            else -1,
            "launched positions were counted whose ids nobody knows": 11
            if inputs["state"] == "results dropped"
            else -1,
            "all known ids were counted, also those that no step has computed": {
                "half a prompt": 8,
                "as it ends": 11,
            }.get(inputs["state"], -1),
            "nothing was handed over": 0,
        }
        if count not in want[inputs["state"]]:
            explain(count, -2, text, mistakes)


@case(task=4)
class CloseGivesAllBack:
    """After `close` nobody holds anything: whole pages are evictable, the others and the row are free; once only."""

    def inputs(rng):
        return {"sizes": {}, "cached": [], "prompt": [int(i) for i in rng.integers(99, size=int(rng.integers(5, 14)))]}

    def observe(solution, inputs):
        memory = memory_of(solution, inputs)
        request = solution.module("serving.request").Request(1, list(inputs["prompt"]), 40)
        run_prompt(memory, request)
        take(request, 5)
        memory.close(request)
        first = state_of(memory, [request])
        again = error_of(lambda: memory.close(request))
        return {"first": first, "again": again, "second": state_of(memory, [request])}

    def verify(inputs, got):
        first = got["first"]
        fail_unless(first["problem"] is None, f"after close: {first['problem']}")
        same(first["rows"], [None], "the row after close")
        same(first["free_rows"], 4, "free rows after close")
        same(first["available"], 64, "available pages after close")
        same(first["evictable"], len(inputs["prompt"]) // 4, "pages in the cache after close, of 4 positions each")
        refused(got["again"], "a second close of one request")
        same(got["second"], first, "the state after a refused close")


@case(task=4, params=[{"page_size": s} for s in (1, 4, 16)], timeout=30.0)
class EveryPageHasOneOwner:
    """Whatever a scheduler does, each page is free, in the tree, or in one row, and no answer depends on the cache."""

    def observe(solution, inputs):
        return AnyScheduler(solution, inputs).play()

    def inputs(rng, page_size):
        return {"seed": int(rng.integers(2**31)), "page_size": page_size}

    def check(observe, inputs):
        from course.radix_scripts import for_some, memory_scripts

        scripts = memory_scripts(inputs["page_size"])
        for_some(scripts, inputs["seed"], 40, lambda ops: judge_answers(ops, observe(ops)))


KINDS = ("Scheduler", "ChunkedScheduler", "MixedScheduler")


@case(
    task=4,
    params=[
        {"kind": k, "page_size": s, "depth": 1 + (i + j) % 2}
        for i, k in enumerate(KINDS)
        for j, s in enumerate((1, 4, 16))
    ],
    timeout=15.0,
)
class CachedEqualsUncached:
    """Prompts that begin alike answer with a cache as without one; nothing leaks, and something is found."""

    def inputs(rng, kind, page_size, depth):
        seed = int(rng.integers(2**31))
        made = workload(seed, 16, 64, page_size, kinds=("shared", "shared", "equal", "page", "short"), aborts=0)
        rows = 3
        whole = rows * -(-64 // page_size)
        pages = whole if kind == "Scheduler" else int(-(-64 // page_size) * rng.uniform(1, 2))
        sizes = {"rows": rows, "max_len": 64, "page_size": page_size, "pages": pages}
        return sizes | {"kind": kind, "depth": depth, "script": made, "budget": int(rng.choice([7, 32, 200]))}

    def observe(solution, inputs):
        return run_engine(solution, inputs)

    def verify(inputs, got):
        judge.verify(inputs["script"], got["trace"])
        fail_unless(got["problem"] is None, f"at the end: {got['problem']}")


@case(task=4, params=[{"page_size": s} for s in (1, 4, 16)])
class PreemptedEqualsNotPreempted:
    """A request that lost its pages finds them again where nobody took them, and answers the same."""

    def inputs(rng, page_size):
        s, stem = page_size, [int(i) for i in rng.integers(1000, size=2 * page_size)]
        adds = [request(i, [*stem, 5000 + i], 6 * s, at=i) for i in range(3)]
        sizes = {"rows": 3, "max_len": 12 * s, "page_size": s, "pages": 12}
        return sizes | {"kind": "MixedScheduler", "script": script(*adds), "budget": 4 * s}

    def observe(solution, inputs):
        return run_engine(solution, inputs)

    def verify(inputs, got):
        judge.verify(inputs["script"], got["trace"])
        fail_unless(got["problem"] is None, f"at the end: {got['problem']}")
        starts = [(uid, start) for batch in got["trace"]["batches"] for uid, start, _, _ in batch]
        again = [start for uid in range(3) for a, start in zip(*_shifted(starts, uid), strict=True) if start <= a]
        fail_unless(bool(again), "nobody was preempted: the pages of 3 requests do not fit")


def _shifted(starts: list[tuple[int, int]], uid: int) -> tuple[list[int], list[int]]:
    """The starts of a request's steps, and those of the steps after them."""
    mine = [start for other, start in starts if other == uid]
    return mine[:-1], mine[1:]


@case(task=4, params=[{"page_size": 1}, {"page_size": 4}], timeout=15.0)
class CachedModelEqualsTheWholePrefix:
    """A Qwen3 that reads pages of others gives each token the probability of a model that runs the whole prefix."""

    def inputs(rng, page_size):
        inputs = model_inputs(rng, SMALL)
        stem, *tails = (rng.integers(SMALL["vocab"], size=n).tolist() for n in (9, 3, 2, 5))
        prompts = [stem, stem + tails[0], stem + tails[0], stem[:6] + tails[1], stem + tails[0] + tails[2]]
        return inputs | {"prompts": prompts, "page_size": page_size}

    def observe(solution, inputs):
        answers, starts = serve_model(solution, inputs)
        return {"answers": answers, "starts": starts}

    def verify(inputs, got):
        s = inputs["page_size"]
        same(got["starts"][2], 11 // s * s, "tokens that the second of two equal prompts of 12 found")
        whole = oracle(inputs)
        for uid, (prompt, (tokens, logprobs)) in enumerate(zip(inputs["prompts"], got["answers"], strict=True)):
            logits = whole.logits(np.array([prompt + tokens]))[0, len(prompt) - 1 : -1]
            scores = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
            want = scores[np.arange(len(tokens)), tokens]
            what = f"log-probabilities of the tokens of request {uid}, which found {got['starts'][uid]} tokens"
            close(np.array(logprobs), want, tol=1e-4, what=what)


def serve_model(solution: object, inputs: dict[str, object]) -> tuple[list[tuple[list[int], list[float]]], list[int]]:
    """Serve prompts one after another with a model over pages. Returns tokens and log-probabilities, and hits."""
    model = model_of(solution, inputs, solution.module("serving.ragged").batched(solution.module("model.qwen3").Ops()))
    s, answers, starts = inputs["page_size"], [], []
    memory = solution.module("serving.prefix_memory").PrefixMemory(2, 32, s, 64 // s)
    pool = solution.module("cache.pool").PagePool(config_of(solution, inputs["sizes"]), 64 // s, s, mx.float32)
    caches = solution.module("serving.paged_rows").PagedRows(pool, memory.table)
    sampler = solution.module("serving.batch_sampler").BatchSampler()
    runner = solution.module("serving.model_runner").ModelRunner(model, caches, sampler)
    scheduler = solution.module("serving.chunked").ChunkedScheduler(memory, 5)
    for uid, prompt in enumerate(inputs["prompts"]):
        scheduler.add(solution.module("serving.request").Request(uid, list(prompt), 5, logprobs=1))
        batches, outputs = [], []
        while scheduler.requests:
            batches.append(scheduler.next_batch())
            outputs += scheduler.commit(batches[-1], runner.launch(batches[-1]).results())
        starts.append(batches[0].steps[0].start)
        answers.append(([int(o.sampled.token) for o in outputs], [float(o.sampled.logprob) for o in outputs]))
    return answers, starts
