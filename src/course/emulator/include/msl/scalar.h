// Metal's scalar types that C++ lacks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "attributes.h"

using half = _Float16;
using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;

// The upper half of a float. As in Metal it becomes a float by itself, but nothing becomes a bfloat by itself.
struct bfloat {
  uint16_t bits;

  bfloat() = default;
  template <class U>
    requires(std::is_arithmetic_v<U> || std::is_same_v<U, half>)
  MSL_INLINE explicit constexpr bfloat(U value) : bits(round(static_cast<float>(value))) {}
  template <class U>
    requires(std::is_same_v<U, float>)
  MSL_INLINE constexpr operator U() const {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
  template <class U>
    requires(std::is_same_v<U, half> || std::is_integral_v<U>)
  MSL_INLINE explicit constexpr operator U() const {
    return static_cast<U>(static_cast<float>(*this));
  }

  static MSL_INLINE constexpr bfloat from_bits(uint16_t bits) {
    bfloat made{};
    made.bits = bits;
    return made;
  }

 private:
  // To nearest, ties to even; a NaN stays one.
  static MSL_INLINE constexpr uint16_t round(float value) {
    const uint32_t word = __builtin_bit_cast(uint32_t, value);
    if ((word & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(word >> 16 | 0x40u);
    return static_cast<uint16_t>((word + 0x7FFFu + (word >> 16 & 1u)) >> 16);
  }
};

MSL_INLINE constexpr bfloat operator-(bfloat a) { return bfloat::from_bits(static_cast<uint16_t>(a.bits ^ 0x8000u)); }
MSL_INLINE constexpr bfloat operator+(bfloat a, bfloat b) {
  return bfloat(static_cast<float>(a) + static_cast<float>(b));
}
MSL_INLINE constexpr bfloat operator-(bfloat a, bfloat b) {
  return bfloat(static_cast<float>(a) - static_cast<float>(b));
}
MSL_INLINE constexpr bfloat operator*(bfloat a, bfloat b) {
  return bfloat(static_cast<float>(a) * static_cast<float>(b));
}
MSL_INLINE constexpr bfloat operator/(bfloat a, bfloat b) {
  return bfloat(static_cast<float>(a) / static_cast<float>(b));
}
MSL_INLINE constexpr bool operator==(bfloat a, bfloat b) { return static_cast<float>(a) == static_cast<float>(b); }
MSL_INLINE constexpr bool operator!=(bfloat a, bfloat b) { return static_cast<float>(a) != static_cast<float>(b); }
MSL_INLINE constexpr bool operator<(bfloat a, bfloat b) { return static_cast<float>(a) < static_cast<float>(b); }
MSL_INLINE constexpr bool operator>(bfloat a, bfloat b) { return static_cast<float>(a) > static_cast<float>(b); }
MSL_INLINE constexpr bool operator<=(bfloat a, bfloat b) { return static_cast<float>(a) <= static_cast<float>(b); }
MSL_INLINE constexpr bool operator>=(bfloat a, bfloat b) { return static_cast<float>(a) >= static_cast<float>(b); }
MSL_INLINE constexpr bfloat& operator+=(bfloat& a, bfloat b) { return a = a + b; }
MSL_INLINE constexpr bfloat& operator-=(bfloat& a, bfloat b) { return a = a - b; }
MSL_INLINE constexpr bfloat& operator*=(bfloat& a, bfloat b) { return a = a * b; }
MSL_INLINE constexpr bfloat& operator/=(bfloat& a, bfloat b) { return a = a / b; }

namespace metal {

using ::bfloat;
using ::half;

template <class T>
concept floating = std::is_same_v<T, float> || std::is_same_v<T, half> || std::is_same_v<T, bfloat>;
template <class T>
concept integral = std::is_integral_v<T>;
template <class T>
concept scalar = floating<T> || integral<T> || std::is_enum_v<T>;

}  // namespace metal
