"""A simulated network: hosts, connections with a latency, links that can be cut, hosts that can crash.

A cut link behaves as TCP does: what is sent is held, and comes in order once the link is healed. A host that has
crashed sends nothing more; its kernel breaks its connections. Runs on any asyncio loop; each host may have its own
virtual one. A `Host` is a `Transport` of the package under test, an `End` a `Connection`; knows nothing else of it.
"""

import asyncio
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

Message = dict[str, object]
Accept = Callable[["End"], Awaitable[None]]
SECOND = 1_000_000_000
_CLOSED = None


class Network:
    """Hosts by name, each reachable from each other.

    latency(sender, receiver) -> ns, asked once for each message; messages between two hosts do not overtake.
    """

    def __init__(self, latency: Callable[[str, str], int] = lambda sender, receiver: 100_000):
        self.latency = latency
        self.hosts: dict[str, Host] = {}
        self._ports = 0
        self._cut: dict[tuple[str, str], list[Callable[[], object]]] = {}
        """Links that are cut, with what is held there."""
        self._latest: dict[tuple[str, str], float] = {}

    def host(self, name: str) -> "Host":
        """A new host, also in the place of one that has crashed."""
        self.hosts[name] = host = Host(self, name)
        return host

    def port(self, name: str) -> str:
        """An address that was never used before."""
        self._ports += 1
        return f"{name}:{self._ports}"

    def cut(self, one: str, other: str) -> None:
        """Hold everything between two hosts, in both directions."""
        for link in ((one, other), (other, one)):
            self._cut.setdefault(link, [])

    def heal(self, one: str, other: str) -> None:
        """Deliver what was held, and hold no more."""
        for link in ((one, other), (other, one)):
            for arrive in self._cut.pop(link, ()):
                arrive()

    def crash(self, name: str) -> None:
        """The process of a host is gone. Whoever is connected to it is told, as far as the links go."""
        self.hosts[name].close()

    def post(self, sender: str, receiver: str, loop: AbstractEventLoop, arrive: Callable[[], object]) -> None:
        """Let `arrive` run on a loop after the latency, and after all that was sent on this link before."""
        link = sender, receiver
        time = max(_time(loop) + self.latency(*link) / SECOND, self._latest.get(link, 0.0))
        self._latest[link] = time
        loop.call_at(time, self._arrive, link, loop, arrive)

    def _arrive(self, link: tuple[str, str], loop: AbstractEventLoop, arrive: Callable[[], object]) -> None:
        if (held := self._cut.get(link)) is not None:
            held.append(lambda: loop.call_soon(arrive))
        else:
            arrive()


def _time(loop: AbstractEventLoop) -> float:
    """Seconds, as the code that runs sees them; outside of a loop, as `loop` does."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return loop.time()


class Host:
    """A `Transport`: one process on the network. open: whether it still is."""

    def __init__(self, network: Network, name: str):
        self.network, self.name, self.open = network, name, True
        self.listeners: dict[str, tuple[AbstractEventLoop, Accept]] = {}
        self.ends: dict[End, None] = {}
        self.tasks: dict[asyncio.Task[None], None] = {}

    async def listen(self, accept: Accept) -> str:
        """Accept connections at an address of its own."""
        address = self.network.port(self.name)
        self.listeners[address] = asyncio.get_running_loop(), accept
        return address

    async def connect(self, address: str) -> "End":
        """Connect; this takes a round trip, and waits while the link is cut."""
        if not self.open:
            raise ConnectionError(f"{self.name} is closed")
        name, loop = address.partition(":")[0], asyncio.get_running_loop()
        end, answer = End(self, name, loop), loop.create_future()

        def tell(error: ConnectionError | None) -> None:
            if not answer.done():
                answer.set_result(error)

        def arrive() -> None:
            host = self.network.hosts.get(name)
            error = None if host and host.meet(address, end) else ConnectionRefusedError(f"nobody listens at {address}")
            self.network.post(name, self.name, loop, lambda: tell(error))

        self.network.post(self.name, name, loop, arrive)
        try:
            if (error := await answer) is not None:
                raise error
        except BaseException:
            end.close()
            raise
        return end

    def meet(self, address: str, other: "End") -> bool:
        """A connection arrives from `other`. Returns whether somebody listens."""
        if address not in self.listeners:
            return False
        loop, accept = self.listeners[address]
        end = End(self, other.host.name, loop)
        end.peer, other.peer = other, end
        if other.closed:
            end.arrive(_CLOSED)
        task = loop.create_task(accept(end))
        self.tasks[task] = None
        task.add_done_callback(self.tasks.pop)
        return True

    def close(self) -> None:
        """Break everything; others are told."""
        self.open = False
        self.listeners.clear()
        for end in list(self.ends):
            end.close()


class End:
    """A `Connection`, seen from one host. Messages travel as JSON, as they would in a socket."""

    def __init__(self, host: Host, there: str, loop: AbstractEventLoop):
        self.host, self.there, self.loop = host, there, loop
        self.peer: End | None = None
        self.closed = False
        self.inbox: deque[bytes] = deque()
        self.waiter: asyncio.Future[None] | None = None
        host.ends[self] = None

    async def send(self, message: Message) -> None:
        """Put it on the link."""
        if self.closed or self.peer is None:
            raise ConnectionResetError(f"the connection from {self.host.name} to {self.there} is broken")
        self._post(msgspec.json.encode(message))

    def _post(self, data: bytes | None) -> None:
        peer = self.peer
        self.host.network.post(self.host.name, self.there, peer.loop, lambda: peer.arrive(data))

    def arrive(self, data: bytes | None) -> None:
        """Take what came from the other end."""
        if data is not _CLOSED:
            self.inbox.append(data)
        else:
            self._break()
        self._wake()

    def _wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def _break(self) -> None:
        self.closed = True
        self.host.ends.pop(self, None)

    async def receive(self) -> Message:
        """The next message; one task may wait at a time."""
        while not self.inbox:
            if self.closed:
                raise ConnectionResetError(f"the connection from {self.host.name} to {self.there} is broken")
            self.waiter = self.loop.create_future()
            await self.waiter
        return msgspec.json.decode(self.inbox.popleft())

    def close(self) -> None:
        """Break it; what the other end was sent before comes first."""
        if not self.closed:
            self._break()
            self.inbox.clear()
            if self.peer is not None:
                self._post(_CLOSED)
            self._wake()
