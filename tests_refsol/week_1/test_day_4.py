"""Week 1 Day 4: RMSNorm, SiLU and the gated MLP, against NumPy in float64 and MLX's own operator."""

import mlx.core as mx
import mlx.nn
import numpy as np

from course.case import case
from course.compare import close

FLOATS = [mx.float32, mx.float16, mx.bfloat16]
TOLERANCE = {mx.float32: 1e-5, mx.float16: 4e-3, mx.bfloat16: 1.6e-2}


def normal(rng, shape, dtype=mx.float32, scale=1.0):
    return mx.array(rng.standard_normal(shape) * scale).astype(dtype)


def signed(rng, size, dtype=mx.float32):
    """Weights of both signs, none near 0 or 1."""
    return mx.array(rng.uniform(0.3, 0.8, size) * rng.choice([-1, 4], size)).astype(dtype)


def wide(x):
    """The values of an array of any dtype, in float64."""
    return np.array(x.astype(mx.float32), dtype=np.float64)


def rms_norm64(x, weight, eps):
    x = wide(x)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * wide(weight)


def likely_norms(x, weight, eps):
    """What well-known wrong RMSNorms return, by the mistake."""
    x, weight = wide(x), wide(weight)
    mean_square = (x * x).mean(-1, keepdims=True)
    centred = x - x.mean(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "the weight was not applied": x / np.sqrt(mean_square + eps),
            "1 + weight was applied, as Gemma does": x / np.sqrt(mean_square + eps) * (1 + weight),
            "the sum of squares was taken, not their mean": x / np.sqrt((x * x).sum(-1, keepdims=True) + eps) * weight,
            "the mean was subtracted: that is LayerNorm": centred
            / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
            * weight,
            "eps was added outside the root": x / (np.sqrt(mean_square) + eps) * weight,
            "eps was left out": x / np.sqrt(mean_square) * weight,
            "eps was fixed at 1e-6 instead of the given one": x / np.sqrt(mean_square + 1e-6) * weight,
            "eps was squared": x / np.sqrt(mean_square + eps**2) * weight,
            "the root was forgotten": x / (mean_square + eps) * weight,
            "x was multiplied by the root instead of divided": x * np.sqrt(mean_square + eps) * weight,
            "the mean was taken over all axes, not the last": x / np.sqrt((x * x).mean() + eps) * weight,
            "the mean was taken over the first axis, not the last": x / np.sqrt((x * x).mean(0) + eps) * weight,
            "the mean lost its axis: keepdims": lambda: (
                x / np.sqrt(mean_square.squeeze(-1) + eps) * weight if x.ndim > 1 and x.shape[-1] == x.shape[-2] else x
            ),
            "the weight was in the denominator too": x / np.sqrt(mean_square + eps) / weight,
        }


def norm(solution, inputs):
    return solution.module("model.norm").RMSNorm(inputs["weight"], inputs["eps"])(inputs["x"])


def check_norm(inputs, values):
    """`values` is the RMSNorm of `inputs`, in the dtype of x."""
    x, suspects = inputs["x"], likely_norms(**inputs)
    close(values, rms_norm64(**inputs), tol=TOLERANCE[x.dtype], dtype=x.dtype, suspects=suspects)


@case(
    task=1,
    params=[
        {"shape": (2, 5, 8)},
        {"shape": (7,)},
        {"shape": (6, 6)},
        {"shape": (1, 33)},
        {"shape": (2, 1, 3, 4, 5)},
        {"shape": (3, 1)},
        *[{"shape": (2, 3, 16), "dtype": dtype} for dtype in FLOATS],
        {"shape": (4, 515), "dtype": mx.float16},
        {"shape": (4, 515), "dtype": mx.bfloat16},
    ],
)
class RmsNormMatchesFloat64:
    """Each vector along the last axis is divided by the root of its mean square and multiplied by the weight."""

    def inputs(rng, shape, dtype=mx.float32):
        x = mx.array(rng.standard_normal(shape) + 0.7 * rng.standard_normal((*shape[:-1], 1))).astype(dtype)
        return {"x": x, "weight": signed(rng, shape[-1], dtype), "eps": 1e-6}

    observe = norm

    verify = check_norm


@case(task=1, params=[{"eps": 1e-6, "dtype": dtype} for dtype in FLOATS] + [{"eps": 0.1, "dtype": mx.float32}])
class RmsNormMatchesMlx:
    """The result equals that of MLX's own RMSNorm."""

    def inputs(rng, eps, dtype):
        return {"x": normal(rng, (3, 4, 24), dtype), "weight": signed(rng, 24, dtype), "eps": eps}

    observe = norm

    def verify(inputs, values):
        x = inputs["x"]
        want = wide(mx.fast.rms_norm(x, inputs["weight"], inputs["eps"]))
        close(values, want, tol=TOLERANCE[x.dtype], dtype=x.dtype, suspects=likely_norms(**inputs))


@case(
    task=1,
    params=[
        {"eps": 0.5, "size": 1.0},
        {"eps": 1e-2, "size": 0.1},
        {"eps": 1e-6, "size": 1e-3},
        {"eps": 1e-6, "size": 1e-4},
        {"eps": 1e-6, "size": 3e-4, "dtype": mx.float16},
        {"eps": 1e-5, "size": 1e-3, "dtype": mx.bfloat16},
        {"eps": 1e-6, "size": 0.0},
    ],
)
class EpsStandsInsideTheRoot:
    """eps is added to the mean square, under the root: small vectors stay small and zeros stay zeros."""

    def inputs(rng, eps, size, dtype=mx.float32):
        return {"x": normal(rng, (3, 12), dtype, size), "weight": signed(rng, 12, dtype), "eps": eps}

    observe = norm

    verify = check_norm


@case(task=1, params=[{"size": 300.0}, {"size": 15000.0}, {"size": 1e15, "dtype": mx.float32}])
class LargeValuesDoNotOverflow:
    """Squares beyond 65,504 are no problem for float16 inputs: the mean square is taken in float32."""

    def inputs(rng, size, dtype=mx.float16):
        x = rng.uniform(0.5, 4.0, (2, 3, 40)) * rng.choice([-1, 1], (2, 3, 40)) * size
        return {"x": mx.array(x).astype(dtype), "weight": signed(rng, 40, dtype), "eps": 1e-6}

    observe = norm

    def verify(inputs, values):
        want = rms_norm64(**inputs)
        squares = {"the squares overflowed: x * x does not fit into float16": np.copysign(0.0, want)}
        close(
            values,
            want,
            tol=TOLERANCE[inputs["x"].dtype],
            dtype=inputs["x"].dtype,
            suspects=squares | likely_norms(**inputs),
        )


@case(
    task=1,
    params=[{"dtype": x, "weight_dtype": w} for x in FLOATS for w in FLOATS if x != w],
)
class TheDtypeIsThatOfX:
    """A weight of another dtype changes neither the dtype of the result nor its precision."""

    def inputs(rng, dtype, weight_dtype):
        return {"x": normal(rng, (2, 3, 20), dtype, 3.0), "weight": signed(rng, 20, weight_dtype), "eps": 1e-6}

    observe = norm

    verify = check_norm


@case(task=1, params=[{"factor": 0.5}, {"factor": 16.0}, {"factor": -8.0}])
class ScaleDoesNotMatter:
    """A vector and any multiple of it have the same direction, so the same norm, up to the sign."""

    def inputs(rng, factor):
        return {"x": normal(rng, (4, 9), mx.float32, 5.0), "weight": signed(rng, 9), "eps": 1e-6, "factor": factor}

    def observe(solution, inputs):
        layer = solution.module("model.norm").RMSNorm(inputs["weight"], inputs["eps"])
        return {"x": layer(inputs["x"]), "multiple": layer(inputs["x"] * inputs["factor"])}

    def verify(inputs, values):
        want = rms_norm64(inputs["x"], inputs["weight"], inputs["eps"])
        close(values["x"], want, what="RMSNorm(x)")
        close(values["multiple"], np.sign(inputs["factor"]) * want, what=f"RMSNorm({inputs['factor']:g} x)")


def sigmoid64(x):
    return np.exp(-np.logaddexp(0.0, -x))


def silu64(x):
    return x * sigmoid64(x)


def gelu64(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def likely_activations(x):
    """What is mistaken for SiLU, by the mistake."""
    return {
        "the sigmoid was not multiplied by x": sigmoid64(x),
        "the sign of x inside the sigmoid is wrong": x * sigmoid64(-x),
        "this is ReLU": np.maximum(x, 0.0),
        "this is GELU": gelu64(x),
        "this is GELU's approximation by sigmoid(1.702 x)": x * sigmoid64(1.702 * x),
        "tanh was taken for the sigmoid": x * np.tanh(x),
        "x was not passed through the sigmoid": x,
        "the sign of the result is wrong": -silu64(x),
    }


def silu(solution, inputs):
    return solution.module("model.mlp").silu(inputs)


@case(
    task=2,
    params=[
        *[{"shape": (3, 17), "dtype": dtype} for dtype in FLOATS],
        {"shape": ()},
        {"shape": (2, 1, 3, 5), "size": 1.0},
        {"shape": (40,), "size": 0.1},
        {"shape": (40,), "size": 12.0},
    ],
)
class SiluMatchesFloat64:
    """silu(x) is x times the logistic sigmoid of x, for every element, in the dtype of x."""

    def inputs(rng, shape, dtype=mx.float32, size=3.0):
        return normal(rng, shape, dtype, size)

    observe = silu

    def verify(x, values):
        close(values, silu64(wide(x)), dtype=x.dtype, suspects=likely_activations(wide(x)))


@case(task=2, params=[{"dtype": dtype} for dtype in FLOATS])
class SiluMatchesMlx:
    """The result equals that of MLX's own SiLU."""

    def inputs(rng, dtype):
        return normal(rng, (5, 11), dtype, 2.0)

    observe = silu

    def verify(x, values):
        want = wide(mlx.nn.silu(x))
        close(values, want, dtype=x.dtype, suspects=likely_activations(wide(x)))


@case(task=2, params=[{"dtype": mx.float32, "largest": 3e38}, {"dtype": mx.float16, "largest": 6e4}])
class SiluIsFiniteForEveryFiniteNumber:
    """Large positive numbers come back as they are and large negative ones as 0, without NaN or infinity."""

    def inputs(rng, dtype, largest):
        size = np.array([20.0, 100.0, 700.0, 2e4, largest])
        x = np.concatenate([rng.permutation(size * rng.uniform(0.9, 1.0, 5)), -rng.permutation(size), [0.0]])
        return mx.array(x.astype(np.float32)).astype(dtype)

    observe = silu

    def verify(x, values):
        x64 = wide(x)
        want = silu64(x64)
        overflow = "exp overflowed to infinity: inf / inf and 0 * inf are NaN"
        assert not np.isnan(wide(values)).any(), f"silu({x64[np.isnan(wide(values))][0]:g}) is NaN: {overflow}"
        suspects = {"exp overflowed to infinity": np.where(x64 > 15, np.inf, want)} | likely_activations(x64)
        close(values, want, dtype=x.dtype, suspects=suspects)
        # The largest number sets the scale above, so the others are compared among themselves.
        close(wide(values)[np.abs(x64) < 1e3], want[np.abs(x64) < 1e3], tol=2e-3, what="silu where |x| < 1000")


@case(task=2)
class SiluAtKnownPoints:
    """silu(0) = 0, silu(ln 3) = 3/4 ln 3, silu(-ln 3) = -1/4 ln 3, and silu(x) - silu(-x) = x."""

    def inputs(rng):
        return {"points": mx.array([0.0, np.log(3.0), -np.log(3.0)]), "x": normal(rng, (30,), mx.float32, 2.0)}

    def observe(solution, inputs):
        activation = solution.module("model.mlp").silu
        return {
            "points": activation(inputs["points"]),
            "difference": activation(inputs["x"]) - activation(-inputs["x"]),
        }

    def verify(inputs, values):
        want = np.array([0.0, 0.75 * np.log(3.0), -0.25 * np.log(3.0)])
        close(values["points"], want, suspects=likely_activations(wide(inputs["points"])))
        close(values["difference"], wide(inputs["x"]), what="silu(x) - silu(-x)")


def swiglu64(x, w_gate, w_up, w_down, activation=silu64):
    x, w_gate, w_up, w_down = map(wide, (x, w_gate, w_up, w_down))
    return activation(x @ w_gate.T) * (x @ w_up.T) @ w_down.T


def likely_mlps(x, w_gate, w_up, w_down):
    """What well-known wrong gated MLPs return, by the mistake."""
    x64, gate, up, down = map(wide, (x, w_gate, w_up, w_down))
    g, u = x64 @ gate.T, x64 @ up.T
    suspects = {
        "the activation stands on the up projection, not on the gate": g * silu64(u) @ down.T,
        "the activation stands on the product": silu64(g * u) @ down.T,
        "both projections were activated": silu64(g) * silu64(u) @ down.T,
        "nothing was activated": g * u @ down.T,
        "gate and up were added, not multiplied": (silu64(g) + u) @ down.T,
        "the gate was left out": u @ down.T,
        "there is no up projection": silu64(g) @ down.T,
        "the gate was multiplied with itself": silu64(g) * g @ down.T,
        "the result was activated once more": silu64(silu64(g) * u @ down.T),
    }
    wrong = {"a sigmoid": sigmoid64, "ReLU": lambda x: np.maximum(x, 0.0), "GELU": gelu64}
    suspects |= {f"the gate went through {name}, not SiLU": f(g) * u @ down.T for name, f in wrong.items()}
    if gate.shape[0] == gate.shape[1]:
        suspects["the weights of gate and up were not transposed"] = silu64(x64 @ gate) * (x64 @ up) @ down.T
        suspects["the weight of down was not transposed"] = silu64(g) * u @ down
    return suspects


def mlp(solution, inputs):
    layer = solution.module("model.mlp").SwiGLU(inputs["w_gate"], inputs["w_up"], inputs["w_down"])
    return layer(inputs["x"])


@case(
    task=3,
    params=[
        {"lead": (2, 3), "E": 8, "hidden": 12},
        {"lead": (), "E": 5, "hidden": 3},
        {"lead": (4,), "E": 6, "hidden": 6},
        {"lead": (2, 1, 3), "E": 7, "hidden": 1},
        {"lead": (1, 1), "E": 16, "hidden": 40},
        {"lead": (2, 3), "E": 8, "hidden": 12, "dtype": mx.float16},
        {"lead": (2, 3), "E": 8, "hidden": 12, "dtype": mx.bfloat16},
        {"lead": (5,), "E": 32, "hidden": 48, "dtype": mx.bfloat16},
    ],
)
class SwiGluMatchesFloat64:
    """Down(SiLU(gate) * up), for any leading axes, sizes and dtype."""

    def inputs(rng, lead, E, hidden, dtype=mx.float32):
        shapes = {"x": (*lead, E), "w_gate": (hidden, E), "w_up": (hidden, E), "w_down": (E, hidden)}
        return {name: normal(rng, shape, dtype, 2 * shape[-1] ** -0.5) for name, shape in shapes.items()}

    observe = mlp

    def verify(inputs, values):
        dtype = inputs["x"].dtype
        tol = 2e-2 if dtype == mx.bfloat16 else TOLERANCE[dtype]
        close(values, swiglu64(**inputs), tol=tol, dtype=dtype, suspects=likely_mlps(**inputs))


@case(task=3, params=[{"sign": 1}, {"sign": -1}])
class AGateThatIsShutLetsNothingThrough:
    """Where the gate is far below zero nothing passes; where it is far above, it multiplies by its own value."""

    def inputs(rng, sign):
        gate = sign * mx.array(rng.uniform(20, 30, (6, 1))) * mx.ones((1, 4))
        x = mx.array(rng.uniform(1.0, 2.0, (3, 4)))
        up, down = normal(rng, (6, 4)), normal(rng, (4, 6))
        return {"x": x.astype(mx.float32), "w_gate": gate.astype(mx.float32), "w_up": up, "w_down": down}

    observe = mlp

    def verify(inputs, values):
        x, gate, up, down = (wide(inputs[name]) for name in ("x", "w_gate", "w_up", "w_down"))
        opened = np.maximum(x @ gate.T, 0.0)  # what SiLU does, to within 1e-30, this far from zero
        close(values, opened * (x @ up.T) @ down.T, dtype=mx.float32, suspects=likely_mlps(**inputs))


@case(task=3, params=[{"factor": 3.0}, {"factor": -0.5}])
class UpIsLinearAndTheGateIsNot:
    """Doubling w_up doubles the result; doubling w_gate does not."""

    def inputs(rng, factor):
        shapes = {"x": (4, 6), "w_gate": (10, 6), "w_up": (10, 6), "w_down": (6, 10)}
        return {name: normal(rng, shape) for name, shape in shapes.items()} | {"factor": factor}

    def observe(solution, inputs):
        weights = {name: inputs[name] for name in ("x", "w_gate", "w_up", "w_down")}
        return {name: mlp(solution, weights | {name: weights[name] * inputs["factor"]}) for name in ("w_up", "w_gate")}

    def verify(inputs, values):
        factor = inputs.pop("factor")
        for name, value in values.items():
            changed = inputs | {name: inputs[name] * factor}
            suspects = likely_mlps(**changed)
            close(value, swiglu64(**changed), suspects=suspects, what=f"result after {name} * {factor:g}")
