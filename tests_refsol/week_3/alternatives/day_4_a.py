# ruff: noqa: F821 - the other names are those of the reference file that a section is appended to
"""Day 4 in another style: the layer goes through names of its own."""


# file: serving/paged_layer.py
def _attend(self, q, k, v, attend):
    """Write first; the attention depends on the arrays that the write returns."""
    table, bounds, lengths = self.places
    side = self.pool.keys[self.layer], self.pool.values[self.layer]
    new_keys, new_values = paged_write(k, v, *side, table, bounds, lengths)
    self.pool.keys[self.layer], self.pool.values[self.layer] = new_keys, new_values
    return paged_attention(q, new_keys, new_values, table, bounds, lengths, q.shape[-1] ** -0.5)


PagedLayer.attend = _attend
