// <metal_math>, <metal_common>, <metal_geometric>, <metal_relational>. One overload per type and no mixed ones, so that
// max(int, uint) is as ambiguous as on a Mac. 16-bit floats are computed in float and rounded once.
#pragma once
#include "vector.h"

#define MSL_ON_VECTORS_1(NAME)                                                      \
  template <class T, int N>                                                         \
  MSL_INLINE vec<T, N> NAME(vec<T, N> x) {                                          \
    return detail::map([](T a) MSL_LAMBDA { return NAME(a); }, x);                  \
  }
#define MSL_ON_VECTORS_2(NAME)                                                      \
  template <class T, int N>                                                         \
  MSL_INLINE vec<T, N> NAME(vec<T, N> x, vec<T, N> y) {                             \
    return detail::map([](T a, T b) MSL_LAMBDA { return NAME(a, b); }, x, y);       \
  }
#define MSL_ON_VECTORS_3(NAME)                                                           \
  template <class T, int N>                                                              \
  MSL_INLINE vec<T, N> NAME(vec<T, N> x, vec<T, N> y, vec<T, N> z) {                     \
    return detail::map([](T a, T b, T c) MSL_LAMBDA { return NAME(a, b, c); }, x, y, z); \
  }
#define MSL_MATH_1(NAME, RESULT)                                                                     \
  MSL_INLINE float NAME(float x) { return RESULT; }                                                  \
  MSL_INLINE half NAME(half x) { return static_cast<half>(NAME(static_cast<float>(x))); }            \
  MSL_INLINE bfloat NAME(bfloat x) { return bfloat(NAME(static_cast<float>(x))); }                   \
  MSL_ON_VECTORS_1(NAME)
#define MSL_MATH_2(NAME, RESULT)                                                                     \
  MSL_INLINE float NAME(float x, float y) { return RESULT; }                                         \
  MSL_INLINE half NAME(half x, half y) {                                                             \
    return static_cast<half>(NAME(static_cast<float>(x), static_cast<float>(y)));                    \
  }                                                                                                  \
  MSL_INLINE bfloat NAME(bfloat x, bfloat y) {                                                       \
    return bfloat(NAME(static_cast<float>(x), static_cast<float>(y)));                               \
  }                                                                                                  \
  MSL_ON_VECTORS_2(NAME)
#define MSL_MATH_3(NAME, RESULT)                                                                     \
  MSL_INLINE float NAME(float x, float y, float z) { return RESULT; }                                \
  MSL_INLINE half NAME(half x, half y, half z) {                                                     \
    return static_cast<half>(NAME(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z))); \
  }                                                                                                  \
  MSL_INLINE bfloat NAME(bfloat x, bfloat y, bfloat z) {                                             \
    return bfloat(NAME(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)));        \
  }                                                                                                  \
  MSL_ON_VECTORS_3(NAME)
#define MSL_PREDICATE(NAME, RESULT)                                                                  \
  MSL_INLINE bool NAME(float x) { return RESULT; }                                                   \
  MSL_INLINE bool NAME(half x) { return NAME(static_cast<float>(x)); }                               \
  MSL_INLINE bool NAME(bfloat x) { return NAME(static_cast<float>(x)); }                             \
  MSL_ON_VECTORS_1(NAME)
#define MSL_ORDER(T)                                                                                 \
  MSL_INLINE constexpr T min(T x, T y) { return y < x ? y : x; }                                     \
  MSL_INLINE constexpr T max(T x, T y) { return x < y ? y : x; }                                     \
  MSL_INLINE constexpr T clamp(T x, T low, T high) { return min(max(x, low), high); }                \
  MSL_INLINE constexpr T min3(T x, T y, T z) { return min(x, min(y, z)); }                           \
  MSL_INLINE constexpr T max3(T x, T y, T z) { return max(x, max(y, z)); }                           \
  MSL_INLINE constexpr T median3(T x, T y, T z) { return max(min(x, y), min(max(x, y), z)); }

namespace metal {

MSL_MATH_1(exp, __builtin_expf(x))
MSL_MATH_1(exp2, __builtin_exp2f(x))
MSL_MATH_1(exp10, __builtin_powf(10.0f, x))
MSL_MATH_1(log, __builtin_logf(x))
MSL_MATH_1(log2, __builtin_log2f(x))
MSL_MATH_1(log10, __builtin_log10f(x))
MSL_MATH_1(sqrt, __builtin_sqrtf(x))
MSL_MATH_1(rsqrt, 1.0f / __builtin_sqrtf(x))
MSL_MATH_1(sin, __builtin_sinf(x))
MSL_MATH_1(cos, __builtin_cosf(x))
MSL_MATH_1(tan, __builtin_tanf(x))
MSL_MATH_1(sinpi, __builtin_sinf(3.14159265358979323846f * x))
MSL_MATH_1(cospi, __builtin_cosf(3.14159265358979323846f * x))
MSL_MATH_1(tanpi, __builtin_tanf(3.14159265358979323846f * x))
MSL_MATH_1(asin, __builtin_asinf(x))
MSL_MATH_1(acos, __builtin_acosf(x))
MSL_MATH_1(atan, __builtin_atanf(x))
MSL_MATH_1(sinh, __builtin_sinhf(x))
MSL_MATH_1(cosh, __builtin_coshf(x))
MSL_MATH_1(tanh, __builtin_tanhf(x))
MSL_MATH_1(asinh, __builtin_asinhf(x))
MSL_MATH_1(acosh, __builtin_acoshf(x))
MSL_MATH_1(atanh, __builtin_atanhf(x))
MSL_MATH_1(floor, __builtin_floorf(x))
MSL_MATH_1(ceil, __builtin_ceilf(x))
MSL_MATH_1(trunc, __builtin_truncf(x))
MSL_MATH_1(rint, __builtin_rintf(x))
MSL_MATH_1(round, __builtin_roundf(x))
MSL_MATH_1(fabs, __builtin_fabsf(x))
MSL_MATH_1(abs, __builtin_fabsf(x))
MSL_MATH_1(fract, x - __builtin_floorf(x))
MSL_MATH_1(sign, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f)
MSL_MATH_1(saturate, x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f)
MSL_MATH_2(pow, __builtin_powf(x, y))
MSL_MATH_2(powr, __builtin_powf(x, y))
MSL_MATH_2(atan2, __builtin_atan2f(x, y))
MSL_MATH_2(fmod, __builtin_fmodf(x, y))
MSL_MATH_2(fmin, __builtin_fminf(x, y))
MSL_MATH_2(fmax, __builtin_fmaxf(x, y))
MSL_MATH_2(fdim, __builtin_fdimf(x, y))
MSL_MATH_2(copysign, __builtin_copysignf(x, y))
MSL_MATH_2(nextafter, __builtin_nextafterf(x, y))
MSL_MATH_2(divide, x / y)
MSL_MATH_2(step, y < x ? 0.0f : 1.0f)
MSL_MATH_3(fma, __builtin_fmaf(x, y, z))
MSL_MATH_3(mix, x + (y - x) * z)
MSL_MATH_3(fmin3, fmin(x, fmin(y, z)))
MSL_MATH_3(fmax3, fmax(x, fmax(y, z)))
MSL_MATH_3(smoothstep, [&] {
  const float t = saturate((z - x) / (y - x));
  return t * t * (3.0f - 2.0f * t);
}())
MSL_PREDICATE(isnan, __builtin_isnan(x))
MSL_PREDICATE(isinf, __builtin_isinf(x) != 0)
MSL_PREDICATE(isfinite, __builtin_isfinite(x))
MSL_PREDICATE(isnormal, __builtin_isnormal(x))
MSL_PREDICATE(signbit, __builtin_signbit(x) != 0)

MSL_ORDER(char)
MSL_ORDER(uchar)
MSL_ORDER(short)
MSL_ORDER(ushort)
MSL_ORDER(int)
MSL_ORDER(uint)
MSL_ORDER(long)
MSL_ORDER(ulong)
MSL_ORDER(long long)
MSL_ORDER(unsigned long long)
MSL_ORDER(half)
MSL_ORDER(bfloat)
MSL_ORDER(float)
MSL_ON_VECTORS_2(min)
MSL_ON_VECTORS_2(max)
MSL_ON_VECTORS_3(clamp)
MSL_ON_VECTORS_3(min3)
MSL_ON_VECTORS_3(max3)

template <class T, int N>
MSL_INLINE vec<T, N> clamp(vec<T, N> x, T low, T high) {
  return clamp(x, vec<T, N>(low), vec<T, N>(high));
}
template <class T, int N>
MSL_INLINE vec<T, N> mix(vec<T, N> x, vec<T, N> y, T a) {
  return mix(x, y, vec<T, N>(a));
}
template <class T, int N>
MSL_INLINE vec<T, N> max(vec<T, N> x, T y) {
  return max(x, vec<T, N>(y));
}
template <class T, int N>
MSL_INLINE vec<T, N> min(vec<T, N> x, T y) {
  return min(x, vec<T, N>(y));
}

MSL_INLINE float ldexp(float x, int exponent) { return __builtin_ldexpf(x, exponent); }
MSL_INLINE half ldexp(half x, int exponent) { return static_cast<half>(__builtin_ldexpf(x, exponent)); }
MSL_INLINE int ilogb(float x) { return __builtin_ilogbf(x); }
MSL_INLINE float frexp(float x, int& exponent) { return __builtin_frexpf(x, &exponent); }
MSL_INLINE float modf(float x, float& whole) { return __builtin_modff(x, &whole); }
MSL_INLINE float sincos(float x, float& cosine) {
  cosine = __builtin_cosf(x);
  return __builtin_sinf(x);
}

template <class T>
  requires scalar<T>
MSL_INLINE constexpr T select(T if_false, T if_true, bool which) {
  return which ? if_true : if_false;
}
template <class T, int N>
MSL_INLINE vec<T, N> select(vec<T, N> if_false, vec<T, N> if_true, vec<bool, N> which) {
  return detail::map([](T a, T b, bool c) MSL_LAMBDA { return c ? b : a; }, if_false, if_true, which);
}

template <int N>
MSL_INLINE bool all(vec<bool, N> x) {
  bool every = true;
  for (int i = 0; i < N; ++i) every = every && x.d[i];
  return every;
}
template <int N>
MSL_INLINE bool any(vec<bool, N> x) {
  bool some = false;
  for (int i = 0; i < N; ++i) some = some || x.d[i];
  return some;
}
MSL_INLINE bool all(bool x) { return x; }
MSL_INLINE bool any(bool x) { return x; }

template <class T, int N>
MSL_INLINE constexpr T dot(vec<T, N> a, vec<T, N> b) {
  return [&]<int... I>(std::integer_sequence<int, I...>) MSL_LAMBDA {
    return static_cast<T>((... + (a.d[I] * b.d[I])));
  }(std::make_integer_sequence<int, N>{});
}
template <class T, int N>
MSL_INLINE T length_squared(vec<T, N> a) {
  return dot(a, a);
}
template <class T, int N>
MSL_INLINE T length(vec<T, N> a) {
  return sqrt(dot(a, a));
}
template <class T, int N>
MSL_INLINE T distance(vec<T, N> a, vec<T, N> b) {
  return length(a - b);
}
template <class T, int N>
MSL_INLINE vec<T, N> normalize(vec<T, N> a) {
  return a * rsqrt(dot(a, a));
}
template <class T>
MSL_INLINE vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
  return {static_cast<T>(a.y * b.z - a.z * b.y), static_cast<T>(a.z * b.x - a.x * b.z),
          static_cast<T>(a.x * b.y - a.y * b.x)};
}

}  // namespace metal

#undef MSL_ORDER
#undef MSL_PREDICATE
#undef MSL_MATH_1
#undef MSL_MATH_2
#undef MSL_MATH_3

#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.43429448190325182765f
#define M_LN2_F 0.69314718055994530942f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.78539816339744830962f
#define M_1_PI_F 0.31830988618379067154f
#define M_2_PI_F 0.63661977236758134308f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.70710678118654752440f
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define MAXFLOAT 3.402823466e+38f
#define HUGE_VALF __builtin_huge_valf()
#undef FLT_MAX
#undef FLT_MIN
#undef FLT_EPSILON
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define HALF_MAX half(65504.0f)
#define HALF_MIN half(6.103515625e-5f)
#define HALF_EPSILON half(0.0009765625f)
#undef INT_MAX
#undef INT_MIN
#undef UINT_MAX
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
