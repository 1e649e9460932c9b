// The part of Metal's library that kernels use, in C++20. The translator puts this first into every kernel's source.
#pragma once
#pragma GCC system_header

#if (defined(__clang__) && __clang_major__ < 15) || (!defined(__clang__) && __GNUC__ < 12) || \
    (!defined(__clang__) && defined(__aarch64__) && __GNUC__ < 13)
#error "the kernel emulator needs a C++ compiler with _Float16: clang 15, or g++ 12 (13 on aarch64)"
#endif

#include "msl/launch.h"
#include "msl/mlx_utils.h"
