// Attention over blocks of keys with an online softmax (Milakov and Gimelshein, 2018; Dao et al., 2022).
//
// Plain functions on raw memory: no MLX, no threads. Scores of one block of keys exist at a time.
#pragma once

#include <cstdint>

#include "key_block.h"

namespace tiny_llm {

// Goes through keys first .. last - 1 and brings `softmax` up to date for every row of q. Scores are multiplied by
// `scale`. Keys that a row does not see have no influence on it, as long as they are finite.
template <class T>
void flash_attention_rows(const Queries<T>& q, const KeysValues<T>& kv, int64_t first, int64_t last, float scale,
                          Softmax& softmax);

}  // namespace tiny_llm
