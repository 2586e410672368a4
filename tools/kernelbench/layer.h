/* tools/kernelbench/layer.h — a transformer layer on one tensor-parallel rank, as
 * the kernels that Megatron-LM (2021-22, unfused attention, fp16) launches for its
 * forward and backward pass, in order, each reading what those before it wrote.
 *
 * Not as there: Q, K and V are dense tensors of their own in a row, not strided views
 * of the QKV output, and the two copies between head and token order copy only. */
#ifndef LS_KERNELBENCH_LAYER_H
#define LS_KERNELBENCH_LAYER_H

#include "bench.h"
#include "gemm.h"
#include "ops.h"

namespace kb {

struct LayerShape {
  int hidden, heads, head_dim, ffn; /* of one rank, but for hidden */
  int sequences;                    /* of softmax_cols tokens      */
};

struct Step {
  Row row; /* group, name, shape, bytes, flops */
  std::function<void ()> launch;
};

class Layer {
public:
  /* allocate = false: the steps are there, but must not be launched. */
  Layer (const LayerShape &shape, cudaStream_t stream, bool allocate);
  Layer (const Layer &) = delete;

  const std::vector<Step> &steps () const { return steps_; }
  std::string shape_text () const;

private:
  struct Linear {
    int in, out;
    half *weight, *bias, *bias_grad;
    float *weight_grad;
  };
  struct Norm {
    half *gamma, *beta, *gamma_grad, *beta_grad;
    float *mean, *rstd;
  };

  half *halves (size_t n, float deviation = 0);
  float *floats (size_t n);
  uint8_t *bytes (size_t n);
  Linear make_linear (int in, int out);
  Norm make_norm ();

  void stream_step (const char *name, size_t rows, size_t cols, double bytes_per_element, std::function<void ()> launch);
  void gemm_step (const char *name, Pass pass, const GemmShape &shape, const void *left, const void *right, void *out);
  void append_norm (const Norm &norm, const half *x, half *y);
  void append_norm_bwd (const Norm &norm, const half *x, const half *dy, const half *residual_grad, half *dx);
  void append_linear_bwd (const char *dgrad, const char *wgrad, const Linear &l, const half *x, const half *dy, half *dx);
  void append_bias_grad (const char *name, const half *dy, const Linear &l);
  void append_bias_dropout_add (const Linear &l, const half *x, const half *residual, half *y, uint8_t *mask);
  void append_attention ();
  void append_attention_bwd ();
  void append_forward ();
  void append_backward ();

  LayerShape shape_;
  cudaStream_t stream_;
  bool allocate_;
  size_t tokens_, score_rows_;
  uint64_t seed_ = 1000;
  std::vector<Buffer<half>> half_buffers_;
  std::vector<Buffer<float>> float_buffers_;
  std::vector<Buffer<uint8_t>> byte_buffers_;

  Linear qkv_, proj_, fc1_, fc2_;
  Norm norm1_, norm2_;
  float *partial_;
  /* forward */
  half *x_, *normed1_, *qkv_raw_, *qkv_out_, *scores_, *probs_, *dropped_, *context_, *context_tokens_, *proj_out_;
  half *middle_, *normed2_, *fc1_out_, *activation_, *fc2_out_, *y_;
  uint8_t *attention_mask_, *mask1_, *mask2_;
  /* backward */
  half *dy_, *d_branch_, *d_activation_, *d_fc1_, *d_normed_, *d_middle_, *d_context_, *d_scores_, *d_probs_;
  half *d_qkv_, *d_qkv_tokens_, *dx_;
  std::vector<Step> steps_;
};

}

#endif
