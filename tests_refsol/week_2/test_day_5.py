"""Week 2 Day 5: the first Metal kernels, against NumPy in float64, on the emulator's checked build."""

import mlx.core as mx
import numpy as np

from course.case import case
from course.kernel_case import checked_run, judge, judge_proof, judge_traffic, proven_run

FLOATS = [mx.float32, mx.float16, mx.bfloat16]
ROUNDING = {mx.float32: 2e-6, mx.float16: 1e-3, mx.bfloat16: 8e-3}
"""One rounding of the result, and for float32 that of a few operations, as a share of the largest value."""


def normal(rng, shape, dtype=mx.float32, scale=1.0):
    return mx.array(rng.standard_normal(shape) * scale).astype(dtype)


def wide(x):
    """The values of an array of any dtype, in float64."""
    return np.array(x.astype(mx.float32), dtype=np.float64)


def narrow(x, dtype):
    """Float64 values rounded to a dtype."""
    return wide(mx.array(x.astype(np.float32)).astype(dtype))


def judge_rounding(values, want, dtype, suspects):
    """All but a few results are the nearest numbers of their dtype: a second rounding would move a tenth of them."""
    nearest = narrow(want, dtype)
    judge(values, nearest, tol=2 * ROUNDING[dtype], dtype=dtype)
    got = wide(values["result"])
    different = np.mean(got != nearest)
    if different > 0.02:
        alike = {text: np.mean(got == narrow(other, dtype)) for text, other in suspects.items()}
        cause = max(alike, key=alike.get)
        cause = cause if alike[cause] > 0.98 else "something between was rounded to T"
        raise AssertionError(
            f"{different:.0%} of the results are not the nearest number of their type: {cause}; compute in float and "
            "round once"
        )


def metal(solution):
    return solution.module("kernels.metal")


# Task 1: element by element


def add_suspects(x, y):
    x, y = wide(x), wide(y)
    tail = np.where(np.arange(x.size).reshape(x.shape) < x.size // 4 * 4, x + y, 0)
    return {
        "y was subtracted": x - y,
        "the product was taken, not the sum": x * y,
        "y was left out": x,
        "x was added twice": 2 * x,
        "the elements after the last whole group of four are zero": tail,
    }


@case(
    task=1,
    params=[
        {"shape": (1,)},
        {"shape": (3,)},
        {"shape": (4,)},
        {"shape": (9, 29)},
        {"shape": (2, 3, 5), "threads": 1},
        {"shape": (1000,), "threads": 7},
        {"shape": (31, 33), "threads": 32},
        {"shape": (4099,), "threads": 1024},
        {"shape": (257,), "dtype": mx.float16},
        {"shape": (5, 51), "dtype": mx.bfloat16, "threads": 96},
    ],
)
class AddMatchesFloat64:
    """Every element of the sum is right, whatever the size and the threads per threadgroup."""

    def inputs(rng, shape, dtype=mx.float32, threads=256):
        return {"x": normal(rng, shape, dtype), "y": normal(rng, shape, dtype), "threads": threads}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).add(**inputs))

    def verify(inputs, values):
        x, y = inputs["x"], inputs["y"]
        want = wide(x) + wide(y)
        judge(values, want, tol=ROUNDING[x.dtype], dtype=x.dtype, suspects=add_suspects(x, y))


@case(task=1, params=[{"view": "offset"}, {"view": "transposed"}, {"view": "every second"}])
class AddTakesViews:
    """Views of larger arrays are added like any others."""

    def inputs(rng, view):
        return {"x": normal(rng, (40, 42)), "y": normal(rng, (42, 40)), "view": view}

    def observe(solution, inputs):
        x, y = inputs["x"], inputs["y"]
        if inputs["view"] == "offset":
            x, y = x.flatten()[1:1000], y.flatten()[3:1002]
        elif inputs["view"] == "transposed":
            y = y.T
        else:
            x, y = x[::2, 1:], y.T[::2, 1:]
        return checked_run(lambda: metal(solution).add(x, y))

    def verify(inputs, values):
        x, y = wide(inputs["x"]), wide(inputs["y"])
        want = {
            "offset": lambda: x.ravel()[1:1000] + y.ravel()[3:1002],
            "transposed": lambda: x + y.T,
            "every second": lambda: x[::2, 1:] + y.T[::2, 1:],
        }[inputs["view"]]()
        judge(values, want, tol=ROUNDING[mx.float32], dtype=mx.float32)


@case(task=1, params=[{"size": 4096}, {"size": 16_384, "dtype": mx.bfloat16}])
class AddTouchesMemoryOnce:
    """Both inputs are read once and the sum is written once, by neighbouring threads at neighbouring places."""

    def inputs(rng, size, dtype=mx.float32):
        return {"x": normal(rng, (size,), dtype), "y": normal(rng, (size,), dtype)}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).add(**inputs))

    def verify(inputs, values):
        size = inputs["x"].nbytes
        judge_traffic(
            values,
            "add",
            {
                "device_read_bytes": 2 * size,
                "device_write_bytes": size,
                "device_read_lines": 2 * size / 128,
                "device_write_lines": size / 128,
            },
        )


@case(task=1)
class AddIsComputedByTheKernel:
    """The sum is what the Metal kernel returns, not something computed beside it."""

    def inputs(rng):
        return {"x": normal(rng, (64,)), "y": normal(rng, (64,))}

    def observe(solution, inputs):
        return proven_run(lambda: metal(solution).add(**inputs), ["add"])

    def verify(inputs, values):
        judge_proof(values, ["add"])


# Task 2: RMSNorm


def rms_norm64(x, weight, eps):
    x = wide(x)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * wide(weight)


def norm_suspects(x, weight, eps, threads):
    x64, w = wide(x), wide(weight)
    square = x64 * x64
    mean = square.mean(-1, keepdims=True)
    length = x.shape[-1]
    first = square[..., np.arange(length) % threads < 32].sum(-1, keepdims=True) / length
    lane = square[..., ::32].sum(-1, keepdims=True) / length
    rounded = narrow(narrow(x64 / np.sqrt(mean + eps), x.dtype) * w, x.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "the weight was not applied": x64 / np.sqrt(mean + eps),
            "the sum of squares was taken, not their mean": x64 / np.sqrt(square.sum(-1, keepdims=True) + eps) * w,
            "only the first simdgroup's sum was used": x64 / np.sqrt(first + eps) * w,
            "only every 32nd number was summed: simd_sum is missing": x64 / np.sqrt(lane + eps) * w,
            "eps was left out": x64 / np.sqrt(mean) * w,
            "eps was added outside the root": x64 / (np.sqrt(mean) + eps) * w,
            "the root was forgotten": x64 / (mean + eps) * w,
            "x was multiplied by the root instead of divided": x64 * np.sqrt(mean + eps) * w,
            "the mean was subtracted: that is LayerNorm": (x64 - x64.mean(-1, keepdims=True))
            / np.sqrt(x64.var(-1, keepdims=True) + eps)
            * w,
            "every row was scaled by the first row's sum": x64 / np.sqrt(mean.reshape(-1)[0] + eps) * w,
        } | ({"the result was rounded before the weight": rounded} if x.dtype == mx.float32 else {})


@case(
    task=2,
    params=[
        {"shape": (3, 64)},
        {"shape": (2, 2, 100), "threads": 64},
        {"shape": (5, 33), "threads": 32},
        {"shape": (4, 7), "threads": 128},
        {"shape": (1, 1)},
        {"shape": (2, 1025), "threads": 1024},
        {"shape": (3, 2000), "threads": 96},
        {"shape": (600,), "threads": 512},
        {"shape": (4, 256), "dtype": mx.float16},
        {"shape": (3, 515), "dtype": mx.bfloat16},
        {"shape": (3, 128), "eps": 0.5, "scale": 0.3},
        {"shape": (3, 128), "dtype": mx.bfloat16, "weights": mx.float16},
        {"shape": (3, 128), "weights": mx.bfloat16},
    ],
)
class RmsNormMatchesFloat64:
    """Each row is divided by the root of its mean square and multiplied by the weight, with any number of threads."""

    def inputs(rng, shape, dtype=mx.float32, threads=256, eps=1e-5, scale=1.0, weights=None):
        rows = rng.uniform(0.5, 2.0, (*shape[:-1], 1))
        x = mx.array((rng.standard_normal(shape) + 0.4) * rows * scale).astype(dtype)
        weight = mx.array(rng.uniform(0.3, 0.8, shape[-1]) * rng.choice([-1, 4], shape[-1])).astype(weights or dtype)
        return {"x": x, "weight": weight, "eps": eps, "threads": threads}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).rms_norm(**inputs))

    def verify(inputs, values):
        x, weight, eps, threads = inputs["x"], inputs["weight"], inputs["eps"], inputs["threads"]
        suspects = norm_suspects(x, weight, eps, threads)
        judge(values, rms_norm64(x, weight, eps), tol=2 * ROUNDING[x.dtype], dtype=x.dtype, suspects=suspects)


@case(
    task=2,
    params=[
        {"dtype": mx.float16, "scale": 300.0},
        {"dtype": mx.float16, "scale": 3e-4},
        {"dtype": mx.bfloat16, "scale": 1.0},
    ],
)
class RmsNormSumsInFloat32:
    """Squares are summed in float32: float16 would overflow or vanish, a bfloat16 sum would stop growing."""

    def inputs(rng, dtype, scale):
        x = mx.array((rng.uniform(0.8, 1.2, (2, 1500))) * scale).astype(dtype)
        return {"x": x, "weight": mx.ones(1500, dtype), "eps": 1e-12, "threads": 32}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).rms_norm(**inputs))

    def verify(inputs, values):
        x = inputs["x"]
        want = rms_norm64(x, inputs["weight"], inputs["eps"])
        got = wide(values["result"])
        if not np.isfinite(got).all() or np.abs(got - want).max() > 0.02 * np.abs(want).max():
            raise AssertionError(
                f"numbers of about {np.abs(wide(x)).mean():.3g} in {str(x.dtype).rpartition('.')[2]} are normalised to "
                f"{got[0, 0]:.4g}, expected {want[0, 0]:.4g}: sum the squares in float, not in T"
            )
        judge(values, want, tol=2 * ROUNDING[x.dtype], dtype=x.dtype)


@case(
    task=2,
    params=[{"dtype": mx.float16}, {"dtype": mx.bfloat16}, {"dtype": mx.bfloat16, "weights": mx.float32}],
)
class RmsNormRoundsOnce:
    """The result is rounded once, at the end: scale, weight and what lies between stay in float."""

    def inputs(rng, dtype, weights=None):
        return {"x": normal(rng, (8, 512), dtype), "weight": normal(rng, (512,), weights or dtype), "eps": 1e-6}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).rms_norm(**inputs))

    def verify(inputs, values):
        x, weight, eps = inputs["x"], inputs["weight"], inputs["eps"]
        root = np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + eps)
        suspects = {
            "the row was rounded to T before the weight": narrow(wide(x) / root, x.dtype) * wide(weight),
            "one over the root was rounded to T": wide(x) * narrow(1 / root, x.dtype) * wide(weight),
            "the weight was rounded to T": wide(x) / root * narrow(wide(weight), x.dtype),
        }
        judge_rounding(values, rms_norm64(x, weight, eps), x.dtype, suspects)


@case(task=2, params=[{"threads": 128}, {"threads": 256, "dtype": mx.bfloat16}])
class RmsNormReadsNeighboursTogether:
    """A row is read at most twice and written once, and the threads of a simdgroup read neighbouring numbers."""

    def inputs(rng, threads, dtype=mx.float32):
        return {"x": normal(rng, (2, 4096), dtype), "weight": normal(rng, (4096,), dtype), "threads": threads}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).rms_norm(eps=1e-6, **inputs))

    def verify(inputs, values):
        x, weight = inputs["x"].nbytes, inputs["weight"].nbytes * 2
        judge_traffic(
            values,
            "rms_norm",
            {
                "device_read_bytes": 2 * x + weight,
                "device_write_bytes": x,
                "device_read_lines": (2 * x + weight) / 128,
                "device_write_lines": x / 128,
                "barriers": 2 * 6,
            },
        )


@case(task=2)
class RmsNormIsComputedByTheKernel:
    """The norm is what the Metal kernel returns, not something computed beside it."""

    def inputs(rng):
        return {"x": normal(rng, (2, 64)), "weight": normal(rng, (64,)), "eps": 1e-6}

    def observe(solution, inputs):
        return proven_run(lambda: metal(solution).rms_norm(**inputs), ["rms_norm"])

    def verify(inputs, values):
        judge_proof(values, ["rms_norm"])


# Task 3: RoPE


def tables(positions, dims, base=10_000.0):
    """Cosines and sines of all positions."""
    angles = np.arange(positions)[:, None] * base ** (-np.arange(0, dims, 2) / dims)
    return mx.array(np.cos(angles).astype(np.float32)), mx.array(np.sin(angles).astype(np.float32))


def rope64(x, cosines, sines, offset, traditional, sign=1.0):
    x, cosines, sines = wide(x), wide(cosines), wide(sines)
    B, _, L, D = x.shape
    positions = np.broadcast_to(np.asarray(offset), (B,))[:, None] + np.arange(L)
    cos, sin = cosines[positions][:, None], sign * sines[positions][:, None]
    one = np.arange(0, D, 2) if traditional else np.arange(D // 2)
    other = one + 1 if traditional else one + D // 2
    out = np.empty_like(x)
    out[..., one] = x[..., one] * cos - x[..., other] * sin
    out[..., other] = x[..., one] * sin + x[..., other] * cos
    return out


def rope_suspects(x, cosines, sines, offset, traditional):
    offsets = np.broadcast_to(np.asarray(offset), (x.shape[0],))
    turn = {"cosines": cosines, "sines": sines, "traditional": traditional}
    layout = "neighbours" if traditional else "half a head apart"
    suspects = {
        f"the pairs are wrong: traditional={traditional} pairs numbers that are {layout}": rope64(
            x, cosines, sines, offset, not traditional
        ),
        "the rotation goes the wrong way": rope64(x, **turn, offset=offset, sign=-1.0),
        "the offset was ignored": rope64(x, **turn, offset=0),
        "all rows of the batch were placed at the first row's offset": rope64(x, **turn, offset=offsets[0]),
        "x came back as it was": wide(x),
    }
    if x.shape[2] > 1:
        B, H, L, D = x.shape
        still = [rope64(x[:, :, i : i + 1], **turn, offset=offset) for i in range(L)]
        suspects["every token was turned as if it were the first"] = np.concatenate(still, axis=2)
        order = wide(x).reshape(B, L, H, D).swapaxes(1, 2)
        suspects["heads and tokens were exchanged in memory"] = rope64(
            mx.array(order.astype(np.float32)), **turn, offset=offset
        )
    return suspects


ROPE = [
    {"shape": (1, 2, 5, 8)},
    {"shape": (2, 5, 3, 64), "offset": 7},
    {"shape": (1, 9, 1, 128), "offset": 100},
    {"shape": (3, 4, 2, 6), "offset": [0, 11, 5]},
    {"shape": (2, 3, 4, 2)},
    {"shape": (1, 6, 7, 10), "threadgroup": (1, 1, 1)},
    {"shape": (2, 2, 9, 32), "threadgroup": (5, 3, 2), "offset": 3},
    {"shape": (1, 4, 6, 64), "dtype": mx.float16},
    {"shape": (2, 4, 3, 64), "dtype": mx.bfloat16, "offset": 2},
]


@case(task=3, params=[p | {"traditional": t} for p in ROPE for t in (False, True)])
class RopeMatchesFloat64:
    """Each pair of numbers is turned by the angle of its token's position, in both layouts of pairs."""

    def inputs(rng, shape, traditional, offset=0, dtype=mx.float32, threadgroup=(32, 4, 1)):
        cosines, sines = tables(128, shape[-1], rng.uniform(1e3, 1e6))
        return {
            "x": normal(rng, shape, dtype),
            "cosines": cosines,
            "sines": sines,
            "offset": offset if isinstance(offset, int) else mx.array(offset),
            "traditional": traditional,
            "threadgroup": threadgroup,
        }

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).rope(**inputs))

    def verify(inputs, values):
        x = inputs["x"]
        offset = inputs["offset"] if isinstance(inputs["offset"], int) else np.array(inputs["offset"])
        turn = x, inputs["cosines"], inputs["sines"], offset, inputs["traditional"]
        judge(values, rope64(*turn), tol=ROUNDING[x.dtype], dtype=x.dtype, suspects=rope_suspects(*turn))


VIEWS = {
    "heads last": lambda x: x.swapaxes(1, 2),
    "slice": lambda x: x[:, 1:5, 2:4],
    "one head": lambda x: x[:, 3:4],
    "every second feature": lambda x: x[..., 1::2],
    "features first": lambda x: x.transpose(1, 3, 2, 0),
}


@case(task=3, params=[{"view": view} for view in VIEWS])
class RopeReadsViewsByTheirStrides:
    """A transposed or sliced array gives the result of its copy: numbers are found by the strides."""

    def inputs(rng, view):
        x = normal(rng, (2, 6, 5, 16))
        cosines, sines = tables(32, VIEWS[view](x).shape[-1])
        return {"x": x, "cosines": cosines, "sines": sines, "view": view}

    def observe(solution, inputs):
        x = VIEWS[inputs["view"]](inputs["x"])
        return checked_run(lambda: metal(solution).rope(x, inputs["cosines"], inputs["sines"], offset=4))

    def verify(inputs, values):
        view = VIEWS[inputs["view"]](wide(inputs["x"]))
        x = mx.array(view.astype(np.float32))
        packed = x.reshape(-1)
        flat = np.array(inputs["x"]).ravel()[: packed.size].reshape(x.shape)
        turn = inputs["cosines"], inputs["sines"], 4, False
        suspects = {"the strides of x were ignored": rope64(mx.array(flat), *turn)}
        judge(values, rope64(x, *turn), tol=ROUNDING[mx.float32], dtype=mx.float32, suspects=suspects)


@case(task=3, params=[{"dtype": mx.float16}, {"dtype": mx.bfloat16}])
class RopeRoundsOnce:
    """The result is rounded once, at the end: angles and products stay in float."""

    def inputs(rng, dtype):
        cosines, sines = tables(32, 64)
        return {"x": normal(rng, (1, 4, 32, 64), dtype), "cosines": cosines, "sines": sines}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).rope(**inputs))

    def verify(inputs, values):
        x, cosines, sines = inputs["x"], inputs["cosines"], inputs["sines"]
        angles = [mx.array(narrow(wide(table), x.dtype).astype(np.float32)) for table in (cosines, sines)]
        suspects = {"the angles were rounded to T": rope64(x, *angles, 0, False)}
        judge_rounding(values, rope64(x, cosines, sines, 0, False), x.dtype, suspects)


@case(task=3)
class RopeTouchesMemoryOnce:
    """Each number is read and written once; the angles cost no more than the numbers."""

    def inputs(rng):
        cosines, sines = tables(64, 64)
        return {"x": normal(rng, (1, 8, 32, 64)), "cosines": cosines, "sines": sines}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).rope(**inputs))

    def verify(inputs, values):
        size = inputs["x"].nbytes
        most = {"device_read_bytes": 2 * size, "device_write_bytes": size, "device_write_lines": size / 128}
        judge_traffic(values, "rope", most)


@case(task=3)
class RopeIsComputedByTheKernel:
    """The rotation is what the Metal kernel returns, not something computed beside it."""

    def inputs(rng):
        cosines, sines = tables(8, 8)
        return {"x": normal(rng, (1, 2, 3, 8)), "cosines": cosines, "sines": sines, "offset": 1}

    def observe(solution, inputs):
        return proven_run(lambda: metal(solution).rope(**inputs), ["rope"])

    def verify(inputs, values):
        judge_proof(values, ["rope"])


# Task 4: SwiGLU


def swiglu64(gate, up):
    gate, up = wide(gate), wide(up)
    with np.errstate(over="ignore"):
        return gate / (1 + np.exp(-gate)) * up


def swiglu_suspects(gate, up):
    g, u = wide(gate), wide(up)
    with np.errstate(over="ignore"):
        sigmoid = 1 / (1 + np.exp(-g))
        return {
            "up went through silu, not gate": g * u / (1 + np.exp(-u)),
            "gate itself is missing: that is sigmoid(gate) * up": sigmoid * u,
            "the sign in the exponential is wrong": g / (1 + np.exp(g)) * u,
            "up was left out": g * sigmoid,
            "gate was not activated": g * u,
            "up was added, not multiplied": g * sigmoid + u,
        }


@case(
    task=4,
    params=[
        {"shape": (1,)},
        {"shape": (6,)},
        {"shape": (3, 5, 7), "threads": 1},
        {"shape": (1001,), "threads": 33},
        {"shape": (2, 2050), "threads": 1024},
        {"shape": (129,), "dtype": mx.float16},
        {"shape": (4, 65), "dtype": mx.bfloat16},
    ],
)
class SwigluMatchesFloat64:
    """Every element is silu(gate) * up, whatever the size and the threads per threadgroup."""

    def inputs(rng, shape, dtype=mx.float32, threads=256):
        return {"gate": normal(rng, shape, dtype, 2.0), "up": normal(rng, shape, dtype), "threads": threads}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).swiglu(**inputs))

    def verify(inputs, values):
        gate, up = inputs["gate"], inputs["up"]
        suspects = swiglu_suspects(gate, up)
        judge(values, swiglu64(gate, up), tol=2 * ROUNDING[gate.dtype], dtype=gate.dtype, suspects=suspects)


@case(task=4, params=[{"dtype": dtype} for dtype in FLOATS])
class SwigluSurvivesLargeGates:
    """Gates far from zero give 0 or gate * up: no overflow on the way."""

    def inputs(rng, dtype):
        gate = mx.array([-200.0, -100.0, -90.0, -15.0, -0.0, 15.0, 90.0, 100.0, 200.0]).astype(dtype)
        return {"gate": gate, "up": normal(rng, (9,), dtype)}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).swiglu(**inputs))

    def verify(inputs, values):
        got = wide(values["result"])
        if not np.isfinite(got).all():
            at = int(np.argmin(np.isfinite(got)))
            raise AssertionError(
                f"gate {wide(inputs['gate'])[at]:g} gives {got[at]}: exp() overflowed. "
                "Which form of the sigmoid only divides by it?"
            )
        gate = inputs["gate"]
        judge(values, swiglu64(gate, inputs["up"]), tol=2 * ROUNDING[gate.dtype], dtype=gate.dtype)


@case(task=4, params=[{"dtype": mx.float16}, {"dtype": mx.bfloat16}])
class SwigluRoundsOnce:
    """The result is rounded once, at the end: what lies between stays in float."""

    def inputs(rng, dtype):
        return {"gate": normal(rng, (4096,), dtype), "up": normal(rng, (4096,), dtype)}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).swiglu(**inputs))

    def verify(inputs, values):
        gate, up = inputs["gate"], inputs["up"]
        silu = narrow(swiglu64(gate, mx.ones_like(up)), gate.dtype)
        suspects = {"silu(gate) was rounded to T before the product": silu * wide(up)}
        judge_rounding(values, swiglu64(gate, up), gate.dtype, suspects)


@case(task=4)
class SwigluTouchesMemoryOnce:
    """Gate and up are read once and the result is written once, by neighbouring threads at neighbouring places."""

    def inputs(rng):
        return {"gate": normal(rng, (4096,)), "up": normal(rng, (4096,))}

    def observe(solution, inputs):
        return checked_run(lambda: metal(solution).swiglu(**inputs))

    def verify(inputs, values):
        size = inputs["gate"].nbytes
        most = {"device_read_bytes": 2 * size, "device_write_bytes": size}
        lines = {"device_read_lines": 2 * size / 128, "device_write_lines": size / 128}
        judge_traffic(values, "swiglu", most | lines)


@case(task=4)
class SwigluIsComputedByTheKernel:
    """The result is what the Metal kernel returns, not something computed beside it."""

    def inputs(rng):
        return {"gate": normal(rng, (64,)), "up": normal(rng, (64,))}

    def observe(solution, inputs):
        return proven_run(lambda: metal(solution).swiglu(**inputs), ["swiglu"])

    def verify(inputs, values):
        judge_proof(values, ["swiglu"])
