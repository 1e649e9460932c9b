// Element-wise sum: out[i] = x[i] + y[i], computed in float and rounded once to T.
//
// x, y, out: `size` numbers of type T, contiguous. `size` may be any number.
// Grid: one thread for 4 neighbours, ceil(size / 4) threads in x. Threads per threadgroup: 1 to 1024, any number.
// Traffic: reads 2 * size * sizeof(T) bytes, writes size * sizeof(T) bytes; 4 neighbours move as one access.

// COUNT neighbours that a thread loads or stores at once. Unlike a vector it may stand at any multiple of sizeof(T),
// so a view such as x[1:] is as good as x.
template <typename T, int COUNT>
struct unaligned_vec {
  T v[COUNT];
};

// kernel body
// begin task: add
const uint n = size;
const uint i = 4 * thread_position_in_grid.x;
if (i + 4 <= n) {
  const unaligned_vec<T, 4> a = *(const device unaligned_vec<T, 4>*)(x + i);
  const unaligned_vec<T, 4> b = *(const device unaligned_vec<T, 4>*)(y + i);
  unaligned_vec<T, 4> sum;
  for (int j = 0; j < 4; j++) {
    sum.v[j] = T(float(a.v[j]) + float(b.v[j]));
  }
  *(device unaligned_vec<T, 4>*)(out + i) = sum;
} else {
  for (uint j = i; j < n; j++) {
    out[j] = T(float(x[j]) + float(y[j]));
  }
}
// end task: add
