/* tools/kernelbench/shapes.h — which shapes our kernels take; host code. */
#ifndef LS_KERNELBENCH_SHAPES_H
#define LS_KERNELBENCH_SHAPES_H

#include <cstddef>

namespace kb {

/* [sequences, seq, heads, d]; head h of the queries reads head h / (heads / kv_heads) of
 * keys and values. */
struct AttentionShape {
  size_t sequences, seq, heads, kv_heads, d;
  bool is_causal;
};

constexpr int attention_capability = 80; /* mma of 16x8x16 with bf16, asynchronous copies */
constexpr size_t attention_tile = 64; /* queries of a block, and keys of a step */

inline bool
attention_supports (const AttentionShape &s)
{
  return s.seq > 0 && s.seq % attention_tile == 0 && (s.d == 64 || s.d == 96 || s.d == 128) && s.kv_heads > 0
    && s.heads % s.kv_heads == 0 && s.heads < 65536 && s.sequences < 65536;
}

constexpr int row_threads = 256;
constexpr int max_row_vectors = 12; /* of eight columns per thread: 24576 */

inline bool
norm_supports (size_t cols)
{
  return cols % 8 == 0 && cols <= (size_t) max_row_vectors * 8 * row_threads;
}

constexpr int softmax_cols = 2048;
constexpr int reduce_cols = 64; /* columns of a sum over rows: a multiple */

}

#endif
