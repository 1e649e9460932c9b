# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 6 in another style: fractions of bytes left, slices in turn over the NICs, plain loops in the store."""

# file: cluster/link.py
from fractions import Fraction
from math import ceil


def transfer_ns(size, latency, bytes_per_s):
    """With a fraction."""
    return latency + ceil(Fraction(size * SECOND, bytes_per_s))


def ring_all_reduce_ns(size, ranks, latency, bytes_per_s):
    """Two halves: add up, hand out."""
    half = Fraction((ranks - 1) * size * SECOND, ranks * bytes_per_s)
    return 2 * (ranks - 1) * latency + ceil(half + half)


def fit_link(samples):
    """Normal equations in fractions."""
    if len({size for size, _ in samples}) == 1:
        raise ValueError("one size")
    a = b = c = d = e = Fraction(0)
    for size, time in samples:
        one, slope = Fraction(1, time), Fraction(size, time)
        a, b, c, d, e = a + one * one, b + one * slope, c + slope * slope, d + one, e + slope
    determinant = a * c - b * b
    return round((d * c - b * e) / determinant), round(SECOND * determinant / (a * e - b * d))


class Link(Link):
    """What is left of each flow, in fractions of a byte."""

    def __init__(self, bytes_per_s, latency=0):
        super().__init__(bytes_per_s, latency)
        self.left, self.at = {}, Fraction(0)

    @property
    def flows(self):
        """Those with bytes left."""
        return len(self.left)

    def start(self, flow, size, now):
        """Note its bytes."""
        self.serve(now)
        if flow in self.left or flow in self._arrivals:
            raise ValueError(f"{flow} again")
        self.left[flow] = Fraction(size)

    def cancel(self, flow, now):
        """From either place."""
        self.serve(now)
        return (self.left.pop(flow, None) is not None) or (self._arrivals.pop(flow, None) is not None)

    def next_time(self):
        """Arrivals first."""
        if self._arrivals:
            return next(iter(self._arrivals.values()))
        end = self.next_end()
        return None if end is None else ceil(end) + self.latency

    def collect(self, now):
        """Those that have come."""
        if now > self.at:
            self.serve(now)
        come = [flow for flow, time in self._arrivals.items() if time <= now]
        return [self._arrivals.pop(flow) and flow for flow in come]

    def next_end(self):
        """In ns, a fraction."""
        if self.left and self.bytes_per_s:
            return self.at + min(self.left.values()) * len(self.left) * SECOND / self.bytes_per_s
        return None

    def serve(self, now):
        """From end to end."""
        if now < self.at:
            raise ValueError(f"{now} is past")
        while True:
            end = self.next_end()
            to = Fraction(now) if end is None or end > now else end
            if self.left:
                share = (to - self.at) * self.bytes_per_s / SECOND / len(self.left)
                self.left = {flow: left - share for flow, left in self.left.items()}
            self.at = to
            done = [flow for flow, left in self.left.items() if left == 0 and self.bytes_per_s]
            for flow in done:
                del self.left[flow]
                self._arrivals[flow] = ceil(to) + self.latency
            if not done:
                return


# file: cluster/transfer.py
def slices_of(request, size):
    """Cut off from the front."""
    pieces, done = [], 0
    while done < request.length:
        piece = Slice(request, done, min(size, request.length - done))
        pieces.append(piece)
        done += piece.length
    return pieces


def _path(self, location, down):
    preferred = [name for name in self.preferred.get(location, []) if name not in down]
    return preferred or [name for name in self.secondary.get(location, []) if name not in down]


Topology.path = _path


# file: cluster/transfer_engine.py
class TransferEngine(TransferEngine):
    """One slice for each NIC in turn; one NIC at a time."""

    def feed(self, transfer, now):
        """Rounds over the NICs until nobody takes one."""
        path = list(self.topology.path(transfer.location, self.down))
        if transfer.pending and (not path or any(n >= self.tries for n in transfer.lost.values())):
            return self.end(transfer, Status.FAILED, now)
        for level in range(self.window):
            for nic in path:
                held = sum(name == nic for _, name in transfer.flying.values())
                if transfer.pending and held <= level:
                    piece = transfer.pending.popleft()
                    transfer.flying[piece.start] = (piece, nic)
                    self.nics[nic].start((transfer, piece.start), piece.length, now)
        if not (transfer.pending or transfer.flying):
            self.end(transfer, Status.DONE, now)

    def advance(self, now):
        """The NIC whose turn is next."""
        while True:
            times = {name: nic.next_time() for name, nic in self.nics.items()}
            due = {name: time for name, time in times.items() if time is not None and time <= now}
            if not due:
                return
            name = min(due, key=due.get)
            for transfer, start in self.nics[name].collect(due[name]):
                self.deliver(transfer.flying.pop(start)[0])
                self.feed(transfer, due[name])

    def fail_nic(self, name, now):
        """First take all back, then feed."""
        self.advance(now)
        self.down[name] = None
        for transfer in self.waiting():
            for start in [start for start, (_, nic) in transfer.flying.items() if nic == name][::-1]:
                self.nics[name].cancel((transfer, start), now)
                transfer.pending.appendleft(transfer.flying.pop(start)[0])
                transfer.lost[start] = 1 + transfer.lost.get(start, 0)
        for transfer in self.waiting():
            self.feed(transfer, now)


# file: cluster/segment.py
def runs(pairs):
    """Find where each run ends."""
    found, begin = [], 0
    for end in range(1, len(pairs) + 1):
        last = end == len(pairs)
        if last or pairs[end][0] - pairs[end - 1][0] != 1 or pairs[end][1] - pairs[end - 1][1] != 1:
            found.append((*pairs[begin], end - begin))
            begin = end
    return found


# file: cluster/agent.py
class Agent(Agent):
    """Address by address."""

    def add_remote(self, metadata):
        """Both tables."""
        blocks = metadata.blocks
        if blocks.size != self.blocks.size:
            raise ValueError(f"{blocks.size} is not {self.blocks.size}")
        self.engine.invalidate(metadata.name)
        self.engine.learn(Segment(metadata.name, (blocks.buffer,)))
        self.remotes[metadata.name] = blocks

    def invalidate(self, name):
        """Out of both."""
        if name in self.remotes:
            del self.remotes[name]
        self.engine.invalidate(name)

    def prepare(self, op, local, remote, name, message=None):
        """All addresses are asked for, so each block is checked."""
        there = self.remotes[name]
        if len(local) != len(remote):
            raise ValueError(f"{len(local)} and {len(remote)} blocks")
        for here, far in zip(local, remote, strict=True):
            self.blocks.address(here), there.address(far)
        requests = []
        for here, far, count in runs([*zip(local, remote, strict=True)]):
            length = count * there.size
            requests.append(TransferRequest(op, self.blocks.address(here), name, there.address(far), length))
        return Handle(name, tuple(requests), message)

    def post(self, handle, now):
        """Check, then begin."""
        self.remotes[handle.remote]
        if handle in self._posted:
            raise ValueError(f"one post at a time with {handle.remote}")
        handle.batch = self.engine.allocate(len(handle.requests))
        self.engine.submit(handle.batch, handle.requests, now)
        handle.status = Status.WAITING
        self._posted[handle] = None
        self.advance(now)

    def advance(self, now):
        """Who is done."""
        self.engine.advance(now)
        done = {}
        for handle in self._posted:
            states = self.engine.status(handle.batch)
            if all(state is not Status.WAITING for state in states):
                done[handle] = all(state is Status.DONE for state in states)
        for handle, fine in done.items():
            self.engine.free(handle.batch)
            handle.batch, handle.status = None, Status.DONE if fine else Status.FAILED
            self._posted.pop(handle)
            if fine and handle.message is not None:
                self.notify(handle.remote, handle.message)


# file: cluster/store.py
class Master(Master):
    """Loops and early returns."""

    def heartbeat(self, client, now):
        """Known or not."""
        known = client in self.beats
        if known:
            self.beats[client] = now
        return known

    def put_start(self, key, size, now, replicas=1, soft=False, hard=False, near=None):
        """Refuse, replace, make room."""
        if key in self.objects:
            old = self.objects[key]
            if old.complete:
                raise StoreError(f"{key} exists")
            if old.started + self.config.discard > now:
                raise StoreError(f"{key} is being put")
            del self.objects[key]
            self.zombies.append(old)
        pieces = None
        if self.pool.possible(size, replicas):
            while (pieces := self.pool.allocate(size, replicas, near)) is None:
                if self.evict(size * replicas, now) == 0:
                    break
        if pieces is None:
            raise NoSpaceError(f"no space for {key}")
        self.versions = self.versions + 1
        self.objects[key] = Entry(Put(key, self.versions, pieces), started=now, soft_pinned=soft, hard=hard)
        return self.objects[key].put

    def put_end(self, put, now):
        """Complete, and used."""
        entry = self.under_way(put)
        self.use(entry, now)
        entry.complete = True

    def exists(self, key):
        """No use of it."""
        return key in self.objects and self.objects[key].complete

    def get(self, key, now):
        """A use, and a lease."""
        if not self.exists(key):
            return None
        entry = self.objects[key]
        self.use(entry, now)
        entry.leased = now + self.config.lease
        return Grant(key, entry.put.version, entry.put.replicas, until=entry.leased)

    def evict(self, least, now):
        """Two passes."""
        wanted, freed = max(least, int(self.pool.capacity * self.config.share)), 0
        for pinned in (False, True):
            for key, entry in list(self.objects.items()):
                if freed >= wanted:
                    return freed
                may_go = entry.complete and not entry.hard and entry.leased < now
                if may_go and (entry.soft >= now) == pinned:
                    del self.objects[key]
                    self.pool.release(entry.put.replicas)
                    freed += sum(replica.size for replica in entry.put.replicas)
        return freed

    def tick(self, now):
        """One thing after the other."""
        if self.ticked is not None and self.ticked + self.config.heartbeat < now:
            for client in self.beats:
                self.beats[client] = now
        self.ticked = now
        silent = [client for client, beat in self.beats.items() if beat + self.config.heartbeat < now]
        for client in silent:
            self.beats.pop(client)
            for name in self.pool.of(client):
                self.unmount(name)
        for entry in list(self.zombies):
            if entry.started + self.config.release <= now:
                self.pool.release(entry.put.replicas)
                self.zombies.remove(entry)
        for entry in list(self.objects.values()):
            if not entry.complete and entry.started + self.config.release <= now:
                self.put_revoke(entry.put)
        if self.pool.free < self.pool.capacity - self.config.high * self.pool.capacity:
            self.evict(0, now)


# file: cluster/store_client.py
class Reads(Reads):
    """Counts the free places first."""

    def begin(self, now):
        """Until no place or no key is left."""
        places = self.window - len(self.reading)
        while places > 0 and self.waiting:
            key = self.waiting.popleft()
            if (grant := self.master.get(key, now)) is not None:
                self.reading[key] = grant
                self.read(grant)
                places -= 1
            else:
                self.results[key] = False

    def done(self, key, now):
        """By hand."""
        until = self.reading[key].until
        del self.reading[key]
        self.results[key] = until >= now
        self.begin(now)


class Writes(Writes):
    """Asks what the error is."""

    def put(self, key, size, now, number=1):
        """One clause."""
        try:
            put = self.master.put_start(key, size, now)
        except StoreError as error:
            if not isinstance(error, NoSpaceError):
                self.results[key] = True
            elif number >= self.tries:
                self.results[key] = False
            else:
                self.again.append((now + self.pause, key, size, number + 1))
            return
        self.write(put)

    def advance(self, now):
        """What is due."""
        while (time := self.next_time()) is not None and time <= now:
            _, key, size, number = self.again.popleft()
            self.put(key, size, now, number)
