"""Runs a script on an engine of the package under test, and writes down what happened as plain values.

Knows the public names of requests, schedulers, memories and engines; judges nothing.
"""

from collections import deque
from collections.abc import Callable

from course.solution import Solution

from .hash_model import HashRunner

MOST_STEPS = 3000


class Window:
    """Launches and commits a scheduler's batches, with up to `depth` of them in flight: no engine of anybody's.

    Commits before it launches, where the window is full, so that depth 1 is the normal loop.
    """

    def __init__(self, scheduler: object, runner: HashRunner, depth: int = 1):
        self.scheduler, self.runner, self.depth = scheduler, runner, depth
        self._launched: deque[tuple[object, object]] = deque()

    def add(self, request: object) -> None:
        """Accept a request."""
        self.scheduler.add(request)

    def abort(self, uid: int) -> object:
        """End a request now."""
        return self.scheduler.abort(uid)

    @property
    def busy(self) -> bool:
        """Whether anything is left to launch or to commit."""
        return bool(self.scheduler.requests or self._launched)

    def step(self) -> list[object]:
        """Launch one batch if one can run; commit the oldest if the window is full, or nothing could be launched."""
        batch = self.scheduler.next_batch()
        if batch is not None:
            self._launched.append((batch, self.runner.launch(batch)))
        if self._launched and (batch is None or len(self._launched) >= self.depth):
            batch, pending = self._launched.popleft()
            return self.scheduler.commit(batch, pending.results())
        return []


def drive(
    solution: Solution,
    scheduler: object,
    script: dict[str, object],
    engine: Callable[[object, HashRunner], object] | None = None,
    depth: int = 1,
    runner: HashRunner | None = None,
) -> dict[str, object]:
    """Run `script` on `scheduler` to its end.

    engine: (scheduler, runner) -> engine of the package under test; None for a plain loop with up to `depth` batches
    in flight. runner: None for a new HashRunner, that reads through `scheduler.memory.table` where there is one.
    Returns the trace:
      outputs     [step, uid, token or None, finish reason or None] for each output, in their order
      refused     uid -> message of the ValueError that `add` raised
      aborted     [uid, whether the abort gave an output] for each abort, in their order
      batches     one list of [uid, start, end, samples] for each launched batch
      faults      what the model met that no engine may do, in words
      start, end  {"rows", "pages", "requests", "waiting", "running"} before and after: what is free, and who is there
      max_len     positions that the longest request may have
      steps       how many were run; stuck: whether requests were left although many steps gave nothing
    """
    return _Drive(solution, scheduler, script, engine, depth, runner).run()


class _Drive:
    def __init__(
        self,
        solution: Solution,
        scheduler: object,
        script: dict[str, object],
        engine: Callable[[object, HashRunner], object] | None,
        depth: int,
        runner: HashRunner | None,
    ):
        self.solution, self.scheduler, self.script = solution, scheduler, script
        self.runner = runner or runner_for(scheduler.memory, script["vocab"])
        self.runner.between = self._between
        self.engine = engine(scheduler, self.runner) if engine else Window(scheduler, self.runner, depth)
        self.trace: dict[str, object] = {
            "outputs": [],
            "refused": {},
            "aborted": [],
            "max_len": scheduler.memory.max_len,
        }
        self.number = 0

    def run(self) -> dict[str, object]:
        self.trace["start"] = self._state()
        last = max((event["at"] for event in self.script["adds"] + self.script["aborts"]), default=0)
        while self.number < MOST_STEPS and (self.number <= last or self.engine.busy):
            self._apply()
            if self.engine.busy:
                self._note(self.engine.step())
            self._check()
            self.number += 1
        return self.trace | {
            "batches": [[list(step) for step in batch] for batch in self.runner.batches],
            "faults": list(self.runner.faults),
            "end": self._state(),
            "steps": self.number,
            "stuck": bool(self.engine.busy),
        }

    def _apply(self) -> None:
        for add in self.script["adds"]:
            if add["at"] == self.number:
                self._add(add)
        self._abort(between=False)

    def _add(self, add: dict[str, object]) -> None:
        params = self.solution.module("text.sampler").SamplingParams(
            temperature=0.0, repetition_penalty=1.1 if add["penalty"] else 1.0
        )
        try:
            request = self.solution.module("serving.request").Request(
                add["uid"], list(add["ids"]), add["max_tokens"], params, frozenset(add["stop"])
            )
            self.engine.add(request)
        except ValueError as error:
            self.trace["refused"][add["uid"]] = str(error)

    def _between(self, _: int) -> None:
        self._abort(between=True)

    def _abort(self, between: bool) -> None:
        for abort in self.script["aborts"]:
            if abort["at"] == self.number and abort["between"] == between:
                output = self.engine.abort(abort["uid"])
                self.trace["aborted"].append([abort["uid"], output is not None])
                self._note([] if output is None else [output])

    def _note(self, outputs: list[object]) -> None:
        for output in outputs or []:
            token = None if output.sampled is None else int(output.sampled.token)
            self.trace["outputs"].append([self.number, output.uid, token, output.finish_reason])

    def _check(self) -> None:
        """The invariant of MS-2's lengths, after every step."""
        for request in self.scheduler.requests.values():
            if not 0 <= request.cached_len < request.device_len <= request.max_device_len:
                self.runner.fault(
                    f"request {request.uid} has cached_len {request.cached_len}, device_len {request.device_len} and "
                    f"max_device_len {request.max_device_len}: expected 0 <= cached_len < device_len <= max_device_len"
                )

    def _state(self) -> dict[str, int]:
        scheduler = self.scheduler
        return {
            "rows": scheduler.memory.free_rows,
            "pages": int(scheduler.memory.available),
            "requests": len(scheduler.requests),
            "waiting": len(scheduler.waiting),
            "running": len(scheduler.running),
        }


def runner_for(memory: object, vocab: int) -> HashRunner:
    """A HashRunner that reads through the memory's page table, or by rows where it has none."""
    table = getattr(memory, "table", None)
    if table is None:
        return HashRunner(vocab=vocab)
    return HashRunner(lambda row, count: table.array[row, :count].tolist(), memory.page_size, vocab)
