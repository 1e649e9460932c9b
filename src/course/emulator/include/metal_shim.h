// The part of Metal's library that kernels use, in C++20. The translator puts this first into every kernel's source.
#pragma once
#pragma GCC system_header

#include "msl/launch.h"
#include "msl/mlx_utils.h"
