// Day 6 in a third style: x staged in threadgroup memory, two words a lane, tiles stored transposed, balanced parts.

// file: extensions/metal/quantized_matvec.metal
// begin task: quantized_matvec
// All simdgroups of a threadgroup need the same x: they fetch it together, a block of 512 numbers a token at a time.
threadgroup float shared_x[TOKENS * 512];
const uint lane = thread_index_in_simdgroup;
const uint block_row = (threadgroup_position_in_grid.x * simdgroups_per_threadgroup + simdgroup_index_in_threadgroup) * 4;
float4 acc[TOKENS];
for (int m = 0; m < TOKENS; m++) {
  acc[m] = float4(0.0f);
}
for (uint start = 0; start < K; start += 512) {
  const uint length = min(512u, K - start);
  for (uint i = thread_index_in_threadgroup; i < TOKENS * length; i += threads_per_threadgroup.x) {
    const uint m = i / length, k = i % length;
    shared_x[m * 512 + k] = float(x[m * K + start + k]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Rows are multiples of 32 numbers, so words come in pairs.
  const uint mine = lane * 16;
  if (mine < length) {
    for (uint r = 0; r < 4; r++) {
      const uint row = min(block_row + r, N - 1);
      const uint2 pair = *(const device uint2*)(words + row * (K / 8) + (start + mine) / 8);
      const uint group = row * (K / GROUP) + (start + mine) / GROUP;
      const float scale = float(scales[group]), bias = float(biases[group]);
      for (uint j = 0; j < 16; j++) {
        const float weight = fma(scale, float((j < 8 ? pair.x >> (4 * j) : pair.y >> (4 * j - 32)) & 0xF), bias);
        for (int m = 0; m < TOKENS; m++) {
          acc[m][r] = fma(weight, shared_x[m * 512 + mine + j], acc[m][r]);
        }
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
for (int m = 0; m < TOKENS; m++) {
  const float4 total = simd_sum(acc[m]);
  if (lane < 4 && block_row + lane < N) {
    out[m * N + block_row + lane] = T(total[lane]);
  }
}
// end task: quantized_matvec

// file: extensions/metal/quantized_matmul.metal
// begin task: dequantize_word
// The tile of w is kept with k down and n across.
for (int j = 0; j < 8; j++, word >>= 4) {
  to[j * STRIDE] = fma(scale, float(word & 0xF), bias);
}
// end task: dequantize_word
// begin task: quantized_matmul
const uint across = thread_index_in_threadgroup % TILE;
const uint down = thread_index_in_threadgroup / TILE * 8;
for (uint step = 0; step * TILE < K; step++) {
  const uint k0 = step * TILE + down;
  for (uint j = 0; j < 8; j++) {
    const uint m = m0 + down + j;
    x_tile[(down + j) * STRIDE + across] = m < M ? float(x[m * K + step * TILE + across]) : 0.0f;
  }
  const uint n = n0 + across;
  const bool inside = n < N;
  const uint group = inside ? n * (K / GROUP) + k0 / GROUP : 0;
  const uint word = inside ? words[n * (K / 8) + k0 / 8] : 0;
  dequantize_word(word, float(scales[group]), float(biases[group]), w_tile + down * STRIDE + across);
  threadgroup_barrier(mem_flags::mem_threadgroup);

  for (uint i = 0; i < 2; i++) {
    for (uint j = 0; j < 2; j++) {
      for (uint k = 0; k < TILE; k += 8) {
        simdgroup_matrix<float, 8, 8> a, b;
        simdgroup_load(a, x_tile, STRIDE, ulong2(k, quarter_m + 8 * i));
        simdgroup_load(b, w_tile, STRIDE, ulong2(quarter_n + 8 * j, k));
        simdgroup_multiply_accumulate(sums[i][j], a, b, sums[i][j]);
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
// end task: quantized_matmul

// file: extensions/metal/split_k_matvec.metal
// begin task: split_k_matvec
const uint width = K / 8;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = threadgroup_position_in_grid.x * simdgroups_per_threadgroup + simdgroup_index_in_threadgroup;
// No part is longer than another by more than one word.
const uint part = threadgroup_position_in_grid.y, parts = threadgroups_per_grid.y;
const uint begin = part * width / parts, end = (part + 1) * width / parts;

float acc[TOKENS * ROWS];
for (uint i = 0; i < TOKENS * ROWS; i++) {
  acc[i] = 0.0f;
}
for (uint at = begin + lane; at < end; at += 32) {
  float numbers[TOKENS * 8];
  for (uint i = 0; i < TOKENS * 8; i++) {
    numbers[i] = float(x[i / 8 * K + at * 8 + i % 8]);
  }
  for (uint r = 0; r < ROWS; r++) {
    const uint row = simdgroup * ROWS + r;
    if (row >= N) {
      break;
    }
    const uint word = words[row * width + at];
    const uint group = row * (K / GROUP) + at / (GROUP / 8);
    const float scale = float(scales[group]), bias = float(biases[group]);
    for (uint i = 0; i < TOKENS * 8; i++) {
      const float level = float(extract_bits(word, i % 8 * 4, 4));
      acc[i / 8 * ROWS + r] += numbers[i] * (scale * level + bias);
    }
  }
}
for (uint i = 0; i < TOKENS * ROWS; i++) {
  acc[i] = simd_sum(acc[i]);
}
if (lane == 0) {
  for (uint i = 0; i < TOKENS * ROWS; i++) {
    const uint row = simdgroup * ROWS + i % ROWS;
    if (row < N) {
      out[(part * TOKENS + i / ROWS) * N + row] = acc[i];
    }
  }
}
// end task: split_k_matvec

// file: extensions/metal/split_k_reduce.metal
// begin task: split_k_reduce
const uint places = size;
float sum = 0;
uint at = thread_position_in_grid.x;
while (at < uint(splits) * places) {
  sum += partial[at];
  at += places;
}
out[thread_position_in_grid.x] = T(sum);
// end task: split_k_reduce
