"""Day 2, chunked prefill: a model that hashes all it reads, what each request gets alone, and counts of pages."""

import random
from itertools import accumulate, pairwise

from course.case import case, error_of
from course.model_case import SMALL, model_inputs, model_of
from course.serving_case.drive import drive
from course.serving_case.judge import assert_budget, expected, verify
from course.serving_case.prefix_model import PrefixModel
from course.serving_case.workload import request, script, workload
from course.suspects import named


def explain(got: object, want: object, text: str, mistakes: dict[str, object] | None = None) -> None:
    """Raise AssertionError with `text` where the values differ; the mistakes that would give `got` are named."""
    if got != want:
        raise AssertionError(f"{text}\n{named(m for m, value in (mistakes or {}).items() if value == got)}".strip())


def memory_of(solution, kind: str, rows: int, max_len: int, page_size: int, pages: int | None = None):
    """ "rows": the package's own memory, counts only. "prefix": pages with a prefix cache, the test kit's."""
    full = rows * -(-max_len // page_size)
    if kind == "prefix":
        return PrefixModel(solution, rows, max_len, page_size, full if pages is None else pages)
    return solution.module("serving.memory").RowMemory(rows, max_len, page_size, full if pages is None else pages)


def scheduler_of(solution, kind: str, memory, budget: int, **options):
    """ "chunked" or "mixed" of the package under test."""
    name = {"chunked": "ChunkedScheduler", "mixed": "MixedScheduler"}[kind]
    return getattr(solution.module(f"serving.{kind}"), name)(memory, budget, **options)


def request_of(solution, uid: int, ids: list[int] | int, max_tokens: int):
    """A request. ids: how many tokens, if their values do not matter."""
    ids = list(range(1, ids + 1)) if isinstance(ids, int) else list(ids)
    return solution.module("serving.request").Request(uid, ids, max_tokens)


def launched(memory, request, tokens: int):
    """Give an admitted request pages for its next tokens and compute them, up to the end of the step."""
    memory.grow(request, request.cached_len + tokens)
    request.launch(tokens)
    request.in_flight -= 1


def pages_of(length: int, page_size: int) -> int:
    return -(-length // page_size)


def prompts_of(inputs: dict) -> dict[int, int]:
    return {add["uid"]: len(add["ids"]) for add in inputs["script"]["adds"]}


def assert_arrival_order(inputs: dict, trace: dict) -> None:
    """Nobody is admitted before somebody who came earlier."""
    first = list(dict.fromkeys(uid for batch in trace["batches"] for uid, *_ in batch))
    came = [uid for uid in prompts_of(inputs) if uid in first]
    explain(first, came, f"requests came in the order {came} and began in the order {first}: somebody was overtaken")


def scripted(trace: dict) -> dict:
    """The trace, or an AssertionError that tells what was raised while the script ran."""
    if trace["type"] == "OutOfPagesError":
        raise AssertionError(
            f"an admitted request asked for a page and there was none: {trace['message']}. Admit only what can run to "
            "its end beside all that was admitted before"
        )
    if trace["type"] is not None:
        raise AssertionError(f"{trace['type']}: {trace['message']}")
    return trace["value"]


# Task 1


@case(task=1)
class WorstCaseIsAClosedForm:
    """A request's worst case is the pages of all its positions but the last token's, which is never computed."""

    def inputs(rng):
        draw = lambda most: int(rng.integers(1, most))  # noqa: E731
        sizes = [[draw(70), draw(70), [1, 2, 4, 16, 64][i % 5]] for i in range(60)]
        return [[p, m, size, draw(m + 1) if i % 3 else m] for i, (p, m, size) in enumerate(sizes)]

    def observe(solution, inputs):
        worst_case, results = solution.module("serving.prefill").worst_case, []
        for prompt, max_tokens, page_size, allowed in inputs:
            request = request_of(solution, 0, prompt, max_tokens)
            request.max_device_len = prompt + allowed  # as `add` does where memory allows no more
            results.append([worst_case(request, page_size)])
            request.launch(prompt)
            results[-1].append(worst_case(request, page_size))
        return results

    def verify(inputs, got):
        for (prompt, max_tokens, size, allowed), pages in zip(inputs, got, strict=True):
            last = prompt + allowed - 1
            want = pages_of(last, size)
            text = (
                f"a prompt of {prompt} tokens, and {allowed} more at most, in pages of {size}: {pages} before and "
                f"after the prompt was launched, expected {want} twice"
            )
            explain(pages, [want] * 2, text, {
                "the last token was counted, which is chosen and never computed": [pages_of(last + 1, size)] * 2,
                "max_tokens was taken, though memory allows fewer": [pages_of(prompt + max_tokens - 1, size)] * 2,
                "only the prompt was counted": [pages_of(prompt, size)] * 2,
                "only the answer was counted": [pages_of(allowed, size)] * 2,
                "tokens were counted, not pages": [last] * 2,
                "pages were rounded down": [last // size] * 2,
                "it shrinks while the request runs: it is the worst case of the whole row": [want, pages[1]],
            })  # fmt: skip


def chunks(prompts: list[int], budget: int) -> list[int]:
    """What each prompt in turn gets of the budget."""
    ends = [min(end, budget) for end in accumulate(prompts)]
    return [end - start for start, end in pairwise([0, *ends])]


@case(task=1, params=[{"budget": 1}, {"budget": 8}, {"budget": 20}, {"budget": 500}])
class AddFillsTheBudget:
    """Each prompt gets what is left of the budget, at most all that it lacks; without budget nobody is admitted."""

    def inputs(rng, budget):
        return {"budget": budget, "prompts": rng.integers(1, 15, 6).tolist(), "begun": int(rng.integers(1, 6))}

    def observe(solution, inputs):
        memory = memory_of(solution, "rows", 8, 64, 4)
        requests = [request_of(solution, uid, n, 5) for uid, n in enumerate(inputs["prompts"])]
        begun = request_of(solution, 9, inputs["begun"] + 3, 5)
        memory.open(begun, memory.match(begun))
        launched(memory, begun, 3)
        adder = solution.module("serving.prefill").PrefillAdder(memory, [begun], inputs["budget"])
        tokens = [adder.add(request) for request in [begun, *requests]]
        return {"tokens": tokens, "left": adder.token_budget, "rows": [r.row is not None for r in requests]}

    def verify(inputs, got):
        prompts, budget = [inputs["begun"], *inputs["prompts"]], inputs["budget"]
        want = chunks(prompts, budget)
        whole, left = [], budget
        for n in prompts:
            whole.append(n if n <= left else 0)
            left -= whole[-1]
        explain(got["tokens"], want, f"with a budget of {budget}, prompts that lack {prompts} tokens got "
            f"{got['tokens']}: expected {want}", {
            "the budget does not shrink": [min(n, budget) for n in prompts],
            "the prompt was compared with the budget, and not its chunk": whole,
            "a prompt that was begun started again": chunks([prompts[0] + 3, *prompts[1:]], budget),
        })  # fmt: skip
        explain(got["left"], budget - sum(want), f"{sum(want)} of {budget} tokens are used, but {got['left']} are left")
        rows = [n > 0 for n in want[1:]]
        explain(got["rows"], rows, f"who has a row: {got['rows']}, expected {rows}: without tokens nobody is admitted")


@case(task=1)
class ABegunPromptGoesOn:
    """A prompt that was begun needs no row and no admission: its worst case has been reserved."""

    def inputs(rng):
        return {"prompt": int(rng.integers(10, 30)), "part": int(rng.integers(1, 9)), "max_tokens": 6}

    def observe(solution, inputs):
        pages = inputs["prompt"] + inputs["max_tokens"] - 1
        memory = memory_of(solution, "rows", 1, pages + 1, 1, pages)
        begun = request_of(solution, 0, inputs["prompt"], inputs["max_tokens"])
        memory.open(begun, memory.match(begun))
        launched(memory, begun, inputs["part"])
        adder = solution.module("serving.prefill").PrefillAdder(memory, [begun], 100)
        return error_of(lambda: [adder.add(begun), memory.free_rows, adder.reserved])

    def verify(inputs, got):
        if got["type"] is not None:
            raise AssertionError(f"{got['type']}: {got['message']}: it has a row, it is not admitted a second time")
        lacks, owed = inputs["prompt"] - inputs["part"], inputs["prompt"] + inputs["max_tokens"] - 1 - inputs["part"]
        tokens, _, reserved = got["value"]
        explain(tokens, lacks, f"a prompt that lacks {lacks} tokens got {tokens}, though its pages were reserved", {
            "it was tested again, as if nothing had been reserved for it": 0,
        })  # fmt: skip
        explain(reserved, owed, f"{reserved} pages are reserved after it was added, expected {owed} as before")


def situation(rng: random.Random) -> dict:
    """Some requests on their way, a memory that is just large enough or nearly so, and some that wait."""
    size = rng.choice([1, 2, 4, 16])
    running = []
    for _ in range(rng.randint(0, 4)):
        prompt, max_tokens = rng.randint(1, 30), rng.randint(1, 30)
        running.append([prompt, max_tokens, prompt + rng.randint(0, max_tokens - 1)])
    if rng.random() < 0.5:  # half prefilled
        prompt = rng.randint(2, 30)
        running.append([prompt, rng.randint(1, 30), rng.randint(1, prompt - 1)])
    waiting = [[rng.randint(1, 30), rng.randint(1, 30)] for _ in range(5)]
    worst = sum(pages_of(p + m - 1, size) for p, m, _ in running)
    room = sum(pages_of(p + m - 1, size) for p, m in waiting[: rng.randint(0, 5)])
    return {"size": size, "running": running, "waiting": waiting, "pages": worst + room + rng.choice([-1, 0, 0, 0, 1])}


def admitted(at: dict, owed, needed, forgets: bool = False) -> int:
    """How many of those that wait are admitted if `owed(prompt, max_tokens, computed)` pages are promised to others."""
    held = sum(pages_of(computed, at["size"]) for *_, computed in at["running"])
    reserved, count = sum(owed(*r) for r in at["running"]), 0
    for prompt, max_tokens in at["waiting"]:
        if reserved + needed(prompt, max_tokens) > at["pages"] - held:
            break
        reserved += 0 if forgets else needed(prompt, max_tokens)
        count += 1
    return count


def mistakes_of(at: dict) -> dict[str, int]:
    """How many are admitted by wrong rules."""
    s = at["size"]

    def worst(p: int, m: int) -> int:
        return pages_of(p + m - 1, s)

    def owed(p: int, m: int, computed: int) -> int:
        return worst(p, m) - pages_of(computed, s)

    return {
        "what running requests may still need is not reserved": admitted(at, lambda *_: 0, worst),
        "nothing that was promised is counted": admitted(at, lambda *_: 0, worst, forgets=True),
        "those admitted in the same batch are not counted": admitted(at, owed, worst, forgets=True),
        "only the prompt is reserved, not the answer": admitted(at, owed, lambda p, m: pages_of(p, s)),
        "pages that are held are reserved a second time": admitted(at, lambda p, m, _: worst(p, m), worst),
        "tokens are compared with pages": admitted(at, lambda p, m, c: p + m - 1 - c, lambda p, m: p + m - 1),
        "what running requests need is counted in tokens, and the pages they hold are not seen": admitted(
            at, lambda p, m, c: pages_of(p + m - 1 - c, s), worst
        ),
    }


@case(task=1)
class AdmitsWhatRunsToItsEnd:
    """Requests are admitted in their order exactly as long as the worst case of all fits in the memory."""

    def inputs(rng):
        draw = random.Random(int(rng.integers(2**31)))
        return [at for at in (situation(draw) for _ in range(60)) if admitted(at, lambda *_: 0, lambda *_: 0) == 5]

    def observe(solution, inputs):
        results = []
        for at in inputs:
            memory = memory_of(solution, "rows", 12, 64, at["size"], max(at["pages"], 0))
            running = [request_of(solution, uid, p, m) for uid, (p, m, _) in enumerate(at["running"])]
            for one, (*_, computed) in zip(running, at["running"], strict=True):
                memory.open(one, memory.match(one))
                launched(memory, one, min(computed, one.prompt_len))
                while one.cached_len < computed:
                    launched(memory, one, 1)
            adder = solution.module("serving.prefill").PrefillAdder(memory, running, 10**6)
            waiting = [request_of(solution, 20 + uid, p, m) for uid, (p, m) in enumerate(at["waiting"])]
            count = next((i for i, one in enumerate(waiting) if adder.add(one) == 0), len(waiting))
            left = waiting[count : count + 1]
            results.append([count, memory.free_rows, [[one.row is None, one.cached_len] for one in left]])
        return results

    def verify(inputs, got):
        for at, (count, rows, left) in zip(inputs, got, strict=True):
            s = at["size"]
            want = admitted(at, lambda p, m, c, s=s: pages_of(p + m - 1, s) - pages_of(c, s),
                            lambda p, m, s=s: pages_of(p + m - 1, s))  # fmt: skip
            text = (
                f"{count} were admitted, expected {want}: {at['pages']} pages of {s}; (prompt, max_tokens, computed) "
                f"of those that run: {at['running']}, (prompt, max_tokens) of those that wait: {at['waiting']}"
            )
            explain(count, want, text, mistakes_of(at))
            explain(rows, 12 - len(at["running"]) - want, f"{rows} rows are free: one that was refused kept its row")
            explain(left, [[True, 0]] * len(left), "a request that was refused is not as it was before")


@case(task=1, params=[{"more": more, "equal": equal} for more in (-4, -3, -1, 0, 1) for equal in (False, True)])
class LocksThenTestsAgain:
    """Cached pages that can be evicted are available until the request that wants them locks them: then it is tested
    again, and one that does not fit is as before."""

    def inputs(rng, more, equal):
        size = int(rng.integers(2, 6))
        ids = rng.integers(0, 1000, 3 * size + 1).tolist()
        return {"size": size, "ids": ids, "more": more, "equal": equal, "asks": int(rng.integers(1, 20))}

    def observe(solution, inputs):
        size, ids = inputs["size"], inputs["ids"]
        ours = ids if inputs["equal"] else ids[:-1] + [1001] * 5
        needed = pages_of(len(ours) + inputs["asks"] - 1, size) - 3
        owed = 4
        memory = memory_of(solution, "prefix", 3, 200, size, 3 + 1 + owed + needed + inputs["more"])
        old = request_of(solution, 0, ids, 1)
        other = request_of(solution, 1, [2000] * size, owed * size + 1)  # holds a page, and may ask for four
        for one in (old, other):
            memory.open(one, memory.match(one))
            launched(memory, one, one.prompt_len)
        memory.close(old)  # three pages stay in the cache
        wanted = request_of(solution, 2, ours, inputs["asks"])
        adder_of = solution.module("serving.prefill").PrefillAdder
        before = [memory.available, memory.free_rows, sum(memory.locks.values())]
        adder = adder_of(memory, [other], 1000)
        promised = [adder.reserved]
        first = adder.add(wanted)
        promised.append(adder.reserved)
        after = [memory.available, memory.free_rows, sum(memory.locks.values())]
        state = [wanted.row is None, wanted.cached_len, wanted.device_len]
        memory.close(other)
        second = first or adder_of(memory, [], 1000).add(wanted)
        found = {"first": first, "second": second, "before": before, "after": after, "state": state}
        return found | {"promised": promised}

    def verify(inputs, got):
        length = len(inputs["ids"]) + (0 if inputs["equal"] else 4)
        lacks = length - 3 * inputs["size"]
        fits = inputs["more"] >= 0
        explain(got["first"], lacks if fits else 0, f"it got {got['first']} tokens, expected {lacks if fits else 0}", {
            "its cached prefix was counted twice: as pages that it has, and as pages that can be evicted":
                0 if fits else lacks,
            "the cached prefix was run again": length,
            "its cached prefix was not subtracted from what it needs": -1 if not fits else 0,
        })  # fmt: skip
        if not fits:
            explain(got["after"], got["before"], f"pages available, free rows and locks were {got['before']} and are "
                f"{got['after']} after a request was refused: it must be closed again")  # fmt: skip
            explain(got["state"], [True, 0, length], f"row is None, cached_len, device_len are {got['state']}: a "
                f"request that was refused must be as before, {[True, 0, length]}")  # fmt: skip
            before, after = got["promised"]
            explain(after, before, f"{before} pages were reserved, and {after} are after a request was refused: "
                "nothing is promised to it")  # fmt: skip
        explain(got["second"], lacks, f"when the other one had gone it got {got['second']} tokens, expected {lacks}")


@case(task=1)
class RowsRunOut:
    """Without a free row nobody is admitted."""

    def inputs(rng):
        return rng.integers(1, 9, 3).tolist()

    def observe(solution, inputs):
        memory = memory_of(solution, "rows", 2, 32, 4)
        requests = [request_of(solution, uid, n, 3) for uid, n in enumerate(inputs)]
        adder = solution.module("serving.prefill").PrefillAdder(memory, [], 100)
        return error_of(lambda: [adder.add(request) for request in requests])

    def verify(inputs, got):
        if got["type"] is not None:
            raise AssertionError(f"{got['type']}: {got['message']}: ask `free_rows` before a row is opened")
        explain(got["value"], [*inputs[:2], 0], f"with two rows, prompts of {inputs} got {got['value']} tokens")


# Task 2


def prefill_share(inputs: dict, batch: list) -> list:
    """The steps of a batch that compute positions of a prompt."""
    prompts = prompts_of(inputs)
    return [step for step in batch if step[1] < prompts[step[0]]]


def assert_prefill_batches(inputs: dict, trace: dict) -> None:
    """Within the budget, never with decodes, and with one prompt in part, which comes last."""
    for number, batch in enumerate(trace["batches"]):
        prefill = prefill_share(inputs, batch)
        if prefill and len(prefill) != len(batch):
            raise AssertionError(f"batch {number} holds prompts and decodes: {batch}")
        tokens = sum(end - start for _, start, end, _ in prefill)
        if tokens > inputs["budget"]:
            raise AssertionError(f"batch {number} runs {tokens} tokens of prompts: the budget is {inputs['budget']}")
        if any(not samples for *_, samples in prefill[:-1]):
            raise AssertionError(f"batch {number} holds a prompt in part that is not the last: {prefill}")


@case(task=2, params=[{"budget": 1}, {"budget": 4}, {"budget": 9}, {"budget": 10**4}])
class ChunksAreCutFromTheQueue:
    """Prompts that wait are one queue of tokens: each prefill batch cuts the budget off its front."""

    def inputs(rng, budget):
        adds = [request(uid, rng.integers(0, 1000, int(rng.integers(1, 14))), 3) for uid in range(5)]
        return {"budget": budget, "script": script(*adds)}

    def observe(solution, inputs):
        memory = memory_of(solution, "rows", 8, 32, 4)
        scheduler = scheduler_of(solution, "chunked", memory, inputs["budget"])
        return error_of(lambda: drive(solution, scheduler, inputs["script"]))

    def verify(inputs, got):
        trace, budget = scripted(got), inputs["budget"]
        left, want = list(prompts_of(inputs).items()), []
        while left:
            batch = [[uid, tokens] for (uid, _), tokens in zip(left, chunks([n for _, n in left], budget)) if tokens]  # noqa: B905
            want.append(batch)
            taken = dict(batch)
            left = [(uid, n - taken.get(uid, 0)) for uid, n in left if n > taken.get(uid, 0)]
        batches = [[[uid, end - start] for uid, start, end, _ in batch] for batch in trace["batches"]]
        explain(
            batches[: len(want)], want, f"the first batches are {batches[: len(want)]} (uid, tokens), expected {want}"
        )
        verify(inputs["script"], trace)


@case(
    task=2,
    params=[
        {"budget": budget, "size": size, "memory": memory, "depth": depth}
        for budget, size, memory, depth in [
            (1, 1, "rows", 1), (3, 4, "rows", 1), (7, 4, "prefix", 1), (16, 2, "prefix", 2), (64, 16, "rows", 2),
        ]
    ],
    timeout=15.0,
)  # fmt: skip
class ChunkedEqualsOneShot:
    """However prompts are cut and batched, each request gets the tokens that it gets alone."""

    def inputs(rng, budget, size, memory, depth):
        return {
            "budget": budget, "size": size, "memory": memory, "depth": depth,
            "script": workload(int(rng.integers(2**31)), 12, 40, size, aborts=0.0),
        }  # fmt: skip

    def observe(solution, inputs):
        memory = memory_of(solution, inputs["memory"], 5, 40, inputs["size"])
        scheduler = scheduler_of(solution, "chunked", memory, inputs["budget"])
        return error_of(lambda: drive(solution, scheduler, inputs["script"], depth=inputs["depth"]))

    def verify(inputs, got):
        trace = scripted(got)
        verify(inputs["script"], trace)
        assert_prefill_batches(inputs, trace)
        assert_arrival_order(inputs, trace)


@case(task=2, params=[{"memory": "rows"}, {"memory": "prefix"}, {"memory": "prefix", "depth": 2}], timeout=15.0)
class AllocationNeverFails:
    """In a memory that is far too small for all, every admitted request runs to its end without a page missing."""

    def inputs(rng, memory, depth=1):
        runs = []
        for _ in range(12):
            size = int(rng.choice([1, 2, 4]))
            one = {"size": size, "pages": int(rng.integers(6, 40 // size + 6)), "budget": int(rng.integers(1, 24))}
            runs.append(one | {"script": workload(int(rng.integers(2**31)), 10, 24, size, aborts=0.0, steps=10)})
        return {"memory": memory, "depth": depth, "runs": runs}

    def observe(solution, inputs):
        traces = []
        for one in inputs["runs"]:
            memory = memory_of(solution, inputs["memory"], 6, 24, one["size"], one["pages"])
            scheduler = scheduler_of(solution, "chunked", memory, one["budget"])
            run = lambda scheduler=scheduler, one=one: drive(solution, scheduler, one["script"], depth=inputs["depth"])  # noqa: E731
            traces.append(error_of(run))
        return traces

    def verify(inputs, got):
        for one, result in zip(inputs["runs"], got, strict=True):
            trace = scripted(result)
            verify(one["script"], trace)
            assert_arrival_order(one, trace)


@case(task=2)
class AdmitsAllThatFit:
    """Where the memory holds the worst case of all, all are admitted at once; with a page less the last one waits."""

    def inputs(rng):
        sizes = [[int(rng.integers(1, 20)), int(rng.integers(1, 20))] for _ in range(4)]
        return {"sizes": sizes, "page_size": int(rng.choice([1, 4]))}

    def observe(solution, inputs):
        pages = sum(pages_of(p + m - 1, inputs["page_size"]) for p, m in inputs["sizes"])
        begun = []
        for missing in (0, 1):
            memory = memory_of(solution, "rows", 8, 64, inputs["page_size"], pages - missing)
            scheduler = scheduler_of(solution, "chunked", memory, 1000)
            for uid, (prompt, max_tokens) in enumerate(inputs["sizes"]):
                scheduler.add(request_of(solution, uid, prompt, max_tokens))
            begun.append([[step.request.uid for step in batch.steps] if (batch := scheduler.next_batch()) else []])
            begun[-1] += [[one.uid for one in scheduler.waiting], list(scheduler.running)]
        return begun

    def verify(inputs, got):
        everybody = list(range(4))
        explain(got[0], [everybody, [], everybody], f"the memory holds all four to their ends, but the first batch, "
            f"those that wait and those that run are {got[0]}", {
            "pages were counted twice: those handed out in this call are in `reserved` and no longer available":
                [everybody[: len(got[0][0])], everybody[len(got[0][0]) :], everybody[: len(got[0][0])]],
        })  # fmt: skip
        explain(got[1], [everybody[:3], [3], everybody[:3]],
            f"with a page less the first batch, those that wait and those that run are {got[1]}")  # fmt: skip


@case(task=2)
class ABegunPromptKeepsItsPromise:
    """While a prompt is computed in chunks its answer has its pages: nobody is admitted on them."""

    def inputs(rng):
        budget, size = int(rng.integers(8, 16)), int(rng.choice([1, 4]))
        sizes = [[budget + int(rng.integers(1, 4)), int(rng.integers(5, 20))], [int(rng.integers(1, 4)), 5]]
        return {"budget": budget, "page_size": size, "sizes": sizes}

    def observe(solution, inputs):
        pages = sum(pages_of(p + m - 1, inputs["page_size"]) for p, m in inputs["sizes"])
        second = []
        for missing in (0, 1):
            memory = memory_of(solution, "rows", 8, 64, inputs["page_size"], pages - missing)
            scheduler = scheduler_of(solution, "chunked", memory, inputs["budget"])
            for uid, (prompt, max_tokens) in enumerate(inputs["sizes"]):
                scheduler.add(request_of(solution, uid, prompt, max_tokens))
            committed(solution, scheduler, scheduler.next_batch())
            second.append(uids(scheduler.next_batch()))
        return second

    def verify(inputs, got):
        (first, answer), other = inputs["sizes"]
        text = f"a prompt of {first} tokens with an answer of {answer} was begun, then {other}; the second batch is"
        explain(got[0], [0, 1], f"{text} {got[0]}, expected [0, 1]: the memory holds both to their ends")
        explain(got[1], [0], f"{text} {got[1]}, expected [0]: with a page less it does not hold both", {
            "the pages that the begun one may still ask for are not reserved": [0, 1],
        })  # fmt: skip


@case(task=2)
class ChunksNeedNoResult:
    """The next chunk of a prompt can be launched while the one before it runs: only its own tokens matter."""

    def inputs(rng):
        return {"budget": int(rng.integers(3, 8)), "chunks": int(rng.integers(3, 6))}

    def observe(solution, inputs):
        scheduler = scheduler_of(solution, "chunked", memory_of(solution, "rows", 2, 64, 4), inputs["budget"])
        scheduler.add(request_of(solution, 0, inputs["budget"] * inputs["chunks"], 3))
        batches = [scheduler.next_batch() for _ in range(inputs["chunks"])]
        return [[[s.start, s.end, bool(s.samples)] for s in batch.steps] if batch else None for batch in batches]

    def verify(inputs, got):
        n, count = inputs["budget"], inputs["chunks"]
        want = [[[i * n, (i + 1) * n, i == count - 1]] for i in range(count)]
        text = f"a prompt of {n * count} tokens, a budget of {n}, and no result is read: the batches are {got}"
        explain(got, want, f"{text}, expected {want}", {"a chunk waits for the result of the one before": [
            want[0], *[None] * (count - 1)
        ]})  # fmt: skip


# Task 3


def assert_cap(trace: dict, cap: int) -> None:
    for number, batch in enumerate(trace["batches"]):
        for uid, start, end, _ in batch:
            if end - start > cap:
                raise AssertionError(f"batch {number} runs {end - start} tokens of request {uid}: max_chunk is {cap}")


def assert_decodes_run(inputs: dict, trace: dict) -> None:
    """From its first token to its last, a request is in every batch: for a loop with one batch at a time."""
    for uid in prompts_of(inputs):
        at = [i for i, batch in enumerate(trace["batches"]) for u, *_, samples in batch if u == uid and samples]
        if at and at != list(range(at[0], at[-1] + 1)):
            missed = sorted(set(range(at[0], at[-1])) - set(at))
            raise AssertionError(
                f"request {uid} was decoding, and is not in batches {missed}: {trace['batches'][missed[0]]}"
            )


def assert_budget_used(inputs: dict, trace: dict, cap: int) -> None:
    """No token of the budget is left while somebody could use it: where rows and pages suffice and all came at once."""
    left = prompts_of(inputs)
    tokens = {uid: len(answer) for uid, (answer, _) in expected(inputs["script"], trace["max_len"]).items()}
    for number, batch in enumerate(trace["batches"]):
        wish = sum(min(left[uid], cap) or 1 for uid in left if tokens[uid])
        runs, want = sum(end - start for _, start, end, _ in batch), min(wish, inputs["budget"])
        if runs < want:
            raise AssertionError(
                f"batch {number} runs {runs} tokens: {want} could run with a budget of {inputs['budget']}"
            )
        for uid, start, end, samples in batch:
            left[uid] -= min(end - start, left[uid])
            tokens[uid] -= samples


MIXED = [
    {"budget": budget, "cap": cap, "size": size, "memory": memory, "depth": depth}
    for budget, cap, size, memory, depth in [
        (12, None, 1, "rows", 1), (12, 3, 4, "rows", 1), (1, None, 4, "rows", 1), (16, 5, 4, "prefix", 1),
        (64, None, 16, "rows", 2), (9, 1, 2, "prefix", 2),
    ]
]  # fmt: skip


def mixed_run(solution, inputs: dict, rows: int, max_len: int, pages: int | None = None):
    """Drive a mixed scheduler through the script of the inputs."""
    memory = memory_of(solution, inputs["memory"], rows, max_len, inputs["size"], pages)
    scheduler = scheduler_of(solution, "mixed", memory, inputs["budget"], max_chunk=inputs["cap"])
    return error_of(lambda: drive(solution, scheduler, inputs["script"], depth=inputs["depth"]))


@case(task=3, params=MIXED, timeout=15.0)
class MixedEqualsAlone:
    """Prompts and decodes in one batch: each request gets the tokens that it gets alone, no batch is over the budget,
    and who decodes never waits."""

    def inputs(rng, **options):
        return options | {"script": workload(int(rng.integers(2**31)), 12, 40, options["size"], aborts=0.0)}

    def observe(solution, inputs):
        return mixed_run(solution, inputs, 6, 40)

    def verify(inputs, got):
        trace = scripted(got)
        assert_budget(trace, inputs["budget"])
        assert_cap(trace, inputs["cap"] or inputs["budget"])
        assert_arrival_order(inputs, trace)
        if inputs["depth"] == 1:
            assert_decodes_run(inputs, trace)
        verify(inputs["script"], trace)


@case(task=3, params=[{"budget": 8, "cap": None}, {"budget": 8, "cap": 3}, {"budget": 40, "cap": 7}])
class TheBudgetIsUsed:
    """Each batch runs as many tokens as the budget and the limit for one prompt allow."""

    def inputs(rng, budget, cap):
        adds = [
            request(uid, rng.integers(0, 1000, int(rng.integers(1, 30))), int(rng.integers(1, 9))) for uid in range(8)
        ]
        return {"budget": budget, "cap": cap, "size": 4, "memory": "rows", "depth": 1, "script": script(*adds)}

    def observe(solution, inputs):
        return mixed_run(solution, inputs, 8, 40)

    def verify(inputs, got):
        trace = scripted(got)
        assert_budget(trace, inputs["budget"])
        assert_budget_used(inputs, trace, inputs["cap"] or inputs["budget"])
        verify(inputs["script"], trace)


@case(task=3)
class OneLongPromptDoesNotBlock:
    """With a limit for a prompt in a batch, short prompts that came later answer before a long one is computed."""

    def inputs(rng):
        adds = [request(0, rng.integers(0, 1000, 120), 2)]
        adds += [request(uid, rng.integers(0, 1000, 4), 3) for uid in range(1, 4)]
        return {"budget": 20, "cap": 8, "size": 4, "memory": "rows", "depth": 1, "script": script(*adds)}

    def observe(solution, inputs):
        return mixed_run(solution, inputs, 8, 128)

    def verify(inputs, got):
        trace = scripted(got)
        assert_cap(trace, 8)
        first = {uid: next(step for step, u, token, _ in trace["outputs"] if u == uid) for uid in range(4)}
        late = [uid for uid in (1, 2, 3) if first[uid] >= first[0]]
        if late:
            raise AssertionError(
                f"requests {late} of 4 tokens waited until a prompt of 120 tokens was computed: {first}"
            )
        verify(inputs["script"], trace)


@case(task=3)
class NoTokenIsSetAsideForTheDone:
    """A request whose tokens are all launched takes no part of the budget, though nobody has read them yet."""

    def inputs(rng):
        return {"budget": int(rng.integers(4, 9)), "done": int(rng.integers(1, 4))}

    def observe(solution, inputs):
        budget, done = inputs["budget"], inputs["done"]
        scheduler = scheduler_of(solution, "mixed", memory_of(solution, "rows", 8, 64, 4), budget)
        for uid in range(done):
            scheduler.add(request_of(solution, uid, 1, 1))
        scheduler.next_batch()
        scheduler.add(request_of(solution, 9, 2 * budget, 3))
        return [[s.request.uid, s.start, s.end] for s in getattr(scheduler.next_batch(), "steps", ())]

    def verify(inputs, got):
        budget, done = inputs["budget"], inputs["done"]
        text = f"{done} requests have all their tokens in flight and a long prompt waits: with a budget of {budget} "
        explain(got, [[9, 0, budget]], f"{text} the batch is {got}, expected {[[9, 0, budget]]}", {
            "a token was set aside for requests that choose none any more": [[9, 0, budget - done]],
        })  # fmt: skip


@case(task=3, params=[{"shared": False}, {"shared": True}])
class FirstChunkIsEnough:
    """A request is admitted if there are pages for its first chunk; if not it is as before, and those behind wait."""

    def inputs(rng, shared):
        size = int(rng.integers(2, 6))
        head = rng.integers(0, 1000, 2 * size).tolist()
        return {"size": size, "shared": shared, "head": head, "asks": int(rng.integers(20, 60))}

    def observe(solution, inputs):
        size, head, kind = inputs["size"], inputs["head"], "prefix" if inputs["shared"] else "rows"
        memory = memory_of(solution, kind, 6, 100, size, 7)
        scheduler = scheduler_of(solution, "mixed", memory, 100, max_chunk=2 * size)
        old = request_of(solution, 9, [*head, 5], 1)
        memory.open(old, memory.match(old))
        launched(memory, old, old.prompt_len)
        memory.close(old)
        # Four pages of chunks, then one that needs two behind the prefix, and a small one behind it.
        for uid, ids in enumerate([[3] * 2 * size, [4] * 2 * size, head + [6] * 2 * size, [7]]):
            scheduler.add(request_of(solution, uid, ids, inputs["asks"]))
        third, start = scheduler.waiting[2], memory.available
        batch = scheduler.next_batch()
        state = [third.row is None, third.cached_len, third.device_len]
        return {
            "steps": [[s.request.uid, s.start, s.end, s.samples] for s in batch.steps],
            "waiting": [one.uid for one in scheduler.waiting],
            "running": list(scheduler.running),
            "state": state,
            "pages": [start, memory.available, memory.free_rows],
        }

    def verify(inputs, got):
        size, third = inputs["size"], 4 * inputs["size"]
        want = [[0, 0, 2 * size, True], [1, 0, 2 * size, True]]
        if not inputs["shared"]:  # three pages are left: enough for a chunk of two
            want.append([2, 0, 2 * size, False])
            want.append([3, 0, 1, True])
        explain(got["steps"], want, f"the first batch is {got['steps']}, expected {want}", {
            "the worst case was reserved": want[:1],
            "a request was overtaken by a smaller one behind it": [*want, [3, 0, 1, True]],
        })  # fmt: skip
        running = [uid for uid, *_ in want]
        explain(got["running"], running, f"those that run are {got['running']}, expected {running}: all that were "
            "admitted, also the one whose prompt was launched in part")  # fmt: skip
        waiting = [uid for uid in range(4) if uid not in running]
        explain(got["waiting"], waiting, f"those that wait are {got['waiting']}, expected {waiting}")
        if inputs["shared"]:
            explain(got["state"], [True, 0, third], f"row is None, cached_len, device_len are {got['state']} for a "
                f"request that was not admitted: it must be as before, {[True, 0, third]}")  # fmt: skip
            explain(got["pages"], [7, 3, 4], f"pages before, pages after and free rows are {got['pages']}, expected "
                f"{[7, 3, 4]}: a request that was not admitted must be closed again")  # fmt: skip


# Task 4


def tight(solution, inputs: dict, pages: int, kind: str = "rows"):
    """A mixed scheduler in which the prompts of the inputs wait, the largest uid first: `name_of` counts them from 0.
    A chunk has one page at most."""
    memory = memory_of(solution, kind, 8, 100, inputs["size"], pages)
    scheduler = scheduler_of(solution, "mixed", memory, 1000, max_chunk=inputs["size"])
    for name, ids in enumerate(inputs["prompts"]):
        scheduler.add(request_of(solution, FIRST - name, ids, 40))
    return memory, scheduler


FIRST = 99
"""The uid of the oldest: who came when does not follow from uids."""


def name_of(request) -> int:
    """0 for the oldest of the prompts; the uid itself of a request that a case adds."""
    return FIRST - request.uid if request.uid > FIRST // 2 else request.uid


def committed(solution, scheduler, batch) -> None:
    """Commit a batch; each token is the next one that nobody asked for."""
    Sampled = solution.module("serving.request").Sampled
    scheduler.commit(batch, [Sampled(5000 + i) for i, _ in enumerate(batch.sampling)])


def uids(batch) -> list[int] | None:
    return None if batch is None else [name_of(step.request) for step in batch.steps]


def queues(scheduler) -> dict[str, list[int]]:
    queues = {"running": scheduler.running.values(), "waiting": scheduler.waiting}
    return {name: [name_of(one) for one in queue] for name, queue in queues.items()}


@case(task=4, params=[{"missing": 1}, {"missing": 2}, {"missing": 3}, {"missing": 1, "large": True}])
class TheNewestIsPreempted:
    """Where pages are missing, the newest requests give theirs back, as few as needed. They wait in front of all that
    have not begun, in the order in which they came, keep what they have answered, and compute all of it again."""

    def inputs(rng, missing, large=False):
        size = int(rng.integers(3, 7))
        lengths = [size] * missing + [size - 1] * (6 - missing)  # the first ones fill their page
        if large:  # the newest has two pages and needs two batches, then the oldest has filled its page
            lengths = [size - 1, *[size - 2] * 4, 2 * size - 1]
        prompts = [rng.integers(0, 1000, n).tolist() for n in lengths]
        return {"size": size, "missing": missing, "large": large, "prompts": prompts}

    def observe(solution, inputs):
        memory, scheduler = tight(solution, inputs, 6 + inputs["large"])
        for _ in range(1 + inputs["large"]):
            committed(solution, scheduler, scheduler.next_batch())
        newest = scheduler.requests[FIRST - 5]
        scheduler.add(request_of(solution, 10, 1, 4))
        steps = uids(scheduler.next_batch())
        state = [newest.row is None, newest.cached_len, newest.device_len, newest.remain_len, newest.prompt_len]
        return queues(scheduler) | {"steps": steps, "newest": state, "free": memory.available}

    def verify(inputs, got):
        missing = inputs["missing"]
        stay, gone = list(range(6 - missing)), list(range(6 - missing, 6))
        explain(got["running"], stay, f"{got['running']} go on, expected {stay}: {missing} pages were missing", {
            "an old one was preempted, and not the newest": [0, *range(2, 6)],
            "nobody was preempted": list(range(6)),
            "somebody was admitted although pages were missing": [*stay, 5],
        })  # fmt: skip
        explain(got["waiting"], [*gone, 10], f"those that wait are {got['waiting']}, expected {[*gone, 10]}", {
            "one that was preempted went to the end of the queue": [10, *gone[::-1]],
            "the order in which they came was turned round": [*gone[::-1], 10],
            "one that was preempted is lost": [10],
        })  # fmt: skip
        explain(got["steps"], stay, f"the batch runs requests {got['steps']}, expected {stay}")
        ids = len(inputs["prompts"][-1]) + 1
        most = min(ids - 1 + 40, inputs["size"] * (6 + inputs["large"]))
        want = [True, 0, ids, most - ids, ids - 1]
        explain(got["newest"], want, f"row is None, cached_len, device_len, remain_len and prompt_len of a preempted "
            f"request are {got['newest']}, expected {want}: {ids} tokens are computed again, others may follow, and "
            "prompt_len stays what the client sent")  # fmt: skip
        free = int(inputs["large"])
        explain(got["free"], free, f"{got['free']} pages are free, expected {free}: as few as needed are preempted")


@case(task=4)
class TheNewestItselfWaits:
    """Where it is the newest itself that misses a page, nobody is preempted: it keeps what it has and waits."""

    def inputs(rng):
        size = int(rng.integers(2, 6))
        return {"size": size, "prompts": [rng.integers(0, 1000, n).tolist() for n in (size - 1, size - 1, size)]}

    def observe(solution, inputs):
        _, scheduler = tight(solution, inputs, 3)
        committed(solution, scheduler, scheduler.next_batch())
        scheduler.add(request_of(solution, 10, 1, 4))
        batch = scheduler.next_batch()
        return queues(scheduler) | {"steps": uids(batch)}

    def verify(inputs, got):
        want = {"running": [0, 1, 2], "waiting": [10], "steps": [0, 1]}
        explain(got, want, f"the queues and the batch are {got}, expected {want}", {
            "it preempted itself": {"running": [0, 1], "waiting": [2, 10], "steps": [0, 1]},
        })  # fmt: skip


@case(task=4, params=[{"depth": 1}, {"depth": 2}])
class InFlightIsLeftAlone:
    """A request with a step in flight is never preempted: the device writes to its pages. The one that misses a page
    stays out of this batch, as do those behind it, and gets its page in the next."""

    def inputs(rng, depth):
        prompts = [rng.integers(0, 1000, n).tolist() for n in (4, 4, 2)]
        return {"size": 4, "depth": depth, "prompts": prompts}

    def observe(solution, inputs):
        _, scheduler = tight(solution, inputs, 3)
        first = scheduler.next_batch()
        if inputs["depth"] == 1:
            committed(solution, scheduler, first)
        second = error_of(lambda: uids(scheduler.next_batch()))
        between, steps = queues(scheduler), second.get("value")
        if inputs["depth"] == 2 and steps is None:
            committed(solution, scheduler, first)
            steps = uids(scheduler.next_batch())
        return {"second": second, "between": between, "then": steps, "end": queues(scheduler)}

    def verify(inputs, got):
        second = got["second"]
        if second["type"] is not None:
            raise AssertionError(
                f"{second['type']}: {second['message']}: with a step in flight a request cannot be preempted"
            )
        if inputs["depth"] == 2:
            text = f"with a batch in flight {second['value']} were launched: 0 misses a page, and 2, the newest, flies"
            explain(second["value"], None, text, {
                "the newest goes on, so it flies again and the oldest never gets its page": [2],
                "a batch without steps was launched: None says that nothing can run": [],
            })  # fmt: skip
            text = f"{got['between']['waiting']} were preempted with their steps in flight"
            explain(got["between"]["running"], [0, 1, 2], text)
        text = f"then {got['then']} ran, expected [0]: it takes the page of the newest, and 1 waits for the next one"
        explain(got["then"], [0], text)
        explain(got["end"], {"running": [0, 1], "waiting": [2]}, f"in the end the queues are {got['end']}")


@case(
    task=4,
    params=[
        {"memory": memory, "depth": depth, "cap": cap}
        for memory, depth, cap in [
            ("rows", 1, None),
            ("rows", 2, 3),
            ("prefix", 1, 5),
            ("prefix", 2, None),
            ("prefix", 3, 2),
        ]
    ],
    timeout=20.0,
)
class PreemptedEqualsAlone:
    """In a memory that is far too small requests are preempted again and again, and get the tokens they get alone."""

    def inputs(rng, memory, depth, cap):
        runs = []
        for _ in range(10):
            size = int(rng.choice([1, 2, 4]))
            pages, budget = int(rng.integers(24 // size + 1, 60 // size)), int(rng.integers(6, 30))
            one = {"size": size, "pages": pages, "budget": budget, "memory": memory, "depth": depth, "cap": cap}
            runs.append(one | {"script": workload(int(rng.integers(2**31)), 9, 24, size, aborts=0.0, steps=8)})
        return runs

    def observe(solution, inputs):
        return [mixed_run(solution, one, 6, 24, one["pages"]) for one in inputs]

    def verify(inputs, got):
        for one, result in zip(inputs, got, strict=True):
            trace = scripted(result)
            assert_budget(trace, one["budget"])
            verify(one["script"], trace)


def assert_oldest_runs(inputs: dict, trace: dict) -> None:
    """The oldest request that has not ended is in every batch, and goes on where it was."""
    left = {uid: len(answer) for uid, (answer, _) in expected(inputs["script"], trace["max_len"]).items()}
    before, at = None, 0  # who was the oldest, and how far it was
    for number, batch in enumerate(trace["batches"]):
        oldest = min(uid for uid in left if left[uid])
        steps = {uid: (start, end) for uid, start, end, _ in batch}
        if oldest not in steps:
            raise AssertionError(f"batch {number} runs without request {oldest}, the oldest: {batch}")
        if oldest == before and steps[oldest][0] < at:
            raise AssertionError(f"request {oldest}, the oldest, was preempted before batch {number}: {batch}")
        before, at = oldest, steps[oldest][1]
        for uid, *_, samples in batch:
            left[uid] -= samples


def work_of(inputs: dict, trace: dict) -> dict[int, int]:
    """The batches that each request needs when nobody disturbs it."""
    prompts, chunk = prompts_of(inputs), min(inputs["cap"] or inputs["budget"], inputs["budget"] - 5)
    answers = expected(inputs["script"], trace["max_len"])
    return {uid: -(-prompts[uid] // chunk) + len(answer) for uid, (answer, _) in answers.items()}


@case(task=4, params=[{"memory": "rows"}, {"memory": "prefix"}], timeout=20.0)
class TheOldestAlwaysRuns:
    """The oldest request is in every batch and is never preempted, so each batch brings the end nearer: no livelock."""

    def inputs(rng, memory):
        runs = []
        for _ in range(8):
            size = int(rng.choice([1, 2, 4]))
            one = {"size": size, "budget": int(rng.integers(6, 30)), "memory": memory, "depth": 1, "cap": None}
            sizes = [(int(rng.integers(1, 14)), int(rng.integers(4, 30))) for _ in range(6)]
            adds = [request(uid, rng.integers(0, 1000, p), m) for uid, (p, m) in enumerate(sizes)]
            runs.append(one | {"script": script(*adds), "pages": 24 // size})
        return runs

    def observe(solution, inputs):
        return [mixed_run(solution, one, 6, 24, one["pages"]) for one in inputs]

    def verify(inputs, got):
        for one, result in zip(inputs, got, strict=True):
            trace = scripted(result)
            assert_oldest_runs(one, trace)
            verify(one["script"], trace)
            most = sum(work_of(one, trace).values())
            if len(trace["batches"]) > most:
                raise AssertionError(f"{len(trace['batches'])} batches ran: one after the other they would need {most}")


@case(task=4, timeout=20.0)
class SampledTokensStay:
    """Requests with a temperature and a seed draw the same tokens whether they are preempted or not."""

    def inputs(rng):
        prompts = [rng.integers(0, SMALL["vocab"], int(n)).tolist() for n in rng.integers(2, 9, 4)]
        return {"model": model_inputs(rng, SMALL), "prompts": prompts, "seeds": rng.integers(0, 10**6, 4).tolist()}

    def observe(solution, inputs):
        return [sampled(solution, inputs, pages) for pages in (6, 100)]

    def verify(inputs, got):
        (few, restarts), (many, none) = got
        if none:
            raise AssertionError(f"{none} requests were preempted, though there was a page for everybody")
        if not restarts:
            raise AssertionError("nobody was preempted in a memory of 6 pages: four requests need 20")
        text = f"the tokens with preemption are {few}, without {many}"
        explain(few, many, f"{text}: the random numbers of a request go on where they were")


def sampled(solution, inputs: dict, pages: int) -> list[object]:
    """The tokens of each request on a small random model, and how often one began again."""
    runner_of, ragged = solution.module("serving.model_runner"), solution.module("serving.ragged")
    table = ragged.batched(solution.module("model.qwen3").Ops())
    model = model_of(solution, inputs["model"], table)
    memory = memory_of(solution, "rows", 4, 24, 4, pages)
    scheduler = scheduler_of(solution, "mixed", memory, 64)
    sampler = solution.module("serving.batch_sampler").BatchSampler()
    runner = runner_of.ModelRunner(model, runner_of.DenseRows(len(model.layers)), sampler)
    params = solution.module("text.sampler").SamplingParams
    for uid, (ids, seed) in enumerate(zip(inputs["prompts"], inputs["seeds"], strict=True)):
        names = solution.module("serving.request")
        scheduler.add(names.Request(uid, list(ids), 12, params(temperature=1.5, seed=seed)))
    tokens, begun, restarts = [[] for _ in inputs["prompts"]], set(), 0
    while scheduler.requests:
        batch = scheduler.next_batch()
        restarts += sum(step.start == 0 and step.request.uid in begun for step in batch.steps)
        begun |= {step.request.uid for step in batch.steps}
        for output in scheduler.commit(batch, runner.launch(batch).results()):
            tokens[output.uid].append(output.sampled.token)
    return [tokens, restarts]
