"""The whole way of one submission: take its files, plant them over the starter, run, score, write.

A result is written before anything of the submission is looked at, and again after each step: whatever ends the grader,
a result with what was known remains."""

import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from course.boundary import Boundary, Limits, protections
from course.curriculum import Day
from course.errors import CourseError
from course.grading.course_file import Course, HiddenTable
from course.grading.draft import Draft
from course.grading.formats import write
from course.grading.grade import Grade, LeaderboardEntry, Protection
from course.grading.intake import collect
from course.grading.runner import DayRun, Runner, Stop
from course.grading.score import passes
from course.grading.source import Unreadable
from course.grading.tree import about, plant, unknown
from course.paths import CURRICULUM, TESTS

Say = Callable[[str], None]


@dataclass(frozen=True)
class Desk:
    """How to grade: `days` of `course` in the boundary `mode`, with the public and the secret `seeds`.

    `curriculum` and `tests` are the folders from which the runs read; `starter` is what is missing in a submission.
    """

    course: Course
    days: Sequence[Day]
    mode: str
    starter: Mapping[str, bytes]
    seeds: Sequence[int] = ()
    jobs: int = 1
    curriculum: Path = CURRICULUM
    tests: Path = TESTS
    stop: Stop = field(default_factory=Stop)
    say: Say = lambda line: None

    @cached_property
    def protections(self) -> tuple[Protection, ...]:
        """What the boundary keeps learner code from."""
        return tuple(Protection(p.name, p.on, p.detail) for p in protections(self.mode))

    def on(self, days: Sequence[Day]) -> "Desk":
        """The same desk for other days."""
        return replace(self, days=days)

    def grade(self, submission: Path, output: Path, student: str = "") -> Grade:
        """Grade one submission and write its results. Raises CourseError only where they cannot be written."""
        draft = Draft(self.course, self.days, student, submission.resolve().name, self._worth())
        draft.mode, draft.protections = self.mode, self.protections
        write(draft.grade(), output)
        try:
            self._grade(submission, draft, lambda: write(draft.grade(), output))
            draft.finish(self.stop.reason if self.stop.is_set() else "")
        except Unreadable as error:
            draft.finish(f"the submission cannot be graded: {error}")
        except CourseError as error:
            draft.finish(str(error))
        except BaseException as error:
            draft.finish(f"the grader failed: {_last_line(error)}")
            write(draft.grade(), output)
            raise
        grade = draft.grade()
        write(grade, output)
        return grade

    def _worth(self) -> HiddenTable | None:
        """What hidden variants count; the number of seeds is that of the seeds there are."""
        if not self.seeds:
            return None
        table = self.course.hidden or HiddenTable()
        return HiddenTable(seeds=len(self.seeds), share=table.share, show=table.show)

    def _grade(self, submission: Path, draft: Draft, save: Callable[[], None]) -> None:
        intake = collect(submission, self.course.curriculum, self.course.extra_files)
        draft.revision = intake.revision
        draft.notes += [*intake.notes, *about(intake, self.starter, self.course.curriculum, self.days)]
        draft.ignored = tuple(unknown(intake, self.starter))
        with _folders() as (tree, own):
            plant(tree, self.starter, intake.files)
            boundary = Boundary(str(tree), self.mode, _limits(self.course))
            boundary.write(own / "boundary.json")
            runner = self._runner(own)
            for day, run in self._runs(runner, [(day, None) for day in self.days]):
                draft.public[day] = run
                self.say(f"{day.label}: {_told(run)}")
                save()
            wanted = [(day, seed) for day in self.days if _earns(draft.public.get(day)) for seed in self.seeds]
            for day, run in self._runs(runner, wanted):
                draft.variants[day].append(run)
                seed = f"seed {len(draft.variants[day])} of {len(self.seeds)}"
                self.say(f"{day.label}, hidden variants, {seed}: {'done' if not run.problem else 'broke off'}")
                save()
            if self.course.leaderboard and not self.stop.is_set():
                draft.finish()
                save()
                draft.leaderboard = _measured(boundary, self.course, draft.notes)

    def _runner(self, own: Path) -> Runner:
        limits = self.course.limits
        deadline = time.monotonic() + limits.total_seconds
        folder = own / "boundary.json"
        return Runner(folder, self.curriculum, self.tests, own, limits.day_seconds, deadline, self.stop)

    def _runs(self, runner: Runner, wanted: Sequence[tuple[Day, int | None]]) -> Iterator[tuple[Day, DayRun]]:
        """Runs as they end, `jobs` at a time; none is begun after a stop."""
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                futures = {pool.submit(runner.run, day, seed, self._building(day)): day for day, seed in wanted}
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:
                self.stop.set()
                raise
            finally:
                pool.shutdown(cancel_futures=True)

    def _building(self, day: Day) -> float:
        """Seconds more for days that compile something first."""
        return Limits().build_seconds if self.course.curriculum.built_for(day) else 0.0


def _earns(run: DayRun | None) -> bool:
    """Whether hidden variants of the day could earn anything."""
    return run is not None and any(passes(run, task) for task in run.day.tasks)


def _limits(course: Course) -> Limits:
    limits = course.limits
    own = {"memory_mb": limits.memory_mib, "processes": limits.processes, "scratch_mb": limits.disk_mib}
    return Limits(**own, file_mb=min(Limits().file_mb, limits.disk_mib))


def _measured(boundary: Boundary, course: Course, notes: list[str]) -> tuple[LeaderboardEntry, ...]:
    from course.leaderboard import measured

    found = measured(boundary, course.curriculum, course)
    notes += [f"no leaderboard entry {skipped.name}: {skipped.reason}" for skipped in found.skipped]
    return tuple(LeaderboardEntry(e.name, e.value, e.order, e.unit, e.hardware) for e in found.entries)


@contextmanager
def _folders() -> Iterator[tuple[Path, Path]]:
    """Where the tree will be, which others may reach but not list, and a folder that the grader alone can read."""
    with tempfile.TemporaryDirectory(prefix="tiny-llm-grade-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)
        own = folder / "own"
        own.mkdir(mode=0o700)
        yield folder / "tree", own


def _told(run: DayRun) -> str:
    passed = sum(result.kind == "passed" for result in run.results.values())
    return f"{passed} of {len(run.expected)} cases pass" + (f", {run.problem}" if run.problem else "")


def _last_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()
