// The three floating-point types of checkpoints, as raw memory, and their way to float and back.
#pragma once

#include <bit>
#include <cstdint>

namespace tiny_llm {

enum class DType { float32, float16, bfloat16 };

// The upper half of a float: 8 bits of exponent, 7 of mantissa.
struct Bf16 {
  uint16_t bits;
};

// IEEE half precision: 5 bits of exponent, 10 of mantissa.
struct Half {
  uint16_t bits;
};

inline float to_float(float x) {
  return x;
}

inline float to_float(Bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

inline float to_float(Half x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000) << 16;
  const uint32_t magnitude = x.bits & 0x7fff;
  if (magnitude >= 0x7c00) {  // infinities and NaNs
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  }
  // Shifted into place, the exponent is short by 127 - 15; the product with 2^112 corrects it, for subnormals too.
  const float unscaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(unscaled));
}

// Rounds to the nearest, ties to even. A NaN stays a NaN.
inline Bf16 to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) {
    return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  }
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

}  // namespace tiny_llm
