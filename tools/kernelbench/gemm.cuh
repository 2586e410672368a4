/* tools/kernelbench/gemm.cuh — the three products of a linear layer through cuBLASLt.
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
 * WGRAD16 writes one of the operands' type. The algorithm is the first that cuBLASLt
 * proposes for 32 MiB of workspace, which is also what frameworks run. A batch is of
 * dense matrices, one after another. */
#ifndef LS_KERNELBENCH_GEMM_CUH
#define LS_KERNELBENCH_GEMM_CUH

#include <memory>

#include "bench.cuh"

namespace kb {

enum class Pass { FORWARD, DGRAD, WGRAD, WGRAD16 };

struct GemmShape {
  int m, n, k;
  int batch = 1;
};

class Gemm {
public:
  Gemm (Pass pass, cudaDataType_t type, const GemmShape &shape);

  /* Use at most n_sms multiprocessors; 0: all. Before the first run. */
  void limit_sms (int n_sms) { n_sms_ = n_sms; }
  void run (cudaStream_t stream, const void *left, const void *right, void *out);

  double flops () const;
  double bytes () const; /* each matrix once, dW of WGRAD twice */
  size_t left_size () const { return (size_t) rows_ * inner_ * batch_; }   /* elements */
  size_t right_size () const { return (size_t) cols_ * inner_ * batch_; }
  size_t out_size () const { return (size_t) rows_ * cols_ * batch_; }
  size_t out_element_bytes () const { return out_type_ == CUDA_R_32F ? 4 : 2; }
  Row row (const char *group, const char *name) const;

private:
  struct Plan;
  void make_plan ();

  bool transposes_left_, transposes_right_, accumulates_;
  int rows_, cols_, inner_, batch_; /* of the column-major product */
  int n_sms_ = 0;
  cudaDataType_t type_, out_type_;
  std::shared_ptr<Plan> plan_; /* made by the first run */
};

const char *type_name (cudaDataType_t type); /* "bf16" */
const char *layout_name (Pass pass);         /* "TN"   */

}

#endif
