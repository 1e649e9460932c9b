// Rotary position embedding: turn each pair (a, b) of features to (a cos - b sin, a sin + b cos).
//
// x: (B, H, L, D) numbers of type T in any layout, read by `x_strides` (in elements, one per axis): a transposed view
// costs no copy. out: (B, H, L, D), contiguous. D is even; pair i of D / 2 is (2i, 2i + 1) if TRADITIONAL, else
// (i, i + D / 2).
// cosines, sines: (P, D / 2) float, one row per position, contiguous. offsets: (B,) int: token l of batch row b stands
// at position offsets[b] + l, which is less than P. Arithmetic in float, rounded once to T.
// Grid: (D / 2, L, B * ceil(H / HEADS)): a thread turns the same pair of up to HEADS neighbouring heads, whose angle it
// reads once. Threads per threadgroup: any shape of 1 to 1024.
// Traffic: reads B * H * L * D * sizeof(T) + B * ceil(H / HEADS) * L * D * 4 bytes, writes B * H * L * D * sizeof(T).

// Heads that share one reading of an angle.
constant constexpr uint HEADS = 4;

// kernel body
// begin task: rope
const uint H = x_shape[1];
const uint L = x_shape[2];
const uint half_dims = x_shape[3] / 2;
const uint i = thread_position_in_grid.x;
const uint l = thread_position_in_grid.y;
const uint blocks = (H + HEADS - 1) / HEADS;
const uint b = thread_position_in_grid.z / blocks;
const uint first = thread_position_in_grid.z % blocks * HEADS;

const size_t angle = size_t(offsets[b] + l) * half_dims + i;
const float c = cosines[angle];
const float s = sines[angle];

const uint one = TRADITIONAL ? 2 * i : i;
const uint other = TRADITIONAL ? 2 * i + 1 : i + half_dims;
const size_t token = b * x_strides[0] + l * x_strides[2];
const size_t next_head = x_strides[1];
const size_t step = x_strides[3];
for (uint h = first; h < min(first + HEADS, H); h++) {
  const float x_one = float(x[token + h * next_head + one * step]);
  const float x_other = float(x[token + h * next_head + other * step]);
  const size_t row = ((size_t(b) * H + h) * L + l) * (2 * half_dims);
  out[row + one] = T(x_one * c - x_other * s);
  out[row + other] = T(x_one * s + x_other * c);
}
// end task: rope
