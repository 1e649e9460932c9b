# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 2 in another style: whole arrays, small classes for waits and races, a loop that swaps its queues."""


# file: cluster/workload.py
def arrival_times(rng: np.random.Generator, rate: float, n: int, burstiness: float = 1.0) -> np.ndarray:
    """Gaps in units of their mean."""
    for name, value in (("rate", rate), ("burstiness", burstiness)):
        if math.isnan(value) or value <= 0:
            raise ValueError(f"{name} {value} is not above 0")
    units = np.ones(n) if burstiness == np.inf else rng.standard_gamma(burstiness, n) / burstiness
    return (np.cumsum(units) / rate * SECOND + 0.5).astype(np.int64)


def zipf(rng: np.random.Generator, kinds: int, exponent: float, n: int) -> np.ndarray:
    """Compare each draw with all shares."""
    law = np.power(np.arange(kinds) + 1.0, -exponent)
    edges = np.cumsum(law / law.sum())[:-1]
    return (rng.random((n, 1)) >= edges).sum(axis=1)


def generate(
    rng: np.random.Generator,
    times: np.ndarray,
    inputs: Lengths,
    outputs: Lengths,
    prefixes: SharedPrefixes | None = None,
    block_tokens: int = BLOCK_TOKENS,
) -> list[Arrival]:
    """All ids as one range, cut where each prompt ends."""
    n = len(times)
    shared = 0 if prefixes is None else prefixes.tokens // block_tokens
    kinds = np.zeros(n, int) if prefixes is None else zipf(rng, prefixes.kinds, prefixes.exponent, n)
    lengths = inputs.sample(rng, n) + (0 if prefixes is None else prefixes.tokens)
    answers = outputs.sample(rng, n)
    own = -(-lengths // block_tokens) - shared
    heads = shared * (0 if prefixes is None else prefixes.kinds)
    ends = (heads + np.cumsum(own)).tolist()
    rows = zip(times.tolist(), lengths.tolist(), answers.tolist(), kinds.tolist(), own.tolist(), ends, strict=True)
    return [
        Arrival(t, length, answer, (*range(k * shared, (k + 1) * shared), *range(end - mine, end)))
        for t, length, answer, k, mine, end in rows
    ]


# file: cluster/closed_loop.py
class ClosedLoop(ClosedLoop):
    """Asks first."""

    def after(self, done: Arrival, now: int) -> Arrival | None:
        """A question, if one is left."""
        if done.session is not None and self.left > 0:
            self.left -= 1
            return self.ask(time=self.thought(now), session=done.session)
        return None


class Conversations(Conversations):
    """Counts from the other side."""

    def after(self, done: Arrival, now: int) -> Arrival | None:
        """Everything from the last turn."""
        if done.session is None:
            return None
        self.left[done.session] -= 1
        if self.left[done.session] < 0:
            return None
        prompt = done.input_length - done.input_length % self.block_tokens
        return self.ask(
            self.thought(now),
            done.session,
            said=sum(done[1:3]),
            ids=done.hash_ids[: prompt // self.block_tokens],
        )


# file: cluster/record.py
def _since(record: Record, time: int | None) -> int | None:
    return None if time is None else time - record.arrival


Record.ttft = property(lambda record: _since(record, record.first_token))
Record.e2e = property(lambda record: _since(record, record.done))
Record.tpot = property(
    lambda record: (
        (record.done - record.first_token) / (record.output_length - 1)
        if record.done is not None and record.output_length > 1
        else None
    )
)


# file: cluster/window.py
def steady_state(records: Sequence[Record], warm_up: int) -> Window:
    """Try, then look."""
    try:
        low = min(record.arrival for record in records) + warm_up
    except ValueError:
        raise ValueError("no requests: nothing to measure") from None
    high = max(record.arrival for record in records)
    if high <= low:
        raise ValueError(f"from {low} to {high} nothing is left")
    return Window(low, high)


# file: cluster/metrics.py
def hit_rates(records: Sequence[Record]) -> HitRates:
    """As arrays."""
    if len(records) == 0:
        return HitRates(0, 0, 0)
    table = np.array([[r.hit_blocks, r.blocks, r.hit_tokens, r.input_length] for r in records], np.float64)
    hit_blocks, blocks, hit, tokens = table.T
    return HitRates(hit_blocks.sum() / blocks.sum(), hit.sum() / tokens.sum(), float(np.mean(hit / tokens)))


def summarise(
    records: Sequence[Record], window: Window, pools: Mapping[str, Sequence[BusyTime]] | None = None
) -> Summary:
    """Filters, one for each number."""
    start, end = window
    whole = list(filter(lambda record: record.complete, records))
    mine = [record for record in whole if record.arrival in range(start, end)]
    tokens = np.sort(np.concatenate([record.token_times for record in records] or [np.zeros(0)]))
    left = np.searchsorted(tokens, end) - np.searchsorted(tokens, start)
    gaps = [gap for record in mine for gap in np.diff(record.token_times).tolist()]
    latency = {
        name: distribution([value for record in mine if (value := getattr(record, name)) is not None])
        for name in ("ttft", "tpot", "e2e")
    }
    return Summary(
        window=window,
        itl=distribution(gaps),
        requests_per_second=sum(record.done in range(start, end) for record in whole) / window.seconds,
        tokens_per_second=int(left) / window.seconds,
        hits=hit_rates(mine),
        utilisation={name: utilisation(servers, window) for name, servers in dict(pools or {}).items()},
        **latency,
    )


def mean_in_system(records: Sequence[Record], window: Window) -> float:
    """The area under the number of requests, from change to change."""
    changes = []
    for record in records:
        if record.finish_reason == "rejected":
            continue
        changes.append((max(record.arrival, window.start), 1))
        changes.append((window.end if record.done is None else max(record.done, window.start), -1))
    area, inside, before = 0, 0, window.start
    for time, change in sorted((min(time, window.end), change) for time, change in changes):
        area, inside, before = area + inside * (time - before), inside + change, time
    return area / (window.end - window.start)


# file: cluster/goodput.py
class Objective(Objective):
    """Looks for a miss."""

    def met(self, record: Record) -> bool:
        """No miss."""
        bounds = {"ttft": self.ttft, "tpot": self.tpot, "e2e": self.e2e}
        missed = [name for name, bound in bounds.items() if bound is not None and (getattr(record, name) or 0) > bound]
        return bool(record.complete and not missed)


def attainment(records: Sequence[Record], objective: Objective, window: Window) -> float:
    """A mean of truths."""
    met = [objective.met(record) for record in records if record.arrival in range(*window)]
    return met.count(True) / len(met) if met else 1.0


def goodput(records: Sequence[Record], objective: Objective, window: Window) -> float:
    """A sum of truths."""
    good = filter(objective.met, records)
    return sum(record.done in range(*window) for record in good) / window.seconds


def highest_rate(
    attained: Callable[[float], float], low: float, high: float, target: float = 0.9, tolerance: float = 0.01
) -> float:
    """Recursive."""
    if not high > low > 0:
        raise ValueError(f"{low} and {high} are no range of rates")

    def between(good: float, bad: float) -> float:
        if bad - good <= tolerance * good:
            return good
        middle = good + (bad - good) / 2
        return between(middle, bad) if attained(middle) >= target else between(good, middle)

    if attained(low) < target:
        return 0.0
    return high if attained(high) >= target else between(low, high)


# file: cluster/lazy.py
class _Wait:
    """One wait of one task: may be resumed once."""

    def __init__(self, task: "Running", awaited: Suspend[object]):
        self.task, self.over = task, False
        self.signal = None if awaited.shielded else task.context.signal
        if self.signal is not None:
            self.signal.connect(self.cancel)
        try:
            awaited.start(self.resume, task.context)
        except Exception as error:
            self.resume(Err(error))

    def resume(self, outcome: Try[object]) -> None:
        if self.over:
            return
        self.over = True
        if self.signal is not None:
            self.signal.disconnect(self.cancel)
        self.task.context.executor.schedule(lambda: self.task.resume(outcome))

    def cancel(self) -> None:
        self.resume(Err(CancelledError()))


class Running(Running):
    """Waits are objects."""

    def run(self) -> None:
        """With flags for what came of the step."""
        self.running = True
        while self.outcome is not None and len(self.stack) > 0:
            outcome, self.outcome = self.outcome, None
            ended, error, value, awaited = True, None, None, None
            try:
                if isinstance(outcome, Ok):
                    awaited = self.stack[-1].send(outcome.value)
                else:
                    awaited = self.stack[-1].throw(outcome.error)
                ended = False
            except StopIteration as stop:
                value = stop.value
            except CancelledError as told:
                error = told
            except Exception as raised:
                error = raised
            if ended:
                del self.stack[-1]
                self.outcome = Ok(value) if error is None else Err(error)
            else:
                self.meet(awaited)
        self.running = False
        if self.outcome is not None:
            outcome, self.outcome = self.outcome, None
            self.callback(outcome)

    def wait(self, awaited: Suspend[object]) -> None:
        """Unless it is too late."""
        if self.context.signal.cancelled and not awaited.shielded:
            self.outcome = Err(CancelledError())
        else:
            _Wait(self, awaited)


async def _outcome_of(task: Lazy[T]) -> Try[T]:
    try:
        return Ok(await task)
    except Exception as error:
        return Err(error)


def _begin(self: Lazy[T]) -> Coroutine[object, object, T]:
    if not self.begun:
        self.begun = True
        return self.body()
    raise RuntimeError("begun before")


def _start(self: Lazy[T], callback: Callable[[Try[T]], object], context: Context | None = None) -> None:
    outer = context or Context()
    inner = outer if self.executor is None else Context(self.executor, outer.signal)
    inner.executor.schedule(lambda: Running(callback, inner).enter(self))


Lazy.begin, Lazy.start = _begin, _start
Lazy.attempt = lambda self: Lazy(lambda: _outcome_of(self))


def sync_await(task: Lazy[T], executor: Here = HERE) -> T:
    """With a list that is empty or not."""
    done: list[Try[T]] = []
    task.start(done.append, Context(executor))
    if not done:
        (executor if task.executor is None else task.executor).run(lambda: len(done) > 0)
    for outcome in done:
        return outcome.get()
    raise RuntimeError("it waits for nothing that could come")


# file: cluster/collect.py
class _Gate:
    """Lets so many in at a time, in their order."""

    def __init__(self, room: int):
        self.room, self.queue, self.opening = room, [], False

    def enter(self) -> Suspend[None]:
        return Suspend(self.ask)

    def ask(self, resume: Callable[[Try[None]], None], context: Context) -> None:
        self.queue.append(resume)
        self.open()

    def leave(self) -> None:
        self.room += 1
        self.open()

    def open(self) -> None:
        if self.opening:
            return  # the loop below goes on: nothing nests
        self.opening = True
        while self.room > 0 and self.queue:
            self.room -= 1
            self.queue.pop(0)(Ok(None))
        self.opening = False


def collect_all(tasks: Sequence[Lazy[T]], window: int | None = None) -> Lazy[list[Try[T]]]:
    """A gate, as a semaphore would be."""
    if window == 0 or (window or 1) < 0:
        raise ValueError(f"nothing would begin in a window of {window}")

    async def body() -> list[Try[T]]:
        gate = _Gate(window or len(tasks))
        outcomes: dict[int, Try[T]] = {}

        async def one(index: int) -> None:
            await gate.enter()
            try:
                outcomes[index] = await tasks[index].attempt()
            finally:
                gate.leave()

        await together([Lazy(lambda index=index: one(index)) for index in range(len(tasks))])
        return [outcomes.get(index, Err(CancelledError())) for index in range(len(tasks))]

    return Lazy(body)


class _Race:
    """Who is first tells it; who is told tells the others."""

    def __init__(self, tasks: Sequence[Lazy[object]], signal: Signal | None):
        self.tasks, self.signal = tasks, signal

    def start(self, resume: Callable[[Try[object]], None], context: Context) -> None:
        inherited = context if self.signal is None else Context(context.executor, self.signal)
        for index in range(len(self.tasks)):
            self.tasks[index].start(self.ending(index, resume), inherited)

    def ending(self, index: int, resume: Callable[[Try[object]], None]) -> Callable[[Try[object]], None]:
        return lambda outcome: resume(Ok((index, outcome)))

    async def run(self) -> tuple[int, Try[object]]:
        try:
            return await Suspend(self.start)
        finally:
            if self.signal:
                self.signal.emit()


def collect_any(tasks: Sequence[Lazy[T]], signal: Signal | None = None) -> Lazy[tuple[int, Try[T]]]:
    """A race."""
    if not list(tasks):
        raise ValueError("nobody runs")
    return Lazy(_Race(tasks, signal).run)


# file: cluster/virtual_loop.py
def _call_at(
    self: VirtualLoop, when: float, callback: Callback, *args: object, context: Context | None = None
) -> Timer:
    timer = Timer(when, callback, args, self, context)
    ns = int(when * SECOND + 0.5)
    timer.event = self.simulation.at(
        self.simulation.now if ns < self.simulation.now else ns, Phase.ADMISSION, self.due, timer
    )
    return timer


def _due(self: VirtualLoop, handle: Handle) -> None:
    if self.crashed:
        return
    if not handle.cancelled():
        self.ready.append(handle)
    self.wake()


def _wake(self: VirtualLoop) -> None:
    if len(self.ready) and not self.pumping:
        time = self.simulation.now if self.free_at < self.simulation.now else self.free_at
        self.simulation.at(time, Phase.ADMISSION, self.pump)
        self.pumping = True


def _pump(self: VirtualLoop) -> None:
    self.pumping = False
    left = len(self.ready)
    try:
        with self.running():
            while left and self.ready and not self.now > self.simulation.now:
                left -= 1
                self.step(self.ready.popleft())
    except BaseException:
        self.wake()
        raise
    self.wake()


def _run(self: VirtualLoop, future: Coroutine[object, object, T] | Future[T]) -> T:
    if events._get_running_loop() is not None:
        raise RuntimeError("use await")
    task = ensure_future(future, loop=self)
    end = lambda _: self.leave()  # noqa: E731
    task.add_done_callback(end)
    self.awaited = True
    left = False
    try:
        self.simulation.run()
    except Leave:
        left = True
    finally:
        self.awaited = False
        task.remove_done_callback(end)
    if self.crashed:
        raise RuntimeError(f"the process {self.name} has crashed")
    if not left and not task.done():
        raise DeadlockError(f"deadlock at {self.now} ns\n{self.waiting()}")
    return task.result()


VirtualLoop.call_at, VirtualLoop.due, VirtualLoop.wake = _call_at, _due, _wake
VirtualLoop.pump, VirtualLoop.run_until_complete = _pump, _run
