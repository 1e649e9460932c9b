"""Day 1 with NumPy's float64 below, einsum above, one query at a time, and weights cut by head instead of features."""

# file: model/basics.py
import mlx.core as mx
import numpy as np


def softmax(x, axis=-1):
    scores = np.moveaxis(np.array(x.astype(mx.float32), dtype=np.float64), axis, -1)
    weights = np.zeros_like(scores)
    for index in np.ndindex(scores.shape[:-1]):
        row = np.exp(scores[index] - scores[index].max())
        weights[index] = row / row.sum()
    return mx.array(np.moveaxis(weights, -1, axis).astype(np.float32)).astype(x.dtype)


def linear(x, w, bias=None):
    y = mx.einsum("...i,oi->...o", x, w)
    if bias is not None:
        y = mx.add(bias, y)
    return y


# file: model/attention.py
def scaled_dot_product_attention(q, k, v, scale=None, mask=None):
    narrow, (q, k, v) = q.dtype, (x.astype(mx.float32) for x in (q, k, v))
    rows, factor = [], q.shape[-1] ** -0.5 if scale is None else scale
    for i in range(q.shape[-2]):
        scores = (k @ q[..., i, :, None])[..., 0] * factor
        if mask is not None:
            scores = scores + (mask if mask.ndim < 2 else mask[..., i % mask.shape[-2], :])
        rows.append((softmax(scores)[..., None, :] @ v)[..., 0, :])
    return mx.stack(rows, axis=-2).astype(narrow)


class MultiHeadAttention:
    def __init__(self, num_heads, w_q, w_k, w_v, w_o):
        self.projections = [w.reshape(num_heads, -1, w.shape[-1]) for w in (w_q, w_k, w_v)]
        self.output = w_o.reshape(w_o.shape[0], num_heads, -1)

    def __call__(self, x, mask=None):
        q, k, v = (mx.einsum("...le,hde->...hld", x, w) for w in self.projections)
        heads = scaled_dot_product_attention(q, k, v, mask=mask)
        return mx.einsum("...hld,ehd->...le", heads, self.output)
