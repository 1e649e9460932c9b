# ruff: noqa: E402, F821 - the other names are those of the reference file that a section is appended to
"""Day 3 in another style: keys found by their owner, time-outs around whole loops, choices by sorting, plain loops."""


# file: cluster/discovery.py
def covers(prefix: str, key: str) -> bool:
    """Compare part by part."""
    parts = prefix.split("/") if prefix else []
    return key.split("/")[: len(parts)] == parts


class Registry(Registry):
    """Keeps the owner beside each value; leases know no keys."""

    def __init__(self, ttl: int):
        super().__init__(ttl)
        self.owners: dict[str, int] = {}

    def grant(self, now: int) -> int:
        """The next number."""
        self.expire(now)
        for number in self.numbers:
            self.leases[number] = Lease(now + self.ttl)
            return number

    def demand(self, lease: int, now: int) -> Lease:
        """A lease that lives."""
        self.expire(now)
        try:
            return self.leases[lease]
        except KeyError:
            raise LeaseError(f"there is no lease {lease} any more") from None

    def renew(self, lease: int, now: int) -> None:
        """Another one in its place."""
        self.demand(lease, now)
        self.leases[lease] = Lease(now + self.ttl)

    def revoke(self, lease: int, now: int) -> None:
        """Its deadline is now."""
        if lease in self.leases:
            self.leases[lease].deadline = min(now, self.leases[lease].deadline)
        self.expire(now)

    def put(self, lease: int, key: str, value: Json, now: int) -> None:
        """Whoever sets it owns it."""
        self.demand(lease, now)
        self.owners[key], self.values[key] = lease, value
        self.tell(Change(key, value))

    def expire(self, now: int) -> None:
        """Drop the dead, then what nobody owns."""
        self.leases = {number: lease for number, lease in self.leases.items() if now < lease.deadline}
        for key in [key for key, owner in self.owners.items() if owner not in self.leases]:
            del self.owners[key], self.values[key]
            self.tell(Change(key, None))


class View(View[T]):
    """Works on whole tables."""

    def parsed(self, key: str, value: Json) -> T | None:
        """The entry, or the one there was."""
        try:
            return self.parse(value)
        except ValueError:
            return self.entries.get(key)

    def apply(self, change: Change[Json]) -> list[Change[T]]:
        """A table with one entry more or less."""
        key, value = change
        after = {name: entry for name, entry in self.entries.items() if name != key}
        if value is not None and (entry := self.parsed(key, value)) is not None:
            after = {**self.entries, key: entry}
        return self.become(after)

    def resync(self, snapshot: Mapping[str, Json]) -> list[Change[T]]:
        """The table of the snapshot."""
        parsed = {key: self.parsed(key, value) for key, value in snapshot.items()}
        return self.become({key: entry for key, entry in parsed.items() if entry is not None})

    def become(self, after: dict[str, T]) -> list[Change[T]]:
        """Take a table, and return the difference."""
        before, self.entries = self.entries, after
        gone = [Change(key, None) for key in before if key not in after]
        return gone + [Change(key, entry) for key, entry in after.items() if before.get(key) != entry]


# file: cluster/lease.py
import asyncio
from contextlib import aclosing


class Discovery(Discovery):
    """Asks through one helper that tells when it asked."""

    async def timed(self, name: str, **body: Json) -> tuple[int, Json]:
        """When it was asked, and the answer."""
        sent = self.clock.now
        return sent, await self.ask(name, **body)

    async def start(self) -> None:
        """Note the time before anything else."""
        sent, granted = await self.timed("grant")
        self.lease, self.ttl, self.deadline = granted["lease"], granted["ttl"], sent + granted["ttl"]
        if self.clock.now >= self.deadline:
            raise LeaseError(f"lease {self.lease} had ended before it came")

    async def renewed(self, sent: int) -> int | None:
        """One renewal, tried until it is answered: when the one that was answered was sent, None if there is none."""
        step = self.ttl // 8
        while self.alive:
            try:
                return (await self.timed("renew", lease=self.lease))[0]
            except ConnectionError:
                sent = max(sent + step, self.clock.now - step)
                await self.clock.sleep_until(sent)
            except (LeaseError, RemoteError):
                return None
        return None

    async def keep_alive(self) -> None:
        """One time-out around all that can take long."""
        sent = self.deadline - self.ttl
        while sent is not None:
            try:
                async with self.clock.timeout_at(self.deadline):
                    await self.clock.sleep_until(sent + self.ttl // 2)
                    sent = await self.renewed(sent + self.ttl // 2)
            except TimeoutError:
                sent = None
            if sent is not None and self.alive:
                self.deadline = sent + self.ttl
            else:
                sent, self.deadline = None, min(self.clock.now, self.deadline)

    async def revoke(self) -> None:
        """Count the time that is left."""
        while self.alive:
            try:
                async with self.clock.timeout_at(self.deadline):
                    await self.ask("revoke", lease=self.lease)
                    return
            except ConnectionError:
                await self.clock.sleep_until(min(self.clock.now + self.ttl // 8, self.deadline))
        raise TimeoutError("the lease has ended by itself")

    async def changes(self, prefix: str, view: View[object], retry: int) -> AsyncIterator[list[Change[object]]]:
        """The first item is told by its type: all that there is comes as a table."""
        while True:
            watch = self.channels.call(self.address, PREFIX + "watch", {"prefix": prefix})
            async with aclosing(watch):
                try:
                    async for item in watch:
                        yield view.resync(item) if isinstance(item, dict) else view.apply(Change(*item))
                except (ConnectionError, RemoteError):
                    pass
            await self.clock.sleep_until(self.clock.now + retry)


# file: cluster/balance.py
class RoundRobin(RoundRobin):
    """Looks for the next one."""

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """The lowest above the last, else the lowest."""
        self.last = min((i for i in ids if i > self.last), default=min(ids))
        return self.last


class LeastLoaded(LeastLoaded):
    """Sorts with chance as the second key."""

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """The first of a shuffled, sorted list."""
        return min(ids, key=lambda i: (inflight.get(i, 0), self.rng.random()))


class PowerOfTwo(PowerOfTwo):
    """Shuffles a copy."""

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """The better of the first two."""
        mixed = list(ids)
        self.rng.shuffle(mixed)
        one, two = mixed[0], mixed[-1]
        return two if inflight.get(two, 0) < inflight.get(one, 0) else one


class DeviceWeighted(DeviceWeighted):
    """Sorts with chance as the second key."""

    def choose(self, ids: Sequence[int], inflight: Mapping[int, int]) -> int:
        """Calls for what each can do."""
        return min(ids, key=lambda i: (inflight.get(i, 0) / self.weights.get(i, 1), self.rng.random()))


# file: cluster/client.py
from collections import Counter
from contextlib import contextmanager


class Client(Client):
    """Books in a counter, by a context manager."""

    def __init__(self, *arguments: object, **options: object):
        super().__init__(*arguments, **options)
        self.inflight = Counter()

    def choose(self, instance_id: int | None = None) -> Instance:
        """Narrow the table down."""
        here = self.instances()
        if not self.runtime.alive:
            here = {}
        if instance_id is not None:
            here = {number: instance for number, instance in here.items() if number == instance_id}
        if not here:
            raise NoInstanceError(f"{self.endpoint.path}: nobody")
        return here[instance_id if instance_id is not None else self.balancer.choose(list(here), self.inflight)]

    @contextmanager
    def counted(self, number: int):
        """In the books while something runs."""
        self.inflight[number] += 1
        try:
            yield
        except ConnectionError:
            self.report_down(number)
            raise
        finally:
            self.inflight[number] -= 1
            self.inflight = +self.inflight

    async def call(self, body: Json, instance_id: int | None = None) -> AsyncIterator[Json]:
        """One item after the other."""
        instance = self.choose(instance_id)
        items = self.runtime.channels.call(instance.address, instance.key, body)
        with self.counted(instance.id):
            try:
                while True:
                    try:
                        item = await self.item(items)
                    except StopAsyncIteration:
                        break
                    yield item
            finally:
                await items.aclose()


# file: cluster/rpc.py
class Server(Server):
    """Waits for each in turn."""

    async def drain(self) -> None:
        """One after the other; who was begun before cannot become more."""
        self.accepting = False
        await asyncio.gather(*self.active, return_exceptions=True)


# file: cluster/runtime.py
class Runtime(Runtime):
    """States in a table."""

    @property
    def alive(self) -> bool:
        """By state."""
        leased = self.discovery.alive
        return {"running": leased, "leaving": leased, "draining": True}.get(self.state, False)

    async def stop(self, drain: int | None = None) -> None:
        """Three steps, each of which may run out of time."""
        if self.state == "running":
            self.state = "leaving"
            try:
                await self.discovery.revoke()
                self.state = "draining"
                left = asyncio.ensure_future(self.server.drain())
                if drain is None:
                    await left
                else:
                    async with self.clock.timeout_at(self.clock.now + drain):
                        await left
            except TimeoutError:
                pass
            finally:
                self.cancel()


# file: cluster/migration.py
class Progress(Progress):
    """Counts what is left."""

    @property
    def left(self) -> int:
        """Tokens that may still come."""
        return 0 if self.finish_reason else self.max_tokens - len(self.tokens)

    def request(self) -> Json:
        """All ids, and what is left."""
        if not self.left:
            raise ValueError("nothing is left to ask for")
        return {"token_ids": [*self.prompt, *self.tokens], "max_tokens": self.left}

    def take(self, item: Json) -> int:
        """One more."""
        self.tokens = [*self.tokens, item["token"]]
        self.finish_reason = item["finish_reason"] or ("length" if len(self.tokens) >= self.max_tokens else None)
        return self.tokens[-1]


class Migration(Migration):
    """A loop over attempts."""

    async def generate(self, prompt: list[int], max_tokens: int) -> AsyncIterator[int]:
        """At most limit + 1 of them."""
        progress = Progress(list(prompt), max_tokens)
        for attempt in range(self.limit + 1):
            if attempt:
                self.migrations += 1
                await self.clock.sleep_until(self.clock.now + self.pause)
            items = self.route(progress.request())
            try:
                async for item in items:
                    yield progress.take(item)
                    if progress.finish_reason:
                        return
                lost = ConnectionError("an answer without an end")
            except ConnectionError as error:
                lost = error
            finally:
                await items.aclose()
        raise lost
