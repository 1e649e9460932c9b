"""What one run of a kernel's example gave, for people and as JSON."""

import json
from dataclasses import dataclass

import mlx.core as mx
import numpy as np

from course.emulator.access_map import svg
from course.errors import CourseError
from course.kernels.checked import Run, checked
from course.kernels.examples import Example

_SHOWN = 8  # values of each output

_MEANING = {
    "device_read_bytes": "read from device memory",
    "device_write_bytes": "written to device memory",
    "device_read_lines": "lines of 128 bytes touched by simdgroup reads",
    "device_write_lines": "lines of 128 bytes touched by simdgroup writes",
    "bank_conflicts": "extra turns for threadgroup memory, of 32 banks",
    "barriers": "threadgroup barriers, all threadgroups together",
    "simd_operations": "simdgroup functions",
    "atomics": "atomic operations",
}


@dataclass(frozen=True)
class Report:
    """The outputs of an example and, where it ran checked, what its launches did."""

    name: str
    outputs: list[mx.array]
    run: Run | None

    @classmethod
    def of(cls, name: str, example: Example, check: bool, trace: int | None = None) -> "Report":
        """Run the example. trace: the threadgroup whose accesses are kept for the map."""
        if not check:
            outputs = example()
            mx.eval(outputs)
            return cls(name, outputs, None)
        with checked(trace=trace) as run:
            outputs = example()
            mx.eval(outputs)
        return cls(name, outputs, run)

    @property
    def launches(self) -> list[dict[str, object]]:
        return self.run.launches if self.run else []

    @property
    def findings(self) -> list[dict[str, str | int | bool]]:
        return self.run.findings() if self.run else []

    def access_map(self, threadgroup: int) -> str:
        """The picture of the launch of this kernel. Raises CourseError where it was not launched."""
        for launch, record in self.run.records() if self.run else []:
            if launch.kernel == self.name:
                return svg(record, launch, threadgroup)
        raise CourseError(f"the example of {self.name} launched no kernel of that name: there is nothing to draw")


def as_json(report: Report) -> str:
    """The report as one JSON object: kernel, outputs (shape, dtype, values), launches."""
    outputs = [{"shape": x.shape, "dtype": _dtype(x), "values": x.tolist()} for x in report.outputs]
    return json.dumps({"kernel": report.name, "outputs": outputs, "launches": report.launches}, indent=2)


def as_text(report: Report) -> str:
    """The report in lines: outputs, then each launch with its findings and counters."""
    lines = [f"{report.name}: output {i}: {_values(x)}" for i, x in enumerate(report.outputs)]
    for launch in report.launches:
        threads, group = (" x ".join(map(str, launch[key])) for key in ("threads", "threadgroup"))
        lines.append(f"{launch['kernel']}: {threads} threads in threadgroups of {group}")
        counters = launch["counters"]
        lines += [f"  {counters[key]:>9,}  {key}: {text}" for key, text in _MEANING.items() if counters.get(key)]
        found = [finding["message"] for finding in launch["findings"]]
        lines += [f"  finding: {message}" for message in found] or ["  no findings"]
    return "\n".join(lines)


def _dtype(x: mx.array) -> str:
    return str(x.dtype).removeprefix("mlx.core.")


def _values(x: mx.array) -> str:
    flat = np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x).reshape(-1)
    shown = " ".join(f"{value:.6g}" for value in flat[:_SHOWN].tolist())
    return f"{tuple(x.shape)} {_dtype(x)}: {shown}{' ...' if flat.size > _SHOWN else ''}"
