"""A worker of a simulated disaggregated deployment: an engine with both sides of a connector, and NICs.

Carries out what the connector orders. Decides nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from ..serving.chunked import ChunkedScheduler
from ..serving.prefill import PrefillAdder
from .alarm import Alarm
from .connector import Ask, Copy, Order, Refused, Release, Start, Stop
from .deployment import Transport
from .handoff import Ticket, Transfer
from .held_memory import HeldTraceMemory
from .kernel import Event, Phase
from .receiver import Receiver
from .run import Moved
from .sender import Sender
from .trace_request import TraceRequest
from .transfer import Op
from .worker import Worker


@dataclass
class Copying:
    """A copy under way. deadline: the event at which it has failed; None once its end was told."""

    copy: Copy
    target: "LinkedWorker"
    start: int
    size: int
    deadline: Event | None = None


class LinkedWorker(Worker):
    """A `Worker` whose prompts may go to another one, or come from there. `link` makes it complete.

    peers: all workers by number. carrier: whose NICs a copy takes, those of the prefill or of the decode worker.
    targets: who asked for a prompt of this worker. answers: requests whose prompts come from elsewhere, by uid.
    """

    Memory = HeldTraceMemory

    def link(
        self, peers: Mapping[int, "LinkedWorker"], transport: Transport, carrier: Literal["prefill", "decode"]
    ) -> None:
        """Connect it with others."""
        self.wire(transport)
        self.peers, self.carrier = peers, carrier
        self.targets: dict[Transfer, LinkedWorker] = {}
        self.answers: dict[int, TraceRequest] = {}
        self.sender = Sender(self.memory, self.pool.gpus, transport.kv_heads)
        self.receiver = Receiver(self.memory, self.pool.gpus, transport.kv_heads, spare=self.promised)
        self.alarms = [
            Alarm(self.simulation, partial(self.next_time, side), lambda now, side=side: self.do(side.expire, now))
            for side in (self.sender, self.receiver)
        ]

    def promised(self) -> int:
        """Pages that the scheduler counts on."""
        scheduler = self.replica.scheduler
        if not isinstance(scheduler, ChunkedScheduler):
            return 0
        rows = [request for request in scheduler.requests.values() if request.row is not None]
        return PrefillAdder(self.memory, rows, 0).reserved

    def next_time(self, side: Sender | Receiver) -> int | None:
        """When one side of the connector must look at its records again; never once the worker is gone."""
        return side.next_time() if self.alive else None

    def do(self, call: Callable[..., Sequence[Order]], *args: object) -> None:
        """Ask one side of the connector something, and carry out what it orders."""
        if self.alive:
            self.replica.wake()
            self.carry(call(*args))
            self.replica.wake()
            for alarm in self.alarms:
                alarm.set()

    def carry(self, orders: Sequence[Order]) -> None:
        """Carry orders out, one after the other."""
        for order in orders:
            match order:
                case Ask():
                    self.post(self.peers[order.worker], "asked", self, order)
                case Release():
                    self.post(self.peers[order.worker], "released", order.transfer)
                case Refused():
                    self.post(self.targets[order.transfer], "refused", order)
                case Copy():
                    self.copy(order, self.targets[order.transfer])
                case Start():
                    self.begun(order.request)
                case Stop():
                    self.front.failed(self, order.request)

    def post(self, peer: "LinkedWorker", message: str, *args: object) -> None:
        """Send a message to another worker. It waits for a silent one, and is lost with a dead one."""
        time = max(self.simulation.now + self.transport.latency, self.silent_until, peer.silent_until)
        self.simulation.at(time, Phase.TRANSFER_DONE, getattr(peer, message), *args)

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do, and keeps nothing for others."""
        return super().idle and not (self.sender.records or self.receiver.records or self.receiver.queue)

    def accept(self, request: TraceRequest, transfer: Transfer) -> None:
        """Compute a prompt for somebody else."""
        if self.sender.accept(request, transfer):
            self.add(request)

    def begin(self, request: TraceRequest, ticket: Ticket) -> None:
        """Answer a prompt that somebody else computes."""
        self.answers[request.uid] = request
        self.do(self.receiver.begin, request, ticket, self.simulation.now)
        if not (peer := self.peers[ticket.worker]).alive:  # discovery told of that before
            self.lose(peer)

    def begun(self, request: TraceRequest) -> None:
        """Go on with an answer whose prompt is here, or is to be computed here after all."""
        if self.front.began(request):
            self.add(request)
        else:  # nobody has computed the first token
            self.cancel(request.uid)
            self.front.failed(self, request)

    def cancel(self, uid: int) -> None:
        """Give an answer up."""
        request = self.answers.pop(uid, None)
        if request is not None:
            self.do(self.receiver.abort, request, self.simulation.now)
            self.abort(uid)

    def lose(self, peer: "LinkedWorker") -> None:
        """Another worker is gone, says discovery."""
        self.do(self.receiver.lost, peer.number)
        self.do(self.receiver.retry, self.simulation.now)

    def after(self, request: TraceRequest) -> None:
        """A request of this worker has ended: its pages may go, or must stay for somebody else."""
        if self.answers.get(request.uid) is request:
            del self.answers[request.uid]
        self.do(self.sender.ended, request, self.simulation.now)
        self.memory.marked.pop(request, None)  # it may have ended before it had a row
        self.do(self.receiver.retry, self.simulation.now)

    def asked(self, target: "LinkedWorker", ask: Ask) -> None:
        """A decode worker asks for a prompt."""
        self.targets[ask.transfer] = target
        self.do(self.sender.ask, ask, self.simulation.now)

    def released(self, transfer: Transfer) -> None:
        """Nobody wants a prompt any more."""
        request = self.sender.request(transfer)
        self.do(self.sender.release, transfer, self.simulation.now)
        if request is not None and self.alive:
            self.abort(request.uid)

    def refused(self, refused: Refused) -> None:
        """A prompt will not come."""
        self.do(self.receiver.refused, refused, self.simulation.now)

    def copy(self, copy: Copy, target: "LinkedWorker") -> None:
        """Move pages of this worker to another one."""
        heads = copy.part.heads * len(copy.pages) * self.pool.block_size
        size = heads * self.transport.bytes_per_token // self.transport.kv_heads
        copying = Copying(copy, target, self.simulation.now, size)
        copying.deadline = self.simulation.at(copy.until, Phase.TRANSFER_DONE, self.copied, copying, False)
        mover, op, peer = (self, Op.WRITE, target) if self.carrier == "prefill" else (target, Op.READ, self)
        mover.courier.move(op, peer.name, size, lambda ok: self.copied(copying, ok))

    def copied(self, copying: Copying, ok: bool) -> None:
        """A copy has ended, or its time is over."""
        if copying.deadline is None:
            return
        reached = max(self.silent_until, copying.target.silent_until)
        if ok and reached > self.simulation.now:  # nothing reaches or leaves a silent worker
            self.simulation.at(reached, Phase.TRANSFER_DONE, self.copied, copying, ok)
            return
        self.simulation.cancel(copying.deadline)
        copying.deadline = None
        copy, target, start, size = copying.copy, copying.target, copying.start, copying.size
        ok = ok and self.alive and target.alive
        now = self.simulation.now
        moved = Moved(copy.transfer.uid, self.name, target.name, start, now, size, "done" if ok else "failed")
        self.front.moved(moved)
        self.do(self.sender.moved, copy, ok, now)
        target.do(target.receiver.moved, copy, len(copy.pages) if ok else 0, now)
