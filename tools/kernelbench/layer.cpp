/* A transformer layer on one tensor-parallel rank, as the kernels that Megatron-LM (2021-22, unfused attention, fp16)
 * launches for its forward and backward pass, in order, each reading what those before it wrote.
 *
 * Not as there: Q, K and V are dense tensors of their own in a row, not strided views
 * of the QKV output, and the two copies between head and token order copy only.
 *
 * It runs again and again, as a whole, against the sum of its kernels' isolated times; and each kernel is timed inside that loop, hot,
 * with what the one before it left in L2. */
#include <algorithm>
#include <cmath>

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

/* ---- the loop ---- */

static constexpr double sustained_s = 3;
static constexpr int n_layers = 25;  /* whose steps are timed one by one */
static constexpr int n_isolated = 11;
static constexpr double case_s = 6;

/* GPT of hidden size 6144 (48 heads), 12288 (96) and 20480 (128) on one of 8
 * tensor-parallel ranks; 8192, 2048 and 2048 tokens. */
static const LayerShape shapes[] = {
  { 6144, 6, 128, 3072, 4 },
  { 12288, 12, 128, 6144, 1 },
  { 20480, 16, 160, 10240, 1 },
};

namespace {

struct Total {
  double bytes = 0, flops = 0, in_loop_us = 0, isolated_us = 0;
  void add (const Row &row, double loop, double isolated)
  {
    bytes += row.bytes;
    flops += row.flops;
    in_loop_us += loop;
    isolated_us += isolated;
  }
};

}

static void
run_all (const Layer &layer)
{
  for (const Step &step : layer.steps ())
    step.launch ();
}

static std::vector<double>
isolated_us (Bench &bench, const Layer &layer)
{
  std::vector<double> us;
  for (const Step &step : layer.steps ())
    us.push_back (bench.isolated (step.launch, n_isolated).us);
  return us;
}

/* An event between any two steps: about a microsecond each, which is why the loop as
 * a whole is timed without them. */
static std::vector<Timing>
in_loop (Bench &bench, const Layer &layer)
{
  size_t n = layer.steps ().size ();
  std::vector<Event> marks (n_layers * n + 1);
  marks[0].record (bench.stream ());
  for (size_t i = 0; i < n_layers * n; i++) {
    layer.steps ()[i % n].launch ();
    marks[i + 1].record (bench.stream ());
  }
  KB_CHECK (cudaStreamSynchronize (bench.stream ()));

  std::vector<Timing> times;
  for (size_t step = 0; step < n; step++) {
    std::vector<double> us;
    for (size_t i = n + step; i < n_layers * n; i += n) /* the first layer warms up */
      us.push_back (marks[i + 1].us_since (marks[i]));
    times.push_back (summarise (us));
  }
  return times;
}

static std::string
compare_note (double us, double isolated)
{
  return format ("isolated_us=%.3f ratio=%.4f", isolated, us / isolated);
}

static Row
total_row (const Layer &layer, const char *name, const Total &total, Timing time, const std::string &more)
{
  Row row { "context", name, layer.shape_text (), "fp16", total.bytes, total.flops, time };
  row.note = compare_note (time.us, total.isolated_us) + more;
  return row;
}

static std::vector<Row>
measure (Bench &bench, const Layer &layer)
{
  Conditions loaded;
  Total all, gemms, streams;
  std::vector<Row> rows;
  run_all (layer); /* every tensor holds data before anything is timed */
  std::vector<double> isolated = isolated_us (bench, layer);
  Timing whole = bench.sustained ([&] (int) { run_all (layer); }, sustained_s, &loaded);
  std::vector<Timing> loop = in_loop (bench, layer);

  for (size_t i = 0; i < isolated.size (); i++) {
    Row row = layer.steps ()[i].row;
    row.note += (row.note.empty () ? "" : " ") + compare_note (loop[i].us, isolated[i]);
    row.time = loop[i];
    rows.push_back (row);
    all.add (row, loop[i].us, isolated[i]);
    (row.flops > 0 ? gemms : streams).add (row, loop[i].us, isolated[i]);
  }
  rows.push_back (total_row (layer, "layer-gemms", gemms, { gemms.in_loop_us, 0 }, ""));
  rows.push_back (total_row (layer, "layer-streams", streams, { streams.in_loop_us, 0 }, ""));
  rows.push_back (total_row (layer, "layer", all, whole, " " + conditions_note (loaded)));
  return rows;
}

static void
plan (Bench &bench, const Layer &layer)
{
  for (const Step &step : layer.steps ())
    bench.measure (step.row, 0, [] (Row &) { return Timing (); });
}

/* A layer with a wrong kernel in it is not timed. */
static std::string
objection (Bench &bench, const Layer &layer)
{
  for (const Step &step : layer.steps ())
    if (std::string why = bench.checks ().objection (step.row); !why.empty ())
      return step.row.name + ": " + why;
  return "";
}

static void
bench_layer (Bench &bench, const LayerShape &shape)
{
  Row row { "context", "layer", Layer (shape, bench.stream (), false).shape_text (), "fp16" };
  bench.measure_case (row, case_s, [&] {
    Layer layer (shape, bench.stream (), true);
    std::string why = objection (bench, layer);
    if (!why.empty ())
      throw Failure (why);
    bench.wake_up ();
    return measure (bench, layer);
  });
}

void
bench_context (Bench &bench)
{
  for (const LayerShape &shape : shapes) {
    if (bench.is_dry ())
      plan (bench, Layer (shape, bench.stream (), false));
    bench_layer (bench, shape);
  }
}

}
