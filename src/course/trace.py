"""Records what an engine does, for ui.perfetto.dev: batches, requests, pages, and what the prefix cache found.

Knows the public names of engines and runners; changes nothing of what they do. Tracks: the host (launch, read), the
device (one slice for each batch), one for each request (waiting, its steps, its end), and counters.
"""

from .trace_file import TraceFile

ENGINE, REQUESTS = 1, 2
HOST, DEVICE = 1, 2


class Tracks:
    """One track for each request: from its arrival to its end."""

    def __init__(self, file: TraceFile):
        self.file = file
        self.asked = self.hits = 0
        """Prompt tokens of admitted requests, and those of them that were in the prefix cache."""
        self._came: dict[int, float] = {}
        self._ends: dict[int, int] = {}
        """How far each admitted request is, in positions."""
        file.name(REQUESTS, "requests")

    def arrived(self, request: object) -> None:
        """A request was accepted."""
        self.file.name(REQUESTS, f"request {request.uid}", request.uid)
        self._came[request.uid] = self.file.now()

    def launched(self, batch: object) -> None:
        """A batch begins. Where a request starts tells what its prefix was worth, and that it was preempted."""
        for request, start, end, _ in batch.steps:
            uid = request.uid
            if uid in self._came:
                self.file.slice("waiting", REQUESTS, uid, self._came.pop(uid), self.file.now())
                self.asked += request.prompt_len
                self.hits += start
                if start:
                    self.file.instant(f"prefix hit: {start} tokens", REQUESTS, uid, {"tokens": start})
            elif start < self._ends.get(uid, 0):
                self.file.instant("preempted", REQUESTS, uid, {"computed": self._ends[uid], "again_from": start})
            self._ends[uid] = end

    def ran(self, batch: object, number: int, begin: float, end: float) -> None:
        """A batch has run."""
        for request, start, stop, _ in batch.steps:
            name = "prefill" if start < request.prompt_len else "decode"
            args = {"batch": number, "start": start, "end": stop}
            self.file.slice(name, REQUESTS, request.uid, begin, end, args)

    def ended(self, outputs: list[object]) -> None:
        """Some outputs: those with a finish reason are the last of their request."""
        for output in outputs:
            if output.finish_reason is not None:
                self.file.instant(output.finish_reason, REQUESTS, output.uid)
                self._came.pop(output.uid, None)
                self._ends.pop(output.uid, None)


class TracedRunner:
    """A runner that tells when its batches were launched and read.

    The device runs batches in the order of their launch. So one began when it was launched or when the one before had
    ended, and ended when its results were there, at the latest.
    """

    def __init__(self, runner: object, tracks: Tracks):
        self.runner, self.tracks, self.file = runner, tracks, tracks.file
        self.number = 0
        self.free = 0.0
        """When all that was read so far had ended."""

    def launch(self, batch: object) -> "TracedPending":
        """Launch it."""
        self.tracks.launched(batch)
        begin = self.file.now()
        pending = self.runner.launch(batch)
        self.number += 1
        self.file.slice(f"launch {self.number}", ENGINE, HOST, begin, self.file.now())
        return TracedPending(self, pending, batch, self.number, begin)

    def read(self, batch: object, number: int, launched: float, asked: float) -> None:
        """The results of a batch have come."""
        begin, end = max(launched, self.free), self.file.now()
        self.free = end
        self.file.slice(f"read {number}", ENGINE, HOST, asked, end)
        args = {"requests": [step.request.uid for step in batch.steps], "tokens": batch.tokens}
        self.file.slice(f"batch {number}", ENGINE, DEVICE, begin, end, args)
        self.tracks.ran(batch, number, begin, end)


class TracedPending:
    """A launched batch."""

    def __init__(self, runner: TracedRunner, pending: object, batch: object, number: int, launched: float):
        self.runner, self.pending, self.batch, self.number, self.launched = runner, pending, batch, number, launched

    def results(self) -> object:
        """Wait until it is done."""
        asked = self.runner.file.now()
        results = self.pending.results()
        self.runner.read(self.batch, self.number, self.launched, asked)
        return results


class TracedEngine:
    """An engine that is recorded, used in its place. Takes its runner's place, too."""

    def __init__(self, engine: object, file: TraceFile):
        file.name(ENGINE, "engine")
        file.name(ENGINE, "host", HOST)
        file.name(ENGINE, "device", DEVICE)
        self.engine, self.scheduler, self.file = engine, engine.scheduler, file
        self.tracks = Tracks(file)
        engine.runner = TracedRunner(engine.runner, self.tracks)
        self.pages = self.scheduler.memory.available

    @property
    def busy(self) -> bool:
        """Whether another `step` has something to do."""
        return self.engine.busy

    def add(self, request: object) -> None:
        """Accept a request."""
        self.engine.add(request)
        self.tracks.arrived(request)

    def abort(self, uid: int) -> object:
        """End a request now."""
        output = self.engine.abort(uid)
        self.tracks.ended([] if output is None else [output])
        return output

    def step(self) -> list[object]:
        """Run one step."""
        outputs = self.engine.step()
        self.tracks.ended(outputs)
        self.count()
        return outputs

    def count(self) -> None:
        """Note the counters."""
        scheduler, memory = self.scheduler, self.scheduler.memory
        tree = getattr(memory, "tree", None)
        cached = 0 if tree is None else tree.evictable
        in_use = self.pages - memory.available
        self.file.counter("pages", ENGINE, in_use=in_use, cached=cached, free=memory.available - cached)
        running = len(scheduler.running)
        self.file.counter("requests", ENGINE, running=running, waiting=len(scheduler.requests) - running)
        self.file.counter("prompt tokens", ENGINE, computed=self.tracks.asked - self.tracks.hits, hits=self.tracks.hits)
