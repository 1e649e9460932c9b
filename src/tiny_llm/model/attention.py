# This file is yours to edit. Read book/src/week1-01-attention.md, book/src/week1-03-grouped-queries.md.
"""Attention: each query takes a weighted average of the values whose keys it matches.

    Attention(Q, K, V) = softmax(Q K^T * scale + mask) V        (Vaswani et al., 2017)

Knows queries, keys, values and masks; nothing of positions, weights or caches.
"""

import mlx.core as mx


def scaled_dot_product_attention(
    q: mx.array, k: mx.array, v: mx.array, scale: float | None = None, mask: mx.array | None = None
) -> mx.array:
    """Attend from every query to every key.

    q: (..., L, D). k: (..., S, D). v: (..., S, D_v). The leading axes broadcast.
    scale: multiplies the scores; None means 1 / sqrt(D).
    mask: added to the scores, broadcastable to (..., L, S): 0 lets through, -inf hides.
    Returns (..., L, D_v) in the dtype of `q`.
    """
    raise NotImplementedError(
        "Week 1 Day 1 Task 3: scaled_dot_product_attention - see book/src/week1-01-attention.md#task-3"
    )


class MultiHeadAttention:
    """H attentions side by side: head h owns features h*D .. h*D + D - 1 of each projection (Vaswani et al., 2017).

    num_heads: H. w_q, w_k, w_v: (H*D, E). w_o: (E, H*D). D need not be E / H.
    Raises ValueError where the rows of `w_q` are not a multiple of H.
    """

    def __init__(self, num_heads: int, w_q: mx.array, w_k: mx.array, w_v: mx.array, w_o: mx.array):
        if w_q.shape[0] % num_heads:
            raise ValueError(f"w_q has {w_q.shape[0]} rows, not a multiple of num_heads {num_heads}")
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = w_q, w_k, w_v, w_o

    def __call__(self, x: mx.array, mask: mx.array | None = None) -> mx.array:
        """Self-attention over `x`.

        x: (..., L, E). mask: broadcastable to (..., H, L, L), added to the scores.
        Returns (..., L, E) in the dtype of `x`.
        """
        raise NotImplementedError(
            "Week 1 Day 1 Task 4: MultiHeadAttention.__call__ - see book/src/week1-01-attention.md#task-4"
        )


def causal_mask(L: int, S: int, dtype: mx.Dtype = mx.float32) -> mx.array:
    """The mask by which a token sees itself and what came before it.

    The L queries are the last L of S positions: query i stands at position S - L + i and sees keys 0 .. S - L + i.
    Returns (L, S) in `dtype`: 0 where the key is visible, -inf elsewhere. With L > S the first L - S rows see nothing.
    """
    raise NotImplementedError("Week 1 Day 3 Task 1: causal_mask - see book/src/week1-03-grouped-queries.md#task-1")


def grouped_attention(
    q: mx.array, k: mx.array, v: mx.array, scale: float | None = None, mask: mx.array | None = None
) -> mx.array:
    """Grouped-query attention: query heads h*G .. h*G + G - 1 share key/value head h (Ainslie et al., 2023).

    q: (..., H, L, D). k: (..., H_kv, S, D). v: (..., H_kv, S, D_v). G = H / H_kv: 1 is multi-head, H is multi-query.
    scale: None means 1 / sqrt(D). mask: added to the scores, broadcastable to (..., H, L, S).
    Returns (..., H, L, D_v) in the dtype of `q`. A query whose whole mask row is -inf gets zeros; NaNs elsewhere
    stay.
    Raises ValueError where H is not a multiple of H_kv.
    """
    raise NotImplementedError(
        "Week 1 Day 3 Task 2: grouped_attention - see book/src/week1-03-grouped-queries.md#task-2"
    )
