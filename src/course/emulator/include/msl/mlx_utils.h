// What MLX puts before every custom kernel (its kernels/utils.h): type names, limits, index arithmetic.
#pragma once
#include "math.h"

using float16_t = half;
using bfloat16_t = bfloat;

template <class T>
struct complex_t {
  T real, imag;
  complex_t() = default;
  constexpr complex_t(T r, T i) : real(r), imag(i) {}
  constexpr complex_t(T r) : real(r), imag(T(0.0f)) {}
};
using complex64_t = complex_t<float>;
template <class T>
constexpr complex_t<T> operator+(complex_t<T> a, complex_t<T> b) {
  return {a.real + b.real, a.imag + b.imag};
}
template <class T>
constexpr complex_t<T> operator-(complex_t<T> a, complex_t<T> b) {
  return {a.real - b.real, a.imag - b.imag};
}
template <class T>
constexpr complex_t<T> operator*(complex_t<T> a, complex_t<T> b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}

template <class U>
struct WorkPerThread {
  static_assert(sizeof(U) <= 8, "Type too large");
  static constexpr int n = 8 / sizeof(U);
};

// The greatest and least values; for floats these are the infinities, and finite_* the greatest finite ones.
template <class U>
struct Limits {
  static constexpr U finite_max = metal::numeric_limits<U>::max();
  static constexpr U finite_min = metal::numeric_limits<U>::lowest();
  static constexpr U max = metal::floating<U> ? metal::numeric_limits<U>::infinity() : finite_max;
  static constexpr U min = metal::floating<U> ? static_cast<U>(-metal::numeric_limits<U>::infinity()) : finite_min;
};
template <>
struct Limits<bool> {
  static constexpr bool max = true;
  static constexpr bool min = false;
};

template <class T, class U>
MSL_INLINE constexpr T ceildiv(T n, U m) {
  return (n + m - 1) / m;
}

MSL_INLINE float log1p(float x) { return __builtin_log1pf(x); }
MSL_INLINE bfloat16_t log1p(bfloat16_t x) { return bfloat16_t(log1p(static_cast<float>(x))); }
MSL_INLINE float hypot(float x, float y) { return __builtin_hypotf(x, y); }

// The offset of an element of a strided array.
template <class IdxT = int64_t>
MSL_INLINE IdxT elem_to_loc(IdxT elem, const int* shape, const int64_t* strides, int ndim) {
  IdxT loc = 0;
  for (int i = ndim - 1; i >= 0 && elem > 0; --i) {
    loc += (elem % shape[i]) * IdxT(strides[i]);
    elem /= shape[i];
  }
  return loc;
}
template <class IdxT = int64_t>
MSL_INLINE IdxT elem_to_loc(uint3 elem, const int* shape, const int64_t* strides, int ndim) {
  IdxT loc = elem.x * IdxT(strides[ndim - 1]) + elem.y * IdxT(strides[ndim - 2]);
  for (int d = ndim - 3; d >= 0; --d) {
    loc += (elem.z % static_cast<uint>(shape[d])) * IdxT(strides[d]);
    elem.z /= static_cast<uint>(shape[d]);
  }
  return loc;
}
template <class IdxT = int64_t>
MSL_INLINE IdxT elem_to_loc_1(uint elem, const int64_t& stride) {
  return elem * IdxT(stride);
}
template <class IdxT = int64_t>
MSL_INLINE IdxT elem_to_loc_2(uint2 elem, const int64_t strides[2]) {
  return elem.x * IdxT(strides[1]) + elem.y * IdxT(strides[0]);
}
template <class IdxT = int64_t>
MSL_INLINE IdxT elem_to_loc_3(uint3 elem, const int64_t strides[3]) {
  return elem.x * IdxT(strides[2]) + elem.y * IdxT(strides[1]) + elem.z * IdxT(strides[0]);
}
