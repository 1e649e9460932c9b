# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 4 in a third style: a tree of blocks, loads in tokens, and as few branches as possible."""


# file: cluster/hashing.py
def sequence_hashes(locals_: Sequence[int], parent: int | None = None) -> list[int]:
    """An accumulation."""
    from itertools import accumulate

    names = list(accumulate(locals_, lambda before, local: digest(pack("<2Q", before, local)), initial=parent))
    return names if parent is None else names[1:]


# file: cluster/events.py
class EventLog(EventLog):
    """Asks how far back the question reaches."""

    def answer(self, question: Question) -> Answer:
        """By the number of events that are asked for."""
        count = float("inf") if question.first is None else self.last + 1 - question.first
        if count <= 0:
            return TooNew(self.last)
        if count > len(self.recent):
            return Dump(self.last, tuple(self.dump()))
        return Events(tuple(self.recent)[-count:])


class EventFeed(EventFeed):
    """A tree is applied by difference with nothing."""

    def take(self, worker: Worker, cursor: Cursor, event: Event) -> None:
        """Apply only what is next."""
        cursor.heard = event.number if event.number > cursor.heard else cursor.heard
        following = event.number - cursor.last == 1
        taken = following and self.index.apply(worker, event.change)
        cursor.last += int(taken)
        cursor.complete = taken or (cursor.complete and not following)

    def missing(self, cursor: Cursor) -> Question | None:
        """At most one question."""
        wanted = cursor.heard > cursor.last and cursor.asked is None
        if wanted:
            cursor.asked = Question((cursor.last + 1) if cursor.complete else None)
        return cursor.asked if wanted else None

    def recover(self, worker: Worker, answer: Answer) -> Question | None:
        """One branch for each kind."""
        cursor = self.cursors.get(worker, Cursor())
        if worker not in self.cursors:
            return None
        cursor.asked = None
        kinds = {Events: self.some, Dump: self.all, TooNew: self.none}
        kinds[type(answer)](worker, cursor, answer)
        return self.missing(cursor)

    def some(self, worker: Worker, cursor: Cursor, answer: Events) -> None:
        """Events."""
        for event in sorted(answer.events, key=lambda event: event.number):
            self.take(worker, cursor, event)

    def all(self, worker: Worker, cursor: Cursor, answer: Dump) -> None:
        """A tree, if it is news."""
        if answer.last <= cursor.last:
            return
        self.index.apply(worker, Cleared())
        for change in answer.changes:
            self.index.apply(worker, change)
        cursor.last = answer.last
        cursor.complete = True

    def none(self, worker: Worker, cursor: Cursor, answer: TooNew) -> None:
        """A false alarm."""
        cursor.heard = cursor.last


# file: cluster/indexer.py
class Tree:
    """A block behind others, by local hash."""

    def __init__(self, name: int | None, up: "Tree | None"):
        self.name, self.up, self.children, self.workers = name, up, {}, {}


class PrefixIndex(PrefixIndex):
    """The tree says what is before a block; `holders` finds a block by its name."""

    def __init__(self, naming: Naming = sequence_hashes):
        super().__init__(naming)
        self.root = Tree(None, None)

    def apply(self, worker: Worker, change: Change) -> bool:
        """Walk down, or climb up."""
        nodes = self.blocks[worker]
        if not isinstance(change, Stored):
            names = tuple(nodes) if isinstance(change, Cleared) else change.blocks
            for node in [nodes.pop(name) for name in names if name in nodes]:
                node.workers.pop(worker, None)
                if not node.workers:
                    self.holders.pop(node.name, None)
                while node.up and not node.workers and not node.children:
                    node.up.children = {k: v for k, v in node.up.children.items() if v is not node}
                    node = node.up
            return True
        node = self.root if change.parent is None else nodes.get(change.parent)
        if node is None:
            return False
        for external, local in change.blocks:
            if local not in node.children:
                node.children[local] = Tree(self.naming([local], node.name)[0], node)
            node = nodes[external] = node.children[local]
            node.workers[worker] = True
            self.holders[node.name] = node
        return True

    def match(self, names: Sequence[int]) -> dict[Worker, int]:
        """Down the names, with those that are left."""
        if not names or names[0] not in self.holders:
            return {}
        scores = dict.fromkeys(self.holders[names[0]].workers, 1)
        left = set(scores)
        for depth, name in enumerate(names[1:], 2):
            left &= set(self.holders[name].workers) if name in self.holders else set()
            scores.update(dict.fromkeys(left, depth))
        return scores


# file: cluster/recent_index.py
class RecentIndex(RecentIndex):
    """One prompt after the other."""

    def expire(self, now: int) -> None:
        """The oldest first."""
        while self.prompts:
            oldest = self.prompts[0]
            if now < oldest.deadline and self.blocks <= self.limit:
                return
            self.prompts.popleft()
            mine = self.last[oldest.worker]
            mine_now = {name: number for name, number in mine.items() if number != oldest.number}
            self.index.apply(oldest.worker, Removed(tuple(mine.keys() - mine_now.keys())))
            self.last[oldest.worker] = mine_now
            self.blocks = sum(map(len, self.last.values()))


# file: cluster/active.py
class ActiveSequences(ActiveSequences):
    """Counter arithmetic."""

    def blocks_with(self, names: Sequence[Hashable]) -> int:
        """Old ones and new ones."""
        return self.active_blocks + sum(self.references[name] == 0 for name in names)

    def add(self, uid: Hashable, names: Sequence[Hashable], prefill_tokens: int, now: int) -> bool:
        """If it is new."""
        if new := uid not in self.requests:
            self.requests[uid] = ActiveRequest(tuple(names), prefill_tokens, now)
            self.references += Counter(names)
            self.prefill_tokens += prefill_tokens
        return new

    def prefill_done(self, uid: Hashable) -> None:
        """Take its tokens off, and forget them."""
        request = self.requests.get(uid, ActiveRequest((), 0, 0))
        self.prefill_tokens, request.prefill_tokens = self.prefill_tokens - request.prefill_tokens, 0

    def free(self, uid: Hashable) -> None:
        """Counters drop what is not above zero."""
        self.prefill_done(uid)
        request = self.requests.pop(uid, ActiveRequest((), 0, 0))
        self.references -= Counter(request.names)

    def expire(self, now: int, age: int = EXPIRY_NS) -> list[Hashable]:
        """Look at all of them."""
        old = []
        for uid in list(self.requests):
            if self.requests[uid].start + age <= now:
                self.free(uid)
                old.append(uid)
        return old


class Load(Load):
    """Others only."""

    def merge(self, news: News, now: int) -> None:
        """Echoes are nothing new."""
        {True: lambda: None, False: lambda: self.take(news, now)}[news.router == self.router]()


# file: cluster/routing.py
def credit_decay(config: CostConfig, excess_tokens: int, tokens: int, block_size: int) -> float:
    """Step by step."""
    excess = excess_tokens / block_size
    own = max(1.0, tokens / block_size)
    return 1.0 / (1.0 + config.decay * excess / own)


def costs(candidates: Sequence[Candidate], tokens: int, block_size: int, config: CostConfig) -> list[float]:
    """With new and cached blocks apart."""
    result = []
    low = min((one.prefill_tokens for one in candidates), default=0)
    for one in candidates:
        cached = one.overlap * block_size
        new = max(tokens - cached, 0)
        work = (one.prefill_tokens + new + (tokens - new)) / block_size
        work -= credit_decay(config, one.prefill_tokens - low, tokens, block_size) * config.credit * one.overlap
        work -= config.host * one.host + config.disk * one.disk + config.shared * one.shared
        result.append((work > 0) * work * config.prefill_scale + one.decode_blocks + one.requests * config.active)
    return result


def probabilities(values: Sequence[float], temperature: float) -> list[float]:
    """In the logarithm."""
    if temperature < 0:
        raise ValueError(f"a temperature of {temperature} is negative")
    low, span = min(values), max(values) - min(values)
    cheapest = [value == low for value in values]
    if not span or not temperature:
        return [is_it / sum(cheapest) for is_it in cheapest]
    logs = [-(value - low) / span / temperature for value in values]
    norm = math.log(math.fsum(math.exp(log) for log in logs))
    return [math.exp(log - norm) for log in logs]


# file: cluster/policies.py
class KvAware(KvAware):
    """The cheapest apart."""

    def choose(self, query: Query) -> Worker:
        """A choice among equals, or a draw."""
        values = costs(query.candidates(), query.request.tokens, query.block_size, query.cost)
        if not self.temperature:
            least = min(values)
            return self.rng.choice([w for w, value in zip(query.workers, values, strict=True) if value == least])
        (worker,) = self.rng.choices(list(query.workers), weights=probabilities(values, self.temperature))
        return worker


# file: cluster/router_queue.py
def fcfs(request: RouteRequest, new_tokens: int) -> float:
    """By arrival."""
    return request.jump - request.arrival


def lcfs(request: RouteRequest, new_tokens: int) -> float:
    """By arrival, turned round."""
    return 2 * request.jump - fcfs(request, new_tokens)


def wspt(request: RouteRequest, new_tokens: int) -> float:
    """By work."""
    return (1 + request.jump) / max(new_tokens, 1)


SCORES = {"fcfs": fcfs, "lcfs": lcfs, "wspt": wspt}


class RouterQueue(RouterQueue):
    """Takes all entries out, and puts those back that stay."""

    def release(self, ready: Callable[[RouteRequest], bool]) -> None:
        """One pass."""
        old, self.heap = [heapq.heappop(self.heap) for _ in range(len(self.heap))], []
        old.reverse()
        while old:
            *_, request = entry = old.pop()
            if self.waiting.get(request.uid) is not request:
                continue
            if ready(request):
                self.remove(request.uid)
            else:
                heapq.heappush(self.heap, entry)
                if request.eligible is None:
                    break
        for entry in old:
            heapq.heappush(self.heap, entry)


# file: cluster/router.py
class Router(Router):
    """Everybody waits, if only for a moment."""

    def submit(self, request: RouteRequest, now: int) -> Decision | None:
        """Place, or push."""
        if request.uid in {**self.placed, **dict.fromkeys(each.uid for each in self.queue)}:
            raise ValueError(f"uid {request.uid} is in use")
        eligible = list(self.eligible(request))
        if sum(not self.overloaded(worker) for worker in eligible) == 0:
            raise OverloadedError(f"{len(eligible)} eligible workers, all overloaded")
        if (decision := self.place(request, now)) is None:
            found = {} if self.index is None else self.index.match(request.blocks, now)
            most = max(found.get(worker, 0) for worker in eligible)
            self.queue.push(request, request.tokens - self.config.block_size * most)
        return decision

    def release(self, now: int) -> list[Decision]:
        """Place each that is asked."""
        decisions: list[Decision | None] = []
        self.queue.release(lambda request: decisions.append(self.place(request, now)) or decisions[-1] is not None)
        return [decision for decision in decisions if decision is not None]
