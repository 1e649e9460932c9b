// Day 6 in another style: bytes and vectors of four, shuffles, tiles without simdgroup matrices, blocks of words dealt out.

// file: extensions/metal/quantized_matvec.metal
// begin task: quantized_matvec
const uint width = K / 8;
const uint me = thread_index_in_simdgroup;
const uint row0 = ROWS * (threadgroup_position_in_grid.x * simdgroups_per_threadgroup + simdgroup_index_in_threadgroup);
const uint count = row0 < N ? min(ROWS, N - row0) : 0;

float acc[TOKENS][ROWS];
for (int m = 0; m < TOKENS; m++) {
  for (uint r = 0; r < ROWS; r++) {
    acc[m][r] = 0;
  }
}
for (uint at = me; at < width; at += 32) {
  // Even and odd numbers apart: each byte of a word holds one of both.
  float4 even[TOKENS], odd[TOKENS];
  for (int m = 0; m < TOKENS; m++) {
    const device T* from = x + (m * width + at) * 8;
    even[m] = float4(float(from[0]), float(from[2]), float(from[4]), float(from[6]));
    odd[m] = float4(float(from[1]), float(from[3]), float(from[5]), float(from[7]));
  }
  for (uint r = 0; r < count; r++) {
    const uchar4 bytes = *(const device uchar4*)(words + (row0 + r) * width + at);
    const float4 low = float4(bytes & uchar4(15)), high = float4(bytes >> uchar4(4));
    const uint of_group = (row0 + r) * (K / GROUP) + at * 8 / GROUP;
    const float s = float(scales[of_group]), b = float(biases[of_group]);
    for (int m = 0; m < TOKENS; m++) {
      acc[m][r] += s * (dot(low, even[m]) + dot(high, odd[m])) + b * dot(even[m] + odd[m], float4(1.0f));
    }
  }
}
for (int m = 0; m < TOKENS; m++) {
  for (uint r = 0; r < ROWS; r++) {
    float sum = acc[m][r];
    for (ushort distance = 16; distance > 0; distance /= 2) {
      sum += simd_shuffle_xor(sum, distance);
    }
    // Lane r stores row r.
    if (me == r && r < count) {
      out[m * N + row0 + r] = static_cast<T>(sum);
    }
  }
}
// end task: quantized_matvec

// file: extensions/metal/quantized_matmul.metal
// A tile of 32 x 32 results by 128 threads, eight in the registers of each: no simdgroup matrices.
constant constexpr uint TILE = 32;

// kernel body
threadgroup float left[TILE][TILE + 1];
threadgroup float right[TILE][TILE + 1];
const uint t = thread_index_in_threadgroup;
const uint top = TILE * threadgroup_position_in_grid.y, first = TILE * threadgroup_position_in_grid.x;
const uint M = tokens, N = rows, K = columns;
const uint mine = t / 4, part = t % 4;

float result[8] = {0, 0, 0, 0, 0, 0, 0, 0};
for (uint start = 0; start < K; start += TILE) {
  for (uint i = t; i < TILE * TILE; i += 128) {
    const uint r = i / TILE, c = i % TILE;
    left[r][c] = top + r < M ? float(x[(top + r) * K + start + c]) : 0.0f;
  }
  for (uint i = t; i < TILE * TILE / 8; i += 128) {
    const uint r = i / 4, c = i % 4 * 8;
    if (first + r < N) {
      const uint word = words[(first + r) * (K / 8) + (start + c) / 8];
      const uint g = (first + r) * (K / GROUP) + (start + c) / GROUP;
      const float scale = float(scales[g]), bias = float(biases[g]);
      for (uint j = 0; j < 8; j++) {
        right[r][c + j] = fma(float(extract_bits(word, 4 * j, 4)), scale, bias);
      }
    } else {
      for (uint j = 0; j < 8; j++) {
        right[r][c + j] = 0.0f;
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < TILE; k++) {
    const float a = left[mine][k];
    for (uint j = 0; j < 8; j++) {
      result[j] = fma(a, right[part + 4 * j][k], result[j]);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
for (uint j = 0; j < 8; j++) {
  const uint column = first + part + 4 * j;
  if (top + mine < M && column < N) {
    out[(top + mine) * N + column] = T(result[j]);
  }
}

// file: extensions/metal/split_k_matvec.metal
// begin task: split_k_matvec
const uint width = K / 8;
const uint me = thread_index_in_simdgroup;
const uint row0 = ROWS * (threadgroup_position_in_grid.x * simdgroups_per_threadgroup + simdgroup_index_in_threadgroup);
const uint parts = threadgroups_per_grid.y;

// Blocks of 32 words are dealt out to the parts, one after the other.
float acc[ROWS][TOKENS] = {};
for (uint block = threadgroup_position_in_grid.y; block * 32 < width; block += parts) {
  const uint at = block * 32 + me;
  if (at >= width) {
    continue;
  }
  float lane_x[TOKENS][8];
  for (int m = 0; m < TOKENS; m++) {
    for (uint j = 0; j < 8; j++) {
      lane_x[m][j] = float(x[m * K + at * 8 + j]);
    }
  }
  for (uint r = 0; r < ROWS && row0 + r < N; r++) {
    uint word = words[(row0 + r) * width + at];
    const uint g = (row0 + r) * (K / GROUP) + at * 8 / GROUP;
    const float s = float(scales[g]), b = float(biases[g]);
    for (uint j = 0; j < 8; j++, word >>= 4) {
      const float weight = s * float(word & 15) + b;
      for (int m = 0; m < TOKENS; m++) {
        acc[r][m] += weight * lane_x[m][j];
      }
    }
  }
}
for (uint r = 0; r < ROWS; r++) {
  for (int m = 0; m < TOKENS; m++) {
    const float sum = simd_sum(acc[r][m]);
    if (simd_is_first() && row0 + r < N) {
      out[(threadgroup_position_in_grid.y * TOKENS + m) * N + row0 + r] = sum;
    }
  }
}
// end task: split_k_matvec

// file: extensions/metal/split_k_reduce.metal
// begin task: split_k_reduce
const device float* from = partial + thread_position_in_grid.x;
float total = from[0];
for (int part = 1; part < splits; part++) {
  from += size;
  total = total + from[0];
}
out[thread_position_in_grid.x] = static_cast<T>(total);
// end task: split_k_reduce
