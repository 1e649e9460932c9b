# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 6 in another style: a sorted list of effects, clocks as plain dicts, a loop that keeps its batches in a queue."""


# file: serving/streams.py
class Device(Device):
    """Effects in a list that is sorted when the clock moves; ops know the event that they end with."""

    def advance(self, time, name=""):
        """Split what has ended from what has not."""
        if time > self.now:
            if name:
                self.ops.append(Op(name, "cpu", self.now, time))
            self.now = time
        ended = sorted(entry[:2] for entry in self.effects if entry[0] <= self.now)
        functions = {entry[:2]: entry[2] for entry in self.effects}
        self.effects[:] = [entry for entry in self.effects if entry[0] > self.now]
        for key in ended:
            functions[key]()

    def host(self, name, duration=0, reads=(), writes=(), effect=lambda: None):
        """Time first, then the log."""
        self.advance(self.now + duration, name)
        self.log += [Call("access", "cpu", name, tuple(reads), tuple(writes))]
        return effect()

    def launch(self, stream, name, duration, reads=(), writes=(), effect=None, engine=None):
        """Everything that the op comes after, in one list."""
        if not duration >= 0:
            raise ValueError(f"{duration} ns")
        if stream is self.default:
            before = [other for other in self.streams if other.blocking]
        else:
            before = [self.default] if stream.blocking else []
        for other in before:
            event = self.event()
            self.record(event, other)
            self.wait(stream, event)
        self.advance(self.now + self.launch_cost)
        ready = [self.now, stream.free]
        if engine is not None:
            ready.append(self.engines.setdefault(engine, 0))
        op = Op(name, stream.name, max(ready), max(ready) + duration)
        self.ops.append(op)
        stream.free = op.end
        if engine is not None:
            self.engines[engine] = op.end
        if effect is not None:
            self.effects.append((op.end, len(self.ops), effect))
        self.log += [Call("access", stream.name, name, tuple(reads), tuple(writes))]
        return op

    def record(self, event, stream):
        """The tail of the stream, or now."""
        event.time = stream.free if stream.free > self.now else self.now
        self.log += [Call("record", stream.name, event.name)]

    def wait(self, stream, event):
        """Raise the tail of the stream."""
        if event.time is None:
            return
        if stream.free < event.time:
            stream.free = event.time
        self.log += [Call("wait", stream.name, event.name)]

    def query(self, event):
        """Ask, then note what is known by it."""
        self.advance(self.now + self.poll_cost)
        if event.time is None:
            return True
        if event.time > self.now:
            return False
        self.log += [Call("wait", "cpu", event.name)]
        return True

    def synchronize(self, event):
        """Sleep until then."""
        if event.time is None:
            return
        self.advance(event.time)
        self.log += [Call("wait", "cpu", event.name)]

    def elapsed(self, start, end):
        """Check all, then subtract."""
        if start.time is None or end.time is None or not (start.timing and end.timing):
            raise ValueError(f"{start.name}, {end.name}: no time")
        if start.time > self.now or end.time > self.now:
            raise NotReadyError(f"{start.name}, {end.name}: too early")
        return (end.time - start.time) / 1_000_000


# file: serving/hazards.py
class HazardDetector(HazardDetector):
    """Clocks as dicts of the names of all accesses that must have happened: sets, not counts."""

    def __init__(self):
        super().__init__()
        self.known = {}
        self.captured = {}
        self.seen = {}
        self.number = 0

    def see(self, call):
        """Sets grow by union."""
        mine = self.known.setdefault(call.who, set())
        if call.kind == "record":
            self.captured[call.name] = frozenset(mine)
        elif call.kind == "wait":
            mine |= self.captured.get(call.name, frozenset())
            if call.who == "cpu":
                self.forget(set(mine))
        else:
            return self.access(call)
        return []

    def access(self, call):
        """Compare with every earlier access that is not in the set."""
        mine = self.known.setdefault(call.who, set())
        mine |= self.known.get("cpu", set())
        found = []
        for number, old in self.seen.items():
            if number not in mine:
                for buffer in sorted({*old.reads, *old.writes} & {*call.reads, *call.writes}, key=str):
                    pair = (
                        Access("", 0, old.name, buffer in old.reads, buffer in old.writes),
                        Access("", 0, call.name, buffer in call.reads, buffer in call.writes),
                    )
                    found += [Hazard(kind, buffer, old.name, call.name) for kind in conflicts(*pair)]
        self.number += 1
        mine.add(self.number)
        self.seen[self.number] = call
        if call.who == "cpu":
            self.forget({self.number})
        return found

    def forget(self, done):
        """What the host knows to be done is before all that comes."""
        for number in done:
            del self.seen[number]
        for known in self.known.values():
            known -= done
        self.captured = {name: numbers - done for name, numbers in self.captured.items()}


def conflicts(old, new):
    """Spelled out."""
    kinds = []
    if old.writes and new.reads:
        kinds.append("RAW")
    if old.reads and new.writes:
        kinds.append("WAR")
    if old.writes and new.writes:
        kinds.append("WAW")
    return kinds


def find_hazards(log):
    """A loop."""
    detector, found = HazardDetector(), []
    for call in log:
        found.extend(detector.see(call))
    return found


# file: serving/token_pool.py
class TokenPool(TokenPool):
    """One flat table: the place of (row, position) is row * max_len + position."""

    def __init__(self, rows, max_len, xp=mx):
        self.xp, self.rows, self.max_len = xp, rows, max_len
        self.dummy_row = rows
        self.flat = xp.zeros(((rows + 1) * max_len,), xp.int32)

    @property
    def tokens(self):
        """As a table."""
        return self.flat.reshape(self.rows + 1, self.max_len)

    def load(self, steps):
        """Step by step."""
        for request, start, end, _ in steps:
            known = request.ids[start:end]
            if known and request.row != self.dummy_row:
                first = request.row * self.max_len + start
                self.flat[first : first + len(known)] = self.xp.array(known, self.xp.int32)

    def read(self, steps):
        """Slices, joined."""
        parts = []
        for request, start, end, _ in steps:
            first = request.row * self.max_len
            parts.append(self.flat[first + start : first + end])
        return self.xp.concatenate(parts)

    def write(self, steps, tokens):
        """Only what somebody wants."""
        for i, step in enumerate(steps):
            if step.samples:
                place = step.request.row * self.max_len + step.end
                self.flat[place : place + 1] = tokens[i : i + 1].astype(self.xp.int32)


# file: serving/pool_runner.py
class PoolRunner(PoolRunner):
    """Starts the pool's update together with the next batch's model, when that reads it."""

    def inputs(self, batch, rows):
        """A column."""
        self.pool.load(batch.steps)
        return self.pool.read(batch.steps).reshape(-1, 1)

    def launch(self, batch):
        """Nothing is started twice."""
        launched = ModelRunner.launch(self, batch)
        if batch.sampling:
            self.pool.write(batch.sampling, launched.chosen.tokens)
        return launched


# file: serving/overlap.py
class OverlapEngine(OverlapEngine):
    """Keeps the batches in flight in a list, and reads while it is too long."""

    def __init__(self, scheduler, runner, overlap_prefills=True):
        super().__init__(scheduler, runner, overlap_prefills)
        self.queue = []

    @property
    def busy(self):
        """Requests, or batches."""
        return len(self.scheduler.requests) + len(self.queue) > 0

    def step(self):
        """At most one is in flight when a step begins or ends."""
        outputs = []
        if self.queue and self.reads_first(self.queue[0][0]):
            return self.read()
        batch = self.scheduler.next_batch()
        if batch:
            self.queue.append((batch, self.launch(batch)))
        while self.queue and (len(self.queue) > 1 or not batch):
            outputs.extend(self.read())
        return outputs

    def reads_first(self, batch):
        """Two reasons."""
        history = [step.request.uid for step in batch.sampling if step.request.sampling.repetition_penalty != 1.0]
        if history:
            return True
        now = [step for step in batch.steps if step.start < step.request.prompt_len]
        later = [request for request in self.scheduler.requests.values() if request.cached_len < request.prompt_len]
        return bool(now and later) and not self.overlap_prefills

    def launch(self, batch):
        """A closure that gives the results, or raises."""
        try:
            return self.runner.launch(batch).results
        except Exception as error:
            failure = error

            def results():
                raise failure

            return results

    def read(self):
        """The oldest."""
        batch, results = self.queue.pop(0)
        try:
            tokens = results()
        except Exception:
            logger.exception("a batch failed")
            return self.scheduler.fail(batch)
        return self.scheduler.commit(batch, tokens)


# file: serving/scheduler.py
def abort(self, uid):
    """Ask, then end."""
    if uid not in self.requests:
        return None
    return self.end(self.requests[uid], "abort")


def end(self, request, reason):
    """Rebuild the queue without it."""
    request.finish_reason = reason
    self.waiting = type(self.waiting)(other for other in self.waiting if other is not request)
    self.retire(request)
    return Output(uid=request.uid, sampled=None, finish_reason=reason)


Scheduler.abort, Scheduler.end = abort, end
