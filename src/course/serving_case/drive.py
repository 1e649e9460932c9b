"""Runs a script on an engine of the package under test, and writes down what happened as plain values.

Knows the public names of requests, schedulers, memories and engines; judges nothing.
"""

import logging
from collections import deque
from collections.abc import Callable

from course.solution import Solution
from course.stub import stub_of

from .hash_model import HashRunner

MOST_STEPS = 3000
MOST_IDLE_STEPS = 50
"""Steps that launch nothing and give nothing, after which whoever still waits is stuck."""


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
      refused     uid -> message of the ValueError that a request raised, or its `add`
      aborted     [uid, whether it had not ended, whether the abort gave an output] for each abort, in their order
      logged      exceptions that the engine caught and logged, in words
      batches     one list of [uid, start, end, samples] for each launched batch
      faults      what the model met that no engine may do, in words
      start, end  {"rows", "pages", "requests", "waiting", "running"} before and after: what is free, and who is there
      max_len     positions that the longest request may have
      steps       how many were run; stuck: whether requests were left although nothing happened any more
    """
    driver = _Driver(solution, scheduler, script, runner or runner_for(scheduler.memory, script["vocab"]))
    driver.engine = engine(scheduler, driver.runner) if engine else Window(scheduler, driver.runner, depth)
    log, caught = logging.getLogger(solution.package), _Caught(driver.trace["logged"])
    log.addHandler(caught)
    try:
        trace = driver.run()
    finally:
        log.removeHandler(caught)
    if caught.stub is not None:
        raise caught.stub
    return trace


def runner_for(memory: object, vocab: int) -> HashRunner:
    """A HashRunner that reads through the memory's page table, or by rows where it has none."""
    return HashRunner(getattr(memory, "table", None), memory.page_size, vocab)


class Window:
    """Launches and commits a scheduler's batches, up to `depth` of them in flight: 1 is the normal loop."""

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


class _Driver:
    def __init__(self, solution: Solution, scheduler: object, script: dict[str, object], runner: HashRunner):
        self.solution, self.scheduler, self.script, self.runner = solution, scheduler, script, runner
        self.runner.between = self._between
        self.engine: object = None
        self.trace: dict[str, object] = {"outputs": [], "refused": {}, "aborted": [], "logged": []}
        self.number = 0
        self._alive: set[int] = set()

    def run(self) -> dict[str, object]:
        start = self._state()
        last = max((event["at"] for event in self.script["adds"] + self.script["aborts"]), default=0)
        idle = 0
        while self.number <= last or (self.engine.busy and idle < MOST_IDLE_STEPS and self.number < MOST_STEPS):
            before = len(self.trace["outputs"]), len(self.runner.batches)
            self._apply()
            if self.engine.busy:
                self._note(self.engine.step())
            self._check_lengths()
            idle = idle + 1 if before == (len(self.trace["outputs"]), len(self.runner.batches)) else 0
            self.number += 1
        return self.trace | {
            "batches": [[list(step) for step in batch] for batch in self.runner.batches],
            "faults": list(self.runner.faults),
            "start": start,
            "end": self._state(),
            "max_len": self.scheduler.memory.max_len,
            "steps": self.number,
            "stuck": bool(self.engine.busy),
        }

    def _apply(self) -> None:
        for add in self.script["adds"]:
            if add["at"] == self.number:
                self._add(add)
        self._abort(between=False)

    def _add(self, add: dict[str, object]) -> None:
        sampler, request = self.solution.module("text.sampler"), self.solution.module("serving.request")
        penalty = 1.1 if add["penalty"] else 1.0
        sampling = sampler.SamplingParams(temperature=add.get("temperature", 0.0), repetition_penalty=penalty)
        stop = frozenset(add["stop"])
        try:
            self.engine.add(request.Request(add["uid"], list(add["ids"]), add["max_tokens"], sampling, stop))
        except ValueError as error:
            self.trace["refused"][add["uid"]] = str(error)
        else:
            self._alive.add(add["uid"])

    def _between(self) -> None:
        self._abort(between=True)

    def _abort(self, between: bool) -> None:
        for abort in self.script["aborts"]:
            if abort["at"] == self.number and abort["between"] == between:
                output = self.engine.abort(abort["uid"])
                self.trace["aborted"].append([abort["uid"], abort["uid"] in self._alive, output is not None])
                self._note([] if output is None else [output])

    def _note(self, outputs: list[object]) -> None:
        for output in outputs:
            token = None if output.sampled is None else int(output.sampled.token)
            self.trace["outputs"].append([self.number, output.uid, token, output.finish_reason])
            if output.finish_reason is not None:
                self._alive.discard(output.uid)

    def _check_lengths(self) -> None:
        for request in self.scheduler.requests.values():
            if not 0 <= request.cached_len < request.device_len <= request.max_device_len:
                self.runner.fault(
                    f"request {request.uid} has cached_len {request.cached_len}, device_len {request.device_len}, "
                    f"max_device_len {request.max_device_len}: expected 0 <= cached_len < device_len <= max_device_len"
                )

    def _state(self) -> dict[str, int]:
        scheduler = self.scheduler
        return {
            "rows": int(scheduler.memory.free_rows),
            "pages": int(scheduler.memory.available),
            "requests": len(scheduler.requests),
            "waiting": len(scheduler.waiting),
            "running": len(scheduler.running),
        }


class _Caught(logging.Handler):
    """Notes exceptions that an engine logs. A learner's stub among them is not a mistake: it is raised at the end."""

    def __init__(self, notes: list[str]):
        super().__init__()
        self.notes = notes
        self.stub: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if error := record.exc_info and record.exc_info[1]:
            self.stub = error if stub_of(error) else self.stub
            self.notes.append(f"{type(error).__name__}: {error}")
