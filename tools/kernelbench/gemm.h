/* tools/kernelbench/gemm.h — the three products of a linear layer through cuBLASLt.
 *
 *     Y[m,n] = X[m,k] W[n,k]^T,   dX[m,k] = dY[m,n] W[n,k],   dW[n,k] = dY[m,n]^T X[m,k]
 *
 * with row-major matrices. cuBLAS is column-major and sees every matrix transposed,
 * which is where the layout names come from:
 *
 *     pass     left  right  out   layout  rows x cols x inner
 *     FORWARD  W     X      Y     TN      m x n x k
 *     DGRAD    W     dY     dX    NN      m x k x n
 *     WGRAD    X     dY     dW    NT      n x k x m
 *
 * WGRAD adds to an fp32 gradient buffer (Megatron-LM's gradient-accumulation fusion);
 * WGRAD16 writes one of the operands' type. fp8 (e4m3) products exist as TN only, for which
 * training keeps transposed copies: here all three passes are TN then, inner dimension
 * innermost, and write bf16. tf32: fp32 operands, rounded by the matrix units. The algorithm
 * is the first that cuBLASLt proposes for 32 MiB of workspace, which is also what
 * frameworks run.
 *
 * A batch is of dense matrices, one after another; with `interleaved` operands row i of
 * all of them lies before row i + 1 of any, as the heads of [tokens, heads, width] do. */
#ifndef LS_KERNELBENCH_GEMM_H
#define LS_KERNELBENCH_GEMM_H

#include <memory>

#include "bench.h"

namespace kb {

enum class Pass { FORWARD, DGRAD, WGRAD, WGRAD16 };
enum class Number { FP32, TF32, FP16, BF16, FP8 };

struct GemmShape {
  int m, n, k;
  int batch = 1;
  bool interleaved = false; /* FORWARD only */
};

const char *number_name (Number number); /* "bf16" */
size_t element_bytes (Number number);
/* From which compute capability on (80: 8.0) matrix units take it. */
int gemm_capability (Number number);

class Gemm {
public:
  Gemm (Pass pass, Number number, const GemmShape &shape);

  /* Use at most n_sms multiprocessors; 0: all. Before the first run. */
  void limit_sms (int n_sms) { n_sms_ = n_sms; }
  /* out = alpha * product; WGRAD: out += */
  void run (cudaStream_t stream, const void *left, const void *right, void *out, float alpha = 1);

  /* Blocks of the cluster in which the chosen kernel is launched, after the first run; 0: the library does not say. */
  int cluster_blocks () const;

  double flops () const;
  double bytes () const; /* each matrix once, dW of WGRAD twice */
  size_t left_size () const { return (size_t) rows_ * inner_ * batch_; }   /* elements */
  size_t right_size () const { return (size_t) cols_ * inner_ * batch_; }
  size_t out_size () const { return (size_t) rows_ * cols_ * batch_; }
  size_t element_bytes () const { return kb::element_bytes (number_); } /* of both operands */
  size_t out_element_bytes () const { return out_type_ == CUDA_R_32F ? 4 : 2; }
  int inner () const { return inner_; }
  const char *layout () const; /* "TN" */
  Row row (const char *group, const char *name) const;

private:
  struct Plan;
  void make_plan ();

  bool transposes_left_, transposes_right_, accumulates_;
  int rows_, cols_, inner_, batch_; /* of the column-major product */
  int n_sms_ = 0;
  bool interleaved_;
  Number number_;
  cudaDataType_t out_type_;
  std::shared_ptr<Plan> plan_; /* made by the first run */
};


}

#endif
