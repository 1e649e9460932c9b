// The gate of an MLP in one pass: out[i] = silu(gate[i]) * up[i], with silu(g) = g / (1 + exp(-g)).
//
// gate, up, out: `size` numbers of type T, contiguous. Arithmetic in float, rounded once to T. Finite for finite input:
// exp(-g) may overflow to infinity, and g / infinity is 0, as it should be.
// Grid: one thread for 4 neighbours, ceil(size / 4) threads in x. Threads per threadgroup: 1 to 1024, any number.
// Traffic: reads 2 * size * sizeof(T) bytes, writes size * sizeof(T) bytes. Three separate operations (sigmoid and two
// products) would read 5 and write 3 times size * sizeof(T).

// COUNT neighbours that a thread loads or stores at once, at any multiple of sizeof(T).
template <typename T, int COUNT>
struct unaligned_vec {
  T v[COUNT];
};

// kernel body
// begin task: swiglu
const uint n = size;
const uint i = 4 * thread_position_in_grid.x;
if (i + 4 <= n) {
  const unaligned_vec<T, 4> g = *(const device unaligned_vec<T, 4>*)(gate + i);
  const unaligned_vec<T, 4> u = *(const device unaligned_vec<T, 4>*)(up + i);
  unaligned_vec<T, 4> gated;
  for (int j = 0; j < 4; j++) {
    const float wide = float(g.v[j]);
    gated.v[j] = T(wide / (1.0f + exp(-wide)) * float(u.v[j]));
  }
  *(device unaligned_vec<T, 4>*)(out + i) = gated;
} else {
  for (uint j = i; j < n; j++) {
    const float wide = float(gate[j]);
    out[j] = T(wide / (1.0f + exp(-wide)) * float(up[j]));
  }
}
// end task: swiglu
