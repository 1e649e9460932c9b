# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 1 in another style: a heap of objects, a table of counted kernels, and a replica that simulates step by step."""


# file: cluster/kernel.py
class _Ticket:
    """An event that compares itself."""

    __slots__ = ("action", "arguments", "gone", "order")

    def __init__(self, order, action, arguments):
        self.order, self.action, self.arguments, self.gone = order, action, arguments, False

    def __lt__(self, other):
        return self.order < other.order


class Simulation(Simulation):
    """Keeps the number of the next event, and a heap of tickets."""

    def at(self, time, phase, callback, *args):
        """Refuse, then queue."""
        if type(time) is not int:
            raise ValueError(f"{time!r} is a {type(time).__name__}, not an int")
        if self.now > time:
            raise ValueError(f"{time} is over: it is {self.now}")
        ticket = _Ticket((time, int(phase), self._sequence), callback, args)
        self._sequence += 1
        heapq.heappush(self._heap, ticket)
        return ticket

    def cancel(self, event):
        """Mark it."""
        event.gone = True

    def run(self, until=None):
        """Look at the first ticket, then take it."""
        if until is not None and until < self.now:
            raise ValueError(f"{until} is over")
        count = 0
        while self._heap:
            ticket = self._heap[0]
            time, phase, _ = ticket.order
            if until is not None and time > until:
                break
            heapq.heappop(self._heap)
            if ticket.gone:
                continue
            self.now, self.phase = time, Phase(phase)
            try:
                ticket.action(*ticket.arguments)
            except BaseException:
                self.phase = None
                raise
            count += 1
        self.phase = None
        self.now = self.now if until is None else until
        return count


# file: cluster/queueing.py
def lindley(arrivals, services, servers=1):
    """Keep when each server is free in a plain list, sorted anew for each job."""
    if len(arrivals) != len(services) or list(arrivals) != sorted(arrivals):
        raise ValueError("as many services as arrivals, and these in order")
    free, ends = [min(arrivals, default=0)] * servers, []
    for i in range(len(arrivals)):
        free.sort()
        begin = free[0] if free[0] > arrivals[i] else arrivals[i]
        free[0] = begin + services[i]
        ends.append(free[0])
    return ends


def mg1_wait(rate, service, second_moment):
    """Mean residual time over what is idle."""
    rho = load(rate, service)
    residual = rate * second_moment / 2
    return residual / (1 - rho)


def md1_time(rate, service):
    """In terms of the load."""
    rho = load(rate, service)
    return service * (1 + rho / (2 - 2 * rho))


def pipeline_time(rate, service):
    """DistServe's equation as it stands."""
    load(rate, service / 2)
    return service + rate * service * service / (4 * (2 - rate * service))


def speedup_time(rate, service, speedup):
    """DistServe's equation as it stands."""
    load(rate, service / speedup)
    return service / speedup + rate * service * service / (2 * speedup * (speedup - rate * service))


def erlang_c(offered, servers):
    """By the inverse of Erlang B, which is a sum of shrinking terms."""
    rho = load(offered, 1, servers)
    if offered == 0:
        return 0.0
    term = inverse = 1.0
    for n in range(servers, 0, -1):
        term *= n / offered
        inverse += term
        if term > 1e250:
            return 0.0
    return 1 / (rho + (1 - rho) * inverse)


def mmc_wait(rate, service, servers):
    """By rates."""
    share = erlang_c(rate * service, servers)
    return share / (servers / service - rate)


def closed_loop_bound(clients, response, think, bottleneck):
    """Two candidates."""
    turns = clients / (think + response)
    most = bottleneck**-1
    return turns if turns < most else most


# file: cluster/cost.py
def shape_of(steps):
    """Two lists first."""
    decodes = [step for step in steps if is_decode(step)]
    prompts = [step for step in steps if not is_decode(step)]
    tokens = sum(step.end - step.start for step in prompts)
    context = sum((step.end - step.start) * (step.start + step.end + 1) // 2 for step in prompts)
    positions = sum(step.end for step in decodes)
    return StepShape(tokens, context, len(decodes), positions, len(prompts) + len(decodes))


class Linear(Linear):
    """One function for each kind."""

    def time(self, shape):
        """The sum of both."""
        return (self._prompts(shape) + self._decodes(shape)) * MS

    def _prompts(self, shape):
        if shape.prefill_tokens == 0:
            return 0.0
        terms = (1, shape.prefill_tokens, 2 * shape.prefill_context - shape.prefill_tokens)
        return sum(factor * term for factor, term in zip(self.prefill, terms, strict=True))

    def _decodes(self, shape):
        if shape.n_decode == 0:
            return 0.0
        many = self.large is not None and shape.n_decode >= self.large
        constant, position, request = self.decode_large if many else self.decode
        return constant + position * shape.decode_context + request * shape.n_decode


class Mocker(Mocker):
    """By NumPy's polynomials."""

    def time(self, shape):
        """Both kinds."""
        total = 0.0
        if shape.prefill_tokens:
            total = np.polyval([4.209989e-7, 1.518344e-2, 16.50142], float(shape.prefill_tokens))
        if shape.n_decode:
            use = np.clip(np.asarray(shape.decode_context) / self.capacity, 0.0, 1.0)
            total = total + np.clip(np.polyval([-25.74, 54.01, 5.74], use), 1.0, None)
        return total * MS if np.ndim(total) else float(total) * MS


# file: cluster/roofline.py
def all_reduce(size, cards, latency, bandwidth):
    """Two walks round the ring."""
    steps = 2 * (cards - 1)
    return steps * latency + steps * size / cards / bandwidth if steps else 0.0


class Roofline(Roofline):
    """Counts matrix by matrix."""

    def work(self, shape):
        """Multiplications and additions."""
        model = self.model
        tokens = shape.n_decode + shape.prefill_tokens
        each = 2.0 * (model.attention_weights + model.active * model.expert_weights)
        pairs = shape.decode_context + shape.prefill_context
        per_pair = 4.0 * model.head_dim * model.heads * model.layers
        return tokens * each + pairs * per_pair + 2.0 * shape.n_sequences * model.head_weights

    def traffic(self, shape):
        """Weights, keys and values."""
        model, chunk = self.model, shape.prefill_tokens
        tokens = chunk + shape.n_decode
        read = shape.decode_context + tokens
        if chunk:
            read = read + shape.prefill_context / chunk + 0.5 * chunk
        weights = model.head_weights + model.attention_weights + model.expert_weights * model.experts_read(tokens)
        return weights * model.itemsize + read * model.kv_bytes

    def communication(self, shape):
        """Of all layers."""
        size = (shape.prefill_tokens + shape.n_decode) * self.model.hidden * self.model.itemsize
        one = all_reduce(size, self.cards, self.latency, self.machine.link or 1e9)
        return one * 2 * self.model.layers

    def time(self, shape):
        """An array or a number."""
        compute, memory = self.work(shape) / self.flops, self.traffic(shape) / self.bandwidth
        slower = np.where(compute > memory, compute, memory)
        seconds = slower + (self.overhead + self.communication(shape))
        return seconds * 1e9 if np.ndim(seconds) else float(seconds) * 1e9


# file: cluster/table.py
def blend(keys, x):
    """By NumPy's search."""
    if len(keys) == 1 or x < keys[0]:
        return [(keys[0], 1.0)]
    low = int(np.clip(np.searchsorted(keys, x, "right") - 1, 0, len(keys) - 2))
    share = (x - keys[low]) / (keys[low + 1] - keys[low])
    return [(keys[low], 1.0 - share), (keys[low + 1], share)] if share != 1 else [(keys[low + 1], 1.0)]


class Table(Table):
    """The chunk's start first."""

    def time(self, shape):
        """Microseconds, then nanoseconds."""
        chunk, decodes = shape.prefill_tokens, shape.n_decode
        before = mean = 0.0
        if chunk:
            own = chunk * (chunk + 1) / 2
            before = max((shape.prefill_context - own) / chunk, 0.0)
        if decodes:
            mean = shape.decode_context / decodes
        layer = self.attention(chunk, before, decodes, mean)
        kernels = self.dense(chunk + decodes) + self.sequence(shape.n_sequences)
        return (layer * self.layers + kernels + self.overhead) * US


# file: cluster/fast_forward.py
def steady(scheduler, shape, waiting):
    """One reason after the other."""
    if shape.prefill_tokens or shape.n_decode != len(scheduler.running):
        return False
    return len(scheduler.waiting) == waiting and shape.n_sequences == shape.n_decode


def more_pages(memory, batch, steps):
    """What they will hold, less what they hold."""
    later = [-(-(step.request.cached_len + steps - 1) // memory.page_size) for step in batch.steps]
    return sum(later) - sum(memory.held(step.request) for step in batch.steps)


def runs(memory, batch, left, spare):
    """Halve what is open."""
    low, high = 1, left
    while low < high:
        middle = (low + high + 1) // 2
        if more_pages(memory, batch, middle) <= spare:
            low = middle
        else:
            high = middle - 1
    return low


def advance(memory, batch, steps):
    """One after the other, as the scheduler would."""
    for _ in range(steps):
        for request, *_ in batch.steps:
            request.append(TOKEN)
            request.in_flight -= 1
            memory.grow(request, request.cached_len + 1)
            request.launch(1)


# file: cluster/replica.py
class Replica(Replica):
    """Always with an array of ends."""

    def launch(self):
        """One step is many steps, too."""
        scheduler, now = self.scheduler, self.simulation.now
        before = len(scheduler.waiting)
        if (batch := scheduler.next_batch()) is not None:
            shape = shape_of(batch.steps)
            steps = self.repeats(batch, shape, before)
            times = self.cost.step_times(shape, steps) if steps > 1 else [self.cost.step_time(shape)]
            self.fly(batch, now, (now + np.cumsum(times)).tolist())

    def conclude(self, batch, start, ends):
        """The last step apart from those before it."""
        self.report(batch, start, ends)
        advance(self.scheduler.memory, batch, len(ends) - 1)
        results = []
        for request, _, _, samples in batch.steps:
            if samples:
                results.append(self.result(request))
        self.flight = None
        self.scheduler.commit(batch, results)
        for step in batch.steps:
            if step.request.finish_reason:
                self.end(step.request)

    def settle(self):
        """Past, present and future."""
        if self.flight is None or len(self.flight.ends) < 2:
            return
        batch, start, ends, done = self.flight
        now = self.simulation.now
        past = [end for end in ends if end <= now]
        self.simulation.cancel(done)
        if past and past[-1] == now:
            self.conclude(batch, start, past)
            self.choose()
        else:
            if past:
                self.report(batch, start, past)
                advance(self.scheduler.memory, batch, len(past))
            self.fly(batch, int(past[-1]) if past else start, [ends[len(past)]])
