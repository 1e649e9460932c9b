"""`pdm run kernel`: lists kernels, runs one on its example, reports values, findings and counters, draws accesses."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import mlx.core as mx
import pytest

from course.cli import main
from course.emulator.access_map import panels
from course.emulator.metal_kernel import metal_kernel
from course.kernels import checked

REFERENCE = ["--solution", "tiny_llm_ref"]


def test_without_a_name_it_lists_the_kernels(capsys: pytest.CaptureFixture[str]):
    assert main(["kernel", *REFERENCE]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert lines[names.index("rms_norm")].endswith("RMSNorm of each row")
    assert names == sorted(names)
    assert {"add", "rms_norm", "flash_decode"} <= set(names)


def test_it_reports_values_and_counters(capsys: pytest.CaptureFixture[str]):
    assert main(["kernel", "add", *REFERENCE]) == 0
    out = capsys.readouterr().out
    assert "add: output 0: (10,) float32: 1 2 3 4 5 6 7 8 ..." in out
    assert "40  device_write_bytes: written to device memory" in out
    assert "no findings" in out


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]):
    assert main(["kernel", "add", "--json", *REFERENCE]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["kernel"] == "add"
    assert report["outputs"] == [{"shape": [10], "dtype": "float32", "values": [float(i) for i in range(1, 11)]}]
    assert report["launches"][0]["counters"]["device_write_bytes"] == 40
    assert report["launches"][0]["findings"] == []


@pytest.mark.skipif(sys.platform == "darwin", reason="runs on the GPU there")
def test_fast_runs_without_findings_and_counters(capsys: pytest.CaptureFixture[str]):
    assert main(["kernel", "add", "--fast", *REFERENCE]) == 0
    assert "device_write_bytes" not in capsys.readouterr().out


def test_the_map_is_an_svg(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "map.svg"
    assert main(["kernel", "rms_norm", "--map", str(file), *REFERENCE]) == 0
    root = ElementTree.parse(file).getroot()
    assert root.tag.endswith("svg")
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("text")]
    assert any("reads x at rms_norm.metal:" in text for text in texts)
    assert any("writes out at rms_norm.metal:" in text for text in texts)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "no kernel 'nothing' in tiny_llm_ref: choose from add,"),
        (["add", "--fast", "--map", "x.svg"], "--fast records no accesses"),
        (["add", "--fast", "--checked"], "not allowed with"),
        (["add", "--threadgroup", "-1"], "count from 0"),
        (["add", "--map", "/no/such/folder/x.svg"], "cannot write /no/such/folder/x.svg"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]):
    assert main(["kernel", *arguments, *REFERENCE]) == 2
    assert words in capsys.readouterr().err


def test_findings_and_errors_come_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from course.kernels import examples, metal

    (tmp_path / "extensions" / "metal").mkdir(parents=True)
    file = tmp_path / "extensions" / "metal" / "add.metal"
    monkeypatch.setattr(metal, "package_folder", lambda package: tmp_path / "tiny_llm")
    kernel = metal.metal_kernel("tiny_llm", "add", inputs=["x"], outputs=["out"])
    launch = {"grid": (8, 1, 1), "threadgroup": (8, 1, 1), "output_shapes": [(8,)], "output_dtypes": [mx.float32]}
    monkeypatch.setattr(examples, "examples", lambda package: {"add": lambda: kernel(inputs=[mx.ones(8)], **launch)})
    file.write_text("// kernel body\nuint i = thread_position_in_grid.x;\nout[i] = x[i + 1];\n", encoding="utf-8")
    assert main(["kernel", "add"]) == 1
    assert "finding: add.metal:3: thread 7 of threadgroup 0 reads element 8" in capsys.readouterr().out
    kernel = metal.metal_kernel("tiny_llm", "add", inputs=["x"], outputs=["out"])
    file.write_text('// kernel body\n#error "Week 2 Day 5 Task 1: add - see there"\n', encoding="utf-8")
    assert main(["kernel", "add"]) == 2
    assert "Week 2 Day 5 Task 1: add - see there is still to be written" in capsys.readouterr().err


def test_a_map_knows_who_touched_what():
    source = "uint t = thread_index_in_threadgroup;\nif (t < 4) {\n  out[t] = x[2 * t] + x[0];\n}"
    kernel = metal_kernel("strided", ["x"], ["out"], f'#line 1 "strided.metal"\n{source}')
    with checked(trace=0) as run:
        out = kernel(
            inputs=[mx.ones(16)],
            grid=(8, 1, 1),
            threadgroup=(8, 1, 1),
            output_shapes=[(4,)],
            output_dtypes=[mx.float32],
        )
        mx.eval(out)
    reads, writes = panels(run.records()[0][1], run.records()[0][0])
    assert (reads.name, reads.verb, reads.lines, reads.size) == ("x", "reads", (3,), 4)
    assert {element: thread for element, (thread, _) in reads.threads.items()} == {0: 0, 2: 1, 4: 2, 6: 3}
    assert {element: sharers for element, (_, sharers) in reads.threads.items()} == {0: 4, 2: 1, 4: 1, 6: 1}
    assert (writes.name, writes.verb) == ("out", "writes")
    assert {element: thread for element, (thread, _) in writes.threads.items()} == {0: 0, 1: 1, 2: 2, 3: 3}
