"""Takes down what the replicas of a run do: a Record for each request, and when each replica was busy."""

from collections.abc import Sequence

from ..serving.request import Batch, Request
from .busy import BusyTime
from .record import InvariantError, Record
from .workload import BLOCK_TOKENS, blocks


class Recorder:
    """records: by uid, in the order of their arrivals. pools: the busy times of the replicas of each pool.

    forgotten: requests whose answers nobody waits for any more, though an engine may not know it yet.

    block_tokens: in which hits are counted; a prompt's last block counts as one it asked for even if it is cut.
    """

    def __init__(self, block_tokens: int = BLOCK_TOKENS):
        self.block_tokens = block_tokens
        self.records: dict[int, Record] = {}
        self.pools: dict[str, list[BusyTime]] = {}
        self.forgotten: set[Request] = set()

    def arrived(self, uid: int, input_length: int, time: int) -> Record:
        """A request is at the front end. Raises InvariantError for a uid that was there before."""
        if uid in self.records:
            raise InvariantError(f"request {uid} arrives twice, at {self.records[uid].arrival} and {time} ns")
        record = self.records[uid] = Record(uid, input_length, time, blocks=blocks(input_length, self.block_tokens))
        return record

    def sink(self, pool: str) -> "ReplicaSink":
        """Where a new replica of a pool reports."""
        busy = BusyTime()
        self.pools.setdefault(pool, []).append(busy)
        return ReplicaSink(self, busy)

    def ran(self, batch: Batch, start: int, ends: Sequence[int], seen: Sequence[int] | None = None) -> None:
        """Note the steps of a batch, and the tokens that they gave until each of `ends`.

        seen: when those leave, if that is not at once.
        """
        records, seen = self.records, ends if seen is None else seen
        for request, _, _, samples in batch.steps:
            if request in self.forgotten:
                continue
            record = records[request.uid]
            if record.prefill_start is None:
                record.prefill_start = start
            if record.prefill_end is not None and record.decode_start is None:
                record.decode_start = start
            if samples and request.finish_reason is None:
                if record.prefill_end is None:
                    record.prefill_end = int(ends[0])
                record.spans.append(seen)

    def ended(self, request: Request, time: int) -> None:
        """Note an end, and check what was noted before."""
        record = self.records[request.uid]
        if record.done is not None:
            raise InvariantError(f"request {request.uid} ends twice, at {record.done} and {time} ns")
        record.done, record.finish_reason = time, request.finish_reason
        record.hit_tokens = request.hit_tokens or 0
        record.hit_blocks = record.hit_tokens // self.block_tokens
        record.check()


class ReplicaSink:
    """A `Sink`: what one replica does. A subclass may do more at an end."""

    def __init__(self, recorder: Recorder, busy: BusyTime):
        self.recorder, self.busy = recorder, busy

    def ran(self, batch: Batch, start: int, ends: Sequence[int]) -> None:
        """Note the steps of a batch, and that the replica was busy."""
        self.busy.add(start, int(ends[-1]))
        self.recorder.ran(batch, start, ends)

    def ended(self, request: Request, time: int) -> None:
        """Note an end."""
        self.recorder.ended(request, time)
