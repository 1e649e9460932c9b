# ruff: noqa: E402, F821 - the other names are those of the reference file that a section is appended to
"""Day 6 in another style: bytes per flow as one fraction and a sorted list, groups instead of loops, sets of keys."""

# file: cluster/link.py
import bisect
from fractions import Fraction


def transfer_ns(size, latency, bytes_per_s):
    """Add what is missing to the next whole ns."""
    return latency + (size * SECOND + bytes_per_s - 1) // bytes_per_s


def ring_all_reduce_ns(size, ranks, latency, bytes_per_s):
    """Nothing to do alone."""
    if ranks == 1:
        return 0
    whole, rest = divmod(2 * (ranks - 1) * size * SECOND, ranks * bytes_per_s)
    return 2 * (ranks - 1) * latency + whole + (rest > 0)


def fit_link(samples):
    """A weighted mean and a slope."""
    sizes, times = (np.array(column, float) for column in zip(*samples, strict=True))
    if np.ptp(sizes) == 0:
        raise ValueError(f"all samples have {samples[0][0]} bytes")
    weights = times**-2 / np.sum(times**-2)
    n, t = weights @ sizes, weights @ times
    slope = weights @ ((sizes - n) * (times - t)) / (weights @ (sizes - n) ** 2)
    return round(t - slope * n), round(SECOND / slope)


class Link(Link):
    """`served` is a fraction of bytes; who ends when is a sorted list."""

    def __init__(self, bytes_per_s, latency=0):
        super().__init__(bytes_per_s, latency)
        self.served, self._time = Fraction(0), Fraction(0)
        self.order = []

    @property
    def flows(self):
        """Those in the list."""
        return len(self.order)

    def start(self, flow, size, now):
        """Into its place."""
        self.serve(now)
        if flow in self._ends or flow in self._arrivals:
            raise ValueError(f"flow {flow} is there")
        self._starts += 1
        self._ends[flow] = (self.served + size, self._starts)
        bisect.insort(self.order, (*self._ends[flow], flow), key=lambda entry: entry[:2])

    def cancel(self, flow, now):
        """Out of its place."""
        self.serve(now)
        if flow in self._ends:
            self.order.remove((*self._ends.pop(flow), flow))
            return True
        return self._arrivals.pop(flow, None) is not None

    def next_time(self):
        """The first of both."""
        end = self.next_end()
        ends = [] if end is None else [-(-end // 1) + self.latency]
        return min([*list(self._arrivals.values())[:1], *ends], default=None)

    def collect(self, now):
        """In their order."""
        self.serve(max(now, -(-self._time // 1)))
        come = []
        for flow, time in list(self._arrivals.items()):
            if time <= now:
                come.append(flow)
                del self._arrivals[flow]
        return come

    def next_end(self):
        """A fraction of ns."""
        if not self.order or self.bytes_per_s == 0:
            return None
        return self._time + (self.order[0][0] - self.served) * len(self.order) * SECOND / Fraction(self.bytes_per_s)

    def serve(self, now):
        """Pop from the front."""
        if now < self._time:
            raise ValueError(f"{now} ns is over")
        while (end := self.next_end()) is not None and end <= now:
            self.served, _, flow = self.order.pop(0)
            self._time = end
            del self._ends[flow]
            self._arrivals[flow] = int(-(-end // 1)) + self.latency
        if self.order:
            self.served += (now - self._time) * self.bytes_per_s / Fraction(len(self.order) * SECOND)
        else:
            self.served = Fraction(0)
        self._time = Fraction(now)


# file: cluster/transfer.py
def slices_of(request, size):
    """From the number of slices."""
    count = -(-request.length // size)
    ends = [*[size * (i + 1) for i in range(count - 1)], request.length][:count]
    return [Slice(request, i * size, end - i * size) for i, end in enumerate(ends)]


class Topology(Topology):
    """By sorting."""

    def path(self, location, down):
        """The better group that is not empty."""
        groups = [self.preferred.get(location, ()), self.secondary.get(location, ())]
        alive = [[name for name in group if name not in down] for group in groups]
        return next(filter(None, alive), [])


# file: cluster/transfer_engine.py
class TransferEngine(TransferEngine):
    """A generator of places."""

    def _places(self, transfer, path):
        held = [nic for _, nic in transfer.flying.values()]
        places = [(held.count(nic) + more, i, nic) for i, nic in enumerate(path) for more in range(self.window)]
        return [nic for level, _, nic in sorted(places) if level < self.window]

    def feed(self, transfer, now):
        """Slices and places, one by one."""
        path = self.topology.path(transfer.location, self.down)
        hopeless = not path or self.tries in transfer.lost.values()
        if transfer.pending and hopeless:
            self.end(transfer, Status.FAILED, now)
            return
        for nic in self._places(transfer, path):
            if not transfer.pending:
                break
            piece = transfer.pending.popleft()
            transfer.flying[piece.start] = piece, nic
            self.nics[nic].start((transfer, piece.start), piece.length, now)
        if not transfer.pending and not transfer.flying:
            self.end(transfer, Status.DONE, now)

    def advance(self, now):
        """All that arrives at one time, NIC by NIC, then feed all that wait."""
        time = self.next_time()
        while time is not None and time <= now:
            for nic in self.nics.values():
                for transfer, start in nic.collect(time):
                    piece, _ = transfer.flying.pop(start)
                    self.deliver(piece)
            for transfer in self.waiting():
                self.feed(transfer, time)
            time = self.next_time()

    def fail_nic(self, name, now):
        """Split what flies in two."""
        self.advance(now)
        self.down[name] = None
        for transfer in self.waiting():
            gone = {start: piece for start, (piece, nic) in transfer.flying.items() if nic == name}
            transfer.flying = {start: each for start, each in transfer.flying.items() if start not in gone}
            for start, piece in gone.items():
                self.nics[name].cancel((transfer, start), now)
                transfer.pending.appendleft(piece)
                transfer.lost.setdefault(start, 0)
                transfer.lost[start] += 1
            self.feed(transfer, now)


# file: cluster/segment.py
from itertools import groupby


def runs(pairs):
    """In a run both numbers less the position are the same."""
    numbered = list(enumerate(pairs))
    groups = [list(group) for _, group in groupby(numbered, lambda one: (one[1][0] - one[0], one[1][1] - one[0]))]
    return [(*group[0][1], len(group)) for group in groups]


# file: cluster/agent.py
class Agent(Agent):
    """Moves a handle from one table to the other."""

    def add_remote(self, metadata):
        """Blocks of one size."""
        name, blocks = metadata
        if blocks.size - self.blocks.size:
            raise ValueError(f"size {blocks.size} beside {self.blocks.size}")
        self.remotes |= {name: blocks}
        self.engine.learn(Segment(name, (Buffer(blocks.start, blocks.size * blocks.count),)))

    def invalidate(self, name):
        """All but that one."""
        self.remotes = {other: blocks for other, blocks in self.remotes.items() if other != name}
        self.engine.invalidate(name)

    def prepare(self, op, local, remote, name, message=None):
        """One request for each run."""
        there, here = self.remotes[name], self.blocks
        pairs = list(zip(local, remote, strict=True))
        for a, b, n in runs(pairs):
            here.address(a + n - 1), there.address(b + n - 1)
        made = [
            TransferRequest(op=op, address=here.address(a), segment=name, offset=there.address(b), length=n * here.size)
            for a, b, n in runs(pairs)
        ]
        return Handle(name, tuple(made), message)

    def post(self, handle, now):
        """Under way until `_settle`."""
        if handle.batch:
            raise ValueError(f"{handle.remote} is busy with it")
        if handle.remote not in self.remotes:
            raise KeyError(handle.remote)
        batch = self.engine.allocate(max(1, len(handle.requests)))
        self.engine.submit(batch, list(handle.requests), now)
        handle.batch, handle.status = batch, Status.WAITING
        self._posted[handle] = None
        self._settle(handle)

    def advance(self, now):
        """Each for itself."""
        self.engine.advance(now)
        for handle in tuple(self._posted):
            self._settle(handle)

    def _settle(self, handle):
        counts = {status: self.engine.status(handle.batch).count(status) for status in Status}
        if counts[Status.WAITING]:
            return
        self._posted.pop(handle)
        self.engine.free(handle.batch)
        handle.batch = None
        handle.status = Status.FAILED if counts[Status.FAILED] else Status.DONE
        if handle.status is Status.DONE and handle.message is not None:
            self.notify(handle.remote, handle.message)


# file: cluster/store.py
import heapq


class Master(Master):
    """A heap of what may go; checks as functions."""

    def _complete(self, key):
        entry = self.objects.get(key)
        return entry if entry and entry.complete else None

    def heartbeat(self, client, now):
        """Only what is there changes."""
        self.beats |= {client: now} if client in self.beats else {}
        return client in self.beats

    def put_start(self, key, size, now, replicas=1, soft=False, hard=False, near=None):
        """Retire the old put, then look for room."""
        if self._complete(key):
            raise StoreError(f"{key}: complete")
        if key in self.objects:
            if now < self.objects[key].started + self.config.discard:
                raise StoreError(f"{key}: young")
            self.zombies += [self.objects.pop(key)]
        pieces, freed = self.pool.allocate(size, replicas, near), 1
        while not pieces and freed and self.pool.possible(size, replicas):
            freed = self.evict(size * replicas, now)
            pieces = self.pool.allocate(size, replicas, near)
        if not pieces:
            raise NoSpaceError(f"{key}: {size} bytes")
        self.versions += 1
        entry = Entry(Put(key, self.versions, pieces), now, soft, hard)
        self.objects[key] = entry
        return entry.put

    def put_end(self, put, now):
        """Whoever is under way."""
        entry = self.under_way(put)
        entry.complete = True
        self.use(entry, now)

    def exists(self, key):
        """Complete."""
        return self._complete(key) is not None

    def get(self, key, now):
        """Only the complete."""
        if (entry := self._complete(key)) is None:
            return None
        self.use(entry, now)
        entry.leased = max(now + self.config.lease, entry.leased)
        return Grant(key, entry.put.version, entry.put.replicas, entry.leased)

    def evict(self, least, now):
        """The smallest of the heap."""
        heap = [
            (entry.soft >= now, place, key)
            for place, (key, entry) in enumerate(self.objects.items())
            if entry.complete and not entry.hard and not now <= entry.leased
        ]
        heapq.heapify(heap)
        target = self.pool.free + max(least, int(self.config.share * self.pool.capacity))
        before = self.pool.free
        while heap and self.pool.free < target:
            *_, key = heapq.heappop(heap)
            self.pool.release(self.objects.pop(key).put.replicas)
        return self.pool.free - before

    def tick(self, now):
        """Clients, puts, space."""
        away = self.ticked is not None and now - self.ticked > self.config.heartbeat
        self.ticked = now
        self.beats = {client: now if away else beat for client, beat in self.beats.items()}
        gone = {client: None for client, beat in self.beats.items() if now > beat + self.config.heartbeat}
        self.beats = {client: beat for client, beat in self.beats.items() if client not in gone}
        for name in [name for client in gone for name in self.pool.of(client)]:
            self.unmount(name)
        limit = now - self.config.release
        for key in [key for key, e in self.objects.items() if not e.complete and e.started <= limit]:
            self.pool.release(self.objects.pop(key).put.replicas)
        for entry in [entry for entry in self.zombies if entry.started <= limit]:
            self.pool.release(entry.put.replicas)
        self.zombies = [entry for entry in self.zombies if entry.started > limit]
        if 1 - self.pool.free / max(1, self.pool.capacity) > self.config.high + 1e-12:
            self.evict(0, now)


# file: cluster/store_client.py
class Reads(Reads):
    """Recursion instead of a loop."""

    def begin(self, now):
        """One, then the rest."""
        if not self.waiting or len(self.reading) == self.window:
            return
        key = self.waiting.popleft()
        grant = self.master.get(key, now)
        if grant:
            self.reading[key] = grant
            self.read(grant)
        else:
            self.results[key] = False
        self.begin(now)

    def done(self, key, now):
        """Compare, begin."""
        grant = self.reading.pop(key)
        self.results |= {key: grant.holds(now)}
        self.begin(now)


class Writes(Writes):
    """What is due is taken first."""

    def put(self, key, size, now, number=1):
        """Errors by their class."""
        try:
            self.write(self.master.put_start(key, size, now))
        except NoSpaceError:
            if number == self.tries:
                self.results[key] = False
                return
            self.again.append((now + self.pause, key, size, number + 1))
        except StoreError:
            self.results[key] = True

    def advance(self, now):
        """All that is due."""
        due = [each for each in self.again if each[0] <= now]
        for _ in due:
            self.again.popleft()
        for _, key, size, number in due:
            self.put(key, size, now, number)
