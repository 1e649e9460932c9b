"""What goes wrong with streams in real engines: each pitfall as a program, and as one in which it is repaired.

Each entry: the broken program, the fixed one, and the race that the broken one has, (kind, buffer).
"""

from .stream_programs import host, launch, program, record, synchronize, wait

FORWARD, COPY = 40, 20


def _download(event_on: str) -> dict[str, object]:
    """The tokens of a forward go to the host; the event is recorded on the model's or on the copy's stream."""
    return program(
        launch("a", "forward", FORWARD, writes=["sampled"]),
        record("computed", "a"),
        wait("b", "computed"),
        launch("b", "download", COPY, ["sampled"], ["host"], engine="device to host"),
        record("done", event_on),
        synchronize("done"),
        host("read", 5, ["host"]),
    )


def _staging(guarded: bool) -> dict[str, object]:
    """Two batches use one pinned buffer; the copy of the first is held up by an earlier copy."""
    guard = [synchronize("uploaded")] if guarded else []
    return program(
        launch("b", "weights", FORWARD, engine="host to device"),
        host("stage 1", 2, writes=["staging"]),
        launch("a", "upload 1", COPY, ["staging"], ["inputs 1"], engine="host to device"),
        record("uploaded", "a"),
        *guard,
        host("stage 2", 2, writes=["staging"]),
        launch("a", "upload 2", COPY, ["staging"], ["inputs 2"], engine="host to device"),
        launch("a", "check", 1, ["inputs 1", "inputs 2"]),
    )


def _ordered(*calls: list[object]) -> dict[str, object]:
    return program(
        launch("a", "prepare", FORWARD, writes=["inputs"]),
        *calls,
        launch("b", "forward", COPY, ["inputs"], ["sampled"]),
    )


def _freed(waits: bool) -> dict[str, object]:
    """A page goes to another request while a transfer to another machine still reads it."""
    guard = [record("sent", "b"), wait("a", "sent")] if waits else []
    return program(
        launch("a", "forward 1", COPY, writes=["page 7"]),
        record("computed", "a"),
        wait("b", "computed"),
        launch("b", "transfer", FORWARD, ["page 7"], ["remote"]),
        *guard,
        launch("a", "forward 2", COPY, writes=["page 7"]),
    )


def _rerecorded(events: tuple[str, str]) -> dict[str, object]:
    """Each batch has its event, or both share one that is recorded again before the wait that needs the first."""
    first, second = events
    return program(
        launch("a", "prepare 1", FORWARD, writes=["inputs 1"]),
        record(first, "a"),
        launch("c", "prepare 2", 5, writes=["inputs 2"]),
        record(second, "c"),
        wait("b", first),
        launch("b", "forward 1", COPY, ["inputs 1"], ["sampled 1"]),
        streams="abc",
    )


PITFALLS = {
    "event on the wrong stream": (_download("a"), _download("b"), ("RAW", "host")),
    "staging buffer used again": (_staging(False), _staging(True), ("WAR", "staging")),
    "wait before record": (
        _ordered(wait("b", "ready"), record("ready", "a")),
        _ordered(record("ready", "a"), wait("b", "ready")),
        ("RAW", "inputs"),
    ),
    "page freed too early": (_freed(False), _freed(True), ("WAR", "page 7")),
    "event recorded again": (_rerecorded(("ready", "ready")), _rerecorded(("ready", "other")), ("RAW", "inputs 1")),
    "no synchronisation at all": (
        program(launch("a", "download", COPY, writes=["host"]), host("read", 5, ["host"])),
        program(
            launch("a", "download", COPY, writes=["host"]),
            record("done", "a"),
            synchronize("done"),
            host("read", 5, ["host"]),
        ),
        ("RAW", "host"),
    ),
}
