# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 6 once more: one method for all that waits, epochs instead of Counters, a loop written as read, launch, read."""


# file: serving/streams.py
def _until(self, time, name=""):
    """Take the earliest effect again and again; each sees the clock at its own end."""
    begun = self.now
    target = max(begun, time)
    while self.effects:
        first = min(self.effects, key=lambda entry: entry[:2])
        if first[0] > target:
            break
        self.effects.remove(first)
        first[2]()
    self.now = target
    if name and target > begun:
        self.ops.append(Op(name, CPU, begun, target))


def _host(self, name, duration=0, reads=(), writes=(), effect=lambda: None):
    _until(self, self.now + duration, name)
    value = effect()
    self.log.append(Call("access", CPU, name, tuple(reads), tuple(writes)))
    return value


def _launch(self, stream, name, duration, reads=(), writes=(), effect=None, engine=None):
    if duration < 0:
        raise ValueError(f"{name}: {duration}")
    start = stream.free
    for other in self.streams:
        if (stream is self.default and other.blocking) or (other is self.default and stream.blocking):
            marker = self.event("order")
            self.record(marker, other)
            self.wait(stream, marker)
    _until(self, self.now + self.launch_cost, "launch")
    start = max(stream.free, self.now)
    if engine in self.engines:
        start = max(start, self.engines[engine])
    end = stream.free = start + duration
    if engine:
        self.engines[engine] = end
    self.effects.append((end, len(self.log), effect or (lambda: None)))
    self.log.append(Call("access", stream.name, name, tuple(reads), tuple(writes)))
    self.ops.append(Op(name, stream.name, start, end))
    return self.ops[-1]


def _record(self, event, stream):
    self.log.append(Call("record", stream.name, event.name))
    event.time = max(stream.free, self.now)


def _waits(self, who, event):
    """A stream, or None for the host."""
    if event.time is not None:
        if who is None:
            _until(self, event.time, "wait")
        else:
            who.free = max(who.free, event.time)
        self.log.append(Call("wait", CPU if who is None else who.name, event.name))


def _query(self, event):
    _until(self, self.now + self.poll_cost)
    ready = event.time is None or event.time <= self.now
    if ready:
        _waits(self, None, event)
    return ready


def _elapsed(self, start, end):
    for event in (start, end):
        if event.time is None or event.timing is False:
            raise ValueError(event.name)
    for event in (start, end):
        if self.now < event.time:
            raise NotReadyError(event.name)
    return end.time / 1e6 - start.time / 1e6


Device.advance, Device.host, Device.launch, Device.record = _until, _host, _launch, _record
Device.wait, Device.query, Device.elapsed = _waits, _query, _elapsed
Device.synchronize = lambda self, event: _waits(self, None, event)


# file: serving/hazards.py
def _see(self, call):
    """Clocks as dicts; the larger of both is taken entry by entry."""
    clock = self.clocks[call.who]
    if call.kind == "access":
        return self.access(call)
    if call.kind == "record":
        self.events[call.name] = Counter(clock)
    if call.kind == "wait":
        for who, count in self.events[call.name].items():
            clock[who] = max(clock[who], count)
    return []


def _access(self, call):
    clock = self.clocks[call.who]
    for who, count in list(self.clocks[CPU].items()):
        clock[who] = max(clock[who], count)
    clock[call.who] += 1
    found = []
    for buffer in set(call.reads) | set(call.writes):
        new = Access(call.who, clock[call.who], call.name, buffer in call.reads, buffer in call.writes)
        for old in self.accesses[buffer]:
            if old.count > clock[old.who]:
                found.extend(Hazard(kind, buffer, old.name, new.name) for kind in conflicts(old, new))
        self.accesses[buffer].append(new)
        self.accesses[buffer] = [old for old in self.accesses[buffer] if old.count > self.clocks[CPU][old.who]]
    return found


def conflicts(old, new):
    """By what each of them does, as letters."""
    did = [("R" if a.reads else "") + ("W" if a.writes else "") for a in (old, new)]
    return [f"{second}A{first}" for first in did[0] for second in did[1] if "W" in first + second]


def find_hazards(log):
    """Chained."""
    from itertools import chain

    detector = HazardDetector()
    return list(chain.from_iterable(map(detector.see, log)))


HazardDetector.see, HazardDetector.access = _see, _access


# file: serving/token_pool.py
def _create(self, rows, max_len, xp=mx):
    self.xp, self.dummy_row = xp, rows
    self.tokens = xp.full((rows + 1, max_len), 1, xp.int32)


def _rows_and_columns(self, steps):
    rows = [step.request.row for step in steps for _ in range(step.start, step.end)]
    return self.xp.array(rows), self.xp.array([p for step in steps for p in range(step.start, step.end)])


def _load(self, steps):
    for step in steps:
        row, known = step.request.row, step.request.ids[step.start : step.end]
        if row != self.dummy_row and known:
            self.tokens[row, step.start : step.start + len(known)] = self.xp.array(known, self.xp.int32)


def _read(self, steps):
    rows, columns = _rows_and_columns(self, steps)
    return self.tokens[rows, columns]


def _write(self, steps, tokens):
    rows = [step.request.row if step.samples else self.dummy_row for step in steps]
    columns = [step.end if step.samples else 0 for step in steps]
    self.tokens[self.xp.array(rows), self.xp.array(columns)] = tokens.astype(self.xp.int32)


TokenPool.__init__, TokenPool.load, TokenPool.read, TokenPool.write = _create, _load, _read, _write


# file: serving/pool_runner.py
def _inputs(self, batch, rows):
    for step in batch.steps:
        self.pool.load([step])
    return mx.expand_dims(self.pool.read(batch.steps), -1)


def _start(self, batch):
    launched = ModelRunner.launch(self, batch)
    if launched.chosen is not None:
        self.pool.write(batch.sampling, launched.chosen.tokens)
        mx.async_eval(self.pool.tokens)
    return launched


PoolRunner.inputs, PoolRunner.launch = _inputs, _start


# file: serving/overlap.py
class _Lost:
    """A batch that could not be launched."""

    def __init__(self, error):
        self.error = error

    def results(self):
        """Say so now."""
        raise self.error


class OverlapEngine(OverlapEngine):
    """The same loop, with `Flight`s in a pair: the one before, the one after."""

    @property
    def busy(self):
        """Anything."""
        return any((self.flight, self.scheduler.requests))

    def step(self):
        """Read if it must be; launch; read what is left."""
        before, outputs = self.flight, []
        if before and self.reads_first(before.batch):
            return self.read()
        chosen = self.scheduler.next_batch()
        after = Flight(chosen, self.launch(chosen)) if chosen else None
        if before:
            outputs = outputs + self.read()
        self.flight = after
        return outputs

    def reads_first(self, batch):
        """Penalties, then prefills."""
        for step in batch.steps:
            if step.samples and step.request.sampling.repetition_penalty != 1:
                return True
        if self.overlap_prefills:
            return False
        prefill = any(step.start < step.request.prompt_len for step in batch.steps)
        return prefill and any(r.cached_len < r.prompt_len for r in self.scheduler.requests.values())

    def launch(self, batch):
        """An object that raises."""
        try:
            return self.runner.launch(batch)
        except Exception as error:
            return _Lost(error)

    def read(self):
        """Commit or fail."""
        flight, self.flight = self.flight, None
        if not flight:
            return []
        try:
            results = flight.pending.results()
        except Exception:
            logger.exception("failed")
            return self.scheduler.fail(flight.batch)
        return self.scheduler.commit(flight.batch, results)


# file: serving/scheduler.py
class Scheduler(Scheduler):
    """Ends in one place."""

    def abort(self, uid):
        """EAFP."""
        try:
            request = self.requests[uid]
        except KeyError:
            return None
        return self.end(request, "abort")

    def end(self, request, reason):
        """Out of the queue first."""
        if self.waiting.count(request):
            self.waiting.remove(request)
        request.finish_reason = reason
        self.retire(request)
        return Output(request.uid, None, reason)
