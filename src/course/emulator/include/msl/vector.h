// Vectors of two, three and four: constructors, swizzles, operators.
#pragma once
#include <utility>

#include "type_traits.h"

namespace metal {

template <class T, int N>
struct vec;

namespace detail {

template <class T, int N>
struct components;
template <class T>
struct alignas(2 * sizeof(T)) components<T, 2> {
  union {
    T d[2];
    struct { T x, y; };
    struct { T r, g; };
  };
};
template <class T>
struct alignas(4 * sizeof(T)) components<T, 3> {
  union {
    T d[3];
    struct { T x, y, z; };
    struct { T r, g, b; };
  };
};
template <class T>
struct alignas(4 * sizeof(T)) components<T, 4> {
  union {
    T d[4];
    struct { T x, y, z, w; };
    struct { T r, g, b, a; };
  };
};

template <class V>
inline constexpr int width = scalar<V> ? 1 : 0;
template <class T, int N>
inline constexpr int width<vec<T, N>> = N;

// What a part of a constructor contributes to a vector of T: a scalar converts, a vector must have the same elements.
template <class P, class T>
concept part = scalar<P> || (width<P> > 0 && requires(P p) { requires std::is_same_v<decltype(p.d[0]), T&>; });

template <int I, class P>
MSL_INLINE constexpr auto component(const P& p) {
  if constexpr (scalar<P>) {
    return p;
  } else {
    return p.d[I];
  }
}

// Component I of the parts laid end to end.
template <int I, class First, class... Rest>
MSL_INLINE constexpr auto pick(const First& first, const Rest&... rest) {
  if constexpr (I < width<First>) {
    return component<I>(first);
  } else {
    return pick<I - width<First>>(rest...);
  }
}

template <class T, int N, int... I>
struct swizzle;

}  // namespace detail

template <class T, int N>
struct vec : detail::components<T, N> {
  vec() = default;

  template <class S>
    requires scalar<S>
  MSL_INLINE constexpr vec(S value) : vec(std::make_integer_sequence<int, N>{}, value) {}

  template <class... P>
    requires(sizeof...(P) > 1 && (detail::width<P> + ...) == N && (detail::part<P, T> && ...))
  MSL_INLINE constexpr vec(P... parts) : vec(std::make_integer_sequence<int, N>{}, parts...) {}

  template <class U>
    requires(!std::is_same_v<U, T>)
  MSL_INLINE explicit constexpr vec(vec<U, N> other) : vec(std::make_integer_sequence<int, N>{}, other) {}

  template <int... I>
  MSL_INLINE constexpr vec(detail::swizzle<T, N, I...> other) : vec(other.get()) {}

  MSL_INLINE constexpr T& operator[](int i) { return this->d[i]; }
  MSL_INLINE constexpr const T& operator[](int i) const { return this->d[i]; }

  // v.xy as a value, and as something to assign to.
  template <int... I>
  MSL_INLINE constexpr vec<T, sizeof...(I)> swz() const {
    return {this->d[I]...};
  }
  template <int... I>
  MSL_INLINE constexpr detail::swizzle<T, N, I...> swzref() {
    return {*this};
  }

 private:
  template <int... I, class S>
    requires scalar<S>
  MSL_INLINE constexpr vec(std::integer_sequence<int, I...>, S value)
      : detail::components<T, N>{{{((void)I, static_cast<T>(value))...}}} {}
  template <int... I, class... P>
    requires(!scalar<P> || ... || (sizeof...(P) > 1))
  MSL_INLINE constexpr vec(std::integer_sequence<int, I...>, P... parts)
      : detail::components<T, N>{{{static_cast<T>(detail::pick<I>(parts...))...}}} {}
};

namespace detail {

template <class T, int N, int... I>
struct swizzle {
  vec<T, N>& of;
  using value = vec<T, sizeof...(I)>;

  MSL_INLINE constexpr value get() const { return {of.d[I]...}; }
  MSL_INLINE constexpr operator value() const { return get(); }
  MSL_INLINE constexpr swizzle& operator=(value from) {
    int next = 0;
    ((of.d[I] = from.d[next++]), ...);
    return *this;
  }
  MSL_INLINE constexpr swizzle& operator=(const swizzle& from) { return *this = from.get(); }
  template <class U>
  MSL_INLINE constexpr swizzle& operator+=(U by) { return *this = get() + by; }
  template <class U>
  MSL_INLINE constexpr swizzle& operator-=(U by) { return *this = get() - by; }
  template <class U>
  MSL_INLINE constexpr swizzle& operator*=(U by) { return *this = get() * by; }
  template <class U>
  MSL_INLINE constexpr swizzle& operator/=(U by) { return *this = get() / by; }
};

// f applied to every component. Constant indices keep vectors in registers.
template <class F, class T, int N, class... More>
MSL_INLINE constexpr auto map(F f, vec<T, N> a, More... more) {
  return [&]<int... I>(std::integer_sequence<int, I...>) MSL_LAMBDA {
    auto at = [&](auto index) MSL_LAMBDA { return f(a.d[index.value], more.d[index.value]...); };
    using R = decltype(at(std::integral_constant<int, 0>{}));
    return vec<R, N>{at(std::integral_constant<int, I>{})...};
  }(std::make_integer_sequence<int, N>{});
}

}  // namespace detail

#define MSL_VECTOR_OPERATOR(OP)                                                                   \
  template <class T, int N>                                                                       \
  MSL_INLINE constexpr vec<T, N> operator OP(vec<T, N> a, vec<T, N> b) {                          \
    return detail::map([](T x, T y) MSL_LAMBDA { return static_cast<T>(x OP y); }, a, b);         \
  }                                                                                               \
  template <class T, int N, class S>                                                              \
    requires scalar<S>                                                                            \
  MSL_INLINE constexpr vec<T, N> operator OP(vec<T, N> a, S b) {                                  \
    return a OP vec<T, N>(b);                                                                     \
  }                                                                                               \
  template <class T, int N, class S>                                                              \
    requires scalar<S>                                                                            \
  MSL_INLINE constexpr vec<T, N> operator OP(S a, vec<T, N> b) {                                  \
    return vec<T, N>(a) OP b;                                                                     \
  }                                                                                               \
  template <class T, int N>                                                                       \
  MSL_INLINE constexpr vec<T, N>& operator OP##=(vec<T, N>& a, vec<T, N> b) {                     \
    return a = a OP b;                                                                            \
  }                                                                                               \
  template <class T, int N, class S>                                                              \
    requires scalar<S>                                                                            \
  MSL_INLINE constexpr vec<T, N>& operator OP##=(vec<T, N>& a, S b) {                             \
    return a = a OP vec<T, N>(b);                                                                 \
  }
MSL_VECTOR_OPERATOR(+)
MSL_VECTOR_OPERATOR(-)
MSL_VECTOR_OPERATOR(*)
MSL_VECTOR_OPERATOR(/)
MSL_VECTOR_OPERATOR(%)
MSL_VECTOR_OPERATOR(&)
MSL_VECTOR_OPERATOR(|)
MSL_VECTOR_OPERATOR(^)
MSL_VECTOR_OPERATOR(<<)
MSL_VECTOR_OPERATOR(>>)
#undef MSL_VECTOR_OPERATOR

#define MSL_VECTOR_COMPARISON(OP)                                                   \
  template <class T, int N>                                                         \
  MSL_INLINE constexpr vec<bool, N> operator OP(vec<T, N> a, vec<T, N> b) {         \
    return detail::map([](T x, T y) MSL_LAMBDA { return x OP y; }, a, b);           \
  }                                                                                 \
  template <class T, int N, class S>                                                \
    requires scalar<S>                                                              \
  MSL_INLINE constexpr vec<bool, N> operator OP(vec<T, N> a, S b) {                 \
    return a OP vec<T, N>(b);                                                       \
  }                                                                                 \
  template <class T, int N, class S>                                                \
    requires scalar<S>                                                              \
  MSL_INLINE constexpr vec<bool, N> operator OP(S a, vec<T, N> b) {                 \
    return vec<T, N>(a) OP b;                                                       \
  }
MSL_VECTOR_COMPARISON(==)
MSL_VECTOR_COMPARISON(!=)
MSL_VECTOR_COMPARISON(<)
MSL_VECTOR_COMPARISON(>)
MSL_VECTOR_COMPARISON(<=)
MSL_VECTOR_COMPARISON(>=)
MSL_VECTOR_COMPARISON(&&)
MSL_VECTOR_COMPARISON(||)
#undef MSL_VECTOR_COMPARISON

template <class T, int N>
MSL_INLINE constexpr vec<T, N> operator-(vec<T, N> a) {
  return detail::map([](T x) MSL_LAMBDA { return static_cast<T>(-x); }, a);
}
template <class T, int N>
MSL_INLINE constexpr vec<T, N> operator~(vec<T, N> a) {
  return detail::map([](T x) MSL_LAMBDA { return static_cast<T>(~x); }, a);
}
template <class T, int N>
MSL_INLINE constexpr vec<bool, N> operator!(vec<T, N> a) {
  return detail::map([](T x) MSL_LAMBDA { return !x; }, a);
}
template <class T, int N>
MSL_INLINE constexpr vec<T, N>& operator++(vec<T, N>& a) {
  return a += T(1);
}

// Without the alignment of vec: three floats take twelve bytes.
template <class T, int N>
struct packed_vec {
  T d[N];

  packed_vec() = default;
  MSL_INLINE packed_vec(vec<T, N> from) {
    for (int i = 0; i < N; ++i) d[i] = from.d[i];
  }
  MSL_INLINE operator vec<T, N>() const {
    vec<T, N> made;
    for (int i = 0; i < N; ++i) made.d[i] = d[i];
    return made;
  }
  MSL_INLINE T& operator[](int i) { return d[i]; }
  MSL_INLINE const T& operator[](int i) const { return d[i]; }
};

}  // namespace metal

#define MSL_VECTOR_NAMES(T)           \
  using T##2 = metal::vec<T, 2>;      \
  using T##3 = metal::vec<T, 3>;      \
  using T##4 = metal::vec<T, 4>;      \
  using packed_##T##2 = metal::packed_vec<T, 2>; \
  using packed_##T##3 = metal::packed_vec<T, 3>; \
  using packed_##T##4 = metal::packed_vec<T, 4>; \
  namespace metal {                   \
  using ::T##2;                       \
  using ::T##3;                       \
  using ::T##4;                       \
  using ::packed_##T##2;              \
  using ::packed_##T##3;              \
  using ::packed_##T##4;              \
  }
MSL_VECTOR_NAMES(bool)
MSL_VECTOR_NAMES(char)
MSL_VECTOR_NAMES(uchar)
MSL_VECTOR_NAMES(short)
MSL_VECTOR_NAMES(ushort)
MSL_VECTOR_NAMES(int)
MSL_VECTOR_NAMES(uint)
MSL_VECTOR_NAMES(long)
MSL_VECTOR_NAMES(ulong)
MSL_VECTOR_NAMES(half)
MSL_VECTOR_NAMES(bfloat)
MSL_VECTOR_NAMES(float)
#undef MSL_VECTOR_NAMES
