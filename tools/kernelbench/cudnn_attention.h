/* tools/kernelbench/cudnn_attention.h — attention of cuDNN on the GPU, beside ours.
 *
 * Host code. */
#ifndef LS_KERNELBENCH_CUDNN_ATTENTION_H
#define LS_KERNELBENCH_CUDNN_ATTENTION_H

#include "bench.h"
#include "cudnn_sdpa.h"

namespace kb {

/* In device memory, in the layouts of reference.h; what a direction does not touch may be null. */
struct AttentionOperands {
  void *q, *k, *v, *out, *lse, *dout, *dq, *dk, *dv;
};

/* One direction of one shape, bf16. Scratch is its own; operands are the caller's and must outlive it. */
class CudnnAttention {
public:
  /* Builds the plan, which takes seconds: cuDNN compiles. Throws a Failure where there is no cuDNN, or none of its engines takes it. */
  CudnnAttention (cudaStream_t stream, const AttentionShape &shape, bool is_backward, const AttentionOperands &operands);
  void run (); /* queued on the stream */

private:
  cudaStream_t stream_;
  CudnnPlan plan_;
  Buffer<float> delta_, dq_sum_;
  Buffer<char> workspace_;
};

/* Compares attention of this kind (width, mask, heads that share keys) with its reference on a small problem, once. Returns what it
 * objects to; "" for nothing. */
std::string cudnn_attention_objection (Checks &checks, cudaStream_t stream, const AttentionShape &shape, bool is_backward);

}

#endif
