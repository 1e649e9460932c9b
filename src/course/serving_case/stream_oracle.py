"""What a program for a simulated device must give, and what plausible mistakes would give.

First it works out when everything ends; then, in the order of these times, what everybody reads. Orders between
accesses come from a graph of what happens before what, and its transitive closure.
"""

from collections.abc import Iterator
from itertools import combinations, zip_longest

from .stream_programs import NOTHING

MISTAKES = {
    "waits": "a launch waits until its op is done",
    "no-fifo": "the ops of one stream do not wait for each other",
    "one-queue": "ops of different streams wait for each other without being told to",
    "no-cost": "the launch itself takes no time",
    "early-start": "an op starts before its launch has returned",
    "record-now": "a record is reached at once, not when the stream has done what it was given",
    "first-record": "an event keeps its first record",
    "wait-ignored": "a stream does not wait for an event",
    "cpu-waits": "the CPU waits where only the stream should",
    "backwards": "a wait for an event of the past turns the time back",
    "never-recorded": "an event that was never recorded counts as not done",
    "no-poll": "a query takes no time",
    "device-wide": "the CPU waits for all streams, not for the event",
    "no-engine": "two ops use one engine at the same time",
    "no-default": "the default stream is not ordered with blocking streams",
    "all-default": "the default stream is ordered with streams that are not blocking",
    "early-effect": "an op takes effect when it starts or is launched, not when it ends",
    "launch-order": "ops take effect in the order of their launches, not of their ends",
}


class Oracle:
    """Runs a program, right or with one of MISTAKES. `trace` is what `stream_programs.run` should return."""

    def __init__(self, program: dict[str, object], mistake: str = ""):
        self.program, self.mistake = program, mistake
        self.now = 0
        self.free = dict.fromkeys([*program["streams"], "default"], 0)
        self.engines: dict[str, int] = {}
        self.events: dict[str, int] = {}
        self.accesses: list[tuple[int, int, str, list, list]] = []
        self.trace: dict[str, object] = {"calls": [], "ops": {}, "seen": {}, "log": []}
        for self.index, (kind, *args) in enumerate(program["calls"]):
            result = getattr(self, kind)(*args)
            self.trace["calls"].append([result, self.now])
        self._see()

    def launch(self, stream: str, name: str, duration: int, reads: list, writes: list, engine: str | None) -> None:
        for other in self._ordered_with(stream):
            self.free[stream] = max(self.free[stream], self.free[other])
        called = self.now
        self.now += 0 if self.mistake == "no-cost" else self.program["launch_cost"]
        after = [called if self.mistake == "early-start" else self.now]
        after += [] if self.mistake == "no-fifo" else [self.free[stream]]
        after += list(self.free.values()) if self.mistake == "one-queue" else []
        after += [self.engines.get(engine, 0)] if engine and self.mistake != "no-engine" else []
        start = max(after)
        end = start + duration
        self.free[stream] = end
        if engine:
            self.engines[engine] = end
        self.trace["ops"][name] = [stream, start, end]
        if self.mistake == "waits":
            self.now = max(self.now, end)
        time = {"early-effect": start, "launch-order": called}.get(self.mistake, end)
        self.accesses.append((time, self.index, name, reads, writes))
        self.trace["log"].append(["access", stream, name, reads, writes])

    def _ordered_with(self, stream: str) -> list[str]:
        everybody = self.mistake == "all-default"
        blocking = [name for name, blocks in self.program["streams"].items() if blocks or everybody]
        if self.mistake == "no-default":
            return []
        return blocking if stream == "default" else ["default"] if stream in blocking else []

    def host(self, name: str, duration: int, reads: list, writes: list) -> None:
        start, self.now = self.now, self.now + duration
        if duration:
            self.trace["ops"][name] = ["cpu", start, self.now]
        self.accesses.append((self.now, self.index, name, reads, writes))
        self.trace["log"].append(["access", "cpu", name, reads, writes])

    def record(self, event: str, stream: str) -> None:
        self.trace["log"].append(["record", stream, event, [], []])
        if self.mistake == "first-record" and event in self.events:
            return
        self.events[event] = self.now if self.mistake == "record-now" else max(self.now, self.free[stream])

    def _note_wait(self, who: str, event: str) -> None:
        if event in self.events:
            self.trace["log"].append(["wait", who, event, [], []])

    def wait(self, stream: str, event: str) -> None:
        self._note_wait(stream, event)
        if event in self.events and self.mistake != "wait-ignored":
            self.free[stream] = max(self.free[stream], self.events[event])
            if self.mistake == "cpu-waits":
                self.now = max(self.now, self.events[event])

    def query(self, event: str) -> bool:
        self.now += 0 if self.mistake == "no-poll" else self.program["poll_cost"]
        if event not in self.events:
            return self.mistake != "never-recorded"
        if self.events[event] <= self.now:
            self._note_wait("cpu", event)
        return self.events[event] <= self.now

    def synchronize(self, event: str) -> None:
        self._note_wait("cpu", event)
        if event in self.events:
            time = max(self.free.values()) if self.mistake == "device-wide" else self.events[event]
            self.now = time if self.mistake == "backwards" else max(self.now, time)

    def elapsed(self, start: str, end: str) -> object:
        if not {start, end} <= self.events.keys() or {start, end} & set(self.program["untimed"]):
            return "ValueError"
        times = self.events[start], self.events[end]
        return "NotReadyError" if max(times) > self.now else (times[1] - times[0]) / 1e6

    def _see(self) -> None:
        values: dict[object, str] = {}
        for _, _, name, reads, writes in sorted(self.accesses, key=lambda access: access[:2]):
            self.trace["seen"][name] = {str(buffer): values.get(buffer, NOTHING) for buffer in reads}
            values.update(dict.fromkeys(writes, name))


def log_of(program: dict[str, object]) -> list[tuple[str, str, str, tuple, tuple]]:
    """The log that a device keeps of a program on streams that are not blocking: (kind, who, name, reads, writes).

    Queries are not in it: whether one is depends on the time.
    """
    log, recorded = [], set()
    for kind, *args in program["calls"]:
        if kind == "launch":
            log.append(("access", args[0], args[1], tuple(args[3]), tuple(args[4])))
        elif kind == "host":
            log.append(("access", "cpu", args[0], tuple(args[2]), tuple(args[3])))
        elif kind == "record":
            log.append(("record", args[1], args[0], (), ()))
            recorded.add(args[0])
        elif kind in ("wait", "synchronize") and args[-1] in recorded:
            log.append(("wait", args[0] if kind == "wait" else "cpu", args[-1], (), ()))
    return log


HAZARD_MISTAKES = {
    "no-host": "an op was compared with what the host had done before it launched it",
    "record-shared": "a record shared its stream's clock, and did not copy it: what came after it counted as captured",
    "host-later": "the host was thought to have waited for what it had only launched",
    "no-fifo": "the ops of one stream were not ordered with each other",
    "record-ignored": "a wait for an event ordered nothing",
    "wait-late": "a wait was counted for a record that came after it",
    "first-record": "an event kept its first record",
    "wait-both": "a wait ordered what comes after it in the other stream as well",
    "reads": "two reads were reported",
    "only-writes": "a read and a write were not compared, only two writes",
    "last-only": "an access was compared with the latest one to its buffer only",
    "not-transitive": "what an op waits for has itself waited for others: that was lost",
}


def hazards_of(log: list[tuple], mistake: str = "") -> list[list[object]]:
    """[kind, buffer, first, second] of all hazards of a log, sorted; as they are, or with one of HAZARD_MISTAKES."""
    accesses = [(i, *call) for i, call in enumerate(log) if call[0] == "access"]
    before = _closure(_edges(log, mistake), len(log), mistake != "not-transitive")
    found = []
    for (i, _, _, first, reads, writes), (j, _, _, second, more, others) in combinations(accesses, 2):
        if i in before[j]:
            continue
        for buffer in {*reads, *writes} & {*more, *others}:
            between = any(i < k < j and buffer in (*r, *w) for k, _, _, _, r, w in accesses)
            if mistake == "last-only" and between:
                continue
            kinds = {
                "RAW": buffer in writes and buffer in more and mistake != "only-writes",
                "WAR": buffer in reads and buffer in others and mistake != "only-writes",
                "WAW": buffer in writes and buffer in others,
                "RAR": mistake == "reads" and buffer in reads and buffer in more,
            }
            found += [[kind, buffer, first, second] for kind, is_one in kinds.items() if is_one]
    return sorted(found)


def _edges(log: list[tuple], mistake: str) -> Iterator[tuple[int, int]]:
    """(earlier, later) for all calls that are ordered directly."""
    latest: dict[str, int] = {}
    host: list[int] = []
    for i, (kind, who, name, *_) in enumerate(log):
        if who in latest and mistake != "no-fifo":
            yield latest[who], i
        if kind == "access" and who != "cpu" and mistake != "no-host":
            yield from ((j, i) for j in host[-1:])
        if kind == "wait" and (j := _record(log, i, name, mistake)) is not None:
            yield min(i, j), max(i, j)
            if mistake == "record-shared":
                yield from ((k, i) for k in range(j, i) if log[k][1] == log[j][1])
            if mistake == "wait-both":
                yield from ((i, k) for k in range(i, len(log)) if log[k][1] == log[j][1])
        if mistake == "host-later" and who == "cpu" and kind == "access":
            yield from ((j, i) for j in latest.values())
        latest[who] = i
        if who == "cpu":
            host.append(i)


def _record(log: list[tuple], i: int, name: str, mistake: str) -> int | None:
    """Which record the wait at `i` is for."""
    records = [j for j, (kind, _, other, *_) in enumerate(log) if kind == "record" and other == name]
    if mistake == "record-ignored":
        return None
    if mistake == "first-record":
        return records[0]
    return records[-1] if mistake == "wait-late" else max(j for j in records if j < i)


def _closure(edges: Iterator[tuple[int, int]], length: int, transitive: bool) -> list[set[int]]:
    """For each call, all that must have happened before it. Edges go forward in the log."""
    before: list[set[int]] = [set() for _ in range(length)]
    for earlier, later in sorted(edges, key=lambda edge: edge[1]):
        before[later] |= {earlier} | (before[earlier] if transitive else set())
    return before


def judge_trace(program: dict[str, object], got: dict[str, object]) -> None:
    """Raise AssertionError unless a device gave what it must, with the first difference and the likely mistake."""
    want = Oracle(program).trace
    if got == want:
        return
    lines = list(_differences(program, got, want))[:3]
    likely = [words for mistake, words in MISTAKES.items() if Oracle(program, mistake).trace == got]
    raise AssertionError("\n".join([*lines, *(f"likely mistake: {words}" for words in likely)]))


def _differences(program: dict[str, object], got: dict[str, object], want: dict[str, object]) -> Iterator[str]:
    for call, (result, now), (hoped, then) in zip(program["calls"], got["calls"], want["calls"], strict=True):
        if result != hoped:
            yield f"{call}: expected {hoped}, got {result}"
        if now != then:
            yield f"{call}: the CPU's clock should be {then} ns afterwards, it is {now}"
            break  # all later times are wrong as well
    for name, times in want["ops"].items():
        if got["ops"].get(name) != times:
            track, start, end = times
            yield f"{name!r} should run on {track} from {start} to {end} ns, not {got['ops'].get(name)}"
            break
    for name, buffers in want["seen"].items():
        for buffer, writer in buffers.items():
            if (found := got["seen"].get(name, {}).get(buffer)) != writer:
                yield f"{name!r} should find in {buffer} what {writer!r} wrote, it found {found!r}"
    for line, hoped in zip_longest(got["log"], want["log"]):
        if line != hoped:
            yield f"the log should hold {hoped} where it holds {line}"
            break


def judge_hazards(log: list[tuple], got: list[list[object]]) -> None:
    """Raise AssertionError unless exactly the hazards of a log were found, each once."""
    want = hazards_of(log)
    if got == want:
        return
    missing, extra = [h for h in want if h not in got], [h for h in got if h not in want]
    lines = [f"missing: {_told(h)}" for h in missing[:3]] + [f"not a hazard: {_told(h)}" for h in extra[:3]]
    if not lines:
        lines = [f"{len(got)} hazards were reported, some of them twice: expected {len(want)}"]
    likely = [words for mistake, words in HAZARD_MISTAKES.items() if hazards_of(log, mistake) == got]
    raise AssertionError("\n".join([*lines, *(f"likely mistake: {words}" for words in likely)]))


def _told(hazard: list[object]) -> str:
    kind, buffer, first, second = hazard
    return f"{kind} on {buffer!r}, {second!r} after {first!r}"
