"""`with checked() as run:` runs Metal kernels in the emulator's checked build and tells what they did."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from course.emulator.findings import describe
from course.emulator.runtime import Record, take_records
from course.emulator.session import Launch, Session, recording

Plain = dict[str, object]


class Run:
    """The launches of kernels inside one `checked()`, as far as their results have been evaluated."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._records: dict[int, Record] = {}
        self._plain: dict[int, Plain] = {}

    @property
    def launches(self) -> list[Plain]:
        """One dict per launch in the order of the calls: kernel, threads, threadgroup, findings, counters.

        threads and threadgroup are (x, y, z); findings hold kind, message, file, line and fatal.
        """
        return [self._plain[launch.tag] for launch in self._collect()]

    def findings(self) -> list[dict[str, str | int | bool]]:
        """What was found in any launch."""
        return [finding for launch in self.launches for finding in launch["findings"]]

    def counters(self, name: str) -> dict[str, int]:
        """The counters of all launches of the kernel `name`, added; empty where it never ran."""
        total: Counter[str] = Counter()
        for launch in self.launches:
            if launch["kernel"] == name:
                total.update(launch["counters"])
        return dict(total)

    def records(self) -> list[tuple[Launch, Record]]:
        """The runtime's own records, for access maps."""
        ready = self._collect()
        return [(launch, self._records[launch.tag]) for launch in ready]

    def _collect(self) -> list[Launch]:
        """The launches that have run, their records taken over from the runtime."""
        for launch in self._session.launches:
            for record in take_records(launch.tag) if launch.tag not in self._plain else ():
                self._records[launch.tag] = record
                self._plain[launch.tag] = _plain(record, launch)
        return [launch for launch in self._session.launches if launch.tag in self._plain]


@contextmanager
def checked(trace: int | None = None) -> Iterator[Run]:
    """Kernels called inside run checked, also on a Mac. Evaluate their results before reading the run.

    trace: index of the threadgroup whose memory accesses are kept, for an access map.
    """
    with recording(checked=True, trace=trace) as session:
        yield Run(session)


def _plain(record: Record, launch: Launch) -> Plain:
    return {
        "kernel": launch.kernel,
        "threads": tuple(record.threads),
        "threadgroup": tuple(record.threadgroup),
        "findings": describe(record, launch),
        "counters": dict(record.counters),
    }
