# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 3 in another style: plain loops over positions and heads, in the dtype of the inputs throughout."""


# file: model/attention.py
def causal_mask(L: int, S: int, dtype: mx.Dtype = mx.float32) -> mx.array:
    """One row after another, as lists of Python numbers."""
    rows = [[0.0 if key <= S - L + query else -math.inf for key in range(S)] for query in range(L)]
    return mx.array(rows).astype(dtype)


def grouped_attention(
    q: mx.array, k: mx.array, v: mx.array, scale: float | None = None, mask: mx.array | None = None
) -> mx.array:
    """One query head at a time; rows without a finite score are replaced after the softmax."""
    H, H_kv = q.shape[-3], k.shape[-3]
    group, left_over = divmod(H, H_kv)
    if left_over or not group:
        raise ValueError(f"cannot share {H_kv} kv heads among {H} query heads")
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    heads = []
    for h in range(H):
        keys, values = k[..., h // group, :, :], v[..., h // group, :, :]
        scores = (q[..., h, :, :] @ keys.swapaxes(-1, -2)) * scale
        if mask is not None:
            scores = scores + _of_head(mask, h).astype(scores.dtype)
        weights, hidden = softmax(scores), mx.max(scores, axis=-1, keepdims=True) == -mx.inf
        heads.append(mx.where(hidden, mx.zeros_like(weights), weights) @ values)
    return mx.stack(heads, axis=-3).astype(q.dtype)


def _of_head(mask: mx.array, h: int) -> mx.array:
    """The mask of one head, whether or not the mask has an axis for heads."""
    if mask.ndim < 3:
        return mask
    return mask[..., h if mask.shape[-3] > 1 else 0, :, :]
