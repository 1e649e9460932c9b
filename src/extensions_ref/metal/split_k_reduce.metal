// Second half of a split-K product: out[i] = sum over s of partial[s][i], in the order of s, so that the result never
// depends on which part was done first.
//
// partial: (splits, size) float. out: `size` numbers of type T, rounded once.
// Grid: one thread per element, (size, 1, 1). Threads per threadgroup: 1 to 1024, any number.
// Traffic: reads splits * size * 4 bytes, writes size * sizeof(T).

// kernel body
// begin task: split_k_reduce
const uint i = thread_position_in_grid.x;
const uint n = size;
float sum = 0.0f;
for (uint s = 0; s < uint(splits); s++) {
  sum += partial[size_t(s) * n + i];
}
out[i] = T(sum);
// end task: split_k_reduce
