# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 1 in a third style: buckets of time in the kernel, NumPy for queues and costs, plain loops for pages."""


# file: cluster/kernel.py
class Simulation(Simulation):
    """A heap of times, and a dict of what happens at each."""

    def __init__(self):
        super().__init__()
        self._times = []
        self._at = {}

    def at(self, time, phase, callback, *args):
        """Into the bucket of its time."""
        if isinstance(time, bool) or not isinstance(time, int) or time < self.now:
            raise ValueError(f"cannot be at {time!r}: it is {self.now} ns, and times are ints")
        event = {"phase": phase, "call": callback, "args": args}
        if time not in self._at:
            self._at[time] = {one: [] for one in Phase}
            heapq.heappush(self._times, time)
        self._at[time][phase].append(event)
        return event

    def cancel(self, event):
        """Nothing to call any more."""
        event["call"] = None

    def _next(self, time):
        for waiting in self._at[time].values():
            while waiting:
                event = waiting.pop(0)
                if event["call"] is not None:
                    return event
        return None

    def run(self, until=None):
        """Bucket by bucket; a callback may fill the one that is being emptied."""
        if until is not None and self.now > until:
            raise ValueError(f"until {until} ns: it is {self.now} ns already")
        happened = 0
        while self._times and (until is None or self._times[0] <= until):
            time = self._times[0]
            event = self._next(time)
            if event is None:
                heapq.heappop(self._times)
                del self._at[time]
                continue
            self.now, self.phase, call = time, event["phase"], event["call"]
            event["call"] = None
            try:
                call(*event["args"])
            finally:
                self.phase = None
            happened += 1
        if until is not None:
            self.now = until
        return happened


# file: cluster/queueing.py
def lindley(arrivals, services, servers=1):
    """A matrix of free times, one column."""
    if len(arrivals) != len(services):
        raise ValueError(f"{len(arrivals)} arrivals and {len(services)} services")
    last, free, ends = None, dict.fromkeys(range(servers)), []
    for time, service in zip(arrivals, services, strict=True):
        if last is not None and time < last:
            raise ValueError(f"{time} comes after {last}")
        last = time
        server = min(free, key=lambda one: -1 if free[one] is None else free[one])
        free[server] = service + (time if free[server] is None else max(time, free[server]))
        ends.append(free[server])
    return ends


def mg1_wait(rate, service, second_moment):
    """By the spread of the service times."""
    rho = load(rate, service)
    variation = second_moment / service**2  # 1 + the squared coefficient of variation
    return service * rho * variation / (2 * (1 - rho))


def md1_time(rate, service):
    """Half of what M/M/1 waits."""
    rho = load(rate, service)
    return service + 0.5 * rho * service / (1 - rho)


def pipeline_time(rate, service):
    """Stage by stage."""
    stage = service / 2
    return stage + mg1_wait(rate, stage, stage * stage) + stage


def speedup_time(rate, service, speedup):
    """A faster machine."""
    fast = service / speedup
    return fast + mg1_wait(rate, fast, fast * fast)


def erlang_c(offered, servers):
    """In logarithms, so that nothing overflows."""
    import math

    load(offered, 1, servers)
    if offered == 0:
        return 0.0
    logs = [n * math.log(offered) - math.lgamma(n + 1) for n in range(servers + 1)]
    most = max(logs)
    below = sum(math.exp(value - most) for value in logs[:-1])
    full = math.exp(logs[-1] - most) * servers / (servers - offered)
    return full / (below + full)


def mmc_wait(rate, service, servers):
    """What waits, by Little's law."""
    offered = rate * service
    share = erlang_c(offered, servers)
    if rate == 0:
        return 0.0
    queue = share * offered / (servers - offered)
    return queue / rate


def closed_loop_bound(clients, response, think, bottleneck):
    """By sorting."""
    return sorted([1 / bottleneck, clients / (response + think)])[0]


# file: cluster/cost.py
def shape_of(steps):
    """Columns of an array."""
    counts = StepShape()
    for step in steps:
        if is_decode(step):
            more = StepShape(0, 0, 1, step.end, 1)
        else:
            more = StepShape(step.end - step.start, sum(range(step.start + 1, step.end + 1)), 0, 0, 1)
        counts = StepShape(*(a + b for a, b in zip(counts, more, strict=True)))
    return counts


class Linear(Linear):
    """Dot products."""

    def time(self, shape):
        """In ms, then in ns."""
        has_prompt, has_decode = bool(shape.prefill_tokens), bool(shape.n_decode)
        squares = 2 * shape.prefill_context - shape.prefill_tokens
        a, b, c = self.prefill
        prompt = has_prompt * (a + b * shape.prefill_tokens + c * squares)
        a, b, c = self.decode
        if self.large is not None and not shape.n_decode < self.large:
            a, b, c = self.decode_large
        decode = (a + b * shape.decode_context + c * shape.n_decode) if has_decode else 0.0
        return (prompt + decode) * MS


class Mocker(Mocker):
    """Horner."""

    def time(self, shape):
        """In ms, then in ns."""
        n, time = shape.prefill_tokens, 0.0
        if n:
            time = (4.209989e-7 * n + 1.518344e-2) * n + 16.50142
        if shape.n_decode:
            share = np.minimum(shape.decode_context, self.capacity) / self.capacity
            time = time + np.maximum(1.0, 5.74 + 54.01 * share - 25.74 * share * share)
        return time * MS


# file: cluster/roofline.py
def all_reduce(size, cards, latency, bandwidth):
    """Message by message."""
    part = size / cards
    return sum((latency + part / bandwidth for _ in range(2 * cards - 2)), 0.0)


class Roofline(Roofline):
    """Layer by layer."""

    def work(self, shape):
        """Of one layer, times the layers, and the head."""
        model = self.model
        tokens = shape.prefill_tokens + shape.n_decode
        projections = 2 * model.hidden * model.head_dim * (model.heads + model.kv_heads)
        mlp = model.active * 3 * model.hidden * model.intermediate
        pairs = shape.prefill_context + shape.decode_context
        layer = 2.0 * tokens * (projections + mlp) + 4.0 * pairs * model.heads * model.head_dim
        return model.layers * layer + 2.0 * shape.n_sequences * model.vocab * model.hidden

    def traffic(self, shape):
        """What is read, and what is written."""
        model = self.model
        new = shape.prefill_tokens + shape.n_decode
        keys = shape.decode_context
        if shape.prefill_tokens > 0:
            keys = keys + (shape.prefill_context / shape.prefill_tokens + shape.prefill_tokens / 2)
        weights = model.attention_weights + model.experts_read(new) * model.expert_weights + model.head_weights
        return (keys + new) * model.kv_bytes + weights * model.itemsize

    def communication(self, shape):
        """Two for each layer."""
        message = self.model.hidden * (shape.prefill_tokens + shape.n_decode) * self.model.itemsize
        link = self.machine.link if self.machine.link else 1e9
        return sum(2 * all_reduce(message, self.cards, self.latency, link) for _ in range(self.model.layers))

    def time(self, shape):
        """By a stack of both."""
        both = np.broadcast_arrays(self.work(shape) / self.flops, self.traffic(shape) / self.bandwidth)
        return (np.max(np.stack(both), axis=0) + self.overhead + self.communication(shape)) * 1e9


# file: cluster/table.py
def blend(keys, x):
    """Walk along the keys."""
    if x <= keys[0] or len(keys) < 2:
        return [(keys[0], 1.0)]
    at = next((i for i, key in enumerate(keys) if x <= key), len(keys) - 1)
    low, high = keys[at - 1], keys[at]
    right = (x - low) / (high - low)
    return [(low, 1.0 - right), (high, right)]


class Table(Table):
    """In nanoseconds from the beginning."""

    def time(self, shape):
        """Each part by itself."""
        tokens, context, decodes, positions, sequences = shape
        before = 0.0 if not tokens else max(context / tokens - (tokens + 1) / 2, 0.0)
        each = positions / decodes if decodes else 0.0
        parts = [self.dense(decodes + tokens), self.sequence(sequences), self.overhead]
        return (sum(parts) + self.attention(tokens, before, decodes, each) * self.layers) * US


# file: cluster/fast_forward.py
def steady(scheduler, shape, waiting):
    """Nothing but decodes, nobody missing, nobody back."""
    only_decodes = (shape.prefill_tokens, shape.n_sequences) == (0, shape.n_decode)
    return only_decodes and len(scheduler.running) == shape.n_sequences and not len(scheduler.waiting) - waiting


def more_pages(memory, batch, steps):
    """Request by request."""
    more = 0
    for request, *_ in batch.steps:
        positions = request.cached_len + steps - 1
        more += pages_for(positions, memory.page_size) - memory.held(request)
    return more


def runs(memory, batch, left, spare):
    """Try one after the other."""
    count = 1
    while count < left and more_pages(memory, batch, count + 1) <= spare:
        count += 1
    return count


def advance(memory, batch, steps):
    """Ids first, pages last."""
    for step in batch.steps:
        request = step.request
        for _ in range(steps):
            request.ids.append(TOKEN)
        request.device_len, request.cached_len = request.device_len + steps, request.cached_len + steps
    for step in batch.steps:
        memory.grow(step.request, step.request.cached_len)


# file: cluster/replica.py
class Replica(Replica):
    """Sums of times one by one."""

    def launch(self):
        """Add up."""
        waiting = len(self.scheduler.waiting)
        batch = self.scheduler.next_batch()
        if not batch:
            return
        shape, time, ends = shape_of(batch.steps), self.simulation.now, []
        for i in range(self.repeats(batch, shape, waiting)):
            longer = shape._replace(decode_context=shape.decode_context + i * shape.n_decode)
            time += self.cost.step_time(longer)
            ends.append(time)
        self.fly(batch, self.simulation.now, ends)

    def conclude(self, batch, start, ends):
        """Report, catch up, commit."""
        self.report(batch, start, ends)
        self.flight = None
        if len(ends) > 1:
            advance(self.scheduler.memory, batch, len(ends) - 1)
        self.scheduler.commit(batch, list(map(self.result, [step.request for step in batch.sampling])))
        ended = [step.request for step in batch.steps if step.request.finish_reason is not None]
        for request in ended:
            self.end(request)

    def settle(self):
        """Count by comparing."""
        flight, now = self.flight, self.simulation.now
        if flight is None or len(flight.ends) == 1:
            return
        self.simulation.cancel(flight.done)
        count = sum(1 for end in flight.ends if end <= now)
        over = flight.ends[:count]
        if count and over[-1] == now:
            self.conclude(flight.batch, flight.start, over)
            self.choose()
            return
        start = flight.start
        if count:
            self.report(flight.batch, start, over)
            advance(self.scheduler.memory, flight.batch, count)
            start = over[-1]
        self.fly(flight.batch, start, [flight.ends[count]])
