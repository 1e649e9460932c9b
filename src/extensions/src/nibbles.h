// How packed 4-bit numbers become operands of a product: eight nibbles to a word.
//
// `Nibbles<Element>` is `Dot<Element>` and
//   kSteps        steps that use up all nibbles of a vector of words
//   unpack(w, j)  the operand of step j: of each word nibble j, or nibbles j and j + 4, as elements
// All numbers from 0 to 15 are exact in bfloat16.
#pragma once

#include "dot.h"

namespace tiny_llm {

template <class Element>
struct Nibbles;

template <>
struct Nibbles<float> : Dot<float> {
  static constexpr int kSteps = 8;

  static Operand unpack(simd::Words words, int step) {
#if TINY_LLM_AVX512
    // A table of 16 entries looked up by the low 4 bits of each lane: mask and conversion in one instruction.
    const __m512 table = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return (Operand)_mm512_permutexvar_ps((__m512i)(words >> (4 * step)), table);
#else
    return __builtin_convertvector((simd::Int)(words >> (4 * step) & 15), simd::Float);
#endif
  }
};

#if TINY_LLM_BF16_DOT
template <>
struct Nibbles<Bf16> : Dot<Bf16> {
  static constexpr int kSteps = 4;

  static Operand unpack(simd::Words words, int step) {
    // The table of 16 bfloat16 numbers stands twice, because a lookup of 16-bit lanes uses the low 5 bits.
    alignas(64) static constexpr uint16_t table[32] = {
        0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0x4100, 0x4110, 0x4120,
        0x4130, 0x4140, 0x4150, 0x4160, 0x4170, 0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0,
        0x40c0, 0x40e0, 0x4100, 0x4110, 0x4120, 0x4130, 0x4140, 0x4150, 0x4160, 0x4170};
    return _mm512_permutexvar_epi16(_mm512_srli_epi16((__m512i)words, 4 * step), _mm512_load_si512(table));
  }
};
#endif

}  // namespace tiny_llm
