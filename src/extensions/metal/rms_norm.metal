// This file is yours to edit. Read book/src/week2-05-metal.md.

// RMSNorm of each row: out[r][i] = x[r][i] / sqrt(mean(x[r]^2) + eps) * weight[i].
//
// x, out: rows of `length` numbers of type T, contiguous. weight: `length` numbers of any float type. eps: float.
// Sums, root and product in float, rounded once to T.
// Grid: one threadgroup per row, (threads, rows, 1). Threads per threadgroup: a multiple of 32, from 32 to 1024,
// whatever the length of the row: a thread takes elements t, t + threads, t + 2 * threads, ... so that the 32 threads
// of a simdgroup always read 32 neighbours.
// Traffic of a row: reads 3 * length * sizeof(T) bytes (x twice, the second time out of the cache, and weight), writes
// length * sizeof(T). Threadgroup memory: 128 bytes. Barriers: 1.

// kernel body
// begin task: rms_norm
#error "Week 2 Day 5 Task 2: rms_norm - see book/src/week2-05-metal.md#task-2"
// end task: rms_norm
