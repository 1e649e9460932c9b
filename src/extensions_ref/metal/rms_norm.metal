// RMSNorm of each row: out[r][i] = x[r][i] / sqrt(mean(x[r]^2) + eps) * weight[i].
//
// x, out: rows of `length` numbers of type T, contiguous. weight: `length` numbers of any float type. eps: float.
// Sums, root and product in float, rounded once to T.
// Grid: one threadgroup per row, (threads, rows, 1). Threads per threadgroup: a multiple of 32, from 32 to 1024,
// whatever the length of the row: a thread takes elements t, t + threads, t + 2 * threads, ... so that the 32 threads
// of a simdgroup always read 32 neighbours.
// Traffic of a row: reads 3 * length * sizeof(T) bytes (x twice, the second time out of the cache, and weight), writes
// length * sizeof(T). Threadgroup memory: 128 bytes. Barriers: 1.

// kernel body
// begin task: rms_norm
threadgroup float partial[32];

const uint n = length;
const uint t = thread_index_in_threadgroup;
const uint threads = threads_per_threadgroup.x;
const uint lane = thread_index_in_simdgroup;
const size_t row = size_t(threadgroup_position_in_grid.y) * n;

float sum = 0.0f;
for (uint i = t; i < n; i += threads) {
  const float value = float(x[row + i]);
  sum += value * value;
}

// Inside a simdgroup the sum needs no memory. Between simdgroups it passes through `partial`; each simdgroup then adds
// up all of it, so that nobody has to wait for a broadcast.
sum = simd_sum(sum);
if (lane == 0) {
  partial[simdgroup_index_in_threadgroup] = sum;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
const float total = simd_sum(lane < simdgroups_per_threadgroup ? partial[lane] : 0.0f);

const float scale = rsqrt(total / float(n) + eps);
for (uint i = t; i < n; i += threads) {
  out[row + i] = T(float(x[row + i]) * scale * float(weight[i]));
}
// end task: rms_norm
