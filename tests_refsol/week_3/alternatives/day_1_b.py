# ruff: noqa: F821, E402 - the other names are those of the reference file that a section is appended to
"""Day 1 in another style: small helpers, explicit loops, and a result array that is filled in."""


# file: serving/request.py
def _refuse(wrong: bool, text: str) -> None:
    if wrong:
        raise ValueError(text)


class Request(Request):
    """Checks first, then moves."""

    def launch(self, tokens: int) -> Step:
        """Whether a token is chosen is whether nothing is left."""
        left = self.extend_len - tokens
        _refuse(tokens < 1 or left < 0, f"request {self.uid}: {tokens} tokens do not fit into {self.extend_len}")
        _refuse(left == 0 and self.remain_len < 1, f"request {self.uid}: max_tokens is {self.max_tokens}")
        start = self.cached_len
        self.cached_len += tokens
        if left == 0:
            self.device_len += 1
        self.in_flight += 1
        return Step(self, start, self.cached_len, not left)

    def append(self, token: int) -> str | None:
        """Two questions, in their order."""
        _refuse(not len(self.ids) < self.device_len, f"request {self.uid}: no step has chosen {token}")
        self.ids.append(token)
        for reason, ends in (("stop", {token} & self.stop_tokens), ("length", len(self.ids) >= self.max_device_len)):
            if ends:
                return reason
        return None

    def reset(self) -> None:
        """The device starts from nothing."""
        _refuse(self.in_flight > 0, f"request {self.uid}: {self.in_flight} steps are in flight")
        self.device_len -= self.device_len - len(self.ids)
        self.cached_len, self.row = 0, None


# file: serving/scheduler.py
def add(self, request: Request) -> None:
    """Room for the answer is what the prompt leaves."""
    room = self.memory.max_len - request.prompt_len
    if request.uid in self.requests or room <= 0:
        raise ValueError(
            f"request {request.uid} with {request.prompt_len} tokens: its uid is taken, or more than "
            f"{self.memory.max_len - 1} tokens"
        )
    request.max_device_len = request.prompt_len + min(room, request.max_tokens)
    self.requests.update({request.uid: request})
    self.waiting.extend([request])


def prefill(self) -> list[Step]:
    """Ask before each admission."""
    steps = []

    def fits() -> bool:
        if not self.waiting or self.memory.free_rows < 1:
            return False
        used = sum(len(step.request.ids) for step in steps)
        return not steps or used + self.waiting[0].extend_len <= self.token_budget

    while fits():
        request = self.waiting.popleft()
        found = self.memory.match(request)
        self.memory.open(request, found)
        steps.append(self.launch(request, request.extend_len))
    return steps


def decode(self) -> list[Step]:
    """In the order of running."""
    steps = []
    for uid in tuple(self.running):
        if self.running[uid].remain_len > 0:
            steps.append(self.launch(self.running[uid], 1))
    return steps


def commit(self, batch: Batch, results: Sequence[Sampled]) -> list[Output]:
    """Results by the place of their step."""
    places = [i for i, step in enumerate(batch.steps) if step.samples]
    by_place = dict(zip(places, results, strict=True))
    outputs = []
    for i, step in enumerate(batch.steps):
        request = step.request
        request.in_flight = request.in_flight - 1
        if request.finish_reason is None and i in by_place:
            reason = request.append(by_place[i].token)
            if reason is None and step.start < request.prompt_len:
                self.memory.share(request)
            request.finish_reason = reason
            outputs.append(Output(request.uid, by_place[i], reason))
        if request.finish_reason:
            self.retire(request)
    return outputs


def retire(self, request: Request) -> None:
    """Nothing of it stays but what the device may still write to."""
    if request in self.requests.values():
        del self.requests[request.uid]
    if request in self.running.values():
        del self.running[request.uid]
    if request.row is not None and not request.in_flight:
        self.memory.close(request)


Scheduler.add, Scheduler.prefill, Scheduler.decode = add, prefill, decode
Scheduler.commit, Scheduler.retire = commit, retire


# file: serving/ragged.py
from itertools import accumulate, chain


def ragged(batch: Batch) -> Ragged:
    """A column at a time."""
    spans = [range(step.start, step.end) for step in batch.steps]
    bounds = list(accumulate(map(len, spans), initial=0))
    return Ragged(
        tokens=list(chain.from_iterable(step.request.ids[step.start : step.end] for step in batch.steps)),
        positions=list(chain.from_iterable(spans)),
        bounds=bounds,
        lengths=[span.stop for span in spans],
        last=[end - 1 for step, end in zip(batch.steps, bounds[1:], strict=True) if step.samples],
    )


class RaggedLayer(RaggedLayer):
    """Writes each request's result into its place."""

    def attend(self, q: mx.array, k: mx.array, v: mx.array, attend: Attend) -> mx.array:
        """(L, H, 1, D) without its third axis is (L, H, D)."""
        result = mx.zeros(q.shape, q.dtype)
        for i, cache in enumerate(self.caches):
            rows = slice(self.bounds[i], self.bounds[i + 1])
            one = [mx.moveaxis(x[rows, :, 0], 0, 1)[None] for x in (q, k, v)]
            result[rows] = mx.moveaxis(attend(*one, cache)[0], 0, 1)[:, :, None]
        return result
