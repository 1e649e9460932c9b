// <metal_integer>.
#pragma once
#include "math.h"

namespace metal {

#define MSL_ABSOLUTE(T) \
  MSL_INLINE constexpr T abs(T x) { return static_cast<T>(x < T(0) ? -x : x); }
MSL_ABSOLUTE(char)
MSL_ABSOLUTE(uchar)
MSL_ABSOLUTE(short)
MSL_ABSOLUTE(ushort)
MSL_ABSOLUTE(int)
MSL_ABSOLUTE(uint)
MSL_ABSOLUTE(long)
MSL_ABSOLUTE(ulong)
#undef MSL_ABSOLUTE

namespace detail {

template <class T>
inline constexpr int bits = static_cast<int>(sizeof(T)) * 8;
template <class T>
MSL_INLINE constexpr unsigned long long widen(T x) {
  return static_cast<std::make_unsigned_t<T>>(x);
}

}  // namespace detail

template <integral T>
MSL_INLINE constexpr T popcount(T x) {
  return static_cast<T>(__builtin_popcountll(detail::widen(x)));
}
template <integral T>
MSL_INLINE constexpr T clz(T x) {
  return static_cast<T>(x == 0 ? detail::bits<T> : __builtin_clzll(detail::widen(x)) - (64 - detail::bits<T>));
}
template <integral T>
MSL_INLINE constexpr T ctz(T x) {
  return static_cast<T>(x == 0 ? detail::bits<T> : __builtin_ctzll(detail::widen(x)));
}
template <integral T>
MSL_INLINE constexpr T reverse_bits(T x) {
  unsigned long long reversed = 0;
  for (int i = 0; i < detail::bits<T>; ++i) reversed |= (detail::widen(x) >> i & 1) << (detail::bits<T> - 1 - i);
  return static_cast<T>(reversed);
}
template <integral T>
MSL_INLINE constexpr T rotate(T x, T by) {
  const int left = static_cast<int>(detail::widen(by) % detail::bits<T>);
  if (left == 0) return x;
  return static_cast<T>(detail::widen(x) << left | detail::widen(x) >> (detail::bits<T> - left));
}
template <integral T>
MSL_INLINE constexpr T extract_bits(T x, uint offset, uint count) {
  if (count == 0) return 0;
  const int up = detail::bits<T> - static_cast<int>(offset + count);
  return static_cast<T>(static_cast<T>(x << up) >> (detail::bits<T> - static_cast<int>(count)));
}
template <integral T>
MSL_INLINE constexpr T insert_bits(T base, T insert, uint offset, uint count) {
  const unsigned long long mask = (count >= 64 ? ~0ull : (1ull << count) - 1) << offset;
  return static_cast<T>((detail::widen(base) & ~mask) | (detail::widen(insert) << offset & mask));
}
template <integral T>
MSL_INLINE constexpr T mulhi(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>(static_cast<Wide>(a) * b >> 64);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, long, ulong>;
    return static_cast<T>(static_cast<Wide>(a) * b >> detail::bits<T>);
  }
}
template <integral T>
MSL_INLINE constexpr T madhi(T a, T b, T c) {
  return static_cast<T>(mulhi(a, b) + c);
}
template <integral T>
MSL_INLINE constexpr T mul24(T a, T b) {
  return static_cast<T>(a * b);
}
template <integral T>
MSL_INLINE constexpr T mad24(T a, T b, T c) {
  return static_cast<T>(a * b + c);
}
template <integral T>
MSL_INLINE constexpr T addsat(T a, T b) {
  T sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < T(0) ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}
template <integral T>
MSL_INLINE constexpr T subsat(T a, T b) {
  T difference;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return std::is_unsigned_v<T> || b > T(0) ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}
template <integral T>
MSL_INLINE constexpr T hadd(T a, T b) {
  return static_cast<T>((a & b) + ((a ^ b) >> 1));
}
template <integral T>
MSL_INLINE constexpr T rhadd(T a, T b) {
  return static_cast<T>((a | b) - ((a ^ b) >> 1));
}
template <integral T>
MSL_INLINE constexpr std::make_unsigned_t<T> absdiff(T a, T b) {
  return static_cast<std::make_unsigned_t<T>>(a < b ? detail::widen(b) - detail::widen(a)
                                                    : detail::widen(a) - detail::widen(b));
}
MSL_ON_VECTORS_1(popcount)
MSL_ON_VECTORS_1(clz)
MSL_ON_VECTORS_1(ctz)

// The vector-times-vector versions of math.h were the last to need these.
#undef MSL_ON_VECTORS_1
#undef MSL_ON_VECTORS_2
#undef MSL_ON_VECTORS_3

namespace fast {
using namespace metal;
}
namespace precise {
using namespace metal;
}

}  // namespace metal

// The same bits as another type.
template <class To, class From>
MSL_INLINE constexpr To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs two types of the same size");
  return __builtin_bit_cast(To, from);
}
