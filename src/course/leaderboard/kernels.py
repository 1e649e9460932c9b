"""What Metal kernels move, in the portable class: the graded cases of a kernel's task are the workload and the gate."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from course.case import Case
from course.compared.experiment import inputs_of, verdict
from course.compared.probes import launches_in, load_tests
from course.compared.side import COMPILING
from course.curriculum import Task
from course.leaderboard.entry import ASCENDING, Entry
from course.leaderboard.hardware import PORTABLE
from course.leaderboard.place import NoEntry, Place, ask
from course.observer import Observer

MOVED = ("device_read_bytes", "device_write_bytes")
_SUFFIX = ".metal"


def kernels(place: Place) -> Iterator[tuple[Task, tuple[str, ...]]]:
    """Tasks with Metal kernels, each with the names of its kernels."""
    for task in place.curriculum.tasks:
        names = [PurePosixPath(file).stem for file in task.symbols if file.endswith(_SUFFIX)]
        if names:
            yield task, tuple(names)


def entries(place: Place, task: Task, names: tuple[str, ...]) -> list[Entry]:
    """An entry for each kernel of the task. Raises NoEntry where a case of the task does not pass."""
    day = place.curriculum.day(task.week, task.day)
    place.build("emulator")
    if "library" in place.curriculum.built_for(day):
        place.build("library")
    observer = place.observer(day.tests)
    moved: dict[str, int] = dict.fromkeys(names, 0)
    try:
        for case in vars(load_tests(str(day.tests))).values():
            if isinstance(case, Case) and case.task == task.number:
                _add(place, observer, task, case, moved)
    finally:
        observer.close()
    return [
        Entry(f"{name} kernel", round(count / 1024, 2), ASCENDING, "KiB moved", PORTABLE)
        for name, count in moved.items()
        if count
    ]


def _add(place: Place, observer: Observer, task: Task, case: Case, moved: dict[str, int]) -> None:
    """Run a case on all its inputs and add what its kernels moved. Raises NoEntry."""
    forbidden = place.curriculum.forbidden_on(place.curriculum.day(task.week, task.day))
    for index in range(len(case.params)):
        observer.begin()
        seen: list[object] = []

        def observe(inputs: object, seen: list[object] = seen) -> object:
            seen.append(ask(observer, case, inputs, case.timeout + COMPILING, forbidden))
            return seen[-1]

        values = None if case.check else observe(inputs_of(case, index))
        if wrong := verdict(case, index, values, observe):
            raise NoEntry(f"{case.name} does not pass: {wrong}")
        for launch in launches_in(seen):
            if launch["kernel"] in moved:
                moved[launch["kernel"]] += sum(int(launch["counters"].get(name, 0)) for name in MOVED)
