# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 7 in another style: each block is finished on its own, and finished results are merged by log-sum-exp."""


# file: kernels/flash.py
def flash_attention(q, k, v, scale=None, block=128):
    """Merge the softmax results of blocks (as split-KV decoding does)."""
    B, H, L, D = check_shapes(q, k, v)
    if block < 1:
        raise ValueError(f"a block holds at least one key, got block {block}")
    heads, length = k.shape[1], k.shape[2]
    rows = (q.astype(mx.float32) * scale_of(scale, D)).reshape(B, heads, -1, D)
    position = mx.broadcast_to(mx.arange(L) + (length - L), (H // heads, L)).reshape(-1, 1)
    out, log_sum = mx.zeros(rows.shape), mx.full((*rows.shape[:-1], 1), -mx.inf)
    for begin in range(0, length, block):
        end = min(begin + block, length)
        new, new_log = _finished(rows, k[:, :, begin:end], v[:, :, begin:end], position >= mx.arange(begin, end))
        both = mx.logaddexp(log_sum, new_log)
        finite = mx.where(mx.isinf(both), 0.0, both)
        out = out * mx.exp(log_sum - finite) + new * mx.exp(new_log - finite)
        log_sum = both
        mx.eval(out, log_sum)  # the blocks do not depend on each other: left to itself MLX would do all of them first
    return out.reshape(B, H, L, D).astype(q.dtype)


def _finished(rows, keys, values, seen):
    """The attention of a block alone, and the logarithm of its sum; 0 and -inf where nothing is seen."""
    scores = mx.where(seen, rows @ keys.astype(mx.float32).transpose(0, 1, 3, 2), -mx.inf)
    largest = scores.max(axis=-1, keepdims=True)
    largest = mx.where(mx.isinf(largest), 0.0, largest)
    weights = mx.exp(scores - largest)
    total = weights.sum(axis=-1, keepdims=True)
    mean = (weights @ values.astype(mx.float32)) / mx.maximum(total, 1e-30)
    return mean, mx.where(total > 0, largest + mx.log(total), -mx.inf)
