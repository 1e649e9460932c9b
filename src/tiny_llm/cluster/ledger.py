"""What a simulated deployment owes: which requests came, what became of them, and how long their answers will be."""

from collections.abc import Iterable

from ..serving.request import Request
from .record import Record, check_conserved
from .recorder import Recorder
from .tally import Tally
from .workload import Arrival


class Ledger:
    """Requests of a run. max_tokens: of any answer. done, rejected: how many have ended.

    tally: counts since somebody last replaced it.

    Only `left` reads how long an answer will be, and only engines ask it: they stand for the model that ends an answer.
    """

    def __init__(self, block_tokens: int, max_tokens: int):
        self.max_tokens = max_tokens
        self.recorder = Recorder(block_tokens)
        self.done = self.rejected = 0
        self.tally = Tally()
        self._outputs: dict[int, int] = {}

    @property
    def injected(self) -> int:
        """Requests that came."""
        return len(self.recorder.records)

    def arrive(self, arrival: Arrival, now: int) -> Record:
        """A request comes."""
        record = self.recorder.arrived(self.injected, arrival.input_length, now)
        self.tally.arrive(arrival.input_length)
        self._outputs[record.uid] = max(min(arrival.output_length, self.max_tokens), 1)
        return record

    def left(self, request: Request) -> int:
        """Tokens that a request will still have, after its prompt. One that has ended is stopped as soon as it runs."""
        if request.uid not in self._outputs:
            return 1
        return self._outputs[request.uid] - (request.prompt_len - self.recorder.records[request.uid].input_length)

    def lose(self, record: Record, requests: Iterable[Request], now: int) -> None:
        """Nobody waits for these engines' parts of an answer any more. What has left until `now` is known."""
        self.recorder.forgotten.update(requests)
        record.lose(now)

    def end(self, request: Request, reason: str, now: int) -> None:
        """A request leaves, for any reason."""
        record = self.recorder.records[request.uid]
        if reason in ("error", "rejected"):
            self.lose(record, (request,), now)
        request.finish_reason = reason
        request.hit_tokens = min(request.hit_tokens or 0, record.input_length)  # an answer so far is no prompt
        self.recorder.ended(request, now)
        del self._outputs[request.uid]
        if reason == "rejected":
            self.rejected += 1
        else:
            self.done += 1
        if record.complete:
            self.tally.end(record)

    def check(self, jobs: int, queued: int) -> None:
        """Raise InvariantError unless each request that came has ended or is one of `jobs`, of which some queue."""
        check_conserved(self.injected, self.done, queued, jobs - queued, self.rejected)
