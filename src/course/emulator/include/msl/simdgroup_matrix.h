// <metal_simdgroup_matrix>: 8 x 8 matrices spread over a simdgroup, two neighbours of a row to each lane.
#pragma once
#include "simdgroup.h"

namespace metal {

namespace detail {

MSL_INLINE constexpr int matrix_row(uint lane) { return static_cast<int>((lane / 16) * 4 + lane / 2 % 4); }
MSL_INLINE constexpr int matrix_column(uint lane) { return static_cast<int>(lane / 8 % 2 * 4 + lane % 2 * 2); }

struct matrix_slot {
  float a[2], b[2], c[2];
};

using matrix_rows = float __attribute__((vector_size(32)));

// C += A B over the lanes' slots, in float. An absent lane's elements are NaN.
MSL_UNCHECKED inline void multiply_matrices(void* const* slots, uint32_t active) {
  float a[8][8];
  matrix_rows b[8], c[8];
  for (uint lane = 0; lane < ::msl::kSimdWidth; ++lane) {
    const int row = matrix_row(lane), column = matrix_column(lane);
    const auto* slot = static_cast<const matrix_slot*>(slots[lane]);
    for (int k = 0; k < 2; ++k) {
      a[row][column + k] = slot ? slot->a[k] : __builtin_nanf("");
      b[row][column + k] = slot ? slot->b[k] : __builtin_nanf("");
      c[row][column + k] = slot ? slot->c[k] : __builtin_nanf("");
    }
  }
  for (int row = 0; row < 8; ++row) {
    matrix_rows sum = c[row];
    for (int k = 0; k < 8; ++k) sum += a[row][k] * b[k];
    c[row] = sum;
  }
  for (uint lane = 0; lane < ::msl::kSimdWidth; ++lane) {
    if (!(active >> lane & 1)) continue;
    auto* slot = static_cast<matrix_slot*>(slots[lane]);
    slot->c[0] = c[matrix_row(lane)][matrix_column(lane)];
    slot->c[1] = c[matrix_row(lane)][matrix_column(lane) + 1];
  }
}

template <class D, class A, class B, class C>
MSL_UNCHECKED vec<D, 2> multiply_add(vec<A, 2> a, vec<B, 2> b, vec<C, 2> c, ::msl::Site site) {
  matrix_slot slot{{float(a.x), float(a.y)}, {float(b.x), float(b.y)}, {float(c.x), float(c.y)}};
  ::msl::msl_rt_simd(multiply_matrices, &slot, site);
  return {static_cast<D>(slot.c[0]), static_cast<D>(slot.c[1])};
}

}  // namespace detail

template <class T, int Rows, int Columns>
struct simdgroup_matrix {
  static_assert(Rows == 8 && Columns == 8, "Metal has 8 x 8 simdgroup matrices only");
  static_assert(floating<T>, "a simdgroup matrix holds float, half or bfloat");

  simdgroup_matrix() = default;
  // A diagonal matrix, as in Metal: use make_filled_simdgroup_matrix to fill.
  MSL_INLINE explicit simdgroup_matrix(T diagonal) {
    const int row = detail::matrix_row(::msl::msl_rt_lane()), column = detail::matrix_column(::msl::msl_rt_lane());
    elements.x = row == column ? diagonal : T(0.0f);
    elements.y = row == column + 1 ? diagonal : T(0.0f);
  }
  MSL_INLINE vec<T, 2>& thread_elements() { return elements; }
  MSL_INLINE const vec<T, 2>& thread_elements() const { return elements; }

  vec<T, 2> elements;
};

using simdgroup_float8x8 = simdgroup_matrix<float, 8, 8>;
using simdgroup_half8x8 = simdgroup_matrix<half, 8, 8>;
using simdgroup_bfloat8x8 = simdgroup_matrix<bfloat, 8, 8>;

template <class T, int Rows, int Columns>
MSL_INLINE simdgroup_matrix<T, Rows, Columns> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, Rows, Columns> made;
  made.elements = vec<T, 2>(value);
  return made;
}

namespace detail {

// Where a lane's two elements are: next to each other, or one below the other for the transpose.
template <class T>
struct matrix_place {
  T* first;
  T* second;

  MSL_INLINE matrix_place(T* begin, ulong stride, ulong2 origin, bool transpose) {
    const auto row = static_cast<ulong>(matrix_row(::msl::msl_rt_lane()));
    const auto column = static_cast<ulong>(matrix_column(::msl::msl_rt_lane()));
    first = begin + (transpose ? (origin.y + column) * stride + origin.x + row
                               : (origin.y + row) * stride + origin.x + column);
    second = first + (transpose ? stride : 1);
  }
};

template <class T>
MSL_UNCHECKED vec<T, 2> load_pair(const T* first, const T* second, ::msl::Site site) {
  if (second == first + 1) {
    ::msl::msl_rt_read(first, 2 * sizeof(T), site);
  } else {
    ::msl::msl_rt_read(first, sizeof(T), site);
    ::msl::msl_rt_read(second, sizeof(T), site);
  }
  return {*first, *second};
}

template <class T>
MSL_UNCHECKED void store_pair(T* first, T* second, vec<T, 2> pair, ::msl::Site site) {
  if (second == first + 1) {
    ::msl::msl_rt_write(first, 2 * sizeof(T), site);
  } else {
    ::msl::msl_rt_write(first, sizeof(T), site);
    ::msl::msl_rt_write(second, sizeof(T), site);
  }
  *first = pair.x;
  *second = pair.y;
}

}  // namespace detail

template <class T>
MSL_INLINE void simdgroup_load(simdgroup_matrix<T, 8, 8>& to, const T* from, ulong elements_per_row = 8,
                               ulong2 origin = ulong2(0), bool transpose = false,
                               ::msl::Caller site = ::msl::Caller::current()) {
  const detail::matrix_place<const T> at(from, elements_per_row, origin, transpose);
  to.elements = detail::load_pair(at.first, at.second, site);
}

template <class T>
MSL_INLINE void simdgroup_store(const simdgroup_matrix<T, 8, 8>& from, T* to, ulong elements_per_row = 8,
                                ulong2 origin = ulong2(0), bool transpose = false,
                               ::msl::Caller site = ::msl::Caller::current()) {
  const detail::matrix_place<T> at(to, elements_per_row, origin, transpose);
  detail::store_pair(at.first, at.second, from.elements, site);
}

template <class D, class A, class B, class C>
MSL_INLINE void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                                              const simdgroup_matrix<B, 8, 8>& b, const simdgroup_matrix<C, 8, 8>& c,
                                              ::msl::Caller site = ::msl::Caller::current()) {
  d.elements = detail::multiply_add<D>(a.elements, b.elements, c.elements, site);
}

template <class D, class A, class B>
MSL_INLINE void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                                   const simdgroup_matrix<B, 8, 8>& b, ::msl::Caller site = ::msl::Caller::current()) {
  d.elements = detail::multiply_add<D>(a.elements, b.elements, vec<float, 2>(0.0f), site);
}

template <class T>
MSL_INLINE simdgroup_matrix<T, 8, 8> operator*(const simdgroup_matrix<T, 8, 8>& a, const simdgroup_matrix<T, 8, 8>& b) {
  simdgroup_matrix<T, 8, 8> product;
  simdgroup_multiply(product, a, b);
  return product;
}

}  // namespace metal
