"""What cases about the prefix memory share: who owns each page, and a driver that calls a memory as any scheduler may.

Knows the public names of the package under test, and the hash model that reads through its page table.
"""

from collections import deque
from collections.abc import Sequence

from course.radix_case import snapshot
from course.serving_case.hash_model import HashRunner
from course.serving_case.oracle import alone
from course.solution import Solution

VOCAB = 6
"""So few tokens that prompts, answers and stops meet by chance."""


def owners(memory: object, requests: Sequence[object]) -> str | None:
    """What is wrong with who owns which page, in words; None where each has one owner and those in use are locked.

    requests: those that have a row.
    """
    tree = snapshot(memory.tree)
    if tree["broken"]:
        return tree["broken"]
    locks = {page: node["locks"] for node in tree["nodes"] for page in node["pages"]}
    count = sum(len(node["pages"]) for node in tree["nodes"])
    if count != len(locks):
        return "a page is in two nodes of the tree"
    own: dict[int, int] = {}
    for request in requests:
        for page in memory.table.pages(request.row):
            if page not in locks:
                if page in own:
                    return f"page {page} is in the rows of requests {own[page]} and {request.uid}, and not in the tree"
                own[page] = request.uid
            elif not locks[page]:
                return f"request {request.uid} reads page {page}, which is not locked: the tree may evict it"
    free = int(memory.allocator.available)
    sums = f"{free} free, {len(locks)} in the tree and {len(own)} in rows alone make {free + len(locks) + len(own)}"
    if free + len(locks) + len(own) < memory.pages:
        return f"pages leak: {sums} of {memory.pages}"
    if free + len(locks) + len(own) > memory.pages:
        return f"a page is free and in use at once: {sums} of {memory.pages}"
    protected = sum(locks[page] > 0 for page in locks)
    if (tree["evictable"], tree["protected"]) != (len(locks) - protected, protected):
        return (
            f"evictable, protected are {tree['evictable']}, {tree['protected']}, but {protected} of {len(locks)} pages "
            "are in locked nodes"
        )
    if int(memory.available) != free + len(locks) - protected:
        return f"available is {memory.available}: {free} pages are free and {len(locks) - protected} can be evicted"
    if protected and not requests:
        return f"{protected} pages are locked, and nobody is there any more"
    return None


class AnyScheduler:
    """Calls a memory in any order that the rules of a scheduler allow: aborts, preemption, two steps in flight.

    script: {"rows", "pages", "page_size", "max_len", "prompts", "stop", "ops"}. An operation is a name and two numbers,
    taken modulo what there is: ["add", prompt, max_tokens], ["run", which requests, by bits, tokens], ["read", 0, 0],
    ["abort", request, 0], ["preempt", request, 0]. What cannot be done now is skipped.
    """

    def __init__(self, solution: Solution, script: dict[str, object]):
        self.Request = solution.module("serving.request").Request
        self.Step, self.Batch = solution.module("serving.request").Step, solution.module("serving.request").Batch
        self.OutOfPagesError = solution.module("serving.memory").OutOfPagesError
        sizes = [script[name] for name in ("rows", "max_len", "page_size", "pages")]
        self.memory = solution.module("serving.prefix_memory").PrefixMemory(*sizes)
        self.runner = HashRunner(self.memory.table, self.memory.page_size, VOCAB)
        self.script = script
        self.requests: list[object] = []
        self.live: list[object] = []  # have not ended; those without a row were preempted
        self.flights: deque[tuple[object, object]] = deque()
        self.faults: list[str] = []
        self.found = 0

    def play(self) -> dict[str, object]:
        """Do all of the script, then let everybody end.

        Returns {"answers": [[prompt, tokens, reason], ...], "faults", "found": tokens that were found in the cache}.
        """
        for at, (name, a, b) in enumerate(self.script["ops"]):
            getattr(self, name)(a, b)
            self.check(f"after operation {at + 1}, {name}({a}, {b})")
        while self.live or self.flights:
            self.go_on()
        self.check("at the end")
        answers = [[r.ids[: r.prompt_len], r.ids[r.prompt_len :], r.finish_reason] for r in self.requests]
        return {"answers": answers, "faults": self.faults + self.runner.faults, "found": self.found}

    def go_on(self) -> None:
        """Read what is in flight. Else let the oldest request run; where it cannot, the newest is given up."""
        if self.flights:
            self.read(0, 0)
            return
        self.run(1, 10**6)
        if not self.flights:
            self.abort(len(self.live) - 1, 0)

    def check(self, when: str) -> None:
        """Note the first thing that is wrong."""
        rows = [request for request in self.requests if request.row is not None]
        if not self.faults and (problem := owners(self.memory, rows)):
            self.faults.append(f"{when}: {problem}")

    def add(self, prompt: int, max_tokens: int) -> None:
        """A new request, if there is a row."""
        ids = self.script["prompts"][prompt % len(self.script["prompts"])]
        if self.memory.free_rows == 0 or len(ids) >= self.memory.max_len:
            return
        most = min(1 + max_tokens % 20, self.memory.max_len - len(ids))
        request = self.Request(len(self.requests), list(ids), most, stop_tokens=frozenset(self.script["stop"]))
        self.requests.append(request)
        self.live.append(request)
        self.admit(request)

    def admit(self, request: object) -> None:
        """Give it a row that begins with what is cached."""
        prefix = self.memory.match(request)
        if prefix.tokens >= len(request.ids):
            self.faults.append(f"{prefix.tokens} of {len(request.ids)} tokens are taken as cached: none is left to run")
        self.found += prefix.tokens
        self.memory.open(request, prefix)

    def run(self, which: int, tokens: int) -> None:
        """One batch of some requests; who was preempted is admitted again."""
        steps = []
        for i, request in enumerate(self.live):
            if which >> i & 1 and request.in_flight < 2 and request.remain_len and request.extend_len:
                if request.row is None and self.memory.free_rows:
                    self.admit(request)
                steps += self.launch(request, min(tokens, request.extend_len)) if request.row is not None else []
        if steps:
            batch = self.Batch(tuple(steps))
            self.flights.append((batch, self.runner.launch(batch)))

    def launch(self, request: object, tokens: int) -> list[object]:
        """Its step, or nothing where pages are missing."""
        try:
            self.memory.grow(request, request.cached_len + tokens)
        except self.OutOfPagesError:
            return []
        return [request.launch(tokens)]

    def read(self, *_: int) -> None:
        """Commit the oldest batch that is in flight."""
        if not self.flights:
            return
        batch, pending = self.flights.popleft()
        results = iter(pending.results())
        for request, start, _, samples in batch.steps:
            request.in_flight -= 1
            token = next(results).token if samples else None
            if request.finish_reason is None and samples:
                request.finish_reason = request.append(token)
                if request.finish_reason:
                    self.live.remove(request)
                elif start < request.prompt_len:
                    self.memory.share(request)
            self.retire(request)

    def abort(self, number: int, _: int) -> None:
        """End a request, wherever it is."""
        if self.live:
            request = self.live.pop(number % len(self.live))
            request.finish_reason = "abort"
            self.retire(request)

    def retire(self, request: object) -> None:
        """Close a request that has ended, once its last step was read."""
        if request.finish_reason and request.in_flight == 0 and request.row is not None:
            self.memory.close(request)

    def preempt(self, number: int, _: int) -> None:
        """Take a request's memory; it computes everything again."""
        request = self.live[number % len(self.live)] if self.live else None
        if request is not None and request.in_flight == 0 and request.row is not None:
            self.memory.close(request)
            request.reset()


def judge_answers(script: dict[str, object], got: dict[str, object]) -> None:
    """Raise AssertionError where the memory did wrong, or an answer is not the one without a cache."""
    for fault in got["faults"]:
        raise AssertionError(fault)
    for uid, (prompt, tokens, reason) in enumerate(got["answers"]):
        want, end = alone(prompt, 20, script["stop"], vocab=VOCAB)
        if tokens != want[: len(tokens)] or (reason == "stop" and len(tokens) != len(want)):
            raise AssertionError(
                f"request {uid} with prompt {prompt} answered {tokens} ({reason}), without a cache {want} ({end})"
            )
