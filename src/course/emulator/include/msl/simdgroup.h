// <metal_simdgroup> and <metal_quadgroup>. Every lane parks what it gives, and a place for what it gets, on its own
// stack; the last one to come computes for all. Lanes that are not there count as Metal says: they do not.
#pragma once
#include "synchronization.h"

namespace metal {

namespace detail {

inline constexpr int kLanes = static_cast<int>(::msl::kSimdWidth);

template <class T>
struct lane_slot {
  T value, filling, result;
  int argument;
  bool flag;
};

// The slots of a rendezvous, by lane.
template <class T>
struct lanes {
  void* const* slots;
  uint32_t active;

  MSL_INLINE bool has(int lane) const { return lane >= 0 && lane < kLanes && (active >> lane & 1); }
  MSL_INLINE lane_slot<T>& operator[](int lane) const { return *static_cast<lane_slot<T>*>(slots[lane]); }
};

template <class T>
MSL_INLINE T zero() {
  return T(0.0f);
}

// Calls Operation::run(lanes) once for the simdgroup.
template <class T, class Operation>
MSL_UNCHECKED void together(void* const* slots, uint32_t active) {
  Operation::run(lanes<T>{slots, active});
}

template <class Operation, class T>
MSL_UNCHECKED T meet(T value, T filling, int argument, ::msl::Site site) {
  lane_slot<T> slot{value, filling, value, argument, false};
  ::msl::msl_rt_simd(together<T, Operation>, &slot, site);
  return slot.result;
}

// All lanes in blocks of `Width` get f over the block's values, combined as a tree of xor-shuffles would.
template <class Combine, int Width>
struct reduce {
  template <class T>
  static MSL_INLINE void run(lanes<T> all) {
    for (int first = 0; first < kLanes; first += Width) {
      T values[Width];
      bool there[Width];
      for (int i = 0; i < Width; ++i) {
        there[i] = all.has(first + i);
        if (there[i]) values[i] = all[first + i].value;
      }
      for (int half_width = Width / 2; half_width > 0; half_width /= 2) {
        for (int i = 0; i < half_width; ++i) {
          const int j = i + half_width;
          if (there[i] && there[j]) values[i] = Combine::of(values[i], values[j]);
          if (!there[i] && there[j]) values[i] = values[j];
          there[i] = there[i] || there[j];
        }
      }
      for (int i = 0; i < Width; ++i)
        if (all.has(first + i)) all[first + i].result = values[0];
    }
  }
};

struct add_values {
  template <class T>
  static MSL_INLINE T of(T a, T b) { return static_cast<T>(a + b); }
};
struct multiply_values {
  template <class T>
  static MSL_INLINE T of(T a, T b) { return static_cast<T>(a * b); }
};
struct max_values {
  template <class T>
  static MSL_INLINE T of(T a, T b) { return max(a, b); }
};
struct min_values {
  template <class T>
  static MSL_INLINE T of(T a, T b) { return min(a, b); }
};
struct and_values {
  template <class T>
  static MSL_INLINE T of(T a, T b) { return static_cast<T>(a & b); }
};
struct or_values {
  template <class T>
  static MSL_INLINE T of(T a, T b) { return static_cast<T>(a | b); }
};
struct xor_values {
  template <class T>
  static MSL_INLINE T of(T a, T b) { return static_cast<T>(a ^ b); }
};

// Every lane gets the value of lane Source::of(lane, argument); where that is outside of its block, its own.
template <class Source, int Width>
struct shuffle {
  template <class T>
  static MSL_INLINE void run(lanes<T> all) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!all.has(lane)) continue;
      const int first = lane / Width * Width, from = Source::of(lane - first, all[lane].argument, Width);
      if (from < 0 || from >= Width) continue;
      all[lane].result = all.has(first + from) ? all[first + from].value : zero<T>();
    }
  }
};

struct from_argument {
  static MSL_INLINE int of(int, int argument, int) { return argument; }
};
struct from_xor {
  static MSL_INLINE int of(int lane, int argument, int) { return lane ^ argument; }
};
struct from_below {
  static MSL_INLINE int of(int lane, int argument, int) { return lane - argument; }
};
struct from_above {
  static MSL_INLINE int of(int lane, int argument, int) { return lane + argument; }
};
struct from_below_round {
  static MSL_INLINE int of(int lane, int argument, int width) { return (lane - argument % width + width) % width; }
};
struct from_above_round {
  static MSL_INLINE int of(int lane, int argument, int width) { return (lane + argument) % width; }
};

// As shuffle up or down, but what comes in from outside are the other end's `filling` values.
template <int Direction>
struct fill {
  template <class T>
  static MSL_INLINE void run(lanes<T> all) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!all.has(lane)) continue;
      const int from = lane + Direction * all[lane].argument;
      const int wrapped = (from + kLanes) % kLanes;
      if (!all.has(wrapped)) {
        all[lane].result = zero<T>();
      } else {
        all[lane].result = from == wrapped ? all[wrapped].value : all[wrapped].filling;
      }
    }
  }
};

template <class Combine, bool Inclusive>
struct scan {
  template <class T>
  static MSL_INLINE void run(lanes<T> all) {
    T so_far = all[__builtin_ctz(all.active)].argument ? T(1.0f) : zero<T>();
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!all.has(lane)) continue;
      const T next = Combine::of(so_far, all[lane].value);
      all[lane].result = Inclusive ? next : so_far;
      so_far = next;
    }
  }
};

struct first_lane {
  template <class T>
  static MSL_INLINE void run(lanes<T> all) {
    const T value = all[__builtin_ctz(all.active)].value;
    for (int lane = 0; lane < kLanes; ++lane)
      if (all.has(lane)) all[lane].result = value;
  }
};

// The lanes whose value is not zero, and in `argument` the lanes that are there.
struct vote {
  static MSL_INLINE void run(lanes<uint> all) {
    uint mask = 0;
    for (int lane = 0; lane < kLanes; ++lane)
      if (all.has(lane) && all[lane].value) mask |= 1u << lane;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!all.has(lane)) continue;
      all[lane].result = mask;
      all[lane].argument = static_cast<int>(all.active);
    }
  }
};

struct ballot {
  uint votes, active;
};

MSL_UNCHECKED inline ballot count_votes(bool value, ::msl::Site site) {
  lane_slot<uint> slot{value, 0, 0, 0, false};
  ::msl::msl_rt_simd(together<uint, vote>, &slot, site);
  return {slot.result, static_cast<uint>(slot.argument)};
}

}  // namespace detail

#define MSL_REDUCTION(NAME, COMBINE)                                                      \
  template <class T>                                                                      \
  MSL_INLINE T simd_##NAME(T value, ::msl::Caller site = ::msl::Caller::current()) {                        \
    return detail::meet<detail::reduce<detail::COMBINE, 32>>(value, value, 0, site);      \
  }                                                                                       \
  template <class T>                                                                      \
  MSL_INLINE T quad_##NAME(T value, ::msl::Caller site = ::msl::Caller::current()) {                        \
    return detail::meet<detail::reduce<detail::COMBINE, 4>>(value, value, 0, site);       \
  }
MSL_REDUCTION(sum, add_values)
MSL_REDUCTION(product, multiply_values)
MSL_REDUCTION(max, max_values)
MSL_REDUCTION(min, min_values)
MSL_REDUCTION(and, and_values)
MSL_REDUCTION(or, or_values)
MSL_REDUCTION(xor, xor_values)
#undef MSL_REDUCTION

#define MSL_SHUFFLE(NAME, SOURCE)                                                             \
  template <class T>                                                                          \
  MSL_INLINE T simd_##NAME(T value, ushort argument, ::msl::Caller site = ::msl::Caller::current()) {           \
    return detail::meet<detail::shuffle<detail::SOURCE, 32>>(value, value, argument, site);   \
  }                                                                                           \
  template <class T>                                                                          \
  MSL_INLINE T quad_##NAME(T value, ushort argument, ::msl::Caller site = ::msl::Caller::current()) {           \
    return detail::meet<detail::shuffle<detail::SOURCE, 4>>(value, value, argument, site);    \
  }
MSL_SHUFFLE(broadcast, from_argument)
MSL_SHUFFLE(shuffle, from_argument)
MSL_SHUFFLE(shuffle_xor, from_xor)
MSL_SHUFFLE(shuffle_up, from_below)
MSL_SHUFFLE(shuffle_down, from_above)
MSL_SHUFFLE(shuffle_rotate_up, from_below_round)
MSL_SHUFFLE(shuffle_rotate_down, from_above_round)
#undef MSL_SHUFFLE

template <class T>
MSL_INLINE T simd_shuffle_and_fill_up(T value, T filling, ushort delta, ::msl::Caller site = ::msl::Caller::current()) {
  return detail::meet<detail::fill<-1>>(value, filling, delta, site);
}
template <class T>
MSL_INLINE T simd_shuffle_and_fill_down(T value, T filling, ushort delta,
                                        ::msl::Caller site = ::msl::Caller::current()) {
  return detail::meet<detail::fill<1>>(value, filling, delta, site);
}
template <class T>
MSL_INLINE T simd_prefix_inclusive_sum(T value, ::msl::Caller site = ::msl::Caller::current()) {
  return detail::meet<detail::scan<detail::add_values, true>>(value, value, 0, site);
}
template <class T>
MSL_INLINE T simd_prefix_exclusive_sum(T value, ::msl::Caller site = ::msl::Caller::current()) {
  return detail::meet<detail::scan<detail::add_values, false>>(value, value, 0, site);
}
template <class T>
MSL_INLINE T simd_prefix_inclusive_product(T value, ::msl::Caller site = ::msl::Caller::current()) {
  return detail::meet<detail::scan<detail::multiply_values, true>>(value, value, 1, site);
}
template <class T>
MSL_INLINE T simd_prefix_exclusive_product(T value, ::msl::Caller site = ::msl::Caller::current()) {
  return detail::meet<detail::scan<detail::multiply_values, false>>(value, value, 1, site);
}
template <class T>
MSL_INLINE T simd_broadcast_first(T value, ::msl::Caller site = ::msl::Caller::current()) {
  return detail::meet<detail::first_lane>(value, value, 0, site);
}

class simd_vote {
 public:
  using vote_t = uint64_t;
  MSL_INLINE explicit simd_vote(vote_t mask = 0) : mask_(mask) {}
  MSL_INLINE explicit operator vote_t() const { return mask_; }
  MSL_INLINE bool all() const { return mask_ == 0xFFFFFFFFull; }
  MSL_INLINE bool any() const { return mask_ != 0; }

 private:
  vote_t mask_;
};

MSL_INLINE simd_vote simd_ballot(bool value, ::msl::Caller site = ::msl::Caller::current()) {
  return simd_vote(detail::count_votes(value, site).votes);
}
MSL_INLINE simd_vote simd_active_threads_mask(::msl::Caller site = ::msl::Caller::current()) {
  return simd_vote(detail::count_votes(true, site).active);
}
MSL_INLINE bool simd_any(bool value, ::msl::Caller site = ::msl::Caller::current()) {
  return detail::count_votes(value, site).votes != 0;
}
MSL_INLINE bool simd_all(bool value, ::msl::Caller site = ::msl::Caller::current()) {
  const detail::ballot counted = detail::count_votes(value, site);
  return counted.votes == counted.active;
}
MSL_INLINE bool simd_is_first(::msl::Caller site = ::msl::Caller::current()) {
  const uint active = detail::count_votes(true, site).active;
  return ::msl::msl_rt_lane() == static_cast<uint>(__builtin_ctz(active));
}
MSL_INLINE bool simd_is_helper_thread() { return false; }

}  // namespace metal
