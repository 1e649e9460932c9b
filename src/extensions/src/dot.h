// Multiply-adds of float and of bfloat16 vectors under one set of names.
//
// `Dot<Element>` for the element type of both factors:
//   kSpan                  products that one step adds up in each lane: 1, or 2 neighbours
//   load(x), store(x, a)   an operand from and to consecutive memory: kSpan elements for each lane
//   broadcast(x)           an operand with the same kSpan elements in every lane
//   multiply_add(a, b, acc)  acc + a * b, in each lane the sum over the kSpan products, in float
// Products of bfloat16 numbers are exact in float, so both differ from the exact result by the rounding of sums alone.
#pragma once

#include <type_traits>

#include "simd.h"

namespace tiny_llm {

template <class Element>
struct Dot;

template <>
struct Dot<float> {
  using Operand = simd::Float;
  static constexpr int kSpan = 1;

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
#define TINY_LLM_BF16_DOT 1

template <>
struct Dot<Bf16> {
  using Operand = __m512i;
  static constexpr int kSpan = 2;

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

// What numbers of type T are multiplied as.
template <class T>
using DotElement = T;
#else
template <class T>
using DotElement = float;
#endif

}  // namespace tiny_llm
