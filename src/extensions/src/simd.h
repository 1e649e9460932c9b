// Vectors of floats that fit this machine's registers: one set of names for AVX-512, AVX2 and 4-lane machines.
//
// A `Float` is kLanes floats, a `Words` kLanes 32-bit words. They are GCC/Clang vector types: + - * / & | >> << and
// comparisons work lane by lane, and the compiler emits NEON, SSE, AVX2 or AVX-512 for them. What those operators
// cannot say stands here: loads and stores of other types, sums over lanes, permutations, exp. Loads and stores need no
// alignment. `count` limits an access to the first lanes: nothing behind them is touched, and lanes not loaded are 0.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 warns of its own header (bug 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

#include "dtype.h"

namespace tiny_llm::simd {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define TINY_LLM_AVX512 1
inline constexpr int kLanes = 16;
inline constexpr int kRegisters = 32;
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define TINY_LLM_AVX2 1
inline constexpr int kLanes = 8;
inline constexpr int kRegisters = 16;
#else
inline constexpr int kLanes = 4;
inline constexpr int kRegisters = 32;  // of NEON; SSE has 16
#endif

typedef float Float __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t Int __attribute__((vector_size(kLanes * sizeof(int32_t))));
typedef uint32_t Words __attribute__((vector_size(kLanes * sizeof(uint32_t))));
typedef uint16_t Halfwords __attribute__((vector_size(kLanes * sizeof(uint16_t))));

// ---- making vectors

inline Float set(float x) {
  return x - Float{};
}

inline Words set(uint32_t x) {
  return x - Words{};
}

// 0, 1, 2, ... kLanes - 1.
inline Words iota() {
  Words lanes;
  for (int i = 0; i < kLanes; ++i) {
    lanes[i] = static_cast<uint32_t>(i);
  }
  return lanes;
}

template <class Vector, class T>
inline Vector load_bits(const T* from) {
  Vector v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

template <class Vector, class T>
inline Vector load_bits(const T* from, int count) {
  if (count >= kLanes) {
    return load_bits<Vector>(from);
  }
#if TINY_LLM_AVX512
  const auto mask = static_cast<__mmask16>((1u << count) - 1);
  if constexpr (sizeof(Vector) == 64) {
    return (Vector)_mm512_maskz_loadu_epi32(mask, from);
  } else {
    return (Vector)_mm256_maskz_loadu_epi16(mask, from);
  }
#else
  T lanes[kLanes] = {};
  std::memcpy(lanes, from, count * sizeof(T));
  return load_bits<Vector>(lanes);
#endif
}

inline Float widen(Halfwords bf16) {
#if TINY_LLM_AVX512
  return (Float)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)bf16), 16);
#elif TINY_LLM_AVX2
  return (Float)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)bf16), 16);
#else
  return (Float)(__builtin_convertvector(bf16, Words) << 16);
#endif
}

inline Float widen_half(Halfwords half) {
#if TINY_LLM_AVX512
  return (Float)_mm512_cvtph_ps((__m256i)half);
#elif TINY_LLM_AVX2
  return (Float)_mm256_cvtph_ps((__m128i)half);
#else
  Float v;
  for (int i = 0; i < kLanes; ++i) {
    v[i] = to_float(Half{half[i]});
  }
  return v;
#endif
}

inline Words load_words(const uint32_t* from, int count = kLanes) {
  return load_bits<Words>(from, count);
}

inline Float load(const float* from, int count = kLanes) {
  return load_bits<Float>(from, count);
}

inline Float load(const Bf16* from, int count = kLanes) {
  return widen(load_bits<Halfwords>(from, count));
}

inline Float load(const Half* from, int count = kLanes) {
  return widen_half(load_bits<Halfwords>(from, count));
}

// Lane i of the result is from[index[i]].
inline Words gather(const uint32_t* from, Words index) {
#if TINY_LLM_AVX512
  return (Words)_mm512_i32gather_epi32((__m512i)index, from, sizeof(uint32_t));
#else
  Words v;
  for (int i = 0; i < kLanes; ++i) {
    v[i] = from[index[i]];
  }
  return v;
#endif
}

// ---- storing vectors

template <class T, class Vector>
inline void store_bits(T* to, Vector v, int count) {
  if (count >= kLanes) {
    std::memcpy(to, &v, sizeof(v));
    return;
  }
  std::memcpy(to, &v, count * sizeof(T));
}

inline void store(float* to, Float v, int count = kLanes) {
  store_bits(to, v, count);
}

// Rounds to the nearest, ties to even. A NaN stays a NaN.
inline void store(Bf16* to, Float v, int count = kLanes) {
  const Words bits = (Words)v;
  const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Words upper = (v == v) ? rounded : (bits >> 16 | 0x40);
  store_bits(to, __builtin_convertvector(upper, Halfwords), count);
}

// ---- arithmetic that has no operator

// a * b + c with one rounding, where the machine has such an instruction.
inline Float fma(Float a, Float b, Float c) {
#if TINY_LLM_AVX512
  return (Float)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif TINY_LLM_AVX2
  return (Float)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

inline Float max(Float a, Float b) {
  return a > b ? a : b;
}

inline float sum(Float v) {
#if TINY_LLM_AVX512
  return _mm512_reduce_add_ps((__m512)v);
#elif TINY_LLM_AVX2
  __m128 half = _mm_add_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
#else
  return (v[0] + v[2]) + (v[1] + v[3]);
#endif
}

inline float max(Float v) {
#if TINY_LLM_AVX512
  return _mm512_reduce_max_ps((__m512)v);
#else
  float largest = v[0];
  for (int i = 1; i < kLanes; ++i) {
    largest = v[i] > largest ? v[i] : largest;
  }
  return largest;
#endif
}

// Lane i of the result is table[index[i]]. 4-lane machines: all indices must be the same.
inline Float permute(Float table, Words index) {
#if TINY_LLM_AVX512
  return (Float)_mm512_permutexvar_ps((__m512i)index, (__m512)table);
#elif TINY_LLM_AVX2
  return (Float)_mm256_permutevar8x32_ps((__m256)table, (__m256i)index);
#else
  return set(table[index[0]]);
#endif
}

// exp(x) within 2 units in the last place; 0 below -87.3 (and for -inf), 3e38 above 88.3.
inline Float exp(Float x) {
  const Float lowest = set(-87.3f), highest = set(88.3f);
  Float clamped = x > lowest ? x : lowest;
  clamped = clamped < highest ? clamped : highest;
  // x = n ln 2 + r with |r| <= ln 2 / 2, so exp(x) = 2^n exp(r). Adding 1.5 * 2^23 rounds to an integer.
  const Float n = fma(clamped, set(1.44269504f), set(0x1.8p23f)) - 0x1.8p23f;
  Float r = fma(n, set(-0.693359375f), clamped);
  r = fma(n, set(2.12194440e-4f), r);
  Float p = set(1.9875691500e-4f);  // the polynomial of Cephes' expf
  p = fma(p, r, set(1.3981999507e-3f));
  p = fma(p, r, set(8.3334519073e-3f));
  p = fma(p, r, set(4.1665795894e-2f));
  p = fma(p, r, set(1.6666665459e-1f));
  p = fma(p, r, set(5.0000001201e-1f));
  p = fma(p, r * r, r + 1.0f);
  const Int power = (__builtin_convertvector(n, Int) + 127) << 23;
  const Float result = p * (Float)power;
  return x < lowest ? Float{} : result;
}

}  // namespace tiny_llm::simd
