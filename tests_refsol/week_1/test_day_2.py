"""Day 2, positions: the float64 formula and MLX's own rotary embedding are the oracles."""

import re

import mlx.core as mx
import numpy as np

from course.case import case, error_of
from course.compare import close, same

FAR = 32_768
ROUNDING = {mx.float16: 2.0**-11, mx.bfloat16: 2.0**-8}  # half a unit in the last place, as a share of the value


def f64(x: mx.array) -> np.ndarray:
    return np.array(x.astype(mx.float32)).astype(np.float64)


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: mx.Dtype = mx.float32) -> mx.array:
    return mx.array(rng.standard_normal(shape).astype(np.float32)).astype(dtype)


def table(positions: np.ndarray, dims: int, base: float) -> np.ndarray:
    """Angles in float64, (..., D / 2)."""
    return np.asarray(positions, dtype=np.float64)[..., None] * base ** (-np.arange(0, dims, 2) / dims)


def pairs(x: np.ndarray, traditional: bool) -> tuple[np.ndarray, np.ndarray]:
    return (x[..., 0::2], x[..., 1::2]) if traditional else tuple(np.split(x, 2, axis=-1))


def unpair(a: np.ndarray, b: np.ndarray, traditional: bool) -> np.ndarray:
    a, b = np.broadcast_arrays(a, b)
    return np.stack([a, b], -1).reshape(*a.shape[:-1], -1) if traditional else np.concatenate([a, b], -1)


def turn(x: np.ndarray, angles: np.ndarray, traditional: bool, put_back: bool | None = None) -> np.ndarray:
    """Rotate pairs by `angles` in float64; `put_back` is the layout of the result, if that is another one."""
    a, b = pairs(x, traditional)
    cos, sin = np.cos(angles), np.sin(angles)
    layout = traditional if put_back is None else put_back
    return unpair(a * cos - b * sin, a * sin + b * cos, layout)


def rope(x: np.ndarray, offset: object, base: float, traditional: bool) -> np.ndarray:
    """Rotary embedding in float64; `offset` is one number, or one for each row."""
    _, *middle, L, D = x.shape
    positions = np.reshape(offset, (-1, *[1] * len(middle), 1)) + np.arange(L)
    return turn(x, table(positions, D, base), traditional)


def turn_suspects(x: np.ndarray, angles: np.ndarray, traditional: bool) -> dict[str, object]:
    a, b = pairs(x, traditional)
    cos, sin = np.cos(angles), np.sin(angles)
    return {
        "the other layout of pairs was used: look at `traditional`": lambda: turn(x, angles, not traditional),
        "the pairs were taken in one layout and put back in the other": lambda: turn(
            x, angles, traditional, not traditional
        ),
        "the pairs turn the wrong way: the minus belongs to a cos - b sin": lambda: turn(x, -angles, traditional),
        "a sign is wrong: a cos + b sin does not keep the length of a pair": lambda: unpair(
            a * cos + b * sin, a * sin + b * cos, traditional
        ),
        "a sign is wrong: the second feature is a sin + b cos": lambda: unpair(
            a * cos - b * sin, a * sin - b * cos, traditional
        ),
        "cosine and sine changed places": lambda: turn(x, np.pi / 2 - angles, traditional),
        "the new a was used to make the new b": lambda: unpair(
            a * cos - b * sin, (a * cos - b * sin) * sin + b * cos, traditional
        ),
    }


def two(values: object) -> tuple[object, object]:
    if not isinstance(values, list | tuple) or len(values) != 2:
        raise AssertionError("rope_table must return two arrays: cos and sin")
    return values[0], values[1]


@case(
    task=1,
    params=[
        {"dims": 2, "max_positions": 5, "base": 10_000.0},
        {"dims": 8, "max_positions": 16, "base": 10_000.0},
        {"dims": 6, "max_positions": 33, "base": 100.0},
        {"dims": 128, "max_positions": 7, "base": 1e6},
        {"dims": 10, "max_positions": 1, "base": 500.0},
    ],
)
class TableMatchesFloat64:
    """Row p, column i of the table is the cosine (sine) of p * base^(-2i / D), in float32."""

    def inputs(rng, dims, max_positions, base):
        return {"dims": dims, "max_positions": max_positions, "base": base * rng.uniform(0.9, 1.1)}

    def observe(solution, inputs):
        return solution.module("model.rope").rope_table(**inputs)

    def verify(inputs, values):
        dims, rows, base = inputs["dims"], inputs["max_positions"], inputs["base"]
        angles = table(np.arange(rows), dims, base)
        index, positions = np.arange(dims // 2), np.arange(rows)[:, None]
        wrong = {
            "the positions count from 1, not from 0": lambda: angles + angles[1],
            "the exponent is -i / D: it must be -2i / D": lambda: positions * base ** (-index / dims),
            "the exponent is -4i / D: it must be -2i / D": lambda: positions * base ** (-4 * index / dims),
            "the frequencies grow: the exponent lost its minus": lambda: positions * base ** (2 * index / dims),
            "the slowest pair is off: divide by D, not by D - 2": lambda: positions * base ** (-2 * index / (dims - 2)),
            "`base` was ignored and 10,000 used": lambda: table(positions[:, 0], dims, 10_000.0),
        }
        if rows == 1:
            wrong = {}
        if dims == 2:
            wrong.pop("the slowest pair is off: divide by D, not by D - 2", None)
        for got, function, other, what in zip(
            two(values), (np.cos, np.sin), (np.sin, np.cos), ("cos", "sin"), strict=True
        ):
            suspects = {text: lambda f=f, a=a: f(a()) for text, a in wrong.items() for f in [function]}
            suspects["cosine and sine changed places"] = lambda f=other: f(angles)
            suspects["these are the angles themselves"] = angles
            close(got, function(angles), dtype=mx.float32, suspects=suspects, what=what)


@case(task=1, params=[{"dims": 32, "base": 10_000.0}, {"dims": 16, "base": 1_000_000.0}], timeout=20.0)
class TableIsExactFarOut:
    """Position 32,767 is as exact as position 0: round after the cosine and the sine, not before."""

    def inputs(rng, dims, base):
        return {"dims": dims, "max_positions": FAR, "base": base}

    def observe(solution, inputs):
        return [mx.array(values)[-64:] for values in solution.module("model.rope").rope_table(**inputs)]

    def verify(inputs, values):
        angles = table(np.arange(FAR - 64, FAR), inputs["dims"], inputs["base"])
        for got, function, what in zip(two(values), (np.cos, np.sin), ("cos", "sin"), strict=True):
            want = function(angles)
            close(got, want, tol=0.05, dtype=mx.float32, what=f"the last 64 rows of {what}")
            difference = np.abs(f64(got) - want).max()
            if not difference < 1e-5:
                raise AssertionError(
                    f"{what} is off by {difference:.2g} near position {FAR - 1}, allowed 1e-5: in float32 an angle of "
                    "that size is rounded to steps of 0.002, so compute frequencies and angles in float64"
                )


@case(
    task=2,
    params=[
        {"traditional": traditional, "B": B, "H": H, "L": L, "D": D}
        for traditional in (False, True)
        for B, H, L, D in ((1, 1, 4, 2), (2, 3, 5, 8), (2, 1, 7, 12))
    ],
)
class PairsMatchMlx:
    """With the cosines and sines of positions n .. n + L - 1 the result is that of MLX's own rotary embedding."""

    def inputs(rng, traditional, B, H, L, D):
        first = int(rng.integers(20))
        angles = table(np.arange(first, first + L), D, 10_000.0)
        cos, sin = (mx.array(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
        return {"x": normal(rng, (B, H, L, D)), "cos": cos, "sin": sin, "traditional": traditional, "first": first}

    def observe(solution, inputs):
        arguments = [inputs[name] for name in ("x", "cos", "sin", "traditional")]
        return solution.module("model.rope").rotate_pairs(*arguments)

    def verify(inputs, got):
        x, traditional, first = inputs["x"], inputs["traditional"], inputs["first"]
        L, D = x.shape[-2:]
        want = mx.fast.rope(x, D, traditional=traditional, base=10_000.0, scale=1.0, offset=first)
        suspects = turn_suspects(f64(x), table(np.arange(first, first + L), D, 10_000.0), traditional)
        close(got, want, dtype=mx.float32, suspects=suspects, what=f"rotate_pairs(x, traditional={traditional})")


@case(
    task=2,
    params=[
        {"traditional": traditional, "x": x, "angles": angles}
        for traditional in (False, True)
        for x, angles in (
            ((6,), (3,)),
            ((5, 6), (5, 3)),
            ((5, 6), (1, 3)),
            ((4, 5, 8), (4, 5, 4)),
            ((2, 3, 5, 8), (2, 1, 5, 4)),
            ((2, 2, 3, 5, 4), (5, 2)),
        )
    ],
)
class PairsTakeAnyAngles:
    """Any leading axes and any angles that broadcast to (..., L, D / 2), of either sign and beyond a full turn."""

    def inputs(rng, traditional, x, angles):
        return {"x": normal(rng, x), "angles": rng.uniform(-9, 9, angles), "traditional": traditional}

    def observe(solution, inputs):
        cos, sin = (mx.array(f(inputs["angles"]).astype(np.float32)) for f in (np.cos, np.sin))
        return solution.module("model.rope").rotate_pairs(inputs["x"], cos, sin, inputs["traditional"])

    def verify(inputs, got):
        x, angles, traditional = f64(inputs["x"]), inputs["angles"], inputs["traditional"]
        suspects = turn_suspects(x, angles, traditional)
        what = f"rotate_pairs(x, traditional={traditional})"
        close(got, turn(x, angles, traditional), dtype=mx.float32, suspects=suspects, what=what)


@case(
    task=2,
    params=[{"dtype": dtype, "traditional": t} for dtype in (mx.float16, mx.bfloat16) for t in (False, True)],
)
class PairsAreTurnedInFloat32:
    """float16 and bfloat16 come back as they are, rounded once: the arithmetic between is float32."""

    def inputs(rng, dtype, traditional):
        angles = rng.uniform(-9, 9, (16, 32))
        return {"x": normal(rng, (4, 16, 64), dtype), "angles": angles, "traditional": traditional}

    def observe(solution, inputs):
        cos, sin = (mx.array(f(inputs["angles"]).astype(np.float32)) for f in (np.cos, np.sin))
        return solution.module("model.rope").rotate_pairs(inputs["x"], cos, sin, inputs["traditional"])

    def verify(inputs, got):
        dtype, x, angles, traditional = inputs["x"].dtype, f64(inputs["x"]), inputs["angles"], inputs["traditional"]
        want = turn(x, angles, traditional)
        close(got, want, dtype=dtype, suspects=turn_suspects(x, angles, traditional), what="rotate_pairs(x)")
        off = np.abs(f64(got) - want) > 1.02 * ROUNDING[dtype] * np.abs(want) + 1e-6
        if off.any():
            raise AssertionError(
                f"{off.sum()} of {off.size} values are not the nearest {dtype} to the exact result: the products were "
                "rounded on the way; widen x to float32 first and narrow the result once"
            )


@case(task=2, params=[{"traditional": False}, {"traditional": True}])
class PairsLeaveTheirArgumentAlone:
    """The caller's array is the same after the call as before it."""

    def inputs(rng, traditional):
        angles = rng.uniform(-9, 9, (4, 3))
        cos, sin = (mx.array(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
        return {"x": normal(rng, (2, 4, 6)), "cos": cos, "sin": sin, "traditional": traditional}

    def observe(solution, inputs):
        solution.module("model.rope").rotate_pairs(*inputs.values())
        return inputs["x"]

    def verify(inputs, x):
        same(x, inputs["x"], "x after the call was changed (x[...] = ... writes into the caller's array): x")


def rope_of(solution, inputs) -> object:
    """The learner's RoPE for these inputs."""
    arguments = {name: inputs[name] for name in ("dims", "max_positions", "base", "traditional") if name in inputs}
    return solution.module("model.rope").RoPE(**arguments)


def settings(D: int, base: float = 10_000.0, traditional: bool = False, max_positions: int = 64) -> dict[str, object]:
    return {"dims": D, "max_positions": max_positions, "base": base, "traditional": traditional}


@case(
    task=3,
    params=[
        {"shape": shape, "base": base, "traditional": traditional}
        for traditional in (False, True)
        for shape, base in (((2, 3, 5, 8), 10_000.0), ((1, 2, 1, 16), 1e6), ((3, 7, 6), 100.0))
    ],
)
class RopeMatchesMlx:
    """Offset n means positions n .. n + L - 1 for every row, as in MLX's own operator; without one, n is 0."""

    def inputs(rng, shape, base, traditional):
        return settings(shape[-1], base, traditional) | {"x": normal(rng, shape), "n": int(rng.integers(1, 20))}

    def observe(solution, inputs):
        rope = rope_of(solution, inputs)
        return [rope(inputs["x"]), rope(inputs["x"], offset=inputs["n"])]

    def verify(inputs, values):
        x, D, base, traditional = inputs["x"], inputs["dims"], inputs["base"], inputs["traditional"]
        exact = f64(x)
        for got, n in zip(values, (0, inputs["n"]), strict=True):
            want = mx.fast.rope(x, D, traditional=traditional, base=base, scale=1.0, offset=n)
            suspects = {
                "the offset was ignored: the tokens stand at n, n + 1, ...": lambda: rope(exact, 0, base, traditional),
                "the positions start one too late": lambda n=n: rope(exact, n + 1, base, traditional),
                "the positions start one too early": lambda n=n: rope(exact, n - 1, base, traditional),
                "every token got the position n": lambda n=n: turn(exact, table(n, D, base), traditional),
                "`traditional` was ignored": lambda n=n: rope(exact, n, base, not traditional),
            }
            close(got, want, tol=3e-5, dtype=mx.float32, suspects=suspects, what=f"rope(x, offset={n})")


@case(task=3, params=[{"L": 1}, {"L": 4}, {"L": 64}])
class RopeTakesASlice:
    """slice(n, n + L) means the same as n, from the first position to the last of the table."""

    def inputs(rng, L):
        return settings(6, 300.0) | {"x": normal(rng, (2, 2, L, 6)), "starts": [0, (64 - L) // 3, 64 - L]}

    def observe(solution, inputs):
        rope, L = rope_of(solution, inputs), inputs["x"].shape[-2]
        return [rope(inputs["x"], offset=slice(n, n + L)) for n in inputs["starts"]]

    def verify(inputs, values):
        exact = f64(inputs["x"])
        for got, n in zip(values, inputs["starts"], strict=True):
            suspects = {"the start of the slice was ignored": lambda: rope(exact, 0, 300.0, False)}
            what = f"rope(x, offset=slice({n}, {n + exact.shape[-2]}))"
            close(got, rope(exact, n, 300.0, False), dtype=mx.float32, suspects=suspects, what=what)


@case(
    task=3,
    params=[
        {"shape": (3, 3, 5, 8), "kind": "list"},
        {"shape": (2, 4, 1, 8), "kind": "array"},
        {"shape": (4, 2, 3, 8), "kind": "tuple", "traditional": True},
        {"shape": (3, 3, 6), "kind": "array"},
        {"shape": (2, 2, 2, 3, 6), "kind": "list"},
        {"shape": (1, 2, 3, 6), "kind": "array"},
    ],
)
class RopeTakesAnOffsetForEachRow:
    """offset[b] is where row b of the batch starts, for every head of it: rows of a batch differ in length."""

    def inputs(rng, shape, kind, traditional=False):
        offsets = [int(n) for n in rng.choice(np.arange(1, 40), shape[0], replace=False)]
        return settings(shape[-1], traditional=traditional) | {
            "x": normal(rng, shape),
            "offset": {"list": offsets, "tuple": tuple(offsets), "array": mx.array(offsets)}[kind],
        }

    def observe(solution, inputs):
        return rope_of(solution, inputs)(inputs["x"], offset=inputs["offset"])

    def verify(inputs, got):
        x, offsets, traditional = f64(inputs["x"]), np.array(inputs["offset"]), inputs["traditional"]
        B, *middle, L, D = x.shape
        suspects = {
            "every row used the offset of row 0": lambda: rope(x, offsets[0], 10_000.0, traditional),
            "every token of a row got the same position": lambda: turn(
                x, table(offsets.reshape(B, *[1] * len(middle), 1), D, 10_000.0), traditional
            ),
        }
        if len(middle) == 1 and middle[0] == B:
            by_head = offsets[:, None] + np.arange(L)
            suspects["the offsets went to the heads, not to the rows of the batch"] = lambda: turn(
                x, table(by_head, D, 10_000.0), traditional
            )
        what = f"rope(x, offset={offsets.tolist()})"
        close(got, rope(x, offsets, 10_000.0, traditional), dtype=mx.float32, suspects=suspects, what=what)


@case(task=3, params=[{"dtype": mx.float32}, {"dtype": mx.float16}, {"dtype": mx.bfloat16}], timeout=20.0)
class RopeIsExactFarOut:
    """At position 32,767 the result is within 1e-3 of float64 plus one rounding to the dtype of x."""

    def inputs(rng, dtype):
        return settings(32, 10_000.0, max_positions=FAR) | {"x": normal(rng, (2, 2, 1, 32), dtype)}

    def observe(solution, inputs):
        rope = rope_of(solution, inputs)
        offsets = [FAR - 1, slice(FAR - 1, FAR), [FAR - 1, 5]]
        return [rope(inputs["x"], offset=offset) for offset in offsets]

    def verify(inputs, values):
        x, dtype = f64(inputs["x"]), inputs["x"].dtype
        for got, offset in zip(values, (FAR - 1, FAR - 1, [FAR - 1, 5]), strict=True):
            want = rope(x, offset, 10_000.0, False)
            tol = (1e-3 + ROUNDING.get(dtype, 0) * np.abs(want).max()) / np.abs(want).max()
            close(got, want, tol=tol, dtype=dtype, what=f"rope(x, offset={offset})")


@case(task=3, params=[{"traditional": False}, {"traditional": True}])
class RopeScoresDependOnDistance:
    """Moving a query and a key by the same number of positions leaves their dot product as it is."""

    def inputs(rng, traditional):
        m, n, shift = (int(rng.integers(low, high)) for low, high in ((0, 20), (0, 20), (5, 40)))
        arrays = {"q": normal(rng, (2, 3, 1, 8)), "k": normal(rng, (2, 3, 1, 8))}
        return settings(8, 50.0, traditional) | arrays | {"m": m, "n": n, "shift": shift}

    def observe(solution, inputs):
        rope = rope_of(solution, inputs)
        pairs = [(inputs["m"] + shift, inputs["n"] + shift) for shift in (0, inputs["shift"])]
        return [mx.sum(rope(inputs["q"], m) * rope(inputs["k"], n), axis=-1) for m, n in pairs]

    def verify(inputs, values):
        q, k = (rope(f64(inputs[x]), inputs[p], 50.0, inputs["traditional"]) for x, p in (("q", "m"), ("k", "n")))
        m, n, shift = inputs["m"], inputs["n"], inputs["shift"]
        close(values[0], (q * k).sum(-1), tol=3e-5, what=f"q at {m} times k at {n}")
        close(values[1], values[0], tol=3e-5, what=f"q at {m + shift} times k at {n + shift}")


@case(task=3, params=[{"parts": (3, 5)}, {"parts": (1, 1, 6)}, {"parts": (7, 1)}])
class RopeOfChunksIsRopeOfTheWhole:
    """A sequence rotated in chunks, each at its own offset, equals the sequence rotated at once."""

    def inputs(rng, parts):
        return settings(8) | {"x": normal(rng, (2, 3, sum(parts), 8)), "parts": list(parts), "n": int(rng.integers(9))}

    def observe(solution, inputs):
        rope, start, chunks = rope_of(solution, inputs), 0, []
        for length in inputs["parts"]:
            chunk = inputs["x"][..., start : start + length, :]
            chunks.append(rope(chunk, inputs["n"] + start))
            start += length
        return [mx.concatenate(chunks, axis=-2), rope(inputs["x"], inputs["n"])]

    def verify(inputs, values):
        close(values[0], rope(f64(inputs["x"]), inputs["n"], 10_000.0, False), what="the chunks together")
        close(values[1], values[0], what="the whole")


def refused(answer: dict[str, object], call: str, names: set[int]) -> None:
    """`answer` is a ValueError whose text holds one of the numbers `names`."""
    if answer["type"] != "ValueError":
        got = f"{answer['type']}: {answer['message']}" if answer["type"] else "a result"
        raise AssertionError(f"{call}: expected a ValueError, got {got}")
    if not {int(n) for n in re.findall(r"-?\d+", answer["message"])} & names:
        raise AssertionError(
            f"{call}: the text of the ValueError must name a position or the limit, one of {sorted(names)}: "
            f"{answer['message']!r}"
        )


@case(
    task=3,
    params=[
        {"L": 5, "offset": 18},
        {"L": 1, "offset": 20},
        {"L": 21, "offset": 0},
        {"L": 5, "offset": -1},
        {"L": 5, "start": 18},
        {"L": 5, "start": -6},
        {"L": 5, "offset": [0, 16]},
        {"L": 5, "offset": [3, -2]},
        {"L": 1, "offset": [20, 4], "as_array": True},
    ],
)
class RopeRefusesPositionsOutsideTheTable:
    """A position below 0 or above max_positions - 1 is a ValueError that names it, never a wrong row of the table."""

    def inputs(rng, L, offset=None, start=None, as_array=False):
        arguments = settings(8, max_positions=20) | {"x": normal(rng, (2, 3, L, 8)), "start": start}
        return arguments | {"offset": mx.array(offset) if as_array else offset}

    def observe(solution, inputs):
        start, L = inputs["start"], inputs["x"].shape[-2]
        offset = inputs["offset"] if start is None else slice(start, start + L)
        rope = rope_of(solution, inputs)
        return [error_of(lambda: rope(inputs["x"], offset)), rope(inputs["x"][..., :1, :], 19)]

    def verify(inputs, values):
        L, start, offset = inputs["x"].shape[-2], inputs["start"], inputs["offset"]
        firsts = np.atleast_1d(np.array(offset if start is None else start)).tolist()
        given = f"{offset if start is None else slice(start, start + L)}"
        names = {19, 20} | {n + d for n in firsts for d in (0, L - 1, L)} - {0}
        refused(values[0], f"rope(x, offset={given}) with {L} tokens and max_positions 20", names)
        close(values[1], rope(f64(inputs["x"])[..., :1, :], 19, 10_000.0, False), what="position 19 of 20")


@case(
    task=3,
    params=[
        {"stop": 9},
        {"stop": 6},
        {"stop": 2},
        {"stop": 7, "step": 2},
        {"stop": 12, "step": 2},
        {"step": 1},
        {"offset": [1]},
        {"offset": [1, 2, 3]},
        {"offset": [4], "as_array": True},
    ],
)
class RopeRefusesTheWrongNumberOfPositions:
    """A slice that does not spell out L positions, or another number of offsets than rows, is a ValueError."""

    def inputs(rng, stop=None, step=None, offset=None, as_array=False):
        positions = {"stop": stop, "step": step, "offset": mx.array(offset) if as_array else offset}
        return settings(8) | {"x": normal(rng, (2, 3, 5, 8))} | positions

    def observe(solution, inputs):
        stop, step, offset = (inputs[name] for name in ("stop", "step", "offset"))
        offset = slice(2, stop, step) if offset is None else offset
        rope = rope_of(solution, inputs)
        return [error_of(lambda: rope(inputs["x"], offset)), rope(inputs["x"], 2)]

    def verify(inputs, values):
        stop, step, offset = (inputs[name] for name in ("stop", "step", "offset"))
        if offset is not None:
            what, names = f"{len(np.array(offset))} offsets for 2 rows", {2, len(np.array(offset))}
        else:
            given = slice(2, stop, step) if step else f"slice(2, {stop})"
            what, names = f"{given} for 5 tokens", {2, 5} | ({stop, stop - 2} if stop else set())
        refused(values[0], what, names)
        close(values[1], rope(f64(inputs["x"]), 2, 10_000.0, False), what="rope(x, offset=2)")
