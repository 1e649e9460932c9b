// What this machine can do at best: the two ceilings of the roofline.
#pragma once

#include <string>

namespace tiny_llm {

// Bytes per second that `threads` threads read together from a buffer of `megabytes` MB (10^6 bytes), the best of
// several passes. Take a buffer several times larger than the last cache. Throws std::invalid_argument for
// sizes or threads below 1.
double read_bandwidth(int megabytes, int threads);

// Float32 operations per second of `threads` threads that do nothing but vector multiply-adds for `seconds` (two
// operations a lane). Throws std::invalid_argument for threads below 1 or seconds not above 0.
double peak_flops(int threads, double seconds);

// The instructions that the kernels were built for: "AVX-512 + BF16", "AVX-512", "AVX2", "NEON" or "generic".
std::string instruction_set();

}  // namespace tiny_llm
