#include "pages.h"

#include <stdexcept>

namespace tiny_llm {

void page_rows(const Pages& pages, int64_t first, int64_t count, int64_t* offsets) {
  // begin task: page_rows
  int64_t page = first / pages.size, row = first % pages.size;
  for (int64_t i = 0; i < count; ++i) {
    offsets[i] = pages.table[page] * pages.page_stride + row * pages.row_stride;
    if (++row == pages.size) {
      row = 0;
      ++page;
    }
  }
  // end task: page_rows
}

}  // namespace tiny_llm
