/* tools/kernelbench/cudnn_sdpa.h — scaled dot product attention as cuDNN's operation graphs.
 *
 * softmax (Q K^T / sqrt (d)) V and its gradients, out of products, reductions and pointwise operations, of which cuDNN's attention
 * engines know the pattern: "Graph API", fused flash attention fprop and bprop, of NVIDIA's documentation; what is in which order
 * follows cudnn-frontend (node/scaled_dot_product_flash_attention.h, node/softmax.h, node/diagonal_band_mask.h), whose form for
 * versions before 9.21 this is. Tensors are [sequences, seq, heads, d] in memory, bf16. Host code. */
#ifndef LS_KERNELBENCH_CUDNN_SDPA_H
#define LS_KERNELBENCH_CUDNN_SDPA_H

#include "cudnn_graph.h"
#include "shapes.h"

namespace kb {

/* The tensors in device memory, by id. */
enum SdpaTensor : int64_t {
  SDPA_Q = 1,
  SDPA_K,
  SDPA_V,
  SDPA_OUT,
  SDPA_LSE, /* fp32 [sequences, heads, seq]: log sum exp of a row's scaled scores */
  SDPA_DOUT,
  SDPA_DQ,
  SDPA_DK,
  SDPA_DV,
  SDPA_DELTA,  /* fp32 as SDPA_LSE, scratch of the backward: sum of dout * out */
  SDPA_DQ_SUM, /* fp32 [sequences, heads, seq, d], scratch of the backward: dq before it is rounded */
};

/* version: cudnnGetVersion (). Both throw a Failure where this version, or the shape, is known not to work. */
std::unique_ptr<CudnnGraph> sdpa_forward (const AttentionShape &shape, size_t version);
std::unique_ptr<CudnnGraph> sdpa_backward (const AttentionShape &shape, size_t version);

/* Before 9.6 the caller has to zero SDPA_DQ_SUM. */
inline bool
sdpa_zeroes_dq_sum (size_t version)
{
  return version >= 90600;
}

}

#endif
