// A hint to the operating system about memory that is read from end to end, again and again.
#pragma once

#include <cstddef>

namespace tiny_llm {

// Asks Linux to keep `bytes` bytes from `data` on in pages of 2 MiB, if they are not yet. With pages of 4 KiB a decode
// step must look up 80,000 of them, which costs a fifth of its time. Changes no value, and never fails: other systems
// choose their pages themselves. The first call for a block may take a millisecond, later ones nothing.
void prefer_huge_pages(const void* data, size_t bytes);

}  // namespace tiny_llm
