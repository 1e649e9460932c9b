// This file is yours to edit. Read book/src/week2-05-metal.md.

// Element-wise sum: out[i] = x[i] + y[i], computed in float and rounded once to T.
//
// x, y, out: `size` numbers of type T, contiguous. `size` may be any number.
// Grid: one thread for 4 neighbours, ceil(size / 4) threads in x. Threads per threadgroup: 1 to 1024, any number.
// Traffic: reads 2 * size * sizeof(T) bytes, writes size * sizeof(T) bytes; 4 neighbours move as one access.

// COUNT neighbours that a thread loads or stores at once. Unlike a vector it may stand at any multiple of sizeof(T),
// so a view such as x[1:] is as good as x.
template <typename T, int COUNT>
struct unaligned_vec {
  T v[COUNT];
};

// kernel body
// begin task: add
#error "Week 2 Day 5 Task 1: add - see book/src/week2-05-metal.md#task-1"
// end task: add
