"""Day 1, attention: the float64 formula, MLX's own attention and MLX's own multi-head layer are the oracles."""

import math

import mlx.core as mx
import mlx.nn
import numpy as np

from course.case import case
from course.compare import close, same

LOW = {mx.float32: 1e-5, mx.float16: 1e-2, mx.bfloat16: 5e-2}  # after several roundings in that dtype


def f64(x: mx.array) -> np.ndarray:
    return np.array(x.astype(mx.float32)).astype(np.float64)


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: mx.Dtype = mx.float32, scale: float = 1.0):
    return mx.array((scale * rng.standard_normal(shape)).astype(np.float32)).astype(dtype)


def naive_softmax(x: np.ndarray, axis: int | None = -1) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        e = np.exp(x.astype(np.float32)).astype(np.float64)
        return e / e.sum(axis=axis, keepdims=True)


def exact_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def attend(q, k, v, scale=None, mask=None, axis=-1) -> np.ndarray:
    """Attention in float64; `axis` is where the softmax runs."""
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    return exact_softmax(scores if mask is None else scores + mask, axis) @ v


@case(
    task=1,
    params=[
        {"shape": (5,)},
        {"shape": (3, 7)},
        {"shape": (2, 3, 1, 9)},
        {"shape": (4, 33), "dtype": mx.float16},
        {"shape": (4, 33), "dtype": mx.bfloat16},
    ],
)
class SoftmaxMatchesFloat64:
    """The weights are exp(x) over the sum of exp(x) along the last axis, in the shape and dtype of x."""

    def inputs(rng, shape, dtype=mx.float32):
        return normal(rng, shape, dtype, 2.0)

    def observe(solution, x):
        return solution.module("model.basics").softmax(x)

    def verify(x, got):
        scores = f64(x)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        suspects = {
            "the exponentials were not divided by their sum": e,
            "the sum ran over the whole array, not along the axis": e / e.sum(),
            "the sum ran over the whole array, not along the axis, and no maximum was subtracted": naive_softmax(
                scores, None
            ),
        }
        close(got, exact_softmax(scores), dtype=x.dtype, suspects=suspects, what="softmax(x)")


@case(task=1, params=[{"axis": 0}, {"axis": 1}, {"axis": 2}, {"axis": -2}, {"axis": -1}])
class SoftmaxRunsAlongAnyAxis:
    """`axis` chooses the axis whose weights sum to 1, counted from the front or from the back."""

    def inputs(rng, axis):
        return {"x": normal(rng, (4, 4, 4), scale=2.0), "axis": axis}

    def observe(solution, inputs):
        return solution.module("model.basics").softmax(inputs["x"], axis=inputs["axis"])

    def verify(inputs, got):
        x, axis = f64(inputs["x"]), inputs["axis"]
        e = np.exp(x - x.max(axis, keepdims=True))
        suspects = {
            "axis was ignored: the last axis was used": exact_softmax(x),
            "the sum ran along the last axis, not along `axis`": e / e.sum(-1, keepdims=True),
            "the sum is missing its axis: it ran over the whole array": e / e.sum(),
        }
        close(got, exact_softmax(x, axis), suspects=suspects, what=f"softmax(x, axis={axis})")


@case(
    task=1,
    params=[
        {"low": 80, "high": 3e4},
        {"low": -3e4, "high": -200},
        {"low": -6e4, "high": 6e4, "dtype": mx.float16},
        {"low": -1e38, "high": 1e38, "dtype": mx.bfloat16},
    ],
)
class SoftmaxSurvivesLargeScores:
    """Scores of any size give finite weights: a constant added to a row changes nothing."""

    def inputs(rng, low, high, dtype=mx.float32):
        levels = rng.uniform(low, high, (6, 1))
        levels[0], levels[1] = low, high  # a row far below another
        return mx.array((levels + rng.standard_normal((6, 8))).astype(np.float32)).astype(dtype)

    def observe(solution, x):
        return solution.module("model.basics").softmax(x)

    def verify(x, got):
        scores = f64(x)

        def global_maximum():
            return naive_softmax(scores - scores.max())

        suspects = {
            "the maximum was not subtracted, so exp() overflows or all of a row vanishes": naive_softmax(scores),
            "one maximum for the whole array: rows far below it vanish": global_maximum,
            "the minimum was subtracted": lambda: naive_softmax(scores - scores.min(-1, keepdims=True)),
        }
        close(got, exact_softmax(scores), dtype=x.dtype, suspects=suspects, what="softmax(x)")


@case(task=1, params=[{"spread": 1.0}, {"spread": 200.0}, {"spread": 20.0, "dtype": mx.bfloat16}])
class SoftmaxGivesHiddenScoresNoWeight:
    """A score of -inf gets weight 0, and equal scores get equal weights, however far apart the others lie."""

    def inputs(rng, spread, dtype=mx.float32):
        x = np.round(spread * rng.standard_normal((5, 12)), 1)
        x[:, 3] = x[:, 7] = x.max(axis=-1)  # ties for the largest
        x[rng.random(x.shape) < 0.4] = -np.inf
        x[:, 3], x[0, :3], x[1] = 0.5, -np.inf, -np.inf
        x[1, 4] = -spread  # one visible score
        return mx.array(x.astype(np.float32)).astype(dtype)

    def observe(solution, x):
        return solution.module("model.basics").softmax(x)

    def verify(x, got):
        scores = f64(x)
        with np.errstate(invalid="ignore"):
            mean = exact_softmax(scores - scores.mean(-1, keepdims=True))
        suspects = {"something other than the maximum was subtracted: -inf - (-inf) is NaN": mean}
        close(got, exact_softmax(scores), dtype=x.dtype, suspects=suspects, what="softmax(x)")
        hidden = np.array(got.astype(mx.float32))[np.isneginf(scores)]
        if hidden.any():
            raise AssertionError(f"a score of -inf got the weight {hidden.max():.3g}: it must be exactly 0")


@case(task=1)
class SoftmaxOfAVocabulary:
    """A float16 row as long as a vocabulary works: its sum of exponentials is larger than float16 can hold."""

    def inputs(rng):
        return mx.array(rng.uniform(-0.3, 0.0, 151_936).astype(np.float32)).astype(mx.float16)

    def observe(solution, x):
        return solution.module("model.basics").softmax(x)

    def verify(x, got):
        suspects = {"the sum was taken in float16, whose largest number is 65504": np.zeros(x.shape)}
        close(got, exact_softmax(f64(x)), tol=2e-2, dtype=mx.float16, suspects=suspects, what="softmax(x)")


@case(task=1, params=[{"visible": 257}, {"visible": 1028}, {"visible": 131_584}])
class SoftmaxSumsInFloat32:
    """n equal bfloat16 scores get the weight 1 / n, also where bfloat16 cannot hold the number n."""

    def inputs(rng, visible):
        x = np.full(visible + int(rng.integers(visible // 4)), rng.uniform(-9, 9))
        x[rng.permutation(x.size)[visible:]] = -np.inf
        return mx.array(x.astype(np.float32)).astype(mx.bfloat16)

    def observe(solution, x):
        return solution.module("model.basics").softmax(x)

    def verify(x, got):
        want = exact_softmax(f64(x))
        rounded = mx.array(1 / want.max()).astype(mx.bfloat16).item()
        suspects = {"the sum was rounded to bfloat16, which has 8 bits: take it in float32": (want > 0) / rounded}
        close(got, want, tol=2e-3, dtype=mx.bfloat16, suspects=suspects, what="softmax(x)")


@case(task=1)
class SoftmaxLeavesItsArgumentAlone:
    """The caller's array is the same after the call as before it."""

    def inputs(rng):
        return normal(rng, (3, 5))

    def observe(solution, x):
        return {"weights": solution.module("model.basics").softmax(x), "x": x}

    def verify(x, values):
        close(values["weights"], exact_softmax(f64(x)), what="softmax(x)")
        same(values["x"], x, "x after the call was changed (x -= ... writes into the caller's array): x")


@case(
    task=2,
    params=[
        {"leading": (), "n_in": 5, "n_out": 3},
        {"leading": (4,), "n_in": 1, "n_out": 6},
        {"leading": (2, 3, 4), "n_in": 9, "n_out": 2},
        {"leading": (3, 5), "n_in": 16, "n_out": 7, "dtype": mx.float16},
        {"leading": (3, 5), "n_in": 16, "n_out": 7, "dtype": mx.bfloat16},
    ],
)
class LinearMatchesFloat64:
    """y = x W^T over the last axis of x; every other axis passes through, and the dtype stays."""

    def inputs(rng, leading, n_in, n_out, dtype=mx.float32):
        return {"x": normal(rng, (*leading, n_in), dtype), "w": normal(rng, (n_out, n_in), dtype)}

    def observe(solution, inputs):
        return solution.module("model.basics").linear(inputs["x"], inputs["w"])

    def verify(inputs, got):
        want = f64(inputs["x"]) @ f64(inputs["w"]).T
        flat = want.reshape(-1, want.shape[-1])
        suspects = {"the leading axes were flattened and not restored": flat}
        dtype = inputs["x"].dtype
        close(got, want, tol=LOW[dtype], dtype=dtype, suspects=suspects, what="linear(x, w)")


@case(task=2, params=[{"leading": ()}, {"leading": (6,)}, {"leading": (2, 6)}])
class LinearTransposesASquareWeight:
    """Row o of w makes output feature o, also where w is square and the shapes cannot tell."""

    def inputs(rng, leading):
        return {"x": normal(rng, (*leading, 6)), "w": normal(rng, (6, 6)), "bias": normal(rng, (6,))}

    def observe(solution, inputs):
        basics = solution.module("model.basics")
        return [basics.linear(inputs["x"], inputs["w"]), basics.linear(inputs["x"], inputs["w"], inputs["bias"])]

    def verify(inputs, values):
        x, w, b = f64(inputs["x"]), f64(inputs["w"]), f64(inputs["bias"])
        untransposed = "w was not transposed: its rows are output features"
        close(values[0], x @ w.T, suspects={untransposed: x @ w}, what="linear(x, w)")
        close(values[1], x @ w.T + b, suspects={untransposed: x @ w + b}, what="linear(x, w, bias)")


@case(
    task=2,
    params=[
        {"leading": (), "n_in": 3},
        {"leading": (4,), "n_in": 4},
        {"leading": (3, 4), "n_in": 7},
        {"leading": (4,), "n_in": 8, "dtype": mx.float16},
        {"leading": (4,), "n_in": 8, "dtype": mx.bfloat16},
    ],
)
class LinearAddsTheBias:
    """bias[o] is added to output feature o of every row; None adds nothing."""

    def inputs(rng, leading, n_in, dtype=mx.float32):
        shapes = {"x": (*leading, n_in), "w": (4, n_in), "bias": (4,)}
        return {name: normal(rng, shape, dtype) for name, shape in shapes.items()}

    def observe(solution, inputs):
        linear = solution.module("model.basics").linear
        return [linear(inputs["x"], inputs["w"], inputs["bias"]), linear(inputs["x"], inputs["w"], None)]

    def verify(inputs, values):
        product, b = f64(inputs["x"]) @ f64(inputs["w"]).T, f64(inputs["bias"])
        suspects = {
            "the bias was ignored": product,
            "the bias was subtracted": product - b,
            "the bias was added twice": product + 2 * b,
            "the bias was added to rows, not to output features": lambda: product + b[:, None],
        }
        dtype = inputs["x"].dtype
        close(values[0], product + b, tol=LOW[dtype], dtype=dtype, suspects=suspects, what="linear(x, w, bias)")
        close(values[1], product, tol=LOW[dtype], dtype=dtype, what="linear(x, w, None)")


@case(
    task=3,
    params=[
        {"B": 1, "H": 1, "L": 4, "S": 4, "D": 8},
        {"B": 2, "H": 3, "L": 5, "S": 7, "D": 6},
        {"B": 2, "H": 2, "L": 1, "S": 9, "D": 16},
        {"B": 2, "H": 2, "L": 5, "S": 5, "D": 8, "dtype": mx.float16},
        {"B": 2, "H": 2, "L": 5, "S": 6, "D": 8, "dtype": mx.bfloat16},
    ],
)
class AttentionMatchesMlx:
    """The result is that of MLX's own attention operator, with scale 1 / sqrt(D) where none is given."""

    def inputs(rng, B, H, L, S, D, dtype=mx.float32):
        shapes = {"q": (B, H, L, D), "k": (B, H, S, D), "v": (B, H, S, D)}
        return {name: normal(rng, shape, dtype) for name, shape in shapes.items()}

    def observe(solution, inputs):
        return solution.module("model.attention").scaled_dot_product_attention(**inputs)

    def verify(inputs, got):
        D, dtype = inputs["q"].shape[-1], inputs["q"].dtype
        wide = {name: x.astype(mx.float32) for name, x in inputs.items()}
        want = mx.fast.scaled_dot_product_attention(*wide.values(), scale=1 / math.sqrt(D))
        q, k, v = (f64(x) for x in inputs.values())
        suspects = {
            "the scale was forgotten": lambda: attend(q, k, v, 1.0),
            "the scale is 1 / D, not 1 / sqrt(D)": lambda: attend(q, k, v, 1 / D),
            "the scores were multiplied by sqrt(D)": lambda: attend(q, k, v, math.sqrt(D)),
            "the scale uses the number of keys, not D": lambda: attend(q, k, v, k.shape[-2] ** -0.5),
            "the softmax ran over the queries, not over the keys": lambda: attend(q, k, v, axis=-2),
            "k was reshaped to (D, S), not transposed": lambda: attend(
                q, np.swapaxes(k.reshape(*k.shape[:-2], D, -1), -1, -2), v
            ),
            "the softmax is missing": lambda: q @ np.swapaxes(k, -1, -2) / math.sqrt(D) @ v,
        }
        close(got, want, tol=LOW[dtype], dtype=dtype, suspects=suspects, what="attention(q, k, v)")


@case(
    task=3,
    params=[
        {"q": (5, 6), "k": (4, 6), "v": (4, 6)},
        {"q": (5, 6), "k": (4, 6), "v": (4, 3)},
        {"q": (3, 1, 6), "k": (3, 4, 6), "v": (3, 4, 6)},
        {"q": (2, 2, 3, 5, 4), "k": (2, 2, 3, 7, 4), "v": (2, 2, 3, 7, 9)},
        {"q": (2, 3, 5, 4), "k": (3, 7, 4), "v": (3, 7, 4)},
        {"q": (2, 3, 5, 4), "k": (2, 1, 7, 4), "v": (2, 1, 7, 4)},
    ],
)
class AttentionTakesAnyLeadingAxes:
    """None, one or many leading axes, also ones that broadcast; values may be wider or narrower than keys."""

    def inputs(rng, q, k, v):
        return {"q": normal(rng, q), "k": normal(rng, k), "v": normal(rng, v)}

    def observe(solution, inputs):
        return solution.module("model.attention").scaled_dot_product_attention(**inputs)

    def verify(inputs, got):
        close(got, attend(*(f64(x) for x in inputs.values())), what="attention(q, k, v)")


@case(task=3, params=[{"scale": s} for s in (0.37, 1.0, 0.0, -0.5, 2.0)])
class AttentionUsesTheGivenScale:
    """A given scale replaces 1 / sqrt(D); 0.0 is a scale too, and makes all weights equal."""

    def inputs(rng, scale):
        return {"q": normal(rng, (2, 4, 8)), "k": normal(rng, (2, 5, 8)), "v": normal(rng, (2, 5, 8)), "scale": scale}

    def observe(solution, inputs):
        return solution.module("model.attention").scaled_dot_product_attention(**inputs)

    def verify(inputs, got):
        q, k, v = (f64(inputs[name]) for name in "qkv")
        scale, usual = inputs["scale"], 8**-0.5
        suspects = {
            "the given scale was ignored": lambda: attend(q, k, v),
            "the scores were divided by the scale": lambda: attend(q, k, v, 1 / scale),
            "1 / sqrt(D) was applied on top of the given scale": lambda: attend(q, k, v, scale * usual),
            "the values were scaled instead of the scores": lambda: attend(q, k, v, 1.0) * scale,
        }
        if scale == 0:
            suspects = {"scale=0.0 was taken for None: `scale or default` does that": lambda: attend(q, k, v)}
        close(got, attend(q, k, v, scale), suspects=suspects, what=f"attention(q, k, v, scale={scale})")


@case(
    task=3,
    params=[
        {"shape": (5, 6)},
        {"shape": (6,)},
        {"shape": (2, 1, 1, 6)},
        {"shape": (3, 5, 1), "hidden": False},
        {"shape": (2, 3, 5, 6), "scale": 0.25},
        {"shape": (5, 6), "dtype": mx.float16},
        {"shape": (5, 6), "dtype": mx.bfloat16},
        {"shape": (5, 6), "dtype": mx.bfloat16, "mask_dtype": mx.float32},
    ],
)
class AttentionAddsTheMask:
    """The mask is added to the scaled scores of every leading axis: 0 lets through, -inf hides, -1.5 weakens."""

    def inputs(rng, shape, hidden=True, scale=None, dtype=mx.float32, mask_dtype=None):
        mask = np.where(rng.random(shape) < 0.4, rng.uniform(-3, 1, shape), 0.0)
        if hidden:
            mask[rng.random(shape) < 0.4] = -np.inf
            mask[..., rng.integers(shape[-1])] = -1.5  # every query sees something
        x = {"q": (2, 3, 5, 8), "k": (2, 3, 6, 8), "v": (2, 3, 6, 8)}
        arrays = {name: normal(rng, s, dtype) for name, s in x.items()}
        return arrays | {"scale": scale, "mask": mx.array(mask.astype(np.float32)).astype(mask_dtype or dtype)}

    def observe(solution, inputs):
        return solution.module("model.attention").scaled_dot_product_attention(**inputs)

    def verify(inputs, got):
        q, k, v, mask = (f64(inputs[name]) for name in ("q", "k", "v", "mask"))
        scale = inputs["scale"]
        suspects = {
            "the mask was ignored": lambda: attend(q, k, v, scale),
            "the mask was subtracted": lambda: attend(q, k, v, scale, -mask),
            "only hidden entries were used: the mask is added, so -1.5 counts": lambda: attend(
                q, k, v, scale, np.where(np.isinf(mask), mask, 0)
            ),
            "the mask was scaled too: add it after the scale": lambda: attend(
                q, k, v, scale, mask * (8**-0.5 if scale is None else scale)
            ),
            "the mask was added after the softmax, not before": lambda: (
                (exact_softmax(q @ np.swapaxes(k, -1, -2) * (8**-0.5 if scale is None else scale)) + mask) @ v
            ),
        }
        dtype = inputs["q"].dtype
        close(got, attend(q, k, v, scale, mask), tol=LOW[dtype], dtype=dtype, suspects=suspects, what="attention")


@case(task=3, params=[{"size": 30.0}, {"size": -30.0}])
class AttentionSurvivesLargeScores:
    """Scores in the thousands pick the best key instead of turning into NaN."""

    def inputs(rng, size):
        q = normal(rng, (2, 4, 16), scale=size)
        return {"q": q, "k": normal(rng, (2, 6, 16), scale=30.0), "v": normal(rng, (2, 6, 16))}

    def observe(solution, inputs):
        return solution.module("model.attention").scaled_dot_product_attention(**inputs)

    def verify(inputs, got):
        q, k, v = (f64(x) for x in inputs.values())
        # Scores near 1e4 keep about 1e-3 of float32, which the exponential turns into a relative error.
        close(got, attend(q, k, v), tol=1e-2, dtype=mx.float32, what="attention(q, k, v)")


def split(x: np.ndarray, H: int) -> np.ndarray:
    """(..., L, H*D) -> (..., H, L, D)."""
    return np.swapaxes(x.reshape(*x.shape[:-1], H, -1), -2, -3)


def join(heads: np.ndarray) -> np.ndarray:
    """(..., H, L, D) -> (..., L, H*D)."""
    rows = np.swapaxes(heads, -2, -3)
    return rows.reshape(*rows.shape[:-2], -1)


def split_unswapped(x: np.ndarray, H: int) -> np.ndarray:
    return x.reshape(*x.shape[:-2], H, x.shape[-2], -1)


def split_interleaved(x: np.ndarray, H: int) -> np.ndarray:
    return np.moveaxis(x.reshape(*x.shape[:-1], -1, H), -1, -3)


def join_unswapped(heads: np.ndarray) -> np.ndarray:
    return heads.reshape(*heads.shape[:-3], heads.shape[-2], -1)


def join_interleaved(heads: np.ndarray) -> np.ndarray:
    rows = np.moveaxis(heads, -3, -1)
    return rows.reshape(*rows.shape[:-2], -1)


def multi_head(x, w_q, w_k, w_v, w_o, H, mask=None, scale=None, split=split, join=join) -> np.ndarray:
    """Multi-head attention in float64; `split` and `join` say how heads share the columns."""
    heads = attend(*(split(x @ w.T, H) for w in (w_q, w_k, w_v)), scale, mask)
    return join(heads) @ w_o.T


def layer_inputs(rng, leading, L, E, H, D, dtype=mx.float32) -> dict[str, object]:
    """x, the weights of a layer (small, so that no softmax saturates) and its number of heads."""
    weights = {name: normal(rng, (H * D, E), dtype, E**-0.5) for name in ("w_q", "w_k", "w_v")}
    w_o = normal(rng, (E, H * D), dtype, (H * D) ** -0.5)
    return {"x": normal(rng, (*leading, L, E), dtype, 1.5), **weights, "w_o": w_o, "H": H}


def exact_inputs(inputs) -> tuple[np.ndarray, ...]:
    """x and the four weights in float64."""
    return tuple(f64(inputs[name]) for name in ("x", "w_q", "w_k", "w_v", "w_o"))


def run_layer(solution, inputs, **kwargs) -> mx.array:
    weights = [inputs[name] for name in ("w_q", "w_k", "w_v", "w_o")]
    return solution.module("model.attention").MultiHeadAttention(inputs["H"], *weights)(inputs["x"], **kwargs)


def layer_suspects(inputs, mask=None) -> dict[str, object]:
    """What a layer gives that cuts or joins its heads wrongly; only those that fit the shapes."""
    x, w_q, w_k, w_v, w_o = exact = exact_inputs(inputs)
    H, width = inputs["H"], w_q.shape[0]
    E = x.shape[-1]
    swapped = "the heads were split by a reshape alone: it does not move the head axis before L"
    suspects = {
        swapped: lambda: multi_head(*exact, H, mask, split=split_unswapped),
        "the heads were joined by a reshape alone: swap H and L back first": lambda: multi_head(
            *exact, H, mask, join=join_unswapped
        ),
        "the heads were split and joined by a reshape alone: it does not swap H and L": lambda: multi_head(
            *exact, H, mask, split=split_unswapped, join=join_unswapped
        ),
        "the heads are interleaved: head h owns D neighbouring columns": lambda: multi_head(
            *exact, H, mask, split=split_interleaved
        ),
        "the heads are interleaved on both ways: head h owns D neighbouring columns": lambda: multi_head(
            *exact, H, mask, split=split_interleaved, join=join_interleaved
        ),
        "the heads were joined interleaved: head h owns D neighbouring columns": lambda: multi_head(
            *exact, H, mask, join=join_interleaved
        ),
        "the scale uses all columns, not those of one head": lambda: multi_head(*exact, H, mask, width**-0.5),
        "the scale is missing": lambda: multi_head(*exact, H, mask, 1.0),
        "w_k was used for the values": lambda: multi_head(x, w_q, w_k, w_k, w_o, H, mask),
        "w_q was used for the keys": lambda: multi_head(x, w_q, w_q, w_v, w_o, H, mask),
        "queries and keys changed places": lambda: multi_head(x, w_k, w_q, w_v, w_o, H, mask),
    }
    if width == E:
        suspects["w_o was left out"] = lambda: multi_head(x, w_q, w_k, w_v, np.eye(E), H, mask)
        suspects["w_o was not transposed"] = lambda: multi_head(x, w_q, w_k, w_v, w_o.T, H, mask)
    return suspects


@case(
    task=4,
    params=[
        {"leading": (2,), "L": 5, "E": 12, "H": 3, "D": 4},
        {"leading": (1,), "L": 4, "E": 8, "H": 4, "D": 2},
        {"leading": (2,), "L": 6, "E": 8, "H": 1, "D": 8},
        {"leading": (2,), "L": 3, "E": 10, "H": 2, "D": 7},
        {"leading": (1,), "L": 3, "E": 6, "H": 5, "D": 1},
    ],
)
class MultiHeadMatchesMlx:
    """The layer is MLX's own multi-head layer, also where D is not E / H."""

    def inputs(rng, leading, L, E, H, D):
        return layer_inputs(rng, leading, L, E, H, D)

    def observe(solution, inputs):
        return run_layer(solution, inputs)

    def verify(inputs, got):
        x, H, (width, E) = inputs["x"], inputs["H"], inputs["w_q"].shape
        sizes = {
            "query_input_dims": E,
            "key_input_dims": E,
            "value_input_dims": E,
            "value_dims": width,
            "value_output_dims": E,
        }
        layer = mlx.nn.MultiHeadAttention(width, H, **sizes)
        names = {"query_proj": "w_q", "key_proj": "w_k", "value_proj": "w_v", "out_proj": "w_o"}
        layer.load_weights([(f"{name}.weight", inputs[ours]) for name, ours in names.items()])
        suspects = layer_suspects(inputs) | {
            "nothing was split: one head does all": lambda: multi_head(*exact_inputs(inputs), 1)
        }
        close(got, layer(x, x, x), suspects=suspects, what="MultiHeadAttention(x)")


@case(task=4, params=[{"leading": ()}, {"leading": (3,)}, {"leading": (2, 3)}, {"leading": (2, 1, 2)}])
class MultiHeadTakesAnyLeadingAxes:
    """x may have no batch axis or several."""

    def inputs(rng, leading):
        return layer_inputs(rng, leading, 4, 6, 3, 2)

    def observe(solution, inputs):
        return run_layer(solution, inputs)

    def verify(inputs, got):
        want = multi_head(*exact_inputs(inputs), inputs["H"])
        close(got, want, suspects=layer_suspects(inputs), what="MultiHeadAttention(x)")


@case(task=4, params=[{"shape": s} for s in ((5, 5), (5,), (2, 5, 5), (2, 1, 5), (3, 1, 5, 5), (3, 2, 5, 5))])
class MultiHeadMasksEachHead:
    """The mask reaches every head, or the head it is made for: it broadcasts to (..., H, L, L)."""

    def inputs(rng, shape):
        mask = np.where(rng.random(shape) < 0.4, -np.inf, rng.uniform(-2, 1, shape))
        mask[..., rng.integers(shape[-1])] = 0.0
        return layer_inputs(rng, (3,), 5, 8, 2, 3) | {"mask": mx.array(mask.astype(np.float32))}

    def observe(solution, inputs):
        return run_layer(solution, inputs, mask=inputs["mask"])

    def verify(inputs, got):
        exact, H, mask = exact_inputs(inputs), inputs["H"], f64(inputs["mask"])
        every_head = np.broadcast_to(mask, (3, H, 5, 5))
        first_only = np.where(np.arange(H)[:, None, None] == 0, every_head, 0.0)
        suspects = layer_suspects(inputs, mask) | {
            "the mask was ignored": lambda: multi_head(*exact, H),
            "the mask reached head 0 only": lambda: multi_head(*exact, H, first_only),
            "every head used the mask of head 0": lambda: multi_head(*exact, H, every_head[:, :1]),
        }
        close(got, multi_head(*exact, H, mask), suspects=suspects, what="MultiHeadAttention(x, mask)")


@case(task=4, params=[{"dtype": mx.float16}, {"dtype": mx.bfloat16}, {"dtype": mx.bfloat16, "masked": True}])
class MultiHeadKeepsTheDtype:
    """float16 and bfloat16 stay what they are, also under a float32 mask."""

    def inputs(rng, dtype, masked=False):
        mask = np.where(np.tri(5) > 0, 0.0, -np.inf) if masked else np.zeros((5, 5))
        return layer_inputs(rng, (2,), 5, 8, 2, 4, dtype) | {"mask": mx.array(mask.astype(np.float32))}

    def observe(solution, inputs):
        return run_layer(solution, inputs, mask=inputs["mask"])

    def verify(inputs, got):
        want = multi_head(*exact_inputs(inputs), inputs["H"], f64(inputs["mask"]))
        dtype = inputs["x"].dtype
        close(got, want, tol=LOW[dtype], dtype=dtype, what="MultiHeadAttention(x, mask)")
