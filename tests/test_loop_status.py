"""`pdm run status`, and what `test` and `hint` do with the memory it shows, in a checkout of the real course."""

import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable

import pytest
from loop_checkout import Checkout
from rich.console import Console

from course.curriculum import load
from course.item import kernels_of
from course.loop.overview import print_overview
from course.loop.progress import TaskProgress

DAY = ("--week", "1", "--day", "1")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("a course") / "with spaces")


@pytest.fixture
def checkout(shared: Checkout) -> Checkout:
    shared.start_over()
    return shared


def status(checkout: Checkout, *arguments: str) -> str:
    done = checkout.run("status", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def tasks(checkout: Checkout) -> dict[str, dict[str, object]]:
    told = json.loads(status(checkout, "--json"))
    every = [task for week in told["weeks"] for day in week["days"] for task in day["tasks"]]
    return {f"{task['week']}.{task['day']}.{task['task']}": task for task in every}


def test_an_untouched_starter_is_a_page_with_the_next_thing_to_do(checkout: Checkout):
    done = checkout.run("status", COLUMNS="80", NO_COLOR="1")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert max(map(len, lines)) <= 80
    assert sum("not begun" in line for line in lines) == len(load().weeks) - 1
    assert "> 1 A stable softmax" in done.stdout
    assert "next: Week 1 Day 1 Task 1: A stable softmax" in lines
    assert "  write  src/tiny_llm/model/basics.py" in lines
    assert "  read   book/src/week1-01-attention.md#task-1" in lines
    assert "  test   pdm run test --week 1 --day 1 --task 1" in lines


def test_a_run_is_kept_and_a_run_of_a_part_is_not(checkout: Checkout):
    checkout.write("model/basics.py", "softmax", "linear")
    softmax = checkout.run("test", *DAY, "--task", "1", "--", "-k", "Vocabulary")
    assert softmax.returncode == 0, softmax.stdout + softmax.stderr
    assert tasks(checkout)["1.1.1"]["state"] == "not run"
    part = checkout.run("test", *DAY, "--", "--case", "LinearMatchesFloat64")
    assert "Task 2" in part.stdout
    assert tasks(checkout)["1.1.2"]["state"] == "not run"
    assert checkout.run("test", *DAY).returncode == 1
    found = tasks(checkout)
    assert [found[f"1.1.{n}"]["state"] for n in (1, 2, 3, 4)] == ["done", "done", "to do", "to do"]
    assert found["1.1.1"]["points_earned"] == found["1.1.1"]["points"] == 10
    assert found["1.1.1"]["cases"] == found["1.1.1"]["passed_cases"] == 22
    text = status(checkout)
    assert "next: Week 1 Day 1 Task 3: Scaled dot-product attention" in text
    checkout.file("model/basics.py").write_text(checkout.text("model/basics.py").replace("mx.max(", "mx.min("))
    text = status(checkout, "--week", "1")
    assert "done, then changed" in text
    assert "  pdm run test --week 1 --day 1" in text.splitlines()
    checkout.state.unlink()
    assert tasks(checkout)["1.1.1"]["state"] == "not run"


def test_what_comes_next_is_not_what_is_done_already(checkout: Checkout):
    checkout.write("model/basics.py", "softmax", "linear")
    arguments = ("test", "--week", "1", "--day", "1", "--task")
    assert "all done; next: Week 1 Day 1 Task 3" in checkout.run(*arguments, "2").stdout
    assert "all done; next: Week 1 Day 1 Task 3" in checkout.run(*arguments, "1").stdout


def test_sources_are_read_and_never_run(checkout: Checkout):
    checkout.file("model/basics.py").write_text("import os\nos._exit(7)\ndef softmax(:\n")
    checkout.file("model/attention.py").unlink()
    found = tasks(checkout)
    assert found["1.1.1"]["state"] == "not run"
    assert found["1.1.3"]["state"] == "missing"
    checkout.file("model/basics.py").unlink()
    lines = status(checkout, "--week", "1").splitlines()
    assert sum("missing" in line for line in lines) > 4
    assert "a file is missing: pdm run reset --week 1 --day 1 --task 1, or a saved copy: pdm run restore" in lines[-1]


def test_no_week_of_that_number_and_no_package(checkout: Checkout):
    done = checkout.run("status", "--week", "99")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: week 99 does not exist: choose from 1")
    folder = checkout.file("").rename(checkout.root / "elsewhere")
    done = checkout.run("status")
    folder.rename(checkout.file(""))
    assert done.stderr == "error: src/tiny_llm does not exist: make it with `pdm run starter`\n"


@pytest.mark.parametrize("command", [["status"], ["hint"], ["status", "--json"]], ids=" ".join)
def test_nothing_heavy_is_imported(checkout: Checkout, command: list[str]):
    """The processor's time, because the machine may be busy."""
    program = (
        "import sys; from course.cli import main\n"
        f"assert main({command}) == 0\n"
        "heavy = {'mlx', 'numpy', 'pytest', 'psutil', 'watchfiles'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", program], env=checkout.environment, cwd=checkout.root, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stderr == "[]\n"
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.7


def test_whoever_reads_a_part_of_the_page_ends_it_quietly(checkout: Checkout):
    read, write = os.pipe()
    command = [sys.executable, "-m", "course", "status", "--json"]
    process = subprocess.Popen(
        command, stdout=write, stderr=subprocess.PIPE, env=checkout.environment, cwd=checkout.root
    )
    os.close(write)
    os.close(read)
    assert process.communicate(timeout=30)[1] == b""
    assert process.returncode == 141


@pytest.fixture
def hint(checkout: Checkout) -> Callable[..., dict[str, object]]:
    def ask(*arguments: str) -> dict[str, object]:
        done = checkout.run("hint", "--json", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    return ask


def test_hint_without_numbers_is_about_the_task_that_is_next(
    checkout: Checkout, hint: Callable[..., dict[str, object]]
):
    told = hint()
    assert (told["week"], told["day"], told["task"], told["level"], told["name"]) == (1, 1, 1, 1, "nudge")
    assert told["text"] == load().task(1, 1, 1).hints[0]
    assert told["next"] == "pdm run hint --week 1 --day 1 --task 1"
    assert (hint()["seen"], hint("--level", "1")["seen"]) == (2, 2)
    assert (hint()["next"], hint()["seen"]) == (None, 3)
    checkout.write("model/basics.py", "softmax")
    assert checkout.run("test", *DAY, "--task", "1").returncode == 0
    assert hint()["task"] == 2
    assert "(seen: nudge, invariant)" in checkout.run("hint").stdout
    assert "3 hints" in status(checkout)


def test_hint_wants_all_numbers_or_none(checkout: Checkout):
    done = checkout.run("hint", "--week", "1")
    assert done.returncode == 2
    assert done.stderr.startswith("error: --day and --task missing: name week, day and task")


def test_kernel_tasks_tell_what_ran_them():
    ran_on = {task.label: (kernels_of(task, False), kernels_of(task, True)) for task in load().tasks}
    assert ran_on["Week 1 Day 1 Task 1"] == ("", "")
    assert ran_on["Week 2 Day 4 Task 1"] == ("C++ library", "C++ library")
    assert ran_on["Week 2 Day 5 Task 1"] == ("emulator", "Metal GPU, emulator")


def test_weeks_that_checkout_filled_are_not_called_unbegun():
    curriculum = load()
    given, todo = (TaskProgress(state, False, 0, 0, 0, "", "", "") for state in ("given", "to do"))
    first = curriculum.weeks[0]
    found = {task: given if task.week == 1 else todo for task in curriculum.tasks}
    output = io.StringIO()
    print_overview(Console(file=output, width=80), curriculum.weeks, found, lambda task: 0, "tiny_llm")
    count = sum(len(day.tasks) for day in first.days)
    assert f"  given by checkout: {count} tasks" in [line.rstrip() for line in output.getvalue().splitlines()]
    assert "next: Week 2 Day 1" in output.getvalue()


def test_a_file_that_a_grader_does_not_take_is_told_by_test_and_status(checkout: Checkout):
    package = checkout.root / "src/tiny_llm/model"
    (package / "util.py").write_text("")
    with (package / "basics.py").open("a") as file:
        file.write("\nfrom . import util\n")
    for command in (("test", *DAY, "--task", "1"), ("status",)):
        (line,) = checkout.run(*command).stderr.splitlines()
        assert line.startswith("src/tiny_llm/model/util.py is no file of the course: a grader does not take it")
