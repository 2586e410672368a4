/* tools/kernelbench/ops.h — the memory-bound kernels of a training step.
 *
 * Own kernels with the access patterns of those that training runs: 16-byte
 * accesses, one pass over the data, fp32 arithmetic on fp16 tensors. Tensors are
 * dense and row-major; element counts are multiples of 8; bias, gamma and beta have
 * `cols` elements. All are queued on `stream` and return at once. */
#ifndef LS_KERNELBENCH_OPS_H
#define LS_KERNELBENCH_OPS_H

#include <cstddef>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include "reference.h"

namespace kb {

/* ops_elementwise.cu: normal (0, deviation) from a Philox stream of its own per seed. */
void fill_normal (cudaStream_t stream, half *x, size_t n, float deviation, uint64_t seed);
void fill_normal (cudaStream_t stream, __nv_bfloat16 *x, size_t n, float deviation, uint64_t seed);
void fill_normal (cudaStream_t stream, float *x, size_t n, float deviation, uint64_t seed);
void fill_normal (cudaStream_t stream, __nv_fp8_e4m3 *x, size_t n, float deviation, uint64_t seed);
void fill_ids (cudaStream_t stream, int *ids, size_t n, int n_words, uint64_t seed); /* uniform, 0 to n_words - 1 */

/* ops_elementwise.cu */
void copy (cudaStream_t stream, const half *x, half *y, size_t n);
void add (cudaStream_t stream, const half *a, const half *b, half *y, size_t n);
void add_in_place (cudaStream_t stream, half *a, const half *b, size_t n); /* a += b */
void bias_add (cudaStream_t stream, const half *x, const half *bias, half *y, size_t rows, size_t cols);

/* y = gelu (x + bias), in the tanh form of Hendrycks and Gimpel (2016):
 * gelu (z) = z/2 (1 + tanh (sqrt (2/pi) (z + 0.044715 z^3))). Backward: dx from dy. */
void bias_gelu (cudaStream_t stream, const half *x, const half *bias, half *y, size_t rows, size_t cols);
void bias_gelu_bwd (cudaStream_t stream, const half *dy, const half *x, const half *bias, half *dx, size_t rows, size_t cols);

/* Row i of y is row ids[i] of the table. */
void gather (cudaStream_t stream, const half *table, const int *ids, half *y, size_t rows, size_t cols);

/* ops_elementwise.cu: element i is kept, and scaled by 1 / (1 - p), where the uniform
 * number of its Philox stream is below 1 - p. Four elements share one call, as in
 * PyTorch's fused dropout: elements 4g to 4g + 3 use call g / T of sequence g % T,
 * T = dropout_threads (n). The mask has a byte per element: 1 kept, 0 dropped. */
size_t dropout_threads (size_t n);
void dropout (cudaStream_t stream, const half *x, half *y, uint8_t *mask, size_t n, float p, uint64_t seed);
void bias_dropout_add (cudaStream_t stream, const half *x, const half *bias, const half *residual, half *y,
                       uint8_t *mask, size_t rows, size_t cols, float p, uint64_t seed);
void dropout_bwd (cudaStream_t stream, const half *dy, const uint8_t *mask, half *dx, size_t n, float p);

/* ops_reduce.cu: rows of 2048 scores, a warp each. Row t of every 2048 sees its
 * columns 0 to t, the rest of y is 0 and of x is not read. Backward:
 * dx = scale y (dy - sum (y dy)). */
void causal_softmax (cudaStream_t stream, const half *x, half *y, size_t rows, float scale);
void causal_softmax_bwd (cudaStream_t stream, const half *dy, const half *y, half *dx, size_t rows, float scale);

/* ops_row.cu: cols a multiple of 8, at most 24576; the row stays in registers.
 * dgrad, with z = (x - mean) rstd and g = gamma dy:
 * dx = rstd (g - mean (g) - z mean (g z)); dgamma = sum (dy z), dbeta = sum (dy)
 * over the rows. partial: 2 * n_partials * cols values (one * for column_sum). */
constexpr int n_partials = 16;
constexpr float layernorm_epsilon = 1e-5f;
void layernorm (cudaStream_t stream, const half *x, const half *gamma, const half *beta, half *y, float *mean,
                float *rstd, size_t rows, size_t cols);
void layernorm_dgrad (cudaStream_t stream, const half *dy, const half *x, const half *gamma, const float *mean,
                      const float *rstd, half *dx, size_t rows, size_t cols);

/* ops_row.cu. RMSNorm: cols as above; dx = rstd (g - z mean (g z)), z = x rstd, in the same
 * pass as dgamma; partial: n_rms_partials * cols values. */
constexpr int n_rms_partials = 512;
constexpr float rmsnorm_epsilon = 1e-5f;
void rmsnorm (cudaStream_t stream, const half *x, const half *gamma, half *y, float *rstd, size_t rows, size_t cols);
void rmsnorm_bwd (cudaStream_t stream, const half *dy, const half *x, const half *gamma, const float *rstd,
                  float *partial, half *dx, half *dgamma, size_t rows, size_t cols);
/* y = silu (gate) up; a row of x (and dx) is `cols` gates, then `cols` ups. */
void swiglu (cudaStream_t stream, const half *x, half *y, size_t rows, size_t cols);
void swiglu_bwd (cudaStream_t stream, const half *dy, const half *x, half *dx, size_t rows, size_t cols);
/* Rotary positions on [sequences, seq, heads, d], d a multiple of 16, by a table of
 * seq * d / 2 cosines and sines; backward turns the other way. */
void rope_table (cudaStream_t stream, float2 *table, size_t seq, size_t d, float base);
void rope (cudaStream_t stream, const half *x, half *y, const float2 *table, size_t sequences, size_t seq, size_t heads,
           size_t d, bool is_backward);

/* ops_row.cu. Row ids[i] of grad += row i of dy, by atomics. The mean loss over rows;
 * loss and lse have a value per row. MoE: token t = sum over its k slots s of weight[s]
 * times row place[s] of y (to permute is to gather). */
void embedding_grad (cudaStream_t stream, const half *dy, const int *ids, float *grad, size_t rows, size_t cols);
void cross_entropy (cudaStream_t stream, const half *x, const int *target, float *loss, float *lse, size_t rows, size_t cols);
void cross_entropy_bwd (cudaStream_t stream, const half *x, const int *target, const float *lse, half *dx, size_t rows,
                        size_t cols, float loss_scale);
void unpermute (cudaStream_t stream, const half *y, const int *place, const float *weight, half *x, size_t tokens,
                size_t k, size_t cols);

/* ops_gemm.cu: a product of 128 x 128 tiles, of which one runs on an SM at a time, by a block for each tile, by the same in clusters of two
 * blocks (from 9.0 on), or by a block for each of n_sms SMs. shared_bytes: that a block may have at most. */
enum class GemmBlocks { TILES, CLUSTERS, PERSISTENT };
bool tiled_gemm_supports (int m, int n, int k);
void tiled_gemm (cudaStream_t stream, GemmBlocks blocks, size_t shared_bytes, int n_sms, int m, int n, int k, const __nv_bfloat16 *x,
                 const __nv_bfloat16 *w, __nv_bfloat16 *out);

/* ops_attention.cu, half or bf16: see reference.h for shapes and results. Tokens in multiples
 * of 64, heads of width 64, 96 or 128; scratch: attention_scratch () floats. */
size_t attention_scratch (const AttentionShape &shape);
template <typename T> void attention (cudaStream_t stream, const AttentionShape &shape, const T *q, const T *k, const T *v,
                                      T *out, float *lse);
template <typename T> void attention_bwd (cudaStream_t stream, const AttentionShape &shape, const T *q, const T *k,
                                          const T *v, const T *out, const float *lse, const T *dout, float *scratch, T *dq,
                                          T *dk, T *dv);

/* ops_reduce.cu: over rows, in two launches (partial sums of row ranges, their sum),
 * cols a multiple of 64; over everything, also in two. */
void layernorm_gamma_beta (cudaStream_t stream, const half *dy, const half *x, const float *mean, const float *rstd,
                           float *partial, half *dgamma, half *dbeta, size_t rows, size_t cols);
void column_sum (cudaStream_t stream, const half *x, float *partial, half *y, size_t rows, size_t cols);
constexpr int n_square_partials = 1024;
void sum_squares (cudaStream_t stream, const float *x, float *partial, float *y, size_t n);

/* ops_elementwise.cu: flat fp32 buffers. */
struct AdamStep {
  float rate = 1e-4f, beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f, decay = 0.1f;
  int step = 10;
};
void adam (cudaStream_t stream, const float *grad, float *weight, float *m, float *v, size_t n, const AdamStep &step);
void half_to_float (cudaStream_t stream, const half *x, float *y, size_t n);
void float_to_half (cudaStream_t stream, const float *x, half *y, size_t n);
void scale_in_place (cudaStream_t stream, float *x, size_t n, float factor);
void unscale (cudaStream_t stream, float *x, size_t n, float factor, int *found_inf); /* *found_inf = 1 on inf or NaN */

}

#endif
