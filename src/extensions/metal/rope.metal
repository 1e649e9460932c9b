// This file is yours to edit. Read book/src/week2-05-metal.md.

// Rotary position embedding: turn each pair (a, b) of features to (a cos - b sin, a sin + b cos).
//
// x: (B, H, L, D) numbers of type T in any layout, read by `x_strides` (in elements, one per axis): a transposed view
// costs no copy. out: (B, H, L, D), contiguous. D is even; pair i of D / 2 is (2i, 2i + 1) if TRADITIONAL, else
// (i, i + D / 2).
// cosines, sines: (P, D / 2) float, one row per position, contiguous. offsets: (B,) int: token l of batch row b stands
// at position offsets[b] + l, which is less than P. Arithmetic in float, rounded once to T.
// Grid: (D / 2, L, B * ceil(H / HEADS)): a thread turns the same pair of up to HEADS neighbouring heads, whose angle it
// reads once. Threads per threadgroup: any shape of 1 to 1024.
// Traffic: reads B * H * L * D * sizeof(T) + B * ceil(H / HEADS) * L * D * 4 bytes, writes B * H * L * D * sizeof(T).

// Heads that share one reading of an angle.
constant constexpr uint HEADS = 4;

// kernel body
// begin task: rope
#error "Week 2 Day 5 Task 3: rope - see book/src/week2-05-metal.md#task-3"
// end task: rope
