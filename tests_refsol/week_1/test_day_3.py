"""Week 1 Day 3: the causal mask and grouped attention, against NumPy in float64 and MLX's own operator."""

import mlx.core as mx
import numpy as np

from course.case import case, error_of
from course.compare import close

FLOATS = [mx.float32, mx.float16, mx.bfloat16]


def normal(rng, shape, dtype=mx.float32):
    return mx.array(rng.standard_normal(shape)).astype(dtype)


def wide(x):
    """The values of an array of any dtype, in float64."""
    return np.array(x.astype(mx.float32), dtype=np.float64)


def visible(L, S):
    """True where a query may see a key: the L queries are the last of S positions."""
    return np.tri(L, S, S - L, dtype=bool)


def additive(seen):
    return np.where(seen, 0.0, -np.inf)


def attention64(q, k, v, scale=None, mask=None, heads=None):
    """Grouped attention in float64. heads: the kv head of each query head, by default groups of neighbours."""
    q, k, v = wide(q), wide(k), wide(v)
    H, H_kv = q.shape[-3], k.shape[-3]
    heads = np.arange(H) // (H // H_kv) if heads is None else heads
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ k[..., heads, :, :].swapaxes(-1, -2) * scale
    if mask is not None:
        scores = scores + (wide(mask) if isinstance(mask, mx.array) else mask)
    top = scores.max(-1, keepdims=True)
    exponentials = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = exponentials.sum(-1, keepdims=True)
    return exponentials / np.where(total, total, 1.0) @ v[..., heads, :, :]


def likely_mistakes(q, k, v, scale=None, mask=None):
    """What well-known wrong solutions return, by the mistake."""
    H, H_kv, group = q.shape[-3], k.shape[-3], q.shape[-3] // k.shape[-3]
    D, D_v, S = q.shape[-1], v.shape[-1], k.shape[-2]

    def shuffled_mask():
        full = np.broadcast_to(wide(mask), (*q.shape[:-1], S))
        heads = np.arange(H).reshape(group, H_kv).T.reshape(-1)
        return attention64(q, k, v, scale, full[..., heads, :, :])

    suspects = {
        "query head h was given kv head h % H_kv, but neighbours share one: h // G": lambda: attention64(
            q, k, v, scale, mask, heads=np.arange(H) % H_kv
        ),
        "every query head was given the first kv head": lambda: attention64(q, k, v, scale, mask, heads=[0] * H),
        "the scores were not scaled": lambda: attention64(q, k, v, 1.0, mask),
        "the scale was 1 / sqrt(D_v)": lambda: attention64(q, k, v, D_v**-0.5, mask),
        "the scale was 1 / sqrt(S)": lambda: attention64(q, k, v, S**-0.5, mask),
        "the given scale was ignored": lambda: attention64(q, k, v, None, mask),
        "the scale was applied twice": lambda: attention64(q, k, v, (scale or D**-0.5) * D**-0.5, mask),
        "the scores were scaled by sqrt(D)": lambda: attention64(q, k, v, D**0.5, mask),
    }
    if mask is not None:
        suspects["the mask was ignored"] = lambda: attention64(q, k, v, scale)
        suspects["the mask's heads were dealt out in another order than the query heads"] = shuffled_mask
        suspects["rows with any hidden key became zeros, not only those that see nothing"] = lambda: np.where(
            np.isinf(np.broadcast_to(wide(mask), (*q.shape[:-1], S))).any(-1, keepdims=True),
            0.0,
            attention64(q, k, v, scale, mask),
        )
        suspects["the mask was multiplied by the scale too"] = lambda: attention64(
            q, k, v, scale, wide(mask) * (scale or D**-0.5)
        )
    return suspects


def grouped(solution, inputs):
    """Call `grouped_attention` with the inputs by their names."""
    return solution.module("model.attention").grouped_attention(**inputs)


@case(
    task=1,
    params=[
        {"L": L, "S": S, "dtype": dtype}
        for (L, S), dtype in zip([(4, 4), (2, 5), (5, 2), (1, 7), (1, 1), (6, 1)], FLOATS * 2, strict=True)
    ],
)
class CausalMaskMatchesNumpy:
    """A query sees itself and every key before it; the L queries stand at the end of the S positions."""

    def inputs(rng, L, S, dtype):
        return {"L": L, "S": S, "dtype": dtype_name(dtype)}

    def observe(solution, inputs):
        return solution.module("model.attention").causal_mask(inputs["L"], inputs["S"], getattr(mx, inputs["dtype"]))

    def verify(inputs, mask):
        L, S = inputs["L"], inputs["S"]
        close(mask, additive(visible(L, S)), tol=0.0, dtype=getattr(mx, inputs["dtype"]), suspects=wrong_masks(L, S))


def dtype_name(dtype):
    return str(dtype).removeprefix("mlx.core.")


def wrong_masks(L, S):
    """Masks of well-known wrong solutions, by the mistake."""
    seen = visible(L, S)
    with np.errstate(invalid="ignore"):
        product = ~seen * -np.inf
    return {
        "the queries stand at the first L positions instead of the last": additive(np.tri(L, S, 0, dtype=bool)),
        "the triangle was shifted by L - S; the queries stand at the end, so by S - L": additive(
            np.tri(L, S, L - S, dtype=bool)
        ),
        "a query does not see its own position": additive(np.tri(L, S, S - L - 1, dtype=bool)),
        "a query sees one key of the future": additive(np.tri(L, S, S - L + 1, dtype=bool)),
        "0 and -inf are swapped": additive(~seen),
        "the future is visible and the past hidden": additive(~np.tri(L, S, S - L - 1, dtype=bool)),
        "hidden keys hold a large negative number instead of -inf": np.where(seen, 0.0, -1e9),
        "the mask says True and False; it must hold what is added to the scores": seen,
        "True for hidden; the mask must hold what is added to the scores": ~seen,
        "0 * -inf is NaN: choose by where instead of multiplying": product,
        "with L > S the first L - S queries stand before the first key: they see nothing": additive(
            seen | (~seen.any(1)[:, None] & (np.arange(S) == 0))
        ),
    }


@case(task=1)
class CausalMaskDefaultsToFloat32:
    """Every size from 1 x 1 to 6 x 6 is right, and the dtype is float32 unless one is given."""

    def inputs(rng):
        return [(int(L), int(S)) for L, S in rng.permutation([(L, S) for L in range(1, 7) for S in range(1, 7)])]

    def observe(solution, inputs):
        return [solution.module("model.attention").causal_mask(L, S) for L, S in inputs]

    def verify(inputs, masks):
        for (L, S), mask in zip(inputs, masks, strict=True):
            suspects = wrong_masks(L, S)
            close(mask, additive(visible(L, S)), tol=0.0, dtype=mx.float32, suspects=suspects, what=f"mask {L} x {S}")


@case(task=1, params=[{"sizes": [3, 4, 1]}, {"sizes": [1, 1, 1, 5]}, {"sizes": [6, 2]}])
class ChunksSeeWhatTheWholeSees:
    """A prompt cut into chunks sees the same keys as the whole prompt, chunk by chunk."""

    def inputs(rng, sizes):
        ends = np.cumsum(rng.permutation(sizes))
        return [(int(end - size), int(end)) for size, end in zip(np.diff(ends, prepend=0), ends, strict=True)]

    def observe(solution, inputs):
        return [solution.module("model.attention").causal_mask(end - start, end) for start, end in inputs]

    def verify(inputs, masks):
        whole = additive(visible(inputs[-1][1], inputs[-1][1]))
        for (start, end), mask in zip(inputs, masks, strict=True):
            want = whole[start:end, :end]
            suspects = wrong_masks(end - start, end)
            close(mask, want, tol=0.0, suspects=suspects, what=f"mask of positions {start} .. {end - 1}")


@case(task=1, params=[{"L": 5, "S": 5}, {"L": 3, "S": 8}])
class CausalMaskActsLikeMlxCausal:
    """Added to the scores, the mask does what MLX's own causal attention does."""

    def inputs(rng, L, S):
        shapes = [(1, 2, L, 8), (1, 2, S, 8), (1, 2, S, 8)]
        return {name: normal(rng, shape) for name, shape in zip("qkv", shapes, strict=True)}

    def observe(solution, inputs):
        return solution.module("model.attention").causal_mask(inputs["q"].shape[-2], inputs["k"].shape[-2])

    def verify(inputs, mask):
        want = mx.fast.scaled_dot_product_attention(**inputs, scale=8**-0.5, mask="causal")
        got = attention64(**inputs, mask=mask)
        L, S = inputs["q"].shape[-2], inputs["k"].shape[-2]
        suspects = {
            text: lambda wrong=wrong: attention64(**inputs, mask=wrong) for text, wrong in wrong_masks(L, S).items()
        }
        close(got, want, tol=1e-5, suspects=suspects, what="attention with this mask")


SHAPES = [
    {"lead": (2,), "H": 4, "H_kv": 2, "L": 5, "S": 5, "D": 8},
    {"lead": (), "H": 6, "H_kv": 3, "L": 3, "S": 7, "D": 5},
    {"lead": (2,), "H": 6, "H_kv": 2, "L": 4, "S": 2, "D": 8, "D_v": 3},
    {"lead": (2, 1, 3), "H": 6, "H_kv": 1, "L": 2, "S": 3, "D": 4, "D_v": 7},
    {"lead": (1,), "H": 3, "H_kv": 3, "L": 1, "S": 9, "D": 16, "D_v": 16},
    {"lead": (2,), "H": 8, "H_kv": 4, "L": 7, "S": 3, "D": 6, "dtype": mx.float16},
    {"lead": (), "H": 6, "H_kv": 1, "L": 5, "S": 4, "D": 3, "D_v": 8, "dtype": mx.bfloat16},
    {"lead": (1, 2), "H": 6, "H_kv": 2, "L": 3, "S": 3, "D": 16, "dtype": mx.bfloat16},
    {"lead": (2,), "H": 4, "H_kv": 2, "L": 2, "S": 6, "D": 8, "dtype": mx.float16, "kv_dtype": mx.float32},
    {"lead": (2,), "H": 4, "H_kv": 2, "L": 2, "S": 6, "D": 8, "kv_dtype": mx.bfloat16},
]


def qkv(rng, lead, H, H_kv, L, S, D, D_v=None, dtype=mx.float32, kv_dtype=None):
    kv_dtype = kv_dtype or dtype
    return {
        "q": normal(rng, (*lead, H, L, D), dtype),
        "k": normal(rng, (*lead, H_kv, S, D), kv_dtype),
        "v": normal(rng, (*lead, H_kv, S, D_v or D), kv_dtype),
    }


def loosest(inputs):
    """The tolerance of the narrowest dtype among the inputs."""
    dtypes = {x.dtype for x in inputs.values() if isinstance(x, mx.array)}
    return 1.6e-2 if mx.bfloat16 in dtypes else 4e-3 if mx.float16 in dtypes else 1e-5


def check_grouped(inputs, values):
    """`values` is the grouped attention of `inputs`, in the dtype of q."""
    suspects, tol = likely_mistakes(**inputs), loosest(inputs)
    close(values, attention64(**inputs), tol=tol, dtype=inputs["q"].dtype, suspects=suspects)


@case(task=2, params=SHAPES)
class GroupsShareAKvHead:
    """Neighbouring query heads share one key/value head, for any head counts, leading axes, lengths and dtypes."""

    inputs = qkv

    observe = grouped

    verify = check_grouped


@case(task=2, params=[{"H": 8, "H_kv": 2}, {"H": 4, "H_kv": 4}, {"H": 4, "H_kv": 1}])
class GroupedAttentionMatchesMlx:
    """The result equals that of MLX's own grouped attention, with a causal mask and more keys than queries."""

    def inputs(rng, H, H_kv):
        mask = mx.array(additive(visible(3, 6)), dtype=mx.float32)
        return qkv(rng, (2,), H, H_kv, 3, 6, 8) | {"mask": mask}

    observe = grouped

    def verify(inputs, values):
        want = mx.fast.scaled_dot_product_attention(**inputs, scale=8**-0.5)
        close(values, want, dtype=mx.float32, suspects=likely_mistakes(**inputs))


MASKS = [(), (7,), (1, 7), (4, 1), (4, 7), (1, 4, 7), (6, 1, 7), (6, 4, 1), (6, 4, 7), (2, 1, 1, 7), (2, 1, 4, 7)]


@case(
    task=2,
    params=[
        *[{"mask": shape} for shape in [*MASKS, (2, 6, 1, 7), (2, 6, 4, 7), (2, 6, 1, 1)]],
        {"mask": (6, 4, 7), "mask_dtype": mx.float16},
        {"mask": (6, 4, 7), "dtype": mx.float16, "mask_dtype": mx.float32},
        {"mask": (2, 1, 4, 7), "dtype": mx.bfloat16},
        {"mask": (6, 1, 7), "dtype": mx.float16, "H_kv": 6},
        {"mask": (6, 4, 7), "H_kv": 1},
        {"mask": (2, 6, 4, 7), "H_kv": 3},
        {"mask": (6, 4, 7), "H_kv": 2, "lead": ()},
        {"mask": (2, 1, 6, 4, 7), "H_kv": 2, "lead": (2, 3)},
    ],
)
class MasksBroadcast:
    """A mask of any shape that broadcasts to (..., H, L, S) is added to the scores, each head with its own."""

    def inputs(rng, mask, dtype=mx.float32, mask_dtype=None, H_kv=2, lead=(2,)):
        numbers = rng.standard_normal(mask) * 2
        if mask and mask[-1] > 1:
            hidden = rng.random(mask) < 0.3
            hidden[..., int(rng.integers(mask[-1]))] = False
            numbers = np.where(hidden, -np.inf, numbers)
        return qkv(rng, lead, 6, H_kv, 4, 7, 8, dtype=dtype) | {"mask": mx.array(numbers).astype(mask_dtype or dtype)}

    observe = grouped

    verify = check_grouped


@case(task=2, params=[{"scale": 0.3}, {"scale": 0.0}, {"scale": -1.5}, {"scale": 0.125, "dtype": mx.bfloat16}])
class TheGivenScaleIsUsed:
    """A given scale replaces 1 / sqrt(D), also where it is 0.0: then every visible value weighs the same."""

    def inputs(rng, scale, dtype=mx.float32):
        mask = mx.array(additive(visible(3, 5)), dtype=mx.float32)
        return qkv(rng, (2,), 4, 2, 3, 5, 7, 6, dtype) | {"scale": scale, "mask": mask}

    observe = grouped

    verify = check_grouped


@case(
    task=2,
    params=[{"rows": rows, "dtype": dtype} for rows in ("some", "all", "causal", "heads") for dtype in FLOATS],
)
class HiddenRowsGiveZeros:
    """A query that may see no key at all gets zeros, never NaN, and leaves the other rows as they are."""

    def inputs(rng, rows, dtype):
        L, S = (5, 3) if rows == "causal" else (4, 6)
        if rows == "causal":
            seen = visible(L, S)
        else:
            seen = rng.random((2, 4, L, S)) < 0.6
            seen[..., int(rng.integers(S))] = True
            seen[..., int(rng.integers(L)), :] = False
        if rows == "heads":
            seen[:, [0, 3]] = False
        if rows == "all":
            seen[:] = False
        return qkv(rng, (2,), 4, 2, L, S, 8, 5, dtype) | {"mask": mx.array(additive(seen)).astype(dtype)}

    observe = grouped

    def verify(inputs, values):
        want = attention64(**inputs)
        hidden = np.broadcast_to(np.isinf(wide(inputs["mask"])).all(-1, keepdims=True), want.shape)
        average = np.broadcast_to(wide(inputs["v"]).mean(-2, keepdims=True).repeat(2, 1), want.shape)
        suspects = {
            "rows that see nothing are NaN: softmax of a row of -inf is 0 / 0": np.where(hidden, np.nan, want),
            "rows that see nothing got the average of all values instead of zeros": np.where(hidden, average, want),
            "rows with any hidden key became zeros, not only those that see nothing": np.where(
                np.broadcast_to(np.isinf(wide(inputs["mask"])).any(-1, keepdims=True), want.shape), 0, want
            ),
        }
        dtype = inputs["q"].dtype
        close(values, want, tol=loosest(inputs), dtype=dtype, suspects=suspects)
        close(wide(values)[hidden], np.zeros(hidden.sum()), tol=0.0, what="rows that see nothing")


@case(task=2, params=[{"name": name, "masked": masked} for name in "qv" for masked in (0, 1)])
class NaNsAreNotHidden:
    """A NaN in a query or in a value that is seen comes out as NaN: only rows that see nothing are cleared."""

    def inputs(rng, name, masked):
        inputs = qkv(rng, (2,), 4, 2, 3, 5, 8, 6)
        numbers = np.array(inputs[name])
        numbers[tuple(int(rng.integers(size)) for size in (*numbers.shape[:2], 1, numbers.shape[3]))] = np.nan
        mask = mx.array(additive(visible(3, 5))).astype(mx.float32)
        return inputs | {name: mx.array(numbers)} | ({"mask": mask} if masked else {})

    observe = grouped

    def verify(inputs, values):
        want = attention64(**inputs)
        suspects = {"a NaN was turned into zeros, which hides the mistake that made it": np.nan_to_num(want)}
        close(values, want, tol=1e-5, dtype=mx.float32, suspects=suspects)


@case(task=2, params=[{"value": -60.0}, {"value": -1000.0}, {"value": 500.0}])
class FiniteMasksHideNothing:
    """The same finite number added to a whole row changes no weight: only -inf hides a key."""

    def inputs(rng, value):
        mask = np.zeros((4, 3, 6))
        mask[:, int(rng.integers(3))] = value
        return qkv(rng, (2,), 4, 2, 3, 6, 8, 8) | {"mask": mx.array(mask).astype(mx.float32)}

    observe = grouped

    def verify(inputs, values):
        want = attention64(inputs["q"], inputs["k"], inputs["v"])
        shifted = np.broadcast_to((wide(inputs["mask"]) != 0).any(-1, keepdims=True), want.shape)
        suspects = {"a row that sees all its keys was taken for one that sees nothing": np.where(shifted, 0.0, want)}
        close(values, want, tol=1e-3, dtype=mx.float32, suspects=suspects)


@case(task=2, params=[{"dtype": dtype, "masked": masked} for dtype in (mx.float32, mx.float16) for masked in (0, 1)])
class LargeScoresStayFinite:
    """Scores in the hundreds, with ties, give finite weights: whole numbers, so every dtype has them exactly."""

    def inputs(rng, dtype, masked):
        def whole(*shape):
            return mx.array(rng.integers(-12, 13, shape)).astype(dtype)

        inputs = {"q": whole(2, 4, 3, 6), "k": whole(2, 2, 5, 6), "v": whole(2, 2, 5, 4), "scale": 1.0}
        inputs["k"] = inputs["k"][..., mx.array([0, 1, 2, 1, 0]), :]
        return inputs | ({"mask": mx.array(additive(visible(3, 5))).astype(dtype)} if masked else {})

    observe = grouped

    verify = check_grouped


@case(task=2, params=[{"cut": cut} for cut in (1, 3, 6)])
class TheLastRowsStandAlone:
    """The last L queries alone get what they get in the whole sequence: what makes a KV cache possible."""

    def inputs(rng, cut):
        return qkv(rng, (2,), 6, 2, 7, 7, 8, 5) | {"cut": cut}

    def observe(solution, inputs):
        attend, cut = solution.module("model.attention").grouped_attention, inputs["cut"]
        q, k, v = (inputs[name] for name in "qkv")
        whole, tail = (mx.array(additive(visible(L, 7)), dtype=mx.float32) for L in (7, cut))
        return {"whole": attend(q, k, v, mask=whole), "tail": attend(q[..., -cut:, :], k, v, mask=tail)}

    def verify(inputs, values):
        want = attention64(inputs["q"], inputs["k"], inputs["v"], mask=additive(visible(7, 7)))
        close(values["whole"], want, dtype=mx.float32, what="the whole sequence")
        close(values["tail"], want[..., -inputs["cut"] :, :], dtype=mx.float32, what="the last rows")


@case(task=2, params=[{"H": 6, "H_kv": 4}, {"H": 2, "H_kv": 4}, {"H": 7, "H_kv": 3}])
class UnevenHeadsAreRefused:
    """Query heads that cannot be shared out evenly raise ValueError with both numbers."""

    def inputs(rng, H, H_kv):
        return qkv(rng, (1,), H, H_kv, 2, 2, 4)

    def observe(solution, inputs):
        return error_of(lambda: grouped(solution, inputs))

    def verify(inputs, values):
        H, H_kv = inputs["q"].shape[-3], inputs["k"].shape[-3]
        wrong = f"{H} query heads over {H_kv} kv heads must raise ValueError"
        assert values["type"] == "ValueError", f"{wrong}, got {values['type'] or 'a result'}"
        for number in (H, H_kv):
            assert str(number) in values["message"], f"{wrong} that names both numbers: {values['message']!r}"
