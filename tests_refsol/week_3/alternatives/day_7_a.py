# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 7 in another style: text by the character, a deque for each request, and tasks in groups."""


# file: serving/text_stream.py
class TextStream(TextStream):
    """Looks at the text character by character."""

    def add(self, token: int) -> str:
        """Feed the characters of the token."""
        return self.feed(self.detokenizer.add(token))

    def feed(self, text: str) -> str:
        """One character more, until a stop string is complete; then all that can be no beginning of one."""
        if self.stopped:
            return ""
        self.length += len(text)
        for character in text:
            self.held += character
            complete = [s for s in self.stop if self.held.endswith(s)]
            if complete:
                self.stopped = True
                sent = self.held[: len(self.held) - max(map(len, complete))]
                self.held = ""
                return sent
        keep = 0
        for n in range(1, len(self.held) + 1):
            if any(s.startswith(self.held[-n:]) for s in self.stop):
                keep = n
        sent, self.held = self.held[: len(self.held) - keep], self.held[len(self.held) - keep :]
        return sent

    def finish(self) -> str:
        """Everything."""
        sent = self.feed(self.detokenizer.finish())
        if not self.stopped:
            sent, self.held = sent + self.held, ""
        return sent


# file: serving/async_engine.py
class Submission:
    """A context manager as a class."""

    def __init__(self, engine: "AsyncEngine", requests: Sequence[Request], seconds: float | None):
        self.engine, self.requests, self.seconds = engine, list(requests), seconds
        self.timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> AsyncIterator[Output]:
        self.engine.admit(len(self.requests))
        queue: asyncio.Queue[Output | Exception] = asyncio.Queue()
        if self.seconds is not None:
            self.timer = asyncio.get_running_loop().call_later(self.seconds, self.late, queue)
        for request in self.requests:
            self.engine.queues[request.uid] = queue
        self.engine.idle.clear()
        for request in self.requests:
            self.engine.inbox.put(self.engine.addition(request))
        return self.engine.outputs(queue, {request.uid for request in self.requests})

    def late(self, queue: "asyncio.Queue[Output | Exception]") -> None:
        """Time is over."""
        queue.put_nowait(TimeoutError(f"not done within {self.seconds} seconds"))

    def __exit__(self, *error: object) -> None:
        if self.timer is not None:
            self.timer.cancel()
        for request in self.requests:
            self.engine.abort(request.uid)


class AsyncEngine(AsyncEngine):
    """The same bridge, put together from smaller steps."""

    def submit(self, requests: Sequence[Request], seconds: float | None = None) -> Submission:
        """A class of its own."""
        return Submission(self, requests, seconds)

    def run(self) -> None:
        """An endless loop."""
        engine = self.build()
        self.pages = engine.scheduler.memory.available
        self.publish(engine)
        self.tell(self.ready, engine.scheduler.memory.max_len)
        while True:
            if not self.obey(engine):
                return
            if outputs := engine.step():
                self.tell(self.deliver, outputs)
            self.publish(engine)

    def obey(self, engine: Engine) -> bool:
        """First wait if there is nothing to do, then take what is there."""
        commands = [] if engine.busy else [self.inbox.get()]
        while True:
            while not self.inbox.empty():
                commands.append(self.inbox.get_nowait())
            for command in commands:
                if command is None:
                    return False
                command(engine)
                self.publish(engine)
            if engine.busy:
                return True
            commands = [self.inbox.get()]

    def deliver(self, outputs: Sequence[Output]) -> None:
        """Look up first."""
        for output in outputs:
            if output.uid not in self.queues:
                continue
            if output.finish_reason is None:
                self.queues[output.uid].put_nowait(output)
            else:
                self.close(output.uid, output)

    def close(self, uid: int, last: Output | Exception) -> bool:
        """Test, then pop."""
        if uid not in self.queues:
            return False
        self.queues.pop(uid).put_nowait(last)
        if len(self.queues) == 0:
            self.idle.set()
        return True

    async def drain(self, seconds: float) -> None:
        """Ask again and again."""
        self.draining = True
        end = asyncio.get_running_loop().time() + seconds
        while self.queues and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.01)
        for uid in [*self.queues]:
            self.abort(uid)


# file: serving/limits.py
async def read_body(request: Request, limits: Limits) -> bytes:
    """With a task for the reading."""
    parts: list[bytes] = []
    error = ApiError(413, f"at most {limits.body_bytes} bytes, please", code="body_too_large")

    async def read() -> None:
        async for part in request.stream():
            parts.append(part)
            if sum(map(len, parts)) > limits.body_bytes:
                raise error

    declared = request.headers.get("content-length")
    if declared is not None and int(declared) > limits.body_bytes:
        raise error
    try:
        await asyncio.wait_for(read(), limits.body_seconds)
    except TimeoutError:
        raise ApiError(408, "too slow") from None
    return b"".join(parts)


async def unless_gone(receive: Receive, work: Coroutine[None, None, None]) -> None:
    """A callback that cancels."""
    task = asyncio.ensure_future(work)
    left = False

    async def watch() -> None:
        nonlocal left
        while (await receive())["type"] != "http.disconnect":
            continue
        left = True
        task.cancel()

    watcher = asyncio.ensure_future(watch())
    try:
        await task
    except asyncio.CancelledError:
        if not left:
            raise
    finally:
        task.cancel()
        watcher.cancel()
        await asyncio.wait([task, watcher])


# file: serving/metrics.py
def token(self: Timing) -> None:
    """Choose the histogram, then observe."""
    now = self.metrics.clock()
    histogram, since = (self.metrics.ttft, self.arrived) if self.last is None else (self.metrics.itl, self.last)
    histogram.observe(now - since)
    self.metrics.generation_tokens.inc(1)
    self.last = now


Timing.token = token


# file: serving/generation.py
class Choice(Choice):
    """Cases by the finish reason."""

    def add(self, output: Output) -> Piece | None:
        """Match on it."""
        text = ""
        if output.sampled is not None:
            self.tokens += 1
            self.timing.token()
            self.pending = [*self.pending, Token(self.text.length, output.sampled)]
        match output.finish_reason:
            case "error" | "abort":
                self.finish_reason = output.finish_reason
                raise FailedError(f"the request ended with {output.finish_reason}")
            case "stop":
                text = self.text.finish()
            case "length":
                text = self.text.add(output.sampled.token) + self.text.finish()
            case None:
                text = self.text.add(output.sampled.token)
        self.finish_reason = "stop" if self.text.stopped else output.finish_reason
        if text == "" and self.finish_reason is None:
            return None
        piece = Piece(self.index, text, tuple(self.pending), self.finish_reason)
        self.pending = []
        return piece


# file: serving/answer.py
def usage(self: Answer) -> Json:
    """Add one by one."""
    counts = {"prompt_tokens": self.prompt_tokens, "completion_tokens": 0, "total_tokens": self.prompt_tokens}
    for choice in self.choices.values():
        counts["completion_tokens"] += choice.tokens
        counts["total_tokens"] += choice.tokens
    return counts


async def call(self: Answer, scope: Scope, receive: Receive, send: Send) -> None:
    """Count in a callback of an exit stack."""
    with ExitStack() as stack:
        outputs = stack.enter_context(self.engine.submit(self.requests, self.seconds))
        for choice in self.choices.values():
            stack.callback(count, self.metrics, choice)
        self.metrics.prompt_tokens.inc(self.prompt_tokens)
        work = self.send(pieces(self.engine, outputs, self.choices), scope, receive, send)
        await unless_gone(receive, work)


def count(metrics: Metrics, choice: Choice) -> None:
    """One choice has ended."""
    metrics.finished.labels("abort" if choice.finish_reason is None else choice.finish_reason).inc()


from contextlib import ExitStack  # noqa: E402

Answer.usage, Answer.__call__ = usage, call
