// How the compiler treats the library's functions.
#pragma once

// Small functions vanish into the kernel, so that an access through them carries the kernel's line.
#define MSL_INLINE inline __attribute__((always_inline))
#define MSL_LAMBDA __attribute__((always_inline))
// The library's own memory traffic is not the kernel's: it is neither checked nor counted.
#define MSL_UNCHECKED __attribute__((noinline, no_sanitize("thread", "undefined")))

#define METAL_FUNC inline __attribute__((always_inline))
