"""A run as Chrome trace events, for ui.perfetto.dev: what each worker did when, and the way of KV between them.

A process per pool, a thread per worker, a slice per batch (or per many equal ones); a process "links" with the
transfers; flow arrows from the prefill step over the link to the first decode step; counters of KV blocks and queues.
"""

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from course.errors import CourseError
from course.trace_file import TraceFile

if TYPE_CHECKING:
    from tiny_llm_ref.cluster.record import Record
    from tiny_llm_ref.cluster.run import Moved, Run, Steps

US = 1000
LINKS = "links"
MARKS = "deployment"


class Tracks:
    """Numbers of processes and threads, by their names."""

    def __init__(self, file: TraceFile):
        self.file = file
        self.processes: dict[str, int] = {}
        self.threads: dict[tuple[str, str], int] = {}

    def process(self, name: str) -> int:
        """Of a pool."""
        if name not in self.processes:
            self.processes[name] = len(self.processes) + 1
            self.file.name(self.processes[name], name)
        return self.processes[name]

    def thread(self, process: str, name: str) -> tuple[int, int]:
        """Of a worker of a pool: the process, too."""
        pid = self.process(process)
        if (process, name) not in self.threads:
            self.threads[process, name] = len(self.threads) + 1
            self.file.name(pid, name, self.threads[process, name])
        return pid, self.threads[process, name]


def write_perfetto(path: Path, run: "Run") -> None:
    """Write it. Raises OSError, and CourseError where the disk is full."""
    file = TraceFile(path, clock=lambda: 0.0)
    tracks = Tracks(file)
    try:
        for worker in run.workers.values():
            _steps(tracks, worker.pool, worker.name, worker.steps)
        _counters(tracks, run)
        _moves(tracks, run)
        for note in run.notes:
            pid, tid = tracks.thread(MARKS, "events")
            name = f"{note.kind} {note.worker}".strip()
            ts = note.time / US
            file.write(name=name, ph="i", s="g", pid=pid, tid=tid, ts=ts, args={"text": note.text})
    finally:
        full = file.file.closed
        file.close()
    if full:
        raise CourseError(f"cannot write {path}: the disk is full")


def _steps(tracks: Tracks, pool: str, name: str, steps: "list[Steps]") -> None:
    pid, tid = tracks.thread(pool, name)
    for step in steps:
        said = "prefill" if step.prefill_tokens else "decode"
        args = {"requests": step.rows, "prefill_tokens": step.prefill_tokens, "steps": step.count}
        label = said if step.count == 1 else f"{said} x {step.count}"
        tracks.file.slice(label, pid, tid, step.start / US, step.end / US, args)


def _counters(tracks: Tracks, run: "Run") -> None:
    for sample in run.samples:
        pid = tracks.process(run.workers[sample.worker].pool)
        blocks = {"in_use": sample.blocks - sample.cached, "cached": sample.cached}
        queue = {"running": sample.running, "waiting": sample.waiting}
        for name, values in (("KV blocks", blocks), ("queue", queue)):
            ts = sample.time / US
            tracks.file.write(name=f"{sample.worker} {name}", ph="C", pid=pid, ts=ts, args=values)


def _moves(tracks: Tracks, run: "Run") -> None:
    numbers = count(1)
    for lane, move in lanes(run.moves):
        pid, tid = tracks.thread(LINKS, lane)
        args = {"uid": move.uid, "bytes": move.size, "status": move.status}
        label = f"{move.source} to {move.target}"
        tracks.file.slice(label, pid, tid, move.start / US, move.end / US, args)
        record = run.records[move.uid]
        if move.status != "done" or record.migrations or not _in_order(record, move):
            continue
        flow = {"name": "KV", "cat": "kv", "id": next(numbers)}
        ends = ((move.source, record.prefill_end - 1), (move.target, record.decode_start))
        (out_pid, out_tid), (in_pid, in_tid) = (tracks.thread(run.workers[name].pool, name) for name, _ in ends)
        tracks.file.write(ph="s", pid=out_pid, tid=out_tid, ts=ends[0][1] / US, **flow)
        tracks.file.write(ph="t", pid=pid, tid=tid, ts=move.start / US, **flow)
        tracks.file.write(ph="f", bp="e", pid=in_pid, tid=in_tid, ts=ends[1][1] / US, **flow)


def _in_order(record: "Record", move: "Moved") -> bool:
    """Whether the KV of a prompt moved from its prefill to its decode, and not what another worker had cached."""
    prefill, decode = record.prefill_end, record.decode_start
    return prefill is not None and decode is not None and prefill <= move.start and move.end <= decode


def lanes(moves: "list[Moved]") -> "list[tuple[str, Moved]]":
    """Transfers with the name of a lane, in the order of their starts. Those of one lane do not overlap."""
    ends: dict[str, list[int]] = {}
    found = []
    for move in sorted(moves, key=lambda move: move.start):
        mine = ends.setdefault(move.source, [])
        free = next((lane for lane, end in enumerate(mine) if end <= move.start), len(mine))
        mine[free:] = [move.end, *mine[free + 1 :]]
        found.append((f"{move.source} {free + 1}", move))
    return found
