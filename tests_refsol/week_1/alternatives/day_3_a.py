# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 3 in another style: einsum over whole arrays, keys and values repeated for each query head."""


# file: model/attention.py
def causal_mask(L: int, S: int, dtype: mx.Dtype = mx.float32) -> mx.array:
    """Upper triangle of -inf, shifted to the last L of S positions."""
    return mx.triu(mx.full((L, S), -mx.inf, dtype=dtype), k=S - L + 1)


def grouped_attention(
    q: mx.array, k: mx.array, v: mx.array, scale: float | None = None, mask: mx.array | None = None
) -> mx.array:
    """Everything in float32, with a weight sum that may be zero."""
    H, H_kv = q.shape[-3], k.shape[-3]
    if H_kv == 0 or H % H_kv != 0:
        raise ValueError(f"H={H} must be a multiple of H_kv={H_kv}")
    k32, v32 = (mx.repeat(x.astype(mx.float32), H // H_kv, axis=-3) for x in (k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = mx.einsum("...ld,...sd->...ls", q.astype(mx.float32), k32) * scale
    if mask is not None:
        scores = scores + mask.astype(mx.float32)
    highest = mx.max(scores, axis=-1, keepdims=True)
    weights = mx.exp(scores - mx.where(highest == -mx.inf, 0.0, highest))
    total = mx.sum(weights, axis=-1, keepdims=True)
    weights = weights / mx.where(total == 0, 1.0, total)
    return mx.einsum("...ls,...sd->...ld", weights, v32).astype(q.dtype)
