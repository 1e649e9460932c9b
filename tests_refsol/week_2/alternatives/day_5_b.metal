// Day 5 in a third style: shuffles, one thread that adds the partial sums, tanh for the sigmoid.

// file: extensions/metal/add.metal
// begin task: add
const uint start = thread_position_in_grid.x << 2;
const uint stop = min(start + 4, uint(size));
uint place = start;
while (place < stop) {
  out[place] = T(float(y[place]) + float(x[place]));
  place += 1;
}
// end task: add

// file: extensions/metal/rms_norm.metal
// begin task: rms_norm
threadgroup float shared_sum[1];
threadgroup float by_group[32];
const uint who = thread_index_in_threadgroup;
const uint columns = length;
const uint start = threadgroup_position_in_grid.y * columns;

float squares = 0.0f;
uint column = who;
while (column < columns) {
  squares += pow(float(x[start + column]), 2.0f) * 1.0f;
  column += threads_per_threadgroup.x;
}
for (uint distance = 16; distance > 0; distance >>= 1) {
  squares += simd_shuffle_xor(squares, ushort(distance));
}
if (simd_is_first()) {
  by_group[simdgroup_index_in_threadgroup] = squares;
}
threadgroup_barrier(mem_flags::mem_threadgroup);
if (who == 0) {
  float all = 0.0f;
  for (uint g = 0; g < simdgroups_per_threadgroup; g++) {
    all += by_group[g];
  }
  shared_sum[0] = all;
}
threadgroup_barrier(mem_flags::mem_threadgroup);

const float factor = precise::rsqrt(shared_sum[0] / float(columns) + eps);
for (uint c = who; c < columns; c += threads_per_threadgroup.x) {
  const float value = float(x[start + c]) * factor;
  out[start + c] = T(value * float(weight[c]));
}
// end task: rms_norm

// file: extensions/metal/rope.metal
// begin task: rope
const uint pairs = x_shape[3] / 2;
const uint pair = thread_position_in_grid.x;
const uint token = thread_position_in_grid.y;
const uint per_row = (x_shape[1] + HEADS - 1) / HEADS;
const uint batch = thread_position_in_grid.z / per_row;
const uint head0 = HEADS * (thread_position_in_grid.z - batch * per_row);
const uint entry = (uint(offsets[batch]) + token) * pairs + pair;
const uint a = TRADITIONAL ? pair * 2 : pair;
const uint b = a + (TRADITIONAL ? 1 : pairs);
for (uint head = head0; head < head0 + HEADS && head < uint(x_shape[1]); ++head) {
  const auto base = batch * x_strides[0] + head * x_strides[1] + token * x_strides[2];
  const float p = float(x[base + a * x_strides[3]]), q = float(x[base + b * x_strides[3]]);
  const uint target = ((batch * x_shape[1] + head) * x_shape[2] + token) * 2 * pairs;
  out[target + a] = T(fma(p, cosines[entry], -(q * sines[entry])));
  out[target + b] = T(fma(p, sines[entry], q * cosines[entry]));
}
// end task: rope

// file: extensions/metal/swiglu.metal
// begin task: swiglu
const uint base = 4 * thread_position_in_grid.x;
for (uint k = 0; k < 4 && base + k < uint(size); k++) {
  const float value = float(gate[base + k]);
  const float bounded = clamp(value * 0.5f, -40.0f, 40.0f);
  const float sigmoid = value < -20.0f ? exp(value) : 0.5f * (1.0f + tanh(bounded));
  out[base + k] = T(value * sigmoid * float(up[base + k]));
}
// end task: swiglu
