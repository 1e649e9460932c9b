# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 2 in another style: pages recounted from scratch, queues rebuilt, no exception as a signal."""


# file: serving/prefill.py
def worst_case(request: Request, page_size: int) -> int:
    """Count the pages that begin before the last computed position."""
    return len(range(0, request.max_device_len - 1, page_size))


class PrefillAdder(PrefillAdder):
    """Keeps nothing promised: what is left is counted again after each request."""

    def __init__(self, memory: Memory, admitted: Iterable[Request], token_budget: int):
        self.members = list(admitted)
        super().__init__(memory, self.members, token_budget)

    def fits(self, extra: int) -> bool:
        """Whether `extra` pages could be handed out besides all promises."""
        self.reserved = sum(self.owed(member) for member in self.members)
        return extra + self.reserved <= self.memory.available

    def admit(self, request: Request) -> bool:
        """Open first, look then."""
        if not self.memory.free_rows:
            return False
        self.memory.open(request, self.memory.match(request))
        if self.fits(self.owed(request)):
            self.members.append(request)
            self.reserved += self.owed(request)
            return True
        self.memory.close(request)
        request.cached_len = 0
        return False

    def add(self, request: Request) -> int:
        """Tokens one by one would be the same."""
        if self.token_budget > 0 and (request.row is not None or self.admit(request)):
            before = self.token_budget
            self.token_budget = max(before - request.extend_len, 0)
            return before - self.token_budget
        return 0


# file: serving/chunked.py
class ChunkedScheduler(ChunkedScheduler):
    """Rebuilds the queue."""

    def prefill(self) -> list[Step]:
        """Take from the left, and put the one that is not done back."""
        if not self.waiting:
            return []
        holders = [request for request in self.requests.values() if request.row is not None]
        adder = PrefillAdder(self.memory, holders, self.token_budget)
        taken = []
        while self.waiting:
            tokens = adder.add(self.waiting[0])
            if not tokens:
                break
            taken.append((self.waiting.popleft(), tokens))
        steps = [self.launch(*one) for one in taken]
        if steps and not steps[-1].samples:
            self.waiting.appendleft(steps[-1].request)
        return steps


# file: serving/mixed.py
class MixedScheduler(MixedScheduler):
    """Looks at counts of pages before it launches; serves decodes and chunks in two passes over one plan."""

    def missing(self, request: Request, tokens: int) -> int:
        """Pages that are not there for its next tokens."""
        needed = -(-(request.cached_len + tokens) // self.memory.page_size) - self.memory.held(request)
        return max(needed, 0) - self.memory.available

    def plan(self) -> tuple[dict[int, int], int]:
        """Tokens for each running request: one each, then chunks grow while the budget lasts."""
        sizes = {uid: 1 for uid, request in self.running.items() if request.remain_len}
        rest = self.token_budget - len(sizes)
        for uid in sizes:
            more = min(rest, self.max_chunk - 1, self.running[uid].extend_len - 1)
            sizes[uid] += more
            rest -= more
        return sizes, rest

    def next_batch(self) -> Batch | None:
        """Follow the plan until somebody drops out of it."""
        sizes, rest = self.plan()
        steps, complete = [], True
        for uid, tokens in sizes.items():
            step = self.run(self.running[uid], tokens) if uid in self.running else None
            if step is None:
                complete = False
                break
            steps.append(step)
        if complete:
            steps.extend(self.admit(rest))
        return Batch(tuple(steps)) if steps else None

    def admit(self, budget: int) -> list[Step]:
        """Open, count, and take back what does not fit."""
        steps = []
        while budget > 0 and self.waiting and self.memory.free_rows > 0:
            request = self.waiting.popleft()
            self.memory.open(request, self.memory.match(request))
            tokens = min(budget, self.max_chunk, request.extend_len)
            if self.missing(request, tokens) > 0:
                self.memory.close(request)
                request.reset()
                self.waiting.appendleft(request)
                return steps
            self.running[request.uid] = request
            steps.append(self.launch(request, tokens))
            budget -= tokens
        return steps

    def make_room(self, request: Request) -> bool:
        """The last one that is not it, if it is idle and newer."""
        *_, newest = self.running
        if newest == request.uid or self.running[newest].in_flight > 0:
            return False
        self.preempt(self.running[newest])
        return True

    def preempt(self, request: Request) -> None:
        """The other way round."""
        self.waiting.insert(0, request)
        self.running.pop(request.uid)
        self.memory.close(request)
        request.cached_len, request.device_len = 0, len(request.ids)
