// <metal_type_traits> and <metal_limits>.
#pragma once
#include <limits>

#include "scalar.h"

namespace metal {

using std::conditional;
using std::conditional_t;
using std::enable_if;
using std::enable_if_t;
using std::false_type;
using std::integral_constant;
using std::is_convertible;
using std::is_convertible_v;
using std::is_integral;
using std::is_integral_v;
using std::is_same;
using std::is_same_v;
using std::is_signed;
using std::is_signed_v;
using std::is_unsigned;
using std::is_unsigned_v;
using std::make_signed_t;
using std::make_unsigned_t;
using std::remove_const_t;
using std::remove_cv;
using std::remove_cv_t;
using std::remove_pointer_t;
using std::remove_reference;
using std::remove_reference_t;
using std::true_type;

template <bool value>
using bool_constant = std::bool_constant<value>;
template <class T>
using remove_addrspace_t = std::remove_cv_t<T>;
template <class T>
struct is_floating_point : bool_constant<floating<T>> {};
template <class T>
inline constexpr bool is_floating_point_v = floating<T>;
template <class T>
struct is_arithmetic : bool_constant<floating<T> || integral<T>> {};
template <class T>
inline constexpr bool is_arithmetic_v = floating<T> || integral<T>;
template <class... B>
using _disjunction = std::disjunction<B...>;

template <class T>
struct numeric_limits : std::numeric_limits<T> {};

template <>
struct numeric_limits<half> {
  static constexpr bool is_specialized = true;
  static constexpr int digits = 11;
  static constexpr half max() { return static_cast<half>(65504.0f); }
  static constexpr half lowest() { return static_cast<half>(-65504.0f); }
  static constexpr half min() { return static_cast<half>(6.103515625e-5f); }
  static constexpr half infinity() { return static_cast<half>(__builtin_inff()); }
  static constexpr half quiet_NaN() { return static_cast<half>(__builtin_nanf("")); }
  static constexpr half epsilon() { return static_cast<half>(0.0009765625f); }
};

template <>
struct numeric_limits<bfloat> {
  static constexpr bool is_specialized = true;
  static constexpr int digits = 8;
  static constexpr bfloat max() { return bfloat::from_bits(0x7F7F); }
  static constexpr bfloat lowest() { return bfloat::from_bits(0xFF7F); }
  static constexpr bfloat min() { return bfloat::from_bits(0x0080); }
  static constexpr bfloat infinity() { return bfloat::from_bits(0x7F80); }
  static constexpr bfloat quiet_NaN() { return bfloat::from_bits(0x7FC0); }
  static constexpr bfloat epsilon() { return bfloat::from_bits(0x3C00); }
};

}  // namespace metal
