"""What cases about attention share: random inputs, views of them, the float64 oracle, and what likely mistakes give.

Everything is causal and grouped: the L queries are the last L of S positions, query i sees keys 0 .. S - L + i, and
query heads h * G .. h * G + G - 1 share key/value head h.
"""

from collections.abc import Callable, Sequence

import mlx.core as mx
import numpy as np

from course.checkpoint_files import wide

Parts = Sequence[Sequence[np.ndarray]]
"""Who walks over which keys in which order: for each walker its blocks, for each block its keys."""


def random_attention(
    rng: np.random.Generator, *, B=1, H=1, H_kv=1, L=1, S=1, D=8, dtype: mx.Dtype = mx.float32
) -> dict[str, mx.array]:
    """q (B, H, L, D), k and v (B, H_kv, S, D): normal numbers."""
    shapes = {"q": (B, H, L, D), "k": (B, H_kv, S, D), "v": (B, H_kv, S, D)}
    return {
        name: mx.array(rng.standard_normal(shape).astype(np.float32)).astype(dtype) for name, shape in shapes.items()
    }


def steep_attention(rng: np.random.Generator, slope: str, **sizes: int | mx.Dtype) -> dict[str, mx.array]:
    """Inputs whose scores, with a scale near 1, lie far from 0: at 300 or -300, or rising or falling."""
    inputs = random_attention(rng, **sizes)
    B, H, L, D = inputs["q"].shape
    S = inputs["k"].shape[2]
    level = {
        "rising": np.linspace(0, 300, S),
        "falling": np.linspace(300, 0, S),
        "far above zero": np.full(S, 300.0),
        "far below zero": np.full(S, -300.0),
    }[slope]
    direction = rng.choice([-1, 1], D) / D**0.5
    keys = level[:, None] * direction + rng.standard_normal(inputs["k"].shape) * 0.7
    queries = direction * rng.uniform(0.8, 1.2, (B, H, L, 1))
    steep = {"q": queries, "k": keys}
    return inputs | {name: mx.array(x.astype(np.float32)).astype(inputs["v"].dtype) for name, x in steep.items()}


VIEWS = ("front of a buffer", "middle of a buffer", "heads last", "features first")


def view_of(x: mx.array, kind: str) -> mx.array:
    """The numbers of x (B, H, L, D) in another layout. In a buffer, what stands around them is large."""
    if kind == "heads last":
        return mx.contiguous(x.swapaxes(1, 2)).swapaxes(1, 2)
    if kind == "features first":
        return mx.contiguous(x.swapaxes(2, 3)).swapaxes(2, 3)
    before = 3 if kind == "middle of a buffer" else 0
    length = x.shape[2]
    buffer = mx.full((*x.shape[:2], before + length + 5, x.shape[3]), 1e4, x.dtype)
    buffer[:, :, before : before + length] = x
    mx.eval(buffer)
    return buffer[:, :, before : before + length]


def attention64(
    q: mx.array,
    k: mx.array,
    v: mx.array,
    scale: float | None = None,
    *,
    last: np.ndarray | None = None,
    heads: np.ndarray | None = None,
    missing: np.ndarray | None = None,
    divide: bool = True,
) -> np.ndarray:
    """Attention in float64, zeros for a query that sees nothing.

    The other arguments make mistakes: `last` is the last key that each query sees, `heads` the key/value head of each
    query head, `missing` keys that are left out, and without `divide` the weights do not add up to 1.
    """
    scores, values = scores64(q, k, v, scale, last=last, heads=heads)
    if missing is not None:
        scores[..., missing] = -np.inf
    weights = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
    total = weights.sum(-1, keepdims=True)
    return weights @ values / np.where(divide & (total > 0), total, 1)


def scores64(
    q: mx.array, k: mx.array, v: mx.array, scale: float | None, *, last: np.ndarray | None, heads: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (B, H, L, S), -inf where a query does not see a key, and the values (B, H, S, D) of each query head."""
    q, k, v = wide(q), wide(k), wide(v)
    (_, H, L, D), (H_kv, S) = q.shape, k.shape[1:3]
    heads = np.arange(H) // (H // H_kv) if heads is None else heads
    last = np.arange(L) + S - L if last is None else last
    scores = q @ k[:, heads].swapaxes(-1, -2) * (D**-0.5 if scale is None else scale)
    return np.where(np.arange(S) <= last[:, None], scores, -np.inf), v[:, heads]


def walk(S: int, block: int) -> Parts:
    """One walker, a block of keys at a time."""
    return [[np.arange(start, min(start + block, S)) for start in range(0, S, block)]]


def dealt(S: int, walkers: int) -> Parts:
    """Several walkers, each with every so-manyeth key, one key at a time."""
    return [[np.array([s]) for s in range(first, S, walkers)] for first in range(min(walkers, S))]


def online64(
    q: mx.array, k: mx.array, v: mx.array, scale: float | None, parts: Parts, forgotten: str = ""
) -> np.ndarray:
    """Attention by walkers with an online softmax; `forgotten` is what is not rescaled: sum, result or merge."""
    scores, values = scores64(q, k, v, scale, last=None, heads=None)
    found = []
    for blocks in parts:
        maximum = np.full((*scores.shape[:-1], 1), -1e300)
        total, result = np.zeros(maximum.shape), np.zeros(wide(q).shape)
        for keys in blocks:
            larger = np.maximum(maximum, scores[..., keys].max(-1, keepdims=True))
            keep, weights = np.exp(maximum - larger), np.exp(scores[..., keys] - larger)
            maximum = larger
            total = total * (1 if forgotten == "sum" else keep) + weights.sum(-1, keepdims=True)
            result = result * (1 if forgotten == "result" else keep) + weights @ values[:, :, keys]
        found.append((maximum, total, result))
    largest = np.max([maximum for maximum, _, _ in found], axis=0)
    shares = [np.exp(0 if forgotten == "merge" else maximum - largest) for maximum, _, _ in found]
    total = sum(share * total for share, (_, total, _) in zip(shares, found, strict=True))
    merged = sum(share * result for share, (_, _, result) in zip(shares, found, strict=True))
    return merged / np.where(total > 0, total, 1)


def suspects(
    q: mx.array, k: mx.array, v: mx.array, scale: float | None, parts: Parts
) -> dict[str, np.ndarray | Callable[[], np.ndarray]]:
    """What likely mistakes give, by the mistake. parts: how the code under test walks over the keys."""
    (H, L, D), (H_kv, S) = q.shape[1:], k.shape[1:3]
    used = D**-0.5 if scale is None else scale
    own = np.arange(L) + S - L

    def wrong(scale=scale, **mistake):
        return lambda: attention64(q, k, v, scale, **mistake)

    lasts = [blocks[-1] for blocks in parts]
    last = next(block for block in lasts if S - 1 in block)
    earlier = np.setdiff1d(np.arange(S), np.concatenate(lasts))

    def forgot(what):
        return lambda: online64(q, k, v, scale, parts, what)

    found = {
        "the scale was forgotten": wrong(1.0),
        "the scale was applied twice": wrong(used**2),
        "the mask is off by one: a query sees one key too many": wrong(last=own + 1),
        "the mask is off by one: a query does not see its own position": wrong(last=own - 1),
        "the queries were taken for the first L positions: they are the last L": wrong(last=np.arange(L)),
        "nothing was masked": wrong(last=np.full(L, S)),
        "query head h read key/value head h % H_kv": wrong(heads=np.arange(H) % H_kv),
        "every query head read the first key/value head": wrong(heads=np.zeros(H, int)),
        "the last block of keys was left out": wrong(missing=last),
        "the first block of keys was left out": wrong(missing=parts[0][0]),
        "only the last block of keys counts: the maximum is not kept": wrong(missing=earlier),
        "every weight vanished: does the maximum start at 0?": np.zeros(q.shape),
        "the division by the sum of the weights is missing": wrong(divide=False),
        "keys and values changed places": lambda: attention64(q, v, k, scale),
        "the sum was not rescaled when the maximum grew": forgot("sum"),
        "the result was not rescaled when the maximum grew": forgot("result"),
    }
    if scale is not None:
        found["the given scale was ignored"] = wrong(None)
    if len(parts) > 1:
        found["the parts were merged without rescaling them to one maximum"] = forgot("merge")
    return found
