# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 2 in another style: plain loops and plain Python numbers; tasks that know who awaits them, not a stack."""


# file: cluster/workload.py
def arrival_times(rng: np.random.Generator, rate: float, n: int, burstiness: float = 1.0) -> np.ndarray:
    """One gap after the other."""
    if not rate > 0 or not burstiness > 0:
        raise ValueError(f"rate {rate} and burstiness {burstiness} must be positive")
    time, times = 0.0, []
    for i in range(n):
        if burstiness == math.inf:
            time = (i + 1) / rate
        elif burstiness == 1:
            time += rng.exponential(1 / rate)
        else:
            time += rng.gamma(burstiness) / burstiness / rate
        times.append(round(time * 1e9))
    return np.array(times, np.int64)


def zipf(rng: np.random.Generator, kinds: int, exponent: float, n: int) -> np.ndarray:
    """By NumPy's own choice."""
    weights = [1 / rank**exponent for rank in range(1, kinds + 1)]
    return rng.choice(kinds, size=n, p=np.array(weights) / math.fsum(weights))


def generate(
    rng: np.random.Generator,
    times: np.ndarray,
    inputs: Lengths,
    outputs: Lengths,
    prefixes: SharedPrefixes | None = None,
    block_tokens: int = BLOCK_TOKENS,
) -> list[Arrival]:
    """Ids of a kind from its number, all others after them."""
    arrivals, whole, last = [], 0, 0
    if prefixes is not None:
        whole = prefixes.tokens // block_tokens
        last = whole * prefixes.kinds
        kinds = zipf(rng, prefixes.kinds, prefixes.exponent, len(times))
    answers, prompts = outputs.sample(rng, len(times)), inputs.sample(rng, len(times))
    for i, time in enumerate(times):
        ids, length = [], int(prompts[i])
        if prefixes is not None:
            ids += range(int(kinds[i]) * whole, int(kinds[i]) * whole + whole)
            length += prefixes.tokens
        while len(ids) * block_tokens < length:
            ids.append(last)
            last += 1
        arrivals.append(Arrival(int(time), length, int(answers[i]), tuple(ids)))
    return arrivals


# file: cluster/closed_loop.py
def _after_user(self: ClosedLoop, done: Arrival, now: int) -> Arrival | None:
    """Count down, then ask."""
    if done.session is None:
        return None
    self.left -= 1
    return self.ask(self.thought(now), done.session) if self.left >= 0 else None


def _after_turn(self: Conversations, done: Arrival, now: int) -> Arrival | None:
    """Walk over the blocks."""
    session = done.session
    if session is None or self.left[session] == 0:
        return None
    self.left[session] -= 1
    kept = tuple(i for n, i in enumerate(done.hash_ids) if (n + 1) * self.block_tokens <= done.input_length)
    return self.ask(self.thought(now), session, done.input_length + done.output_length, kept)


ClosedLoop.after, Conversations.after = _after_user, _after_turn


# file: cluster/record.py
def _first(record: Record) -> int | None:
    times = record.token_times
    return int(times[0]) if len(times) else None


def _tpot(record: Record) -> float | None:
    """Of the parts."""
    if record.output_length <= 1 or record.done is None:
        return None
    return (record.e2e - record.ttft) / (record.output_length - 1)


Record.ttft = property(lambda record: None if _first(record) is None else _first(record) - record.arrival)
Record.e2e = property(lambda record: None if record.done is None else record.done - record.arrival)
Record.tpot = property(_tpot)


# file: cluster/window.py
def steady_state(records: Sequence[Record], warm_up: int) -> Window:
    """Sort, then look."""
    arrivals = sorted(record.arrival for record in records)
    if arrivals and arrivals[0] + warm_up < arrivals[-1]:
        return Window(arrivals[0] + warm_up, arrivals[-1])
    raise ValueError(f"nothing is left of {len(arrivals)} requests after {warm_up} ns")


# file: cluster/metrics.py
def hit_rates(records: Sequence[Record]) -> HitRates:
    """One pass."""
    blocks = hit_blocks = tokens = hit_tokens = 0
    share = 0.0
    for record in records:
        blocks, hit_blocks = blocks + record.blocks, hit_blocks + record.hit_blocks
        tokens, hit_tokens = tokens + record.input_length, hit_tokens + record.hit_tokens
        share += record.hit_tokens / record.input_length
    if not records:
        return HitRates(0.0, 0.0, 0.0)
    return HitRates(hit_blocks / blocks, hit_tokens / tokens, share / len(records))


def summarise(
    records: Sequence[Record], window: Window, pools: Mapping[str, Sequence[BusyTime]] | None = None
) -> Summary:
    """One pass."""
    inside = lambda time: window.start <= time < window.end  # noqa: E731
    values, mine, ended, left = {"ttft": [], "tpot": [], "itl": [], "e2e": []}, [], 0, 0
    for record in records:
        times = record.token_times.tolist()
        left += sum(map(inside, times))
        if not record.complete:
            continue
        ended += inside(record.done)
        if inside(record.arrival):
            mine.append(record)
            for name in ("ttft", "tpot", "e2e"):
                if getattr(record, name) is not None:
                    values[name].append(getattr(record, name))
            values["itl"] += [times[i + 1] - times[i] for i in range(len(times) - 1)]
    return Summary(
        window,
        **{name: distribution(found) for name, found in values.items()},
        requests_per_second=ended / window.seconds,
        tokens_per_second=left / window.seconds,
        hits=hit_rates(mine),
        utilisation={} if pools is None else {name: utilisation(pool, window) for name, pool in pools.items()},
    )


def mean_in_system(records: Sequence[Record], window: Window) -> float:
    """The area, request by request."""
    area = 0
    for record in records:
        if record.finish_reason != "rejected":
            end = window.end if record.done is None else min(record.done, window.end)
            area += max(0, end - max(record.arrival, window.start))
    return area / (window.end - window.start)


# file: cluster/goodput.py
def _met(self: Objective, record: Record) -> bool:
    """One bound after the other."""
    if not record.complete:
        return False
    for name in ("ttft", "tpot", "e2e"):
        bound, value = getattr(self, name), getattr(record, name)
        if bound is not None and value is not None and value > bound:
            return False
    return True


Objective.met = _met


def attainment(records: Sequence[Record], objective: Objective, window: Window) -> float:
    """Count both."""
    came = good = 0
    for record in records:
        if window.start <= record.arrival < window.end:
            came, good = came + 1, good + objective.met(record)
    return good / came if came else 1.0


def goodput(records: Sequence[Record], objective: Objective, window: Window) -> float:
    """Those that are good have ended."""
    good = [record for record in records if objective.met(record)]
    return len([record for record in good if window.start <= record.done < window.end]) / window.seconds


def highest_rate(
    attained: Callable[[float], float], low: float, high: float, target: float = 0.9, tolerance: float = 0.01
) -> float:
    """Geometric means in the place of arithmetic ones."""
    if low <= 0 or high <= low:
        raise ValueError(f"expected 0 < low < high, got {low} and {high}")
    if attained(high) >= target:
        return high
    if attained(low) < target:
        return 0.0
    while high > low * (1 + tolerance):
        middle = (low * high) ** 0.5
        if attained(middle) < target:
            high = middle
        else:
            low = middle
    return low


# file: cluster/lazy.py
class _Frame:
    """A coroutine that runs, and the one that awaits it."""

    def __init__(self, coro: Coroutine[object, object, object], parent: "_Frame | None"):
        self.coro, self.parent = coro, parent


class _Driver:
    """Drives one task: frames that know their parents."""

    def __init__(self, callback: Callable[[Try[object]], object], context: Context):
        self.callback, self.context = callback, context
        self.inner: _Frame | None = None
        self.step = 0
        """The number of the wait that may end now."""

    def enter(self, task: Lazy[object]) -> None:
        self.drive(self.call(task))

    def call(self, task: Lazy[object]) -> Try[object]:
        try:
            self.inner = _Frame(task.begin(), self.inner)
        except Exception as error:
            return Err(error)
        return Ok(None)

    def drive(self, outcome: Try[object] | None) -> None:
        while outcome is not None:
            if self.inner is None:
                self.callback(outcome)
                return
            coro = self.inner.coro
            try:
                awaited = coro.send(outcome.value) if isinstance(outcome, Ok) else coro.throw(outcome.error)
            except BaseException as error:
                if not isinstance(error, StopIteration | Exception | CancelledError):
                    raise
                self.inner = self.inner.parent
                outcome = Ok(error.value) if isinstance(error, StopIteration) else Err(error)
                continue
            if isinstance(awaited, Lazy) and awaited.executor not in (None, self.context.executor):
                awaited = Suspend(awaited.start, shielded=True)
            if isinstance(awaited, Lazy):
                outcome = self.call(awaited)
            elif isinstance(awaited, Suspend):
                outcome = self.suspend(awaited)
            else:
                outcome = Err(TypeError(f"{awaited!r} is neither Lazy nor Suspend"))

    def suspend(self, awaited: Suspend[object]) -> Try[object] | None:
        """None, or what came before `start` returned."""
        signal, here = self.context.signal, self.context.executor is HERE
        if not awaited.shielded and signal.cancelled:
            return Err(CancelledError())
        self.step += 1
        mine, early, starting = self.step, [], True

        def stop() -> None:
            resume(Err(CancelledError()))

        def resume(outcome: Try[object]) -> None:
            if mine != self.step:
                return
            self.step += 1
            signal.disconnect(stop)
            if starting and here:
                early.append(outcome)
            else:
                self.context.executor.schedule(lambda: self.drive(outcome))

        if not awaited.shielded:
            signal.connect(stop)
        try:
            awaited.start(resume, self.context)
        except Exception as error:
            resume(Err(error))
        starting = False
        return early[0] if early else None


class Lazy(Lazy, Generic[T]):
    """Driven by frames."""

    def attempt(self) -> "Lazy[Try[T]]":
        """With a nested function."""
        me = self

        async def outcome() -> Try[T]:
            try:
                value = await me
            except CancelledError:
                raise
            except Exception as error:
                return Err(error)
            return Ok(value)

        return Lazy(outcome)

    def begin(self) -> Coroutine[object, object, T]:
        """The body is given away."""
        body, self.body = self.body, None
        if body is None:
            raise RuntimeError("it has begun already")
        return body()

    def start(self, callback: Callable[[Try[T]], object], context: Context | None = None) -> None:
        """On the nearest executor."""
        context = Context() if context is None else context
        place = context.executor if self.executor is None else self.executor
        driver = _Driver(callback, Context(place, context.signal))
        place.schedule(lambda: driver.enter(self))


def sync_await(task: Lazy[T], executor: Here = HERE) -> T:
    """With a cell."""
    cell: dict[str, Try[T]] = {}
    place = task.executor or executor
    task.start(lambda outcome: cell.update(outcome=outcome), Context(executor))
    place.run(lambda: "outcome" in cell)
    if "outcome" in cell:
        return cell["outcome"].get()
    raise RuntimeError("nobody is left to resume this task")


# file: cluster/collect.py
def collect_all(tasks: Sequence[Lazy[T]], window: int | None = None) -> Lazy[list[Try[T]]]:
    """Each end lets the next begin."""
    if window is not None and window <= 0:
        raise ValueError(f"window {window} is below 1")

    async def body() -> list[Try[T]]:
        return await Suspend(start, shielded=True)

    def start(resume: Callable[[Try[list[Try[T]]]], None], context: Context) -> None:
        outcomes: list[Try[T] | None] = [None] * len(tasks)
        state = {"next": 0, "running": 0, "filling": False}

        def ended(index: int, outcome: Try[T]) -> None:
            outcomes[index] = outcome
            state["running"] -= 1
            fill()

        def more() -> bool:
            room = state["running"] < (window or len(tasks))
            return state["next"] < len(tasks) and room and not context.signal.cancelled

        def fill() -> None:
            if state["filling"]:
                return
            state["filling"] = True
            while more() or (context.signal.cancelled and state["next"] < len(tasks)):
                index = state["next"]
                state["next"] += 1
                if context.signal.cancelled:
                    outcomes[index] = Err(CancelledError())
                    continue
                state["running"] += 1
                tasks[index].start(lambda outcome, index=index: ended(index, outcome), context)
            state["filling"] = False
            if state["running"] == 0:
                resume(Ok(outcomes))

        fill()

    return Lazy(body)


def collect_any(tasks: Sequence[Lazy[T]], signal: Signal | None = None) -> Lazy[tuple[int, Try[T]]]:
    """The race ends in the callback."""
    if len(tasks) == 0:
        raise ValueError("there is no task to wait for")

    async def body() -> tuple[int, Try[T]]:
        def start(resume: Callable[[Try[tuple[int, Try[T]]]], None], context: Context) -> None:
            inner = Context(context.executor, context.signal if signal is None else signal)

            def runner(index: int) -> Callable[[Try[T]], None]:
                return lambda outcome: resume(Ok((index, outcome)))

            for index, task in enumerate(tasks):
                task.start(runner(index), inner)

        try:
            winner = await Suspend(start)
        except CancelledError:
            if signal is not None:
                signal.emit()
            raise
        if signal is not None:
            signal.emit()
        return winner

    return Lazy(body)


# file: cluster/virtual_loop.py
class VirtualLoop(VirtualLoop):
    """Looks for the next free moment each time."""

    def call_at(self, when: float, callback: Callback, *args: object, context: Context | None = None) -> Timer:
        """Half up, and never before now."""
        timer = Timer(when, callback, args, self, context)
        wait = round(when * SECOND) - self.simulation.now
        timer.event = self.simulation.after(wait if wait > 0 else 0, Phase.ADMISSION, self.due, timer)
        return timer

    def due(self, handle: Handle) -> None:
        """Refuse first."""
        if self.crashed or handle.cancelled():
            return
        self.ready.append(handle)
        self.wake()

    def wake(self) -> None:
        """Refuse first."""
        if self.pumping or len(self.ready) == 0:
            return
        self.pumping = True
        self.simulation.after(self.now - self.simulation.now, Phase.ADMISSION, self.pump)

    def pump(self) -> None:
        """Take the round away from the queue, and put back what cannot run."""
        self.pumping = False
        taken = list(self.ready)
        self.ready.clear()
        try:
            with self.running():
                while taken and self.free_at <= self.simulation.now and not self.crashed:
                    self.step(taken.pop(0))
        finally:
            if not self.crashed:
                self.ready.extendleft(reversed(taken))
            self.wake()

    def run_until_complete(self, future: Coroutine[object, object, T] | Future[T]) -> T:
        """By the exception."""
        if events._get_running_loop():
            raise RuntimeError("a loop runs already")
        task = ensure_future(future, loop=self)
        task.add_done_callback(self.leave)
        self.awaited = True
        try:
            self.simulation.run()
        except Leave:
            pass
        finally:
            task.remove_done_callback(self.leave)
            self.awaited = False
        if self.crashed:
            raise RuntimeError(f"{self.name} crashed at {self.now} ns")
        if task.done():
            return task.result()
        raise DeadlockError(f"{self.now} ns: all wait:\n{self.waiting()}")
