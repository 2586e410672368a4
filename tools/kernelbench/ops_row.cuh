/* tools/kernelbench/ops_row.cuh — a block works on a row that stays in its registers:
 * `row_threads` threads with up to max_row_vectors vectors of eight halves each. */
#ifndef LS_KERNELBENCH_OPS_ROW_CUH
#define LS_KERNELBENCH_OPS_ROW_CUH

#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "ops_map.cuh"

namespace kb {

/* Whether the thread's i-th vector lies within a row of `cols` elements. */
__device__ inline bool
is_in_row (int i, int cols)
{
  return (i * row_threads + (int) threadIdx.x) * 8 < cols;
}

/* Zeros beyond its end. */
template <int Vectors> __device__ void
load_row_vectors (Half8 (&v)[Vectors], const half *row, int cols)
{
#pragma unroll
  for (int i = 0; i < Vectors; i++)
    v[i] = is_in_row (i, cols) ? load8 (row, i * row_threads + threadIdx.x) : Half8 {};
}

/* Sum over the block, known to all its threads. */
__device__ inline float
block_sum (float x, float *scratch)
{
  for (int offset = 16; offset > 0; offset /= 2)
    x += __shfl_xor_sync (0xffffffff, x, offset);
  __syncthreads (); /* scratch may still be read from the last time */
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = x;
  __syncthreads ();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < row_threads / 32; i++)
    sum += scratch[i];
  return sum;
}

template <int N, typename F> void
for_row_vectors_from (const char *what, int cols, const F &f)
{
  if constexpr (N > max_row_vectors) {
    fprintf (stderr, "error: %s: %d columns; expected a multiple of 8, at most %d\n", what, cols,
             max_row_vectors * 8 * row_threads);
    exit (1);
  } else if (cols % 8 == 0 && cols <= N * 8 * row_threads) {
    f (std::integral_constant<int, N> ());
  } else {
    for_row_vectors_from<(N < 4 ? N + 1 : N + 2)> (what, cols, f);
  }
}

/* f (n) with the least compiled number n of vectors per thread that holds a row: 1 to 4,
 * then even ones. */
template <typename F> void
for_row_vectors (const char *what, size_t cols, const F &f)
{
  for_row_vectors_from<1> (what, (int) cols, f);
}

}

#endif
