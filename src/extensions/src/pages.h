// Keys and values in pages of a pool: where the row of a position lies.
//
// Plain functions on raw memory: no MLX, no threads.
#pragma once

#include <cstdint>

namespace tiny_llm {

// One request's row of the page table, and how a page is laid out: position s stands in page table[s / size], in row
// s % size of each head there.
struct Pages {
  const int32_t* table;
  int64_t size;         // positions of a page
  int64_t page_stride;  // elements from one page to the next
  int64_t row_stride;   // elements from one position of a page to the next
};

// offsets[i] = elements from a head's first row in page 0 to its row of position first + i, for i < count. Of the table
// only the entries of these positions are read: those behind them may be anything.
void page_rows(const Pages& pages, int64_t first, int64_t count, int64_t* offsets);

}  // namespace tiny_llm
