"""Programs for a simulated device with streams, as plain values: how to run one, and what must come out of it.

A program is {"launch_cost", "poll_cost", "streams": {name: blocking}, "calls"}; a call is a list that begins with its
kind. An op writes its own name into the buffers that it writes, so that a reader shows whom it has seen.
The oracle works on a finished list of times: first when everything ends, then, sorted by that, what everybody reads.
"""

import random
from collections.abc import Sequence

from course.case import error_of
from course.solution import Solution

Call = list[object]
NOTHING = "nothing"


def launch(
    stream: str, name: str, duration: int, reads: Sequence = (), writes: Sequence = (), engine: str | None = None
) -> Call:
    """An op of a stream."""
    return ["launch", stream, name, duration, list(reads), list(writes), engine]


def host(name: str, duration: int = 0, reads: Sequence = (), writes: Sequence = ()) -> Call:
    """Work of the CPU."""
    return ["host", name, duration, list(reads), list(writes)]


def record(event: str, stream: str) -> Call:
    """Record an event."""
    return ["record", event, stream]


def wait(stream: str, event: str) -> Call:
    """Let a stream wait."""
    return ["wait", stream, event]


def query(event: str) -> Call:
    """Ask whether an event was reached."""
    return ["query", event]


def synchronize(event: str) -> Call:
    """Let the CPU wait."""
    return ["synchronize", event]


def elapsed(start: str, end: str) -> Call:
    """Ask for the time between events."""
    return ["elapsed", start, end]


def program(
    *calls: Call, streams: Sequence[str] = "ab", blocking: Sequence[str] = (), launch_cost: int = 0, untimed=()
) -> dict[str, object]:
    """A program. streams: their names. blocking: those that are ordered with the default stream. untimed: events."""
    return {
        "launch_cost": launch_cost,
        "poll_cost": 7,
        "streams": {name: name in blocking for name in streams},
        "untimed": list(untimed),
        "calls": [list(call) for call in calls],
    }


def random_program(rng: random.Random, calls: int = 40) -> dict[str, object]:
    """A program of all kinds of calls, with events that are recorded again, too early or never."""
    streams, events, buffers = ["a", "b", "c", "default"], ["e", "f", "g"], ["x", "y", "z"]
    made: list[Call] = []
    for i in range(calls):
        reads, writes = (rng.sample(buffers, rng.choice((0, 1, 1, 2))) for _ in range(2))
        stream, event = rng.choice(streams[: rng.choice((3, 4))]), rng.choice(events)
        made.append(
            rng.choice(
                [
                    launch(stream, f"op {i}", rng.randrange(40), reads, writes, rng.choice((None, None, "up", "down"))),
                    launch(stream, f"op {i}", rng.randrange(40), reads, writes),
                    host(f"op {i}", rng.randrange(20), reads, writes),
                    record(event, stream),
                    wait(stream, event),
                    rng.choice([query(event), synchronize(event), elapsed(*rng.sample(events, 2))]),
                ]
            )
        )
    return program(*made, streams="abc", blocking=rng.sample("abc", 1), launch_cost=rng.choice((0, 3)))


def run(solution: Solution, program: dict[str, object]) -> dict[str, object]:
    """Run a program on the package under test. Returns the trace:

    calls  [result, the CPU's clock afterwards] of each call; ops  name -> [track, start, end]
    seen   name -> {buffer: who wrote what it reads there}
    log    the device's log without events that the program does not name, each line as a list
    """
    runner = _runner(solution, program)
    device = runner.device
    calls = [[runner.call(*call), device.now] for call in program["calls"]]
    device.advance(max((op.end for op in device.ops), default=0))
    names = {call[2] if call[0] == "launch" else call[1] for call in program["calls"] if call[0] in ("launch", "host")}
    ops = {op.name: [op.track, op.start, op.end] for op in device.ops if op.name in names}
    return {"calls": calls, "ops": ops, "seen": runner.seen, "log": runner.log()}


def whole_log(solution: Solution, program: dict[str, object]) -> list[tuple[str, str, str, tuple, tuple]]:
    """Run a program on the package under test. Returns its device's log with events that the device made itself."""
    runner = _runner(solution, program)
    for call in program["calls"]:
        runner.call(*call)
    return [(kind, who, name, tuple(reads), tuple(writes)) for kind, who, name, reads, writes in runner.device.log]


def _runner(solution: Solution, program: dict[str, object]) -> "_Runner":
    device = solution.module("serving.streams").Device(program["launch_cost"], program["poll_cost"])
    return _Runner(device, program)


class _Runner:
    def __init__(self, device: object, program: dict[str, object]):
        self.device = device
        self.streams = {name: device.stream(name, blocking) for name, blocking in program["streams"].items()}
        self.streams["default"] = device.default
        self.untimed = program["untimed"]
        self.events: dict[str, object] = {}
        self.values: dict[object, str] = {}
        self.seen: dict[str, dict[str, str]] = {}

    def log(self) -> list[list[object]]:
        names = {event.name: name for name, event in self.events.items()}
        lines = [[kind, who, name, list(reads), list(writes)] for kind, who, name, reads, writes in self.device.log]
        return [
            [line[0], line[1], names.get(line[2], line[2]), *line[3:]]
            for line in lines
            if line[0] == "access" or line[2] in names
        ]

    def call(self, kind: str, *args: object) -> object:
        return getattr(self, f"_{kind}")(*args)

    def _event(self, name: str) -> object:
        if name not in self.events:
            self.events[name] = self.device.event(name, name not in self.untimed)
        return self.events[name]

    def _effect(self, name: str, reads: list, writes: list) -> None:
        self.seen[name] = {str(buffer): self.values.get(buffer, NOTHING) for buffer in reads}
        self.values.update(dict.fromkeys(writes, name))

    def _launch(self, stream: str, name: str, duration: int, reads: list, writes: list, engine: str | None) -> None:
        effect = lambda: self._effect(name, reads, writes)  # noqa: E731
        self.device.launch(self.streams[stream], name, duration, reads, writes, effect, engine)

    def _host(self, name: str, duration: int, reads: list, writes: list) -> None:
        self.device.host(name, duration, reads, writes, lambda: self._effect(name, reads, writes))

    def _record(self, event: str, stream: str) -> None:
        self.device.record(self._event(event), self.streams[stream])

    def _wait(self, stream: str, event: str) -> None:
        self.device.wait(self.streams[stream], self._event(event))

    def _query(self, event: str) -> bool:
        return self.device.query(self._event(event))

    def _synchronize(self, event: str) -> None:
        self.device.synchronize(self._event(event))

    def _elapsed(self, start: str, end: str) -> object:
        got = error_of(lambda: self.device.elapsed(self._event(start), self._event(end)))
        return got["value"] if got["type"] is None else got["type"]
