// Day 5 in another style: one element a thread, a tree of additions in threadgroup memory, a complex product.

// file: extensions/metal/add.metal
// begin task: add
const uint first = 4 * thread_position_in_grid.x;
for (uint k = 0; k < 4; ++k) {
  if (first + k < uint(size)) {
    out[first + k] = static_cast<T>(static_cast<float>(x[first + k]) + static_cast<float>(y[first + k]));
  }
}
// end task: add

// file: extensions/metal/rms_norm.metal
// begin task: rms_norm
threadgroup float sums[1024];
const uint me = thread_position_in_threadgroup.x;
const uint n = length;
const uint width = threads_per_threadgroup.x;
const device T* mine = x + threadgroup_position_in_grid.y * n;
device T* result = out + threadgroup_position_in_grid.y * n;

float total = 0;
for (uint i = me; i < n; i += width) {
  total = fma(float(mine[i]), float(mine[i]), total);
}
sums[me] = total;
threadgroup_barrier(mem_flags::mem_threadgroup);

// Halve the number of sums until one is left. The width need not be a power of two.
for (uint left = width; left > 1;) {
  const uint half_left = (left + 1) / 2;
  if (me + half_left < left) {
    sums[me] += sums[me + half_left];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  left = half_left;
}

const float root = sqrt(sums[0] / n + eps);
for (uint i = me; i < n; i += width) {
  result[i] = T(float(mine[i]) / root * float(weight[i]));
}
// end task: rms_norm

// file: extensions/metal/rope.metal
// begin task: rope
const uint heads = x_shape[1], tokens = x_shape[2], dims = x_shape[3];
const uint3 at = thread_position_in_grid;
const uint groups = (heads + HEADS - 1) / HEADS;
const uint row = at.z / groups;
const uint position = offsets[row] + at.y;
const float2 turn = float2(cosines[position * (dims / 2) + at.x], sines[position * (dims / 2) + at.x]);
const uint2 where = TRADITIONAL ? uint2(2 * at.x, 2 * at.x + 1) : uint2(at.x, at.x + dims / 2);
for (uint k = 0; k < HEADS; k++) {
  const uint head = (at.z % groups) * HEADS + k;
  if (head >= heads) {
    break;
  }
  const device T* from = x + row * x_strides[0] + head * x_strides[1] + at.y * x_strides[2];
  device T* to = out + ((row * heads + head) * tokens + at.y) * dims;
  const float2 pair = float2(float(from[where.x * x_strides[3]]), float(from[where.y * x_strides[3]]));
  to[where.x] = T(dot(pair, float2(turn.x, -turn.y)));
  to[where.y] = T(dot(pair, turn.yx));
}
// end task: rope

// file: extensions/metal/swiglu.metal
// begin task: swiglu
for (uint at = 4 * thread_position_in_grid.x; at < min(4 * thread_position_in_grid.x + 4, uint(size)); at++) {
  const float g = float(gate[at]);
  const float tail = exp(-abs(g));
  const float sigmoid = (g >= 0 ? 1.0f : tail) / (1.0f + tail);
  out[at] = T(g * sigmoid * float(up[at]));
}
// end task: swiglu
