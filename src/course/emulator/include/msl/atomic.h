// <metal_atomic>. Threads take turns, so plain operations are atomic; the runtime is told that they are meant to be.
#pragma once
#include "synchronization.h"

namespace metal {

enum memory_order { memory_order_relaxed };

// Only the functions below reach the value.
template <class T>
struct atomic {
  static_assert(std::is_same_v<T, int> || std::is_same_v<T, uint> || std::is_same_v<T, float> ||
                    std::is_same_v<T, bool> || sizeof(T) == 8 || sizeof(T) == 2 || sizeof(T) == 1,
                "no such atomic type");
  T value;
};

}  // namespace metal

using atomic_int = metal::atomic<int>;
using atomic_uint = metal::atomic<uint>;
using atomic_float = metal::atomic<float>;
using atomic_bool = metal::atomic<bool>;
using atomic_ulong = metal::atomic<ulong>;

namespace metal {

using ::atomic_bool;
using ::atomic_float;
using ::atomic_int;
using ::atomic_uint;
using ::atomic_ulong;

namespace detail {

template <class T>
using same = std::type_identity_t<T>;  // deduced from the atomic alone

template <class Combine, class T>
MSL_UNCHECKED T exchange(volatile atomic<T>* object, T operand, ::msl::Site site) {
  ::msl::msl_rt_atomic(object, sizeof(T), site);
  const T before = object->value;
  object->value = Combine::of(before, operand);
  return before;
}

struct take_operand {
  template <class T>
  static T of(T, T operand) { return operand; }
};
struct keep_value {
  template <class T>
  static T of(T before, T) { return before; }
};
struct plus_operand {
  template <class T>
  static T of(T before, T operand) { return static_cast<T>(before + operand); }
};
struct minus_operand {
  template <class T>
  static T of(T before, T operand) { return static_cast<T>(before - operand); }
};
struct and_operand {
  template <class T>
  static T of(T before, T operand) { return static_cast<T>(before & operand); }
};
struct or_operand {
  template <class T>
  static T of(T before, T operand) { return static_cast<T>(before | operand); }
};
struct xor_operand {
  template <class T>
  static T of(T before, T operand) { return static_cast<T>(before ^ operand); }
};
struct min_operand {
  template <class T>
  static T of(T before, T operand) { return operand < before ? operand : before; }
};
struct max_operand {
  template <class T>
  static T of(T before, T operand) { return before < operand ? operand : before; }
};

template <class T>
MSL_UNCHECKED bool compare_exchange(volatile atomic<T>* object, T* expected, T desired, ::msl::Site site) {
  ::msl::msl_rt_atomic(object, sizeof(T), site);
  const T before = object->value;
  if (before == *expected) {
    object->value = desired;
    return true;
  }
  *expected = before;
  return false;
}

}  // namespace detail

#define MSL_FETCH(NAME, COMBINE, CONDITION)                                                                     \
  template <class T>                                                                                            \
    requires(CONDITION)                                                                                         \
  MSL_INLINE T atomic_fetch_##NAME##_explicit(volatile atomic<T>* object, detail::same<T> operand, memory_order, \
                                              ::msl::Caller site = ::msl::Caller::current()) {                  \
    return detail::exchange<detail::COMBINE>(object, static_cast<T>(operand), site);                            \
  }
MSL_FETCH(add, plus_operand, true)
MSL_FETCH(sub, minus_operand, true)
MSL_FETCH(and, and_operand, integral<T>)
MSL_FETCH(or, or_operand, integral<T>)
MSL_FETCH(xor, xor_operand, integral<T>)
MSL_FETCH(min, min_operand, integral<T>)
MSL_FETCH(max, max_operand, integral<T>)
#undef MSL_FETCH

template <class T>
MSL_INLINE T atomic_exchange_explicit(volatile atomic<T>* object, detail::same<T> desired, memory_order,
                                      ::msl::Caller site = ::msl::Caller::current()) {
  return detail::exchange<detail::take_operand>(object, static_cast<T>(desired), site);
}
template <class T>
MSL_INLINE void atomic_store_explicit(volatile atomic<T>* object, detail::same<T> desired, memory_order,
                                      ::msl::Caller site = ::msl::Caller::current()) {
  detail::exchange<detail::take_operand>(object, static_cast<T>(desired), site);
}
template <class T>
MSL_INLINE T atomic_load_explicit(const volatile atomic<T>* object, memory_order,
                                  ::msl::Caller site = ::msl::Caller::current()) {
  return detail::exchange<detail::keep_value>(const_cast<volatile atomic<T>*>(object), T(), site);
}
template <class T>
MSL_INLINE bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* object, T* expected, detail::same<T> desired,
                                                      memory_order, memory_order,
                                                      ::msl::Caller site = ::msl::Caller::current()) {
  return detail::compare_exchange(object, expected, static_cast<T>(desired), site);
}

}  // namespace metal
