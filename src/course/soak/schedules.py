"""Random schedules of requests and aborts over every scheduler, memory and loop, on the hash model.

Everything follows from a seed: a failure is replayed by its number. Knows the public names of the package's parts.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from course.failure import TimedOut, one_line, own_lines
from course.limit import TimeLimit
from course.paths import package_folder
from course.serving_case import judge
from course.serving_case.drive import drive
from course.serving_case.workload import workload
from course.solution import Solution
from course.stub import stub_of

ROWS, MAX_LEN = 4, 40
SCHEDULERS = {
    "fcfs": ("serving.scheduler", "Scheduler"),
    "chunked": ("serving.chunked", "ChunkedScheduler"),
    "mixed": ("serving.mixed", "MixedScheduler"),
}
MEMORIES = {
    "rows": ("serving.memory", "RowMemory"),
    "paged": ("serving.paged_memory", "PagedMemory"),
    "prefix": ("serving.prefix_memory", "PrefixMemory"),
}
LOOPS = {"normal": ("serving.engine", "Engine"), "overlap": ("serving.overlap", "OverlapEngine")}
SECONDS = 20.0
"""For one schedule, which takes milliseconds."""


@dataclass(frozen=True)
class Schedule:
    """One random case. pages: fewer than all rows could use, except for "fcfs", which trusts that there are enough.

    padded: whether decode batches are padded; only a memory with a page table has a row for that.
    """

    seed: int
    scheduler: str
    memory: str
    loop: str
    page_size: int
    pages: int
    budget: int
    overlap_prefills: bool
    padded: bool
    script: dict[str, object]

    @classmethod
    def of(cls, seed: int) -> "Schedule":
        """The schedule of a seed."""
        rng = random.Random(seed)
        scheduler, memory, loop = rng.choice(list(SCHEDULERS)), rng.choice(list(MEMORIES)), rng.choice(list(LOOPS))
        page_size = rng.choice((1, 3, 4, 8, 16))
        full = ROWS * -(-MAX_LEN // page_size)
        pages = full if scheduler == "fcfs" else rng.randint(max(full // 4, 1), full)
        script = workload(
            seed,
            requests=rng.randint(1, 14),
            max_len=MAX_LEN,
            page_size=page_size,
            aborts=rng.choice((0.0, 0.3, 0.9)),
            stops=rng.random(),
            penalties=rng.choice((0.0, 0.2)),
            steps=rng.choice((1, 30)),
        )
        budget = rng.choice((1, 5, 16, 64))
        ahead, padded = rng.random() < 0.5, memory != "rows" and rng.random() < 0.3
        return cls(seed, scheduler, memory, loop, page_size, pages, budget, ahead, padded, script)

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.scheduler} scheduler, {self.memory} memory, {self.loop} loop, "
            f"{self.pages} pages of {self.page_size}, budget {self.budget}{', padded' if self.padded else ''}"
        )

    def run(self, solution: Solution) -> int:
        """Run and judge it. Returns how many tokens were right. Raises AssertionError, or what the package raises."""
        memory = _part(solution, MEMORIES[self.memory])(ROWS, MAX_LEN, self.page_size, self.pages)
        scheduler = _part(solution, SCHEDULERS[self.scheduler])(memory, self.budget)
        trace = drive(solution, scheduler, self.script, engine=self._engine(solution))
        judge.verify(self.script, trace)
        judge.assert_budget(trace, max(self.budget, ROWS), whole_prompts=self.scheduler == "fcfs")
        return sum(token is not None for _, _, token, _ in trace["outputs"])

    def _engine(self, solution: Solution) -> Callable[[object, object], object]:
        options = (self.overlap_prefills,) if self.loop == "overlap" else ()

        def build(scheduler: object, runner: object) -> object:
            if self.padded:
                padding = solution.module("serving.padding")
                runner = padding.PaddedRunner(runner, scheduler.memory.table, padding.LADDER)
            return _part(solution, LOOPS[self.loop])(scheduler, runner, *options)

        return build


class ScheduleError(Exception):
    """A schedule has failed: the text names its seed, and how to replay it."""


def told(schedule: str, replay: str, error: BaseException, package: str) -> str:
    """What to say of a schedule that has failed: which, how, at which lines of the package, and how to see it again."""
    said = str(error) if isinstance(error, AssertionError | TimedOut) else one_line(error)
    lines = [f"{schedule}:", said, *own_lines(error, package_folder(package))]
    lines.append(f"replay it: pdm run soak {replay}")
    return "\n  ".join(lines)


def _part(solution: Solution, name: tuple[str, str]) -> Callable[..., object]:
    module, attribute = name
    return getattr(solution.module(module), attribute)


def run_schedules(package: str, seeds: range, done: Callable[[], None] = lambda: None) -> Counter[str]:
    """Run the schedules of all seeds, calling `done` after each. Returns what was run: counts by name.

    Raises ScheduleError for the first that fails.
    """
    solution = Solution(package)
    counts: Counter[str] = Counter()
    for schedule in map(Schedule.of, seeds):
        try:
            with TimeLimit(SECONDS):
                counts["tokens"] += schedule.run(solution)
        except (Exception, TimedOut) as error:
            if stub_of(error):
                raise
            replay = f"schedules --solution {package} --seed {schedule.seed}"
            raise ScheduleError(told(str(schedule), replay, error, package)) from error
        counts.update((schedule.scheduler, schedule.memory, schedule.loop))
        counts["aborts"] += len(schedule.script["aborts"])
        counts["requests"] += len(schedule.script["adds"])
        done()
    return counts
