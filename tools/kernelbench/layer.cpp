#include "layer.h"

#include <algorithm>
#include <cmath>

namespace kb {

static constexpr float p_drop = 0.1f;
static constexpr float weight_deviation = 0.02f; /* Megatron-LM's init_method_std */
static constexpr double elt = 2;
static constexpr double lower_triangle = (softmax_cols + 1.0) / (2.0 * softmax_cols);
static constexpr uint64_t dropout_seed = 77;

half *
Layer::halves (size_t n, float deviation)
{
  half_buffers_.emplace_back (allocate_ ? n : 0);
  half *data = half_buffers_.back ().get ();
  if (allocate_ && deviation > 0)
    fill_normal (stream_, data, n, deviation, seed_++);
  return data;
}

float *
Layer::floats (size_t n)
{
  float_buffers_.emplace_back (allocate_ ? n : 0);
  float *data = float_buffers_.back ().get ();
  if (allocate_)
    KB_CHECK (cudaMemsetAsync (data, 0, n * sizeof (float), stream_));
  return data;
}

uint8_t *
Layer::bytes (size_t n)
{
  byte_buffers_.emplace_back (allocate_ ? n : 0);
  return byte_buffers_.back ().get ();
}

Layer::Linear
Layer::make_linear (int in, int out)
{
  size_t n = (size_t) in * out;
  return { in, out, halves (n, weight_deviation), halves (out, weight_deviation), halves (out), floats (n) };
}

Layer::Norm
Layer::make_norm ()
{
  size_t h = shape_.hidden;
  return { halves (h, 1), halves (h, 1), halves (h), halves (h), floats (tokens_), floats (tokens_) };
}

Layer::Layer (const LayerShape &shape, cudaStream_t stream, bool allocate)
  : shape_ (shape), stream_ (stream), allocate_ (allocate), tokens_ ((size_t) shape.sequences * softmax_cols),
    score_rows_ (tokens_ * shape.heads)
{
  int width = shape.heads * shape.head_dim;
  size_t of_hidden = tokens_ * shape.hidden, of_width = tokens_ * width, of_ffn = tokens_ * shape.ffn;
  size_t of_scores = score_rows_ * softmax_cols;

  qkv_ = make_linear (shape.hidden, 3 * width);
  proj_ = make_linear (width, shape.hidden);
  fc1_ = make_linear (shape.hidden, shape.ffn);
  fc2_ = make_linear (shape.ffn, shape.hidden);
  norm1_ = make_norm ();
  norm2_ = make_norm ();
  partial_ = floats (2 * n_partials * std::max ({ shape.hidden, shape.ffn, 3 * width }));

  x_ = halves (of_hidden, 1);
  dy_ = halves (of_hidden, 1);
  for (half **tensor : { &normed1_, &proj_out_, &middle_, &normed2_, &fc2_out_, &y_, &d_branch_, &d_normed_, &d_middle_, &dx_ })
    *tensor = halves (of_hidden);
  for (half **tensor : { &qkv_raw_, &qkv_out_, &d_qkv_, &d_qkv_tokens_ })
    *tensor = halves (3 * of_width);
  for (half **tensor : { &context_, &context_tokens_, &d_context_ })
    *tensor = halves (of_width);
  for (half **tensor : { &scores_, &probs_, &dropped_, &d_scores_, &d_probs_ })
    *tensor = halves (of_scores);
  for (half **tensor : { &fc1_out_, &activation_, &d_activation_, &d_fc1_ })
    *tensor = halves (of_ffn);
  attention_mask_ = bytes (of_scores);
  mask1_ = bytes (of_hidden);
  mask2_ = bytes (of_hidden);

  append_forward ();
  append_backward ();
}

std::string
Layer::shape_text () const
{
  return format ("hidden=%d heads=%d head_dim=%d ffn=%d tokens=%zu", shape_.hidden, shape_.heads, shape_.head_dim,
                 shape_.ffn, tokens_);
}

void
Layer::stream_step (const char *name, size_t rows, size_t cols, double bytes_per_element, std::function<void ()> launch)
{
  double n = (double) rows * (double) cols;
  steps_.push_back ({ Row { "context", name, format ("%zux%zu", rows, cols), "fp16", n * bytes_per_element },
                      std::move (launch) });
}

void
Layer::gemm_step (const char *name, Pass pass, const GemmShape &shape, const void *left, const void *right, void *out)
{
  Gemm gemm (pass, Number::FP16, shape);
  Row row = gemm.row ("context", name);
  row.note = format ("layout=%s", gemm.layout ());
  steps_.push_back ({ row, [=, stream = stream_] () mutable { gemm.run (stream, left, right, out); } });
}

void
Layer::append_norm (const Norm &norm, const half *x, half *y)
{
  size_t h = shape_.hidden;
  stream_step ("layernorm-fwd", tokens_, h, 2 * elt, [=, this_tokens = tokens_, stream = stream_] {
    layernorm (stream, x, norm.gamma, norm.beta, y, norm.mean, norm.rstd, this_tokens, h);
  });
}

void
Layer::append_norm_bwd (const Norm &norm, const half *x, const half *dy, const half *residual_grad, half *dx)
{
  size_t h = shape_.hidden, rows = tokens_;
  cudaStream_t stream = stream_;
  float *partial = partial_;
  stream_step ("layernorm-gamma-beta-grad", rows, h, 2 * elt, [=] {
    layernorm_gamma_beta (stream, dy, x, norm.mean, norm.rstd, partial, norm.gamma_grad, norm.beta_grad, rows, h);
  });
  stream_step ("layernorm-dgrad", rows, h, 3 * elt,
               [=] { layernorm_dgrad (stream, dy, x, norm.gamma, norm.mean, norm.rstd, dx, rows, h); });
  stream_step ("residual-grad-add", rows, h, 3 * elt, [=] { add_in_place (stream, dx, residual_grad, rows * h); });
}

void
Layer::append_linear_bwd (const char *dgrad, const char *wgrad, const Linear &l, const half *x, const half *dy, half *dx)
{
  GemmShape shape = { (int) tokens_, l.out, l.in };
  gemm_step (dgrad, Pass::DGRAD, shape, l.weight, dy, dx);
  gemm_step (wgrad, Pass::WGRAD, shape, x, dy, l.weight_grad);
}

void
Layer::append_bias_grad (const char *name, const half *dy, const Linear &l)
{
  size_t rows = tokens_, cols = l.out;
  stream_step (name, rows, cols, elt, [=, stream = stream_, partial = partial_] {
    column_sum (stream, dy, partial, l.bias_grad, rows, cols);
  });
}

void
Layer::append_bias_dropout_add (const Linear &l, const half *x, const half *residual, half *y, uint8_t *mask)
{
  size_t rows = tokens_, cols = l.out;
  stream_step ("bias-dropout-add", rows, cols, 3 * elt + 1, [=, stream = stream_] {
    bias_dropout_add (stream, x, l.bias, residual, y, mask, rows, cols, p_drop, dropout_seed);
  });
}

void
Layer::append_attention ()
{
  cudaStream_t stream = stream_;
  constexpr int s = softmax_cols;
  int batch = shape_.sequences * shape_.heads, width = shape_.heads * shape_.head_dim;
  size_t part = tokens_ * width, n_scores = score_rows_ * s;
  half *q = qkv_out_, *k = q + part, *v = k + part;
  half *scores = scores_, *probs = probs_, *dropped = dropped_, *context = context_, *context_tokens = context_tokens_;
  uint8_t *mask = attention_mask_;
  float scale = 1 / std::sqrt ((float) shape_.head_dim);
  GemmShape shape = { s, s, shape_.head_dim, batch };

  gemm_step ("scores-bmm", Pass::FORWARD, shape, k, q, scores);
  stream_step ("scale-mask-softmax", score_rows_, s, elt * (1 + lower_triangle),
               [=, rows = score_rows_] { causal_softmax (stream, scores, probs, rows, scale); });
  stream_step ("attention-dropout", score_rows_, s, 2 * elt + 1,
               [=] { dropout (stream, probs, dropped, mask, n_scores, p_drop, dropout_seed); });
  gemm_step ("context-bmm", Pass::DGRAD, shape, v, dropped, context);
  stream_step ("context-transpose", tokens_, width, 2 * elt, [=] { copy (stream, context, context_tokens, part); });
}

void
Layer::append_attention_bwd ()
{
  cudaStream_t stream = stream_;
  constexpr int s = softmax_cols;
  int batch = shape_.sequences * shape_.heads, width = shape_.heads * shape_.head_dim;
  size_t part = tokens_ * width, n_scores = score_rows_ * s;
  half *q = qkv_out_, *k = q + part, *v = k + part, *dq = d_qkv_, *dk = dq + part, *dv = dk + part;
  half *d_context = d_context_, *d_probs = d_probs_, *d_scores = d_scores_, *probs = probs_;
  half *d_qkv = d_qkv_, *d_qkv_tokens = d_qkv_tokens_;
  uint8_t *mask = attention_mask_;
  float scale = 1 / std::sqrt ((float) shape_.head_dim);
  GemmShape shape = { s, s, shape_.head_dim, batch };

  gemm_step ("dp-bmm", Pass::FORWARD, shape, v, d_context, d_probs);
  gemm_step ("dv-bmm", Pass::WGRAD16, shape, d_context, dropped_, dv);
  /* Two buffers in turn: dprobs dropped, dprobs, dscores. */
  stream_step ("attention-dropout-bwd", score_rows_, s, 2 * elt + 1,
               [=] { dropout_bwd (stream, d_probs, mask, d_scores, n_scores, p_drop); });
  stream_step ("scale-mask-softmax-bwd", score_rows_, s, elt * (1 + 2 * lower_triangle),
               [=, rows = score_rows_] { causal_softmax_bwd (stream, d_scores, probs, d_probs, rows, scale); });
  gemm_step ("dq-bmm", Pass::DGRAD, shape, k, d_probs, dq);
  gemm_step ("dk-bmm", Pass::WGRAD16, shape, q, d_probs, dk);
  stream_step ("qkv-grad-concat", tokens_, 3 * width, 2 * elt, [=] { copy (stream, d_qkv, d_qkv_tokens, 3 * part); });
}

void
Layer::append_forward ()
{
  cudaStream_t stream = stream_;
  int m = (int) tokens_;
  auto forward = [&] (const char *name, const Linear &l, const half *x, half *y) {
    gemm_step (name, Pass::FORWARD, GemmShape { m, l.out, l.in }, l.weight, x, y);
  };
  auto bias_step = [&] (const char *name, const Linear &l, const half *x, half *y, auto kernel) {
    stream_step (name, tokens_, l.out, 2 * elt, [=, rows = tokens_] { kernel (stream, x, l.bias, y, rows, l.out); });
  };

  append_norm (norm1_, x_, normed1_);
  forward ("qkv", qkv_, normed1_, qkv_raw_);
  bias_step ("qkv-bias", qkv_, qkv_raw_, qkv_out_, bias_add);
  append_attention ();
  forward ("proj", proj_, context_tokens_, proj_out_);
  append_bias_dropout_add (proj_, proj_out_, x_, middle_, mask1_);

  append_norm (norm2_, middle_, normed2_);
  forward ("fc1", fc1_, normed2_, fc1_out_);
  bias_step ("bias-gelu", fc1_, fc1_out_, activation_, bias_gelu);
  forward ("fc2", fc2_, activation_, fc2_out_);
  append_bias_dropout_add (fc2_, fc2_out_, middle_, y_, mask2_);
}

void
Layer::append_backward ()
{
  cudaStream_t stream = stream_;
  size_t h = shape_.hidden, f = shape_.ffn, rows = tokens_;
  auto dropout_bwd_step = [&] (const half *dy, const uint8_t *mask, half *dx) {
    stream_step ("bias-dropout-add-bwd", rows, h, 2 * elt + 1, [=] { dropout_bwd (stream, dy, mask, dx, rows * h, p_drop); });
  };

  dropout_bwd_step (dy_, mask2_, d_branch_);
  append_bias_grad ("row-bias-grad", d_branch_, fc2_);
  append_linear_bwd ("fc2-dgrad", "fc2-wgrad", fc2_, activation_, d_branch_, d_activation_);
  stream_step ("gelu-bwd", rows, f, 3 * elt,
               [=, dy = d_activation_, x = fc1_out_, bias = fc1_.bias, dx = d_fc1_] {
                 bias_gelu_bwd (stream, dy, x, bias, dx, rows, f);
               });
  append_bias_grad ("fc1-bias-grad", d_fc1_, fc1_);
  append_linear_bwd ("fc1-dgrad", "fc1-wgrad", fc1_, normed2_, d_fc1_, d_normed_);
  append_norm_bwd (norm2_, middle_, d_normed_, dy_, d_middle_);

  dropout_bwd_step (d_middle_, mask1_, d_branch_);
  append_bias_grad ("row-bias-grad", d_branch_, proj_);
  append_linear_bwd ("proj-dgrad", "proj-wgrad", proj_, context_tokens_, d_branch_, d_context_);
  append_attention_bwd ();
  append_linear_bwd ("qkv-dgrad", "qkv-wgrad", qkv_, normed1_, d_qkv_tokens_, d_normed_);
  append_bias_grad ("qkv-bias-grad", d_qkv_tokens_, qkv_);
  append_norm_bwd (norm1_, x_, d_normed_, d_middle_, dx_);
}

}
