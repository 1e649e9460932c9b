// This file is yours to edit. Read book/src/week2-06-metal-matmul.md.

// Second half of a split-K product: out[i] = sum over s of partial[s][i], in the order of s, so that the result never
// depends on which part was done first.
//
// partial: (splits, size) float. out: `size` numbers of type T, rounded once.
// Grid: one thread per element, (size, 1, 1). Threads per threadgroup: 1 to 1024, any number.
// Traffic: reads splits * size * 4 bytes, writes size * sizeof(T).

// kernel body
// begin task: split_k_reduce
#error "Week 2 Day 6 Task 3: split_k_reduce - see book/src/week2-06-metal-matmul.md#task-3"
// end task: split_k_reduce
