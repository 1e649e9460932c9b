// This file is yours to edit. Read book/src/week2-05-metal.md.

// The gate of an MLP in one pass: out[i] = silu(gate[i]) * up[i], with silu(g) = g / (1 + exp(-g)).
//
// gate, up, out: `size` numbers of type T, contiguous. Arithmetic in float, rounded once to T. Finite for finite input:
// exp(-g) may overflow to infinity, and g / infinity is 0, as it should be.
// Grid: one thread for 4 neighbours, ceil(size / 4) threads in x. Threads per threadgroup: 1 to 1024, any number.
// Traffic: reads 2 * size * sizeof(T) bytes, writes size * sizeof(T) bytes. Three separate operations (sigmoid and two
// products) would read 5 and write 3 times size * sizeof(T).

// COUNT neighbours that a thread loads or stores at once, at any multiple of sizeof(T).
template <typename T, int COUNT>
struct unaligned_vec {
  T v[COUNT];
};

// kernel body
// begin task: swiglu
#error "Week 2 Day 5 Task 4: swiglu - see book/src/week2-05-metal.md#task-4"
// end task: swiglu
