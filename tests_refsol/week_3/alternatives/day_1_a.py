# ruff: noqa: F821, E402 - the other names are those of the reference file that a section is appended to
"""Day 1 in another style: whole lists in passes, and NumPy for the layout of a batch."""


# file: serving/request.py
def launch(self, tokens: int) -> Step:
    """From the old numbers to the new ones at the end."""
    first, end = self.cached_len, self.cached_len + tokens
    if tokens <= 0 or end > self.device_len:
        raise ValueError(f"{tokens} tokens asked of request {self.uid}, which has {self.device_len - first} to run")
    if end < self.device_len:
        chosen = 0
    elif self.device_len < self.max_device_len:
        chosen = 1
    else:
        raise ValueError(f"request {self.uid} may not choose more than {self.max_tokens} tokens")
    self.cached_len, self.device_len, self.in_flight = end, self.device_len + chosen, self.in_flight + 1
    return Step(request=self, start=first, end=end, samples=chosen == 1)


def append(self, token: int) -> str | None:
    """Count what is missing."""
    missing = self.device_len - len(self.ids)
    if missing < 1:
        raise ValueError(f"nobody has chosen {token} for request {self.uid}")
    self.ids += [token]
    full = self.max_device_len - len(self.ids) == 0
    return {(True, True): "stop", (True, False): "stop", (False, True): "length"}.get((token in self.stop_tokens, full))


def reset(self) -> None:
    """As if it had just arrived, with longer ids."""
    if self.in_flight != 0:
        raise ValueError(f"{self.in_flight} steps of request {self.uid} have not come back")
    self.row = None
    self.cached_len = 0
    self.device_len = len(self.ids)


Request.launch, Request.append, Request.reset = launch, append, reset


# file: serving/scheduler.py
class Scheduler(Scheduler):
    """First decides who comes, then launches them."""

    def add(self, request: Request) -> None:
        """Refuse, cut, queue."""
        longest = self.memory.max_len
        if self.requests.get(request.uid):
            raise ValueError(f"uid {request.uid} is in use")
        if longest - request.prompt_len < 1:
            raise ValueError(f"prompt of {request.prompt_len} tokens: the limit is {longest - 1}")
        if request.max_device_len > longest:
            request.max_device_len = longest
        self.waiting.append(request)
        self.requests[request.uid] = request

    def prefill(self) -> list[Step]:
        """The longest head of the line that fits."""
        chosen, cost = [], 0
        for request in list(self.waiting)[: self.memory.free_rows]:
            cost += request.extend_len
            if chosen and cost > self.token_budget:
                break
            chosen.append(request)
        steps = []
        for request in chosen:
            prefix = self.memory.match(request)
            self.waiting.remove(request)
            self.memory.open(request, prefix)
            steps.append(self.launch(request, request.device_len - request.cached_len))
        return steps

    def decode(self) -> list[Step]:
        """A list of those that go on, then their steps."""
        more = [request for request in list(self.running.values()) if request.device_len < request.max_device_len]
        return [self.launch(request, request.extend_len) for request in more]

    def commit(self, batch: Batch, results: Sequence[Sampled]) -> list[Output]:
        """One pass for each thing that must happen."""
        for step in batch.steps:
            step.request.in_flight -= 1
        outputs = []
        for step, sampled in zip(batch.sampling, results, strict=True):
            request = step.request
            if request.finish_reason:
                continue
            request.finish_reason = request.append(sampled.token)
            outputs += [Output(request.uid, sampled, request.finish_reason)]
            if not request.finish_reason and step.start < request.prompt_len:
                self.memory.share(request)
        for step in batch.steps:
            if step.request.finish_reason:
                self.retire(step.request)
        return outputs

    def retire(self, request: Request) -> None:
        """Look for the request itself, not for its uid."""
        for known in (self.requests, self.running):
            for uid in [uid for uid, other in known.items() if other is request]:
                known.pop(uid)
        if request.in_flight or request.row is None:
            return
        self.memory.close(request)


# file: serving/ragged.py
import numpy as np


def ragged(batch: Batch) -> Ragged:
    """All by NumPy."""
    starts, ends, samples = (np.array(column) for column in list(zip(*batch.steps, strict=True))[1:])
    sizes = ends - starts
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    positions = np.arange(bounds[-1]) - np.repeat(bounds[:-1] - starts, sizes)
    tokens = [token for step in batch.steps for token in step.request.ids[step.start : step.end]]
    last = (bounds[1:] - 1)[samples.astype(bool)]
    return Ragged(tokens, positions.tolist(), bounds.tolist(), ends.tolist(), last.tolist())


def attend_in_pieces(self, q: mx.array, k: mx.array, v: mx.array, attend: Attend) -> mx.array:
    """Turn everything once, then cut it."""
    cuts = list(self.bounds[1:-1])
    turned = [mx.split(x.transpose(2, 1, 0, 3), cuts, axis=2) for x in (q, k, v)]
    attended = [attend(*parts, cache) for *parts, cache in zip(*turned, self.caches, strict=True)]
    return mx.concatenate(attended, axis=2).transpose(2, 1, 0, 3)


RaggedLayer.attend = attend_in_pieces
