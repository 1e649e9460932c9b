# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 7 in a third style: regular expressions for stop strings, and generators turned inside out."""


# file: serving/text_stream.py
class TextStream(TextStream):
    """All text is kept, and how much of it was sent."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()):
        super().__init__(tokenizer, stop)
        self.all, self.sent = "", 0

    def look(self, text: str, end: bool) -> str:
        """Search in all text."""
        if self.stopped:
            return ""
        self.all += text
        self.length = len(self.all)
        ends = [(self.all.index(s) + len(s), -len(s)) for s in self.stop if s in self.all]
        if ends:
            self.stopped = True
            place, length = min(ends)
            return self.upto(place + length)
        free = len(self.all)
        if not end:
            longest = max(map(len, self.stop), default=0)
            for at in range(max(0, len(self.all) - longest + 1), len(self.all)):
                if any(s.startswith(self.all[at:]) for s in self.stop):
                    free = at
                    break
        return self.upto(free)

    def upto(self, place: int) -> str:
        """What was not sent yet before `place`."""
        text, self.sent = self.all[self.sent : place], place
        return text

    def add(self, token: int) -> str:
        """Not yet the end."""
        return self.look(self.detokenizer.add(token), end=False)

    def finish(self) -> str:
        """The end."""
        return self.look(self.detokenizer.finish(), end=True)


# file: serving/async_engine.py
class AsyncEngine(AsyncEngine):
    """Commands as bound methods, outputs sorted before they are told."""

    def run(self) -> None:
        """A loop over two-argument iter would hide the step; a plain one."""
        engine = self.build()
        memory = engine.scheduler.memory
        self.pages = memory.available
        self.publish(engine)
        self.tell(self.ready, memory.max_len)
        alive = self.obey(engine)
        while alive:
            outputs = engine.step()
            self.publish(engine)
            self.tell(self.deliver, list(outputs))
            alive = self.obey(engine)

    @contextmanager
    def submit(self, requests: Sequence[Request], seconds: float | None = None) -> Iterator[AsyncIterator[Output]]:
        """The time limit is a deadline of the iterator."""
        self.admit(len(requests))
        queue: asyncio.Queue[Output | Exception] = asyncio.Queue()
        end = None if seconds is None else self.loop.time() + seconds
        self.queues |= dict.fromkeys((request.uid for request in requests), queue)
        self.idle.clear()
        try:
            for request in requests:
                self.inbox.put(self.addition(request))
            yield self.until(queue, {request.uid for request in requests}, end)
        finally:
            for uid in {request.uid for request in requests} & self.queues.keys():
                self.abort(uid)

    async def until(
        self, queue: "asyncio.Queue[Output | Exception]", uids: set[int], end: float | None
    ) -> AsyncIterator[Output]:
        """Wait for each output up to the deadline."""
        outputs = self.outputs(queue, uids)
        while True:
            try:
                async with asyncio.timeout_at(end):
                    output = await anext(outputs)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise TimeoutError("the time of this request is over") from None
            yield output

    def addition(self, request: Request) -> Command:
        """A lambda around a method."""
        return lambda engine: self.add_now(engine, request)

    def add_now(self, engine: Engine, request: Request) -> None:
        """In the engine's thread."""
        try:
            engine.add(request)
        except ValueError as error:
            refusal = RefusedError(f"refused: {error}")
            self.tell(self.close, request.uid, refusal)

    async def outputs(self, queue: "asyncio.Queue[Output | Exception]", uids: set[int]) -> AsyncIterator[Output]:
        """Count down."""
        left = len(uids)
        while left:
            item = await queue.get()
            if not isinstance(item, Output):
                raise item
            left -= item.finish_reason is not None
            yield item


# file: serving/limits.py
from collections.abc import AsyncIterator  # noqa: E402


def check_prompt(ids: list[int], max_len: int, vocabulary: int) -> None:
    """Collect what is wrong, and tell the first of it."""
    wrong = []
    if len(ids) == 0:
        wrong.append("the prompt is empty")
    if len(ids) > max_len - 1:
        wrong.append(f"{len(ids)} tokens are more than {max_len - 1}, the most that leave room for an answer")
    wrong += [f"there is no token {token}" for token in ids if not token < vocabulary]
    if wrong:
        raise ApiError(400, wrong[0], "prompt")


async def unless_gone(receive: Receive, work: Coroutine[None, None, None]) -> None:
    """A task group whose work ends the watch, and the other way round."""
    failure: list[BaseException] = []

    async def gone() -> None:
        async for message in _messages(receive):
            if message["type"] == "http.disconnect":
                working.cancel()
                return

    async def run() -> None:
        try:
            await work
        except Exception as error:
            failure.append(error)
        finally:
            watching.cancel()

    async with asyncio.TaskGroup() as group:
        working = group.create_task(run())
        watching = group.create_task(gone())
    if failure:
        raise failure[0]


async def _messages(receive: Receive) -> AsyncIterator[dict[str, object]]:
    while True:
        yield await receive()


# file: serving/generation.py
async def pieces(
    engine: AsyncEngine, outputs: AsyncIterator[Output], choices: Mapping[int, Choice]
) -> AsyncIterator[Piece]:
    """With a set of those that go on."""
    going = dict(choices)
    try:
        async for output in outputs:
            if output.uid not in going:
                continue
            choice = going[output.uid]
            if (piece := choice.add(output)) is not None:
                if choice.finish_reason:
                    del going[output.uid]
                    if output.finish_reason is None:
                        engine.abort(output.uid)
                yield piece
    except Exception:
        for choice in going.values():
            if choice.finish_reason is None:
                choice.finish_reason = "error"
        raise


# file: serving/answer.py
async def events(self: Answer, parts: AsyncIterator[Piece]) -> AsyncIterator[bytes]:
    """Dictionaries first, bytes at the one place where they are needed."""
    async for data in _data(self, parts):
        yield event(data)
    yield b"data: [DONE]\n\n"


async def _data(self: Answer, parts: AsyncIterator[Piece]) -> AsyncIterator[Json]:
    for chunk in self.reply.opening(len(self.choices)):
        yield chunk
    try:
        async for piece in parts:
            yield self.reply.chunk(self.reply.delta(piece))
    except Exception as error:
        logger.info("stream failed", exc_info=error)
        yield api_error(error).body()
        return
    if self.reply.include_usage:
        yield self.reply.chunk(usage=self.usage())


Answer.events = events


# file: serving/server.py
def sampling_of(asked: GenerationRequest, seed: int, number: int) -> SamplingParams:
    """Fields that were given replace defaults."""
    values = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
    for name in values:
        if (given := getattr(asked, name)) is not None:
            values[name] = given
    if values["top_k"] < 0:
        values["top_k"] = 0
    return SamplingParams(**values, seed=(seed + number) & (2**64 - 1))
