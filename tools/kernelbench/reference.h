/* tools/kernelbench/reference.h — what the kernels should compute, in double precision
 * and by the definition, on the CPU. Host code: tests/test_reference.cpp holds it
 * against closed forms and finite differences, without a GPU.
 *
 * Matrices are row-major. Gradients are of a loss whose derivative by the output is dy. */
#ifndef LS_KERNELBENCH_REFERENCE_H
#define LS_KERNELBENCH_REFERENCE_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shapes.h"

namespace kb {

using Vector = std::vector<double>;

/* out[i,j] += sum over l of left (i, l) right (l, j), from out[offset] on. */
template <typename Left, typename Right> void
add_product (Vector &out, size_t offset, size_t rows, size_t cols, size_t inner, const Left &left, const Right &right)
{
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < cols; j++) {
      double sum = 0;
      for (size_t l = 0; l < inner; l++)
        sum += left (i, l) * right (l, j);
      out[offset + i * cols + j] += sum;
    }
}

/* The tanh form of Hendrycks and Gimpel (2016); its slope as a central difference,
 * independent of the formula under test. */
double gelu (double z);
double gelu_slope (double z);

/* SwiGLU (Shazeer 2020): y = silu (gate) up, silu (z) = z / (1 + exp (-z)). */
double swiglu (double gate, double up);
void swiglu_bwd (double gate, double up, double dy, double *ret_dgate, double *ret_dup);

/* y = (x - mean) rstd gamma + beta per row. */
struct NormReference {
  Vector y, dx, dgamma, dbeta, mean, rstd;
};
NormReference layernorm_reference (const Vector &x, const Vector &dy, const Vector &gamma, const Vector &beta,
                                   size_t rows, size_t cols, double epsilon);
/* y = x rstd gamma, rstd = 1 / sqrt (mean of squares + epsilon) (Zhang and Sennrich
 * 2019); mean, beta and dbeta stay empty. */
NormReference rmsnorm_reference (const Vector &x, const Vector &dy, const Vector &gamma, size_t rows, size_t cols,
                                 double epsilon);

/* Of each row t of every `cols` rows the columns 0 to t; the rest of the result is 0. */
Vector causal_softmax_reference (const Vector &x, size_t cols, double scale);
/* dx from the softmax y. */
Vector causal_softmax_bwd_reference (const Vector &dy, const Vector &y, size_t cols, double scale);

/* Rotates the pairs (x[i], x[i + d/2]) of each head of a token at position p by
 * p base^(-2i/d) (Su et al. 2021, in the half-split form of GPT-NeoX and Llama). sign -1:
 * backwards, which is the gradient. x: [sequences, seq, heads, d]. */
Vector rope_reference (const Vector &x, size_t seq, size_t heads, size_t d, double base, int sign);

/* lse: [sequences, heads, seq]. */
struct AttentionReference {
  Vector out, lse, dq, dk, dv;
};
AttentionReference attention_reference (const AttentionShape &shape, const Vector &q, const Vector &k, const Vector &v,
                                        const Vector &dout);

/* Mean over rows of log sum exp x - x[target]; dx of it. */
struct CrossEntropyReference {
  Vector loss, dx; /* loss per row */
};
CrossEntropyReference cross_entropy_reference (const Vector &x, const std::vector<int> &target, size_t cols);

/* Row ids[i] of the table's gradient gets row i of dy. */
Vector embedding_grad_reference (const Vector &dy, const std::vector<int> &ids, size_t n_words, size_t cols);

/* MoE: row i of the permuted tokens is token source[i]; token t of the result is the sum
 * over its k slots s of weight[t k + s] times row place[t k + s]. */
Vector permute_reference (const Vector &x, const std::vector<int> &source, size_t cols);
Vector unpermute_reference (const Vector &y, const std::vector<int> &place, const Vector &weight, size_t k, size_t cols);
/* source and place of n_tokens x k choices of experts, stable by expert. */
void route (const std::vector<int> &expert, size_t k, int n_experts, std::vector<int> *ret_source, std::vector<int> *ret_place);

/* One step of Adam (Kingma and Ba 2015) with decoupled decay (Loshchilov and Hutter 2019). */
struct AdamReference {
  double rate, beta1, beta2, epsilon, decay;
  int step;
};
void adam_reference (const AdamReference &a, const Vector &grad, Vector *weight, Vector *m, Vector *v);

/* Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). */
void philox (uint32_t counter[4], uint64_t seed);
/* Whether element i is kept of a dropout by n_threads threads (ops.h). */
bool is_kept (size_t i, size_t n_threads, float p, uint64_t seed);

}

#endif
