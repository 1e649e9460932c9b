// How packed 4-bit numbers meet activations: eight nibbles to a word, in as few instructions as the machine allows.
//
// `Nibbles<Element>` for the element type of x:
//   kSteps       steps that use up all nibbles of a vector of words
//   kSpan        nibbles of each word that one step uses: step j uses nibble j, or nibbles j and j + 4
//   unpack(w, j) the operand of step j: of each word the nibble(s) of that step, as elements
//   load(x), store(x, a)  the other operand: kSpan elements for each lane, from and to consecutive memory
//   broadcast(x) the other operand: the same kSpan elements for every lane
//   multiply_add(a, b, acc)  acc + a * b, in each lane the sum over the kSpan products, in float
// The products of bfloat16 numbers and nibbles are exact, so both give the exact product up to float32 rounding of sums.
#pragma once

#include "simd.h"

namespace tiny_llm {

template <class Element>
struct Nibbles;

template <>
struct Nibbles<float> {
  using Operand = simd::Float;
  static constexpr int kSteps = 8;
  static constexpr int kSpan = 1;

  static Operand unpack(simd::Words words, int step) {
#if TINY_LLM_AVX512
    // A table of 16 entries looked up by the low 4 bits of each lane: mask and conversion in one instruction.
    const __m512 table = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return (Operand)_mm512_permutexvar_ps(_mm512_srli_epi32((__m512i)words, 4 * step), table);
#else
    return __builtin_convertvector((simd::Int)(words >> (4 * step) & 15), simd::Float);
#endif
  }

  static Operand load(const float* x) {
    return simd::load(x);
  }

  static void store(float* x, Operand a) {
    simd::store(x, a);
  }

  static Operand broadcast(const float* x) {
    return simd::set(*x);
  }

  static simd::Float multiply_add(Operand a, Operand b, simd::Float acc) {
    return simd::fma(a, b, acc);
  }
};

#if TINY_LLM_AVX512 && defined(__AVX512BF16__)
template <>
struct Nibbles<Bf16> {
  using Operand = __m512i;
  static constexpr int kSteps = 4;
  static constexpr int kSpan = 2;

  static Operand unpack(simd::Words words, int step) {
    // The table of 16 bfloat16 numbers stands twice, because a lookup of 16-bit lanes uses the low 5 bits.
    alignas(64) static constexpr uint16_t table[32] = {
        0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0x4100, 0x4110, 0x4120,
        0x4130, 0x4140, 0x4150, 0x4160, 0x4170, 0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0,
        0x40c0, 0x40e0, 0x4100, 0x4110, 0x4120, 0x4130, 0x4140, 0x4150, 0x4160, 0x4170};
    return _mm512_permutexvar_epi16(_mm512_srli_epi16((__m512i)words, 4 * step), _mm512_load_si512(table));
  }

  static Operand load(const Bf16* x) {
    return _mm512_loadu_si512(x);
  }

  static void store(Bf16* x, Operand a) {
    _mm512_storeu_si512(x, a);
  }

  static Operand broadcast(const Bf16* x) {
    int32_t pair;
    std::memcpy(&pair, x, sizeof(pair));
    return _mm512_set1_epi32(pair);
  }

  static simd::Float multiply_add(Operand a, Operand b, simd::Float acc) {
    return (simd::Float)_mm512_dpbf16_ps((__m512)acc, (__m512bh)a, (__m512bh)b);
  }
};
inline constexpr bool kHasBf16Dot = true;
#else
inline constexpr bool kHasBf16Dot = false;
#endif

}  // namespace tiny_llm
