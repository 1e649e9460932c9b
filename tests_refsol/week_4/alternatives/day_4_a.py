# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 4 in another style: sets of workers, everything counted again from scratch, sorted lists in place of a heap."""


# file: cluster/hashing.py
def sequence_hashes(locals_: Sequence[int], parent: int | None = None) -> list[int]:
    """Recursive: the first name, and then those behind it."""
    if not locals_:
        return []
    data = b"" if parent is None else parent.to_bytes(8, "little") + locals_[0].to_bytes(8, "little")
    name = digest(data) if data else locals_[0]
    return [name, *sequence_hashes(locals_[1:], name)]


# file: cluster/events.py
class EventLog(EventLog):
    """Looks for the first event instead of computing its place."""

    def answer(self, question: Question) -> Answer:
        """What is still there, or the whole tree."""
        if question.first is None:
            return Dump(self.last, tuple(self.dump()))
        if question.first > self.last:
            return TooNew(last=self.last)
        found = tuple(event for event in self.recent if event.number >= question.first)
        complete = found and found[0].number == question.first
        return Events(found) if complete else Dump(self.last, tuple(self.dump()))


class EventFeed(EventFeed):
    """Cases first."""

    def take(self, worker: Worker, cursor: Cursor, event: Event) -> None:
        """Old, new, or the next."""
        if event.number > cursor.heard:
            cursor.heard = event.number
        if event.number != cursor.last + 1:
            return
        if self.index.apply(worker, event.change):
            cursor.last, cursor.complete = event.number, True
        else:
            cursor.complete = False

    def missing(self, cursor: Cursor) -> Question | None:
        """Nothing, the rest, or everything."""
        if cursor.asked is None and cursor.last < cursor.heard:
            cursor.asked = Question(cursor.last + 1) if cursor.complete else Question(None)
            return cursor.asked
        return None

    def recover(self, worker: Worker, answer: Answer) -> Question | None:
        """By kind of answer."""
        if worker not in self.cursors:
            return None
        cursor = self.cursors[worker]
        cursor.asked = None
        match answer:
            case TooNew():
                cursor.heard = cursor.last
            case Events(events):
                [self.take(worker, cursor, event) for event in events]
            case Dump(last, changes) if last > cursor.last:
                self.index.remove_worker(worker)
                self.index.add_worker(worker)
                [self.index.apply(worker, change) for change in changes]
                cursor.last, cursor.heard, cursor.complete = last, max(last, cursor.heard), True
        return self.missing(cursor)


# file: cluster/indexer.py
class PrefixIndex(PrefixIndex):
    """Holds sets of workers: `holders` by name."""

    def apply(self, worker: Worker, change: Change) -> bool:
        """One block after the other."""
        mine = self.blocks[worker]
        match change:
            case Cleared():
                return self.apply(worker, Removed(tuple(mine)))
            case Removed(blocks):
                for name in [mine.pop(block) for block in blocks if block in mine]:
                    self.holders[name].discard(worker)
                    if not self.holders[name]:
                        self.holders.pop(name)
                return True
        if change.parent is None:
            before = None
        elif (before := mine.get(change.parent)) is None:
            return False
        for external, local in change.blocks:
            (before,) = self.naming([local], before)
            mine[external] = before
            self.holders.setdefault(before, set()).add(worker)
        return True

    def match(self, names: Sequence[int]) -> dict[Worker, int]:
        """Each worker on its own."""
        scores = {}
        for worker in self.blocks:
            score = 0
            while score < len(names) and worker in self.holders.get(names[score], ()):
                score += 1
            if score:
                scores[worker] = score
        return scores


# file: cluster/recent_index.py
class RecentIndex(RecentIndex):
    """Rebuilds the index from the prompts that are left."""

    def expire(self, now: int) -> None:
        """Forget, and begin again with the rest."""

        def rest():
            return {(prompt.worker, name) for prompt in self.prompts for name in prompt.names}

        while self.prompts and self.prompts[0].deadline <= now:
            self.prompts.popleft()
        while len(rest()) > self.limit:
            self.prompts.popleft()
        self.blocks = len(rest())
        self.last = {worker: {} for worker in self.last}
        for worker in self.last:
            self.index.remove_worker(worker)
            self.index.add_worker(worker)
        for prompt in self.prompts:
            self.last[prompt.worker].update(dict.fromkeys(prompt.names, prompt.number))
            self.index.apply(prompt.worker, Stored(None, tuple(Block(name, name) for name in prompt.names)))


# file: cluster/active.py
class ActiveSequences(ActiveSequences):
    """Counts again after each change."""

    def recount(self) -> None:
        """From the requests."""
        self.references = Counter(name for request in self.requests.values() for name in request.names)
        self.prefill_tokens = sum(request.prefill_tokens for request in self.requests.values())

    def blocks_with(self, names: Sequence[Hashable]) -> int:
        """A union."""
        return len(self.references.keys() | set(names))

    def add(self, uid: Hashable, names: Sequence[Hashable], prefill_tokens: int, now: int) -> bool:
        """The first one stays."""
        known = uid in self.requests
        self.requests.setdefault(uid, ActiveRequest(names, prefill_tokens, now))
        self.recount()
        return not known

    def prefill_done(self, uid: Hashable) -> None:
        """No work left."""
        if uid in self.requests:
            self.requests[uid].prefill_tokens = 0
        self.recount()

    def free(self, uid: Hashable) -> None:
        """Gone, if it was there."""
        self.requests.pop(uid, None)
        self.recount()

    def expire(self, now: int, age: int = EXPIRY_NS) -> list[Hashable]:
        """Those whose time is over."""
        young = {uid: one for uid, one in self.requests.items() if one.start > now - age}
        old = [uid for uid in self.requests if uid not in young]
        self.requests = young
        self.recount()
        return old


class Load(Load):
    """Asks whose word it is first."""

    def merge(self, news: News, now: int) -> None:
        """Not its own."""
        if news.router == self.router:
            return
        self.take(news, now)


# file: cluster/routing.py
def credit_decay(config: CostConfig, excess_tokens: int, tokens: int, block_size: int) -> float:
    """All in tokens: the block size cancels."""
    own = max(tokens, block_size)
    return own / (own + config.decay * excess_tokens)


def costs(candidates: Sequence[Candidate], tokens: int, block_size: int, config: CostConfig) -> list[float]:
    """One line each."""
    if not candidates:
        return []
    least = min(one.prefill_tokens for one in candidates)

    def credits(one: Candidate) -> float:
        decay = credit_decay(config, one.prefill_tokens - least, tokens, block_size)
        tiers = [(config.host, one.host), (config.disk, one.disk), (config.shared, one.shared)]
        return config.credit * decay * one.overlap + sum(weight * blocks for weight, blocks in tiers)

    prefill = [max((one.prefill_tokens + tokens) / block_size - credits(one), 0) for one in candidates]
    return [
        config.prefill_scale * work + one.decode_blocks + config.active * one.requests
        for work, one in zip(prefill, candidates, strict=True)
    ]


def probabilities(values: Sequence[float], temperature: float) -> list[float]:
    """By NumPy."""
    import numpy as np

    if temperature < 0:
        raise ValueError(f"temperature must not be negative, got {temperature}")
    costs = np.asarray(values, dtype=np.float64)
    above = costs - costs.min()
    with np.errstate(all="ignore"):
        weights = np.exp(-above / above.max() / temperature) if temperature and above.any() else above == 0
    return (np.asarray(weights, dtype=np.float64) / np.sum(weights)).tolist()


# file: cluster/policies.py
class KvAware(KvAware):
    """Draws a number and walks along the probabilities."""

    def choose(self, query: Query) -> Worker:
        """Inverse transform."""
        shares = probabilities(
            costs(query.candidates(), query.request.tokens, query.block_size, query.cost), self.temperature
        )
        point = self.rng.random()
        for worker, share in zip(query.workers, shares, strict=True):
            point -= share
            if point < 0 and share:
                return worker
        return max(zip(shares, query.workers, strict=True), key=lambda pair: pair[0])[1]


# file: cluster/router_queue.py
def fcfs(request: RouteRequest, new_tokens: int) -> float:
    """The oldest."""
    return -(request.arrival - request.jump)


def lcfs(request: RouteRequest, new_tokens: int) -> float:
    """The youngest."""
    return request.arrival + request.jump


def wspt(request: RouteRequest, new_tokens: int) -> float:
    """The shortest."""
    return (request.jump + 1) / (new_tokens if new_tokens > 1 else 1)


SCORES = {"fcfs": fcfs, "lcfs": lcfs, "wspt": wspt}


class RouterQueue(RouterQueue):
    """Sorts what the heap has."""

    def release(self, ready: Callable[[RouteRequest], bool]) -> None:
        """In order, until one for any worker is not ready."""
        entries = sorted(entry for entry in self.heap if self.waiting.get(entry[3].uid) is entry[3])
        stopped = False
        self.heap = []
        for entry in entries:
            if not stopped and ready(entry[3]):
                self.remove(entry[3].uid)
            else:
                self.heap.append(entry)
                stopped = stopped or entry[3].eligible is None
        heapq.heapify(self.heap)


# file: cluster/router.py
class Router(Router):
    """Refuses first, then tries."""

    def submit(self, request: RouteRequest, now: int) -> Decision | None:
        """A decision, or None."""
        for here in (self.placed, self.queue):
            if request.uid in here:
                raise ValueError(f"request {request.uid} is known")
        usable = [worker for worker in self.eligible(request) if not self.overloaded(worker)]
        if not usable:
            raise OverloadedError(f"nobody can take request {request.uid}")
        decision = self.place(request, now)
        if decision is None:
            scores = self.index.match(request.blocks, now) if self.index else {}
            best = max([scores.get(worker, 0) for worker in self.eligible(request)])
            self.queue.push(request, request.tokens - best * self.config.block_size)
        return decision

    def release(self, now: int) -> list[Decision]:
        """Those that found a worker."""
        found: list[Decision] = []

        def ready(request: RouteRequest) -> bool:
            found.extend(decision for decision in [self.place(request, now)] if decision)
            return bool(found) and found[-1].uid == request.uid

        self.queue.release(ready)
        return found
