# ruff: noqa: E402, F821 - the other names are those of the reference file that a section is appended to
"""Day 3 in a third style: one log in the registry, events and tasks in place of time-outs, small state objects."""

# file: cluster/discovery.py
import re


def covers(prefix: str, key: str) -> bool:
    """By a pattern."""
    return re.match(rf"{re.escape(prefix)}(/|$)" if prefix else "", key) is not None


class Registry(Registry):
    """Each lease holds its values; `values` is put together when it is asked for."""

    def __init__(self, ttl: int):
        super().__init__(ttl)
        self.held: dict[int, dict[str, Json]] = {}

    @property
    def values(self) -> dict[str, Json]:
        """All values."""
        return {key: value for table in self.__dict__.get("held", {}).values() for key, value in table.items()}

    @values.setter
    def values(self, nothing: dict[str, Json]) -> None:
        assert not nothing

    def grant(self, now: int) -> int:
        """One more than the largest that ever was."""
        self.expire(now)
        lease = self.numbers.__next__()
        self.leases[lease], self.held[lease] = Lease(deadline=self.ttl + now), {}
        return lease

    def renew(self, lease: int, now: int) -> None:
        """In place."""
        self.expire(now)
        found = self.leases.get(lease)
        if found is None:
            raise LeaseError(str(lease))
        found.deadline = self.ttl + now

    def put(self, lease: int, key: str, value: Json, now: int) -> None:
        """Out of all tables, into one."""
        self.expire(now)
        if lease not in self.held:
            raise LeaseError(f"lease {lease} has ended")
        for table in self.held.values():
            table.pop(key, None)
        self.held[lease][key] = value
        self.tell(Change(key, value))

    def revoke(self, lease: int, now: int) -> None:
        """As if its time had come."""
        self.expire(now)
        self.leases.pop(lease, None)
        for key in self.held.pop(lease, {}):
            self.tell(Change(key, None))

    def expire(self, now: int) -> None:
        """The first that is due, until none is."""
        while (due := next((n for n, lease in self.leases.items() if lease.deadline <= now), None)) is not None:
            del self.leases[due]
            for key in self.held.pop(due):
                self.tell(Change(key, None))


class View(View[T]):
    """Resync first, changes by it."""

    def resync(self, snapshot: Mapping[str, Json]) -> list[Change[T]]:
        """Two passes."""
        told = []
        for key in sorted(self.entries.keys() - snapshot.keys()):
            del self.entries[key]
            told.append(Change(key, None))
        for key in snapshot:
            before = self.entries.get(key)
            try:
                self.entries[key] = self.parse(snapshot[key])
            except ValueError:
                continue
            if before is None or self.entries[key] != before:
                told.append(Change(key, self.entries[key]))
        return told

    def apply(self, change: Change[Json]) -> list[Change[T]]:
        """A snapshot of one key more or less; raw values of the others are not known, so theirs are left out."""
        if change.value is None:
            gone = change.key in self.entries
            self.entries = {key: entry for key, entry in self.entries.items() if key != change.key}
            return [Change(change.key, None)] * gone
        others, self.entries = self.entries, {k: e for k, e in self.entries.items() if k == change.key}
        told = self.resync({change.key: change.value})
        self.entries = others | self.entries
        return told


# file: cluster/lease.py
import asyncio


class Discovery(Discovery):
    """Races what it waits for against the deadline."""

    async def start(self) -> None:
        """Arithmetic on the round trip."""
        before = self.clock.now
        answer = await self.ask("grant")
        took = self.clock.now - before
        self.lease, self.ttl = answer["lease"], answer["ttl"]
        self.deadline = self.clock.now + self.ttl - took
        if took >= self.ttl:
            raise LeaseError("too late")

    async def keep_alive(self) -> None:
        """A renewal runs as a task of its own."""
        sent = self.deadline - self.ttl
        wait = self.ttl // 2
        while self.alive:
            await self.clock.sleep_until(min(sent + wait, self.deadline))
            if self.clock.now >= self.deadline:
                break
            sent = self.clock.now
            task = asyncio.ensure_future(self.ask("renew", lease=self.lease))
            try:
                await asyncio.wait([task], timeout=(self.deadline - sent) / 1e9)
            finally:
                task.cancel()
            if not task.done() or self.clock.now >= self.deadline:
                break
            error = task.exception()
            if error is None:
                self.deadline, wait = sent + self.ttl, self.ttl // 2
            elif isinstance(error, ConnectionError):
                wait = self.ttl // 8
            else:
                break
        self.deadline = min(self.deadline, self.clock.now)

    async def revoke(self) -> None:
        """Asks again and again inside one time-out."""
        answered = False
        async with self.clock.timeout_at(self.deadline):
            while not answered:
                try:
                    await self.ask("revoke", lease=self.lease)
                    answered = True
                except ConnectionError:
                    await self.clock.sleep_until(self.clock.now + self.ttl // 8)

    async def changes(self, prefix: str, view: View[object], retry: int) -> AsyncIterator[list[Change[object]]]:
        """Two generators."""
        while True:
            stream = self.channels.call(self.address, PREFIX + "watch", {"prefix": prefix})
            try:
                first = True
                while True:
                    item = await anext(stream, None)
                    if item is None:
                        break
                    yield view.resync(item) if first else view.apply(Change(item[0], item[1]))
                    first = False
            except (ConnectionError, RemoteError):
                pass
            finally:
                await stream.aclose()
            await self.clock.sleep_until(self.clock.now + retry)


# file: cluster/balance.py
class RoundRobin(RoundRobin):
    """Rotates."""

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """Those above come first."""
        rotated = [i for i in ids if i > self.last] + [i for i in ids if i <= self.last]
        self.last = rotated[0]
        return rotated[0]


class LeastLoaded(LeastLoaded):
    """Groups by load."""

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """Any of the lowest group."""
        groups: dict[int, list[int]] = {}
        for i in ids:
            groups.setdefault(inflight.get(i, 0), []).append(i)
        group = groups[min(groups)]
        return group[self.rng.randrange(len(group))]


class PowerOfTwo(PowerOfTwo):
    """Draws places."""

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """The second place is any other one."""
        one = self.rng.randrange(len(ids))
        two = (one + self.rng.randrange(1, len(ids))) % len(ids) if len(ids) > 1 else one
        return ids[one] if inflight.get(ids[one], 0) <= inflight.get(ids[two], 0) else ids[two]


class DeviceWeighted(DeviceWeighted):
    """Reservoir of one."""

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """The n-th that ties takes the place with a chance of 1 in n."""
        best, chosen, ties = float("inf"), ids[0], 0
        for i in ids:
            load = inflight.get(i, 0) / self.weights.get(i, 1.0)
            if load <= best:
                ties = ties + 1 if load == best else 1
                best, chosen = load, i if self.rng.random() * ties < 1 else chosen
        return chosen


# file: cluster/client.py
class Client(Client):
    """A set of calls by number in place of counts."""

    def choose(self, instance_id: int | None = None) -> Instance:
        """Early returns."""
        known = self.instances()
        if self.runtime.alive and instance_id is not None and instance_id in known:
            return known[instance_id]
        if not self.runtime.alive or not known or instance_id is not None:
            raise NoInstanceError("nobody may be called")
        return known[self.balancer.choose(sorted(known), dict(self.inflight))]

    async def call(self, body: Json, instance_id: int | None = None) -> AsyncIterator[Json]:
        """With flags in place of exceptions."""
        to = self.choose(instance_id)
        self.inflight[to.id] = 1 + self.inflight.get(to.id, 0)
        items, lost = self.runtime.channels.call(to.address, to.key, body), None
        try:
            ended = False
            while not ended and lost is None:
                try:
                    item = await self.item(items)
                except StopAsyncIteration:
                    ended = True
                except ConnectionError as error:
                    lost = error
                else:
                    yield item
        finally:
            left = self.inflight.pop(to.id) - 1
            self.inflight |= {to.id: left} if left else {}
            await items.aclose()
        if lost is not None:
            self.report_down(to.id)
            raise lost


# file: cluster/rpc.py
class Server(Server):
    """Looks at all until none is left."""

    async def drain(self) -> None:
        """As each ends."""
        self.accepting = False
        while tasks := list(self.active):
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


# file: cluster/runtime.py
class Runtime(Runtime):
    """Sequences of states."""

    @property
    def alive(self) -> bool:
        """Early returns."""
        if self.state == "draining":
            return True
        return self.state not in ("starting", "stopped") and self.discovery.alive

    async def stop(self, drain: int | None = None) -> None:
        """One helper for each part."""
        if self.state != "running":
            return
        self.state = "leaving"
        if await self.given_back():
            self.state = "draining"
            work = asyncio.ensure_future(self.server.drain())
            await asyncio.wait([work], timeout=None if drain is None else drain / 1e9)
            work.cancel()
        self.cancel()

    async def given_back(self) -> bool:
        """Whether the registry said so."""
        try:
            await self.discovery.revoke()
        except TimeoutError:
            return False
        return True


# file: cluster/migration.py
class Progress(Progress):
    """Complete or not."""

    def request(self) -> Json:
        """Check first."""
        rest = self.max_tokens - len(self.tokens)
        if rest <= 0 or self.finish_reason:
            raise ValueError(f"{len(self.tokens)} tokens are all there will be")
        return {"max_tokens": rest, "token_ids": list(self.prompt) + list(self.tokens)}

    def take(self, item: Json) -> int:
        """Two steps."""
        token, reason = item["token"], item["finish_reason"]
        self.tokens.append(token)
        if reason is None and len(self.tokens) >= self.max_tokens:
            reason = "length"
        self.finish_reason = reason
        return token


class Migration(Migration):
    """A recursion that became a loop."""

    async def generate(self, prompt: list[int], max_tokens: int) -> AsyncIterator[int]:
        """Counts down."""
        progress, chances = Progress(list(prompt), max_tokens), self.limit
        while True:
            items = self.route(progress.request())
            try:
                async for item in items:
                    yield progress.take(item)
                    if progress.finish_reason is not None:
                        break
                if progress.finish_reason is not None:
                    return
                raise ConnectionResetError("no last token")
            except ConnectionError:
                if chances == 0:
                    raise
            finally:
                await items.aclose()
            chances -= 1
            self.migrations += 1
            if self.pause:
                await self.clock.sleep_until(self.clock.now + self.pause)
