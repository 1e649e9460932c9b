"""What a simulated device did, for people: a line of text for each track, or a trace for Perfetto (ui.perfetto.dev)."""

from .streams import Device, Op


def tracks(device: Device) -> dict[str, list[Op]]:
    """The ops of each track, by their start; the CPU comes first."""
    found: dict[str, list[Op]] = {"cpu": []}
    for op in sorted(device.ops, key=lambda op: op.start):
        found.setdefault(op.track, []).append(op)
    return found


def text_timeline(device: Device, step: int) -> str:
    """One line for each track, one column for `step` nanoseconds. An op shows as `[name]`, cut to its width, or `|`."""
    lines = []
    rows = tracks(device)
    width = max(map(len, rows))
    for track, ops in rows.items():
        line = ""
        for op in ops:
            first, last = op.start // step, op.end // step
            shown = f"[{op.name[: last - first - 2]:-<{last - first - 2}}]" if last - first >= 2 else "|"
            if op.end > op.start:
                line = line[:first].ljust(first) + shown
        lines.append(f"{track:>{width}} {line}")
    return "\n".join(lines)


def chrome_trace(device: Device) -> dict[str, list[dict[str, object]]]:
    """The trace event format, which Perfetto and chrome://tracing read: `json.dump` this. Times in microseconds."""
    events: list[dict[str, object]] = []
    for i, (track, ops) in enumerate(tracks(device).items()):
        events.append({"ph": "M", "name": "thread_name", "pid": 0, "tid": i, "args": {"name": track}})
        for op in ops:
            times = {"ts": op.start / 1e3, "dur": (op.end - op.start) / 1e3}
            events.append({"ph": "X", "name": op.name, "pid": 0, "tid": i, **times})
    return {"traceEvents": events}
