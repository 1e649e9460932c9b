// How a kernel gets its arguments and how its library announces it.
#pragma once
#include "atomic.h"
#include "simdgroup_matrix.h"

namespace msl {

namespace detail {

MSL_UNCHECKED inline Uint3 built_in(const ThreadContext& c, ArgKind kind) {
  const uint32_t thread = c.thread_index_in_threadgroup;
  const auto size = [](Uint3 n) { return n.x * n.y * n.z; };
  const auto simdgroups = [](uint32_t threads) { return (threads + kSimdWidth - 1) / kSimdWidth; };
  switch (kind) {
    case kThreadPositionInGrid: return c.thread_position_in_grid;
    case kThreadPositionInThreadgroup: return c.thread_position_in_threadgroup;
    case kThreadgroupPositionInGrid: return c.threadgroup_position_in_grid;
    case kThreadsPerThreadgroup: return c.threads_per_threadgroup;
    case kDispatchThreadsPerThreadgroup: return c.dispatch_threads_per_threadgroup;
    case kThreadgroupsPerGrid: return c.threadgroups_per_grid;
    case kThreadsPerGrid: return c.threads_per_grid;
    case kThreadIndexInThreadgroup: return {thread, 0, 0};
    case kThreadIndexInSimdgroup: return {thread % kSimdWidth, 0, 0};
    case kSimdgroupIndexInThreadgroup: return {thread / kSimdWidth, 0, 0};
    case kSimdgroupsPerThreadgroup: return {simdgroups(size(c.threads_per_threadgroup)), 0, 0};
    case kDispatchSimdgroupsPerThreadgroup: return {simdgroups(size(c.dispatch_threads_per_threadgroup)), 0, 0};
    case kThreadsPerSimdgroup: return {kSimdWidth, 0, 0};
    case kThreadIndexInQuadgroup: return {thread % 4, 0, 0};
    case kQuadgroupIndexInThreadgroup: return {thread / 4, 0, 0};
    case kQuadgroupsPerThreadgroup: return {(size(c.threads_per_threadgroup) + 3) / 4, 0, 0};
    default: return {0, 0, 0};
  }
}

MSL_UNCHECKED inline void* address(const ThreadContext& c, const ArgDesc& argument) {
  return argument.kind == kThreadgroup ? c.threadgroup[argument.index] : c.buffers[argument.index];
}

template <class P>
struct argument {  // by value: a built-in, as a scalar or a vector of up to three
  template <class T, int N>
  static MSL_UNCHECKED metal::vec<T, N> convert(Uint3 v, metal::vec<T, N>*) {
    const uint32_t all[] = {v.x, v.y, v.z};
    metal::vec<T, N> made;
    for (int i = 0; i < N; ++i) made.d[i] = static_cast<T>(all[i]);
    return made;
  }
  template <class T>
  static MSL_UNCHECKED T convert(Uint3 v, T*) {
    return static_cast<T>(v.x);
  }
  static MSL_UNCHECKED P get(const ThreadContext& c, const ArgDesc& d) {
    return convert(built_in(c, d.kind), static_cast<std::remove_cv_t<P>*>(nullptr));
  }
};
template <class T>
struct argument<T*> {
  static MSL_UNCHECKED T* get(const ThreadContext& c, const ArgDesc& d) { return static_cast<T*>(address(c, d)); }
};
template <class T>
struct argument<T&> {
  static MSL_UNCHECKED T& get(const ThreadContext& c, const ArgDesc& d) { return *static_cast<T*>(address(c, d)); }
};

template <class... P, size_t... I>
MSL_UNCHECKED void call(void (*kernel)(P...), const ThreadContext& c, const ArgDesc* d, std::index_sequence<I...>) {
  kernel(argument<P>::get(c, d[I])...);
}

// What threads share of a variable: its elements, or those of its vectors and atomics.
template <class T>
inline constexpr size_t element = alignof(T);
template <class T, size_t N>
inline constexpr size_t element<T[N]> = element<T>;
template <class T, int N>
inline constexpr size_t element<metal::vec<T, N>> = sizeof(T);

}  // namespace detail

template <class... P>
MSL_UNCHECKED void call(void (*kernel)(P...), const ThreadContext& c, const ArgDesc* d) {
  detail::call(kernel, c, d, std::index_sequence_for<P...>{});
}

// The threadgroup variable that `key` stands for: the same for all threads of a threadgroup.
template <class V>
MSL_INLINE V& tgvar(const void* key, const char* name, Caller site = Caller::current()) {
  return *static_cast<V*>(msl_rt_threadgroup_variable(key, sizeof(V), detail::element<V>, name, site));
}

}  // namespace msl

#define MSL_JOIN_(a, b) a##b
#define MSL_JOIN(a, b) MSL_JOIN_(a, b)
// A kernel is known to hosts as HOST_NAME; ARGUMENTS says what its parameters are. The last may hold commas.
#define MSL_REGISTER(HOST_NAME, ARGUMENTS, ...)                                                          \
  static const ::msl::Registration MSL_JOIN(msl_registration_, __COUNTER__)(                             \
      HOST_NAME, [](const ::msl::ThreadContext& c) { ::msl::call(&__VA_ARGS__, c, ARGUMENTS); }, ARGUMENTS, \
      static_cast<int>(sizeof(ARGUMENTS) / sizeof(ARGUMENTS[0])));
