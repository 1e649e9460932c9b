# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 2 in another style: free functions, pages left instead of pages reserved, recursion instead of loops."""


# file: serving/prefill.py
def worst_case(request: Request, page_size: int) -> int:
    """Pages of the last position that is computed, and of all before it."""
    last = request.max_device_len - 2
    return last // page_size + 1


def _admit(self: PrefillAdder, request: Request) -> bool:
    """Compare what is left for others with what it needs, without and with its prefix locked."""
    if self.memory.free_rows < 1:
        return False
    prefix = self.memory.match(request)
    cost = worst_case(request, self.memory.page_size) - len(prefix.pages)
    if prefix.tokens != len(prefix.pages) * self.memory.page_size:  # a memory that names no pages
        cost = worst_case(request, self.memory.page_size) - prefix.tokens // self.memory.page_size
    left = self.memory.available - self.reserved - cost
    if left < 0:
        return False
    before = self.memory.available
    self.memory.open(request, prefix)
    locked = before - self.memory.available
    if left >= locked:
        self.reserved = self.reserved + cost
        return True
    self.memory.close(request)
    request.reset()
    return False


def _add(self: PrefillAdder, request: Request) -> int:
    """The smaller of what it lacks and what is left."""
    if not self.token_budget:
        return 0
    known = request.row is not None
    if not known and not self.admit(request):
        return 0
    lacks = request.device_len - request.cached_len
    chunk = lacks if lacks < self.token_budget else self.token_budget
    self.token_budget -= chunk
    return chunk


PrefillAdder.admit = _admit
PrefillAdder.add = _add


# file: serving/chunked.py
def _prefill(self: ChunkedScheduler) -> list[Step]:
    """Plan over a copy of the queue, then launch, then keep those that are not done."""
    holders = list(self.running.values()) + [request for request in self.waiting if request.row is not None]
    adder = PrefillAdder(self.memory, holders, self.token_budget)
    plan: list[tuple[Request, int]] = []
    for request in tuple(self.waiting):
        chunk = adder.add(request)
        if chunk == 0:
            break
        plan.append((request, chunk))
    steps = [self.launch(request, chunk) for request, chunk in plan]
    done = {id(step.request) for step in steps if step.samples}
    kept = [request for request in self.waiting if id(request) not in done]
    self.waiting.clear()
    self.waiting.extend(kept)
    return steps


ChunkedScheduler.prefill = _prefill


# file: serving/mixed.py
def _next_batch(self: MixedScheduler) -> Batch | None:
    """Decodes and chunks in two lists, in the order in which their requests came."""
    able = [request for request in self.running.values() if request.remain_len > 0]
    left = self.token_budget - len(able)
    steps: list[Step] = []
    for number, request in enumerate(able):
        wish = 1 if request.extend_len == 1 else min(request.extend_len, self.max_chunk, left + 1)
        step = self.run(request, wish)
        if step is not None:
            steps.append(step)
            left -= wish - 1
        if step is None or any(other.row is None for other in able[number + 1 :]):
            rest = [other for other in able[number + 1 :] if step is not None and other.row is not None]
            return _finish(self, steps, rest, left)
    steps.extend(self.admit(left))
    return Batch(tuple(steps)) if steps else None


def _finish(self: MixedScheduler, steps: list[Step], rest: list[Request], left: int) -> Batch | None:
    """The others that still have their pages, and nobody new."""
    if rest:
        wish = min(rest[0].extend_len, self.max_chunk, left + 1)
        step = self.run(rest[0], wish)
        if step is not None:
            others = [other for other in rest[1:] if other.row is not None]
            return _finish(self, [*steps, step], others, left - wish + 1)
    return Batch(tuple(steps)) if steps else None


def _admit(self: MixedScheduler, budget: int) -> list[Step]:
    """The first of the queue, then the rest of it."""
    if budget < 1 or not self.waiting or self.memory.free_rows < 1:
        return []
    request = self.waiting[0]
    self.memory.open(request, self.memory.match(request))
    chunk = min(request.extend_len, self.max_chunk, budget)
    try:
        step = self.launch(request, chunk)
    except OutOfPagesError:
        self.memory.close(request)
        request.reset()
        return []
    self.waiting.popleft()
    self.running[request.uid] = request
    return [step, *self.admit(budget - chunk)]


def _make_room(self: MixedScheduler, request: Request) -> bool:
    """Whether somebody else could be sent back."""
    newest = max(self.running.values(), key=list(self.running.values()).index)
    idle = newest is not request and not newest.in_flight
    if idle:
        self.preempt(newest)
    return idle


def _preempt(self: MixedScheduler, request: Request) -> None:
    """Out of the one, into the other."""
    self.memory.close(request)
    self.running.pop(request.uid)
    request.reset()
    self.waiting.extendleft([request])


MixedScheduler.next_batch = _next_batch
MixedScheduler.admit = _admit
MixedScheduler.make_room = _make_room
MixedScheduler.preempt = _preempt
