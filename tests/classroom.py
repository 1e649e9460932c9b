"""A class for tests: submissions whose first line tells a stand-in for the grader how it ends."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = "tiny_llm/model/basics.py"
GRADER = """
import json, os, subprocess, sys, time, zipfile
from pathlib import Path

submission, student = Path(sys.argv[1]), sys.argv[2].removeprefix("--student=")
options = dict(zip(sys.argv[3::2], sys.argv[4::2]))
with open(options["--output"] + "/../../../calls.txt", "a") as calls:
    calls.write(student + "\\n")
problem = ""
try:
    if submission.is_dir():
        text = next(submission.rglob("basics.py")).read_text()
    else:
        archive = zipfile.ZipFile(submission)
        text = archive.read(archive.namelist()[0]).decode()
except (zipfile.BadZipFile, StopIteration):
    text, problem = "points 0 0", "no archive, or nothing in it"
word, *values = text.split("\\n")[0].split()
if word == "hang":
    subprocess.Popen(["sleep", "61.5"])
    time.sleep(600)
if word == "crash":
    os.abort()
if word == "mistake":
    sys.exit("error: nothing works here")
if word == "slow":
    time.sleep(float(values.pop(0)))
tasks = []
for number, points in enumerate(map(float, values), 1):
    state = "done" if points == 10 else "not run" if problem else "failing"
    case = {"name": "Case[0]", "property": "is stable", "state": "failed", "mistakes": ["no maximum subtracted"]}
    tasks.append({
        "week": 1, "day": 1, "task": number, "title": f"Task {number}", "points": points, "max_points": 10.0,
        "state": state, "passed": int(state == "done"), "total": 1,
        "visibility": "visible", "hidden_visibility": "hidden",
        "cases": [case] if state == "failing" else [],
    })
Path(options["--output"], "result.json").write_text(json.dumps({
    "title": "Test", "student": student, "submission": str(submission), "course": "", "seconds": 0.1,
    "started": "2026-10-01T12:00:00Z", "complete": not problem, "problem": problem, "tasks": tasks,
    "ignored": sorted(path.name for path in submission.rglob("own_*.py")),
}))
"""
"""Grades as the first line of a submission says: "points 10 5", "slow SECONDS 10 5", "hang", "crash", "mistake"."""
PROGRAM = """
import sys
sys.modules["matplotlib"] = None
from course.classroom import desk
desk.GRADER = (sys.executable, sys.argv[1])
desk.code_version = lambda: "one version"
from course.cli import main
sys.exit(main(sys.argv[2:]))
"""


@dataclass(frozen=True)
class Class:
    """A folder with `submissions`, a stand-in for the grader, and the results in `out`."""

    root: Path

    @property
    def out(self) -> Path:
        return self.root / "out"

    def submit(self, name: str, text: str) -> Path:
        """A folder with one file that says how grading it ends."""
        path = self.root / "submissions" / name / "src" / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
        return self.root / "submissions" / name

    def submit_zip(self, name: str, text: str) -> Path:
        path = self.root / "submissions" / name
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"work/{FILE}", f"{text}\n")
        return path

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def command(self, *options: str | Path) -> list[str]:
        program, grader = self.write("program.py", PROGRAM), self.write("grader.py", GRADER)
        fixed = [sys.executable, program, grader, "class", self.root / "submissions", "--output", self.out]
        return [str(word) for word in (*fixed, *options)]

    def run(self, *options: str | Path, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*options), capture_output=True, text=True, timeout=seconds)

    @property
    def report(self) -> dict[str, object]:
        return json.loads((self.out / "class.json").read_text(encoding="utf-8"))

    @property
    def lines(self) -> dict[str, dict[str, object]]:
        """Students' lines by name."""
        return {line["name"]: line for line in self.report["students"]}

    def calls(self) -> Sequence[str]:
        """Whom the stand-in has graded since this was asked last."""
        path = self.root / "calls.txt"
        calls = path.read_text().split("\n")[:-1] if path.exists() else []
        path.unlink(missing_ok=True)
        return sorted(calls)
