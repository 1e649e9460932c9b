"""A missing module of the package is told with what brings it back."""

from pathlib import Path

from course.failure import describe


def test_a_missing_module_of_the_package_is_told_with_its_fix(tmp_path: Path):
    error = ModuleNotFoundError("No module named 'tiny_llm.model.attention'", name="tiny_llm.model.attention")
    file = "src/tiny_llm/model/attention.py"
    (line,) = describe(error, tmp_path / "tiny_llm").lines
    assert (
        line == f"fix: if {file} is a file of the course, `pdm run reset --file {file}` brings it back as at the start"
    )
    assert describe(ModuleNotFoundError("No module named 'torch'", name="torch"), tmp_path / "tiny_llm").lines == []
