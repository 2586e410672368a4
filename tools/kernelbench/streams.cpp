/* Memory-bound kernels, steady: GB/s by the bytes that the algorithm must move, the
 * same count as the simulator's, and the fraction of what a copy reaches.
 *
 * Operands rotate among sets, so that none is still in L2 from the launch before. */
#include <algorithm>
#include <memory>

#include "bench.h"
#include "ops.h"

namespace kb {

static constexpr size_t seq = 2048;
static constexpr size_t mlp_rows = 4 * seq, mlp_cols = 6144; /* 50M elements           */
static constexpr size_t n_heads = 32;                        /* 32 x 2048 x 2048: 134M */
static constexpr size_t n_heads_small = 12;                  /* 50M                    */
static constexpr int vocab = 51200;
static constexpr float p_drop = 0.1f;
static constexpr size_t n_sets = 3;
static constexpr size_t n_params_small = 50'000'000, n_params_large = 500'000'000;
static constexpr double case_s = 0.2; /* that one case takes at most */

/* The bytes per element are written out as operators_*.c of the simulator have them. */
static constexpr double elt = 2;
static constexpr double lower_triangle = (seq + 1.0) / (2.0 * seq);

namespace {

struct Case {
  const char *name;
  size_t rows, cols;
  double bytes_per_element;
  Launch launch;
};

/* n_sets of four fp16 tensors of n elements, a mask and vectors of a row. */
class Tensors {
public:
  Tensors (size_t n, cudaStream_t stream)
    : n_ (n), halves_ (4 * n_sets * n), mask_ (n_sets * n), vectors_ (n ? 6 * max_cols : 0), ids_ (n ? mlp_rows : 0),
      moments_ (n ? 2 * mlp_rows : 0), partial_ (n ? 2 * n_partials * max_cols : 0)
  {
    if (n == 0)
      return;
    fill_normal (stream, halves_.get (), halves_.size (), 1, 1);
    fill_normal (stream, vectors_.get (), vectors_.size (), 1, 2);
    fill_ids (stream, ids_.get (), ids_.size (), vocab, 3);
    fill_normal (stream, moments_.get (), moments_.size (), 1, 4);
    dropout (stream, x (0), y (0), mask_.get (), mask_.size (), p_drop, 5);
  }
  half *x (int set) const { return tensor (0, set); }
  half *dy (int set) const { return tensor (1, set); }
  half *residual (int set) const { return tensor (2, set); }
  half *y (int set) const { return tensor (3, set); }
  uint8_t *mask (int set) const { return mask_.get () + set % n_sets * n_; }
  half *vector (int i) const { return vectors_.get () + i * max_cols; } /* bias, gamma, beta, their gradients */
  int *ids () const { return ids_.get (); }
  float *mean () const { return moments_.get (); }
  float *rstd () const { return moments_.get () + mlp_rows; }
  float *partial () const { return partial_.get (); }
  const half *table () const { return halves_.get (); } /* vocab x mlp_cols: the first sets of x */

private:
  static constexpr size_t max_cols = 20480;
  half *tensor (int which, int set) const { return halves_.get () + (which * n_sets + set % n_sets) * n_; }

  size_t n_;
  Buffer<half> halves_;
  Buffer<uint8_t> mask_;
  Buffer<half> vectors_;
  Buffer<int> ids_;
  Buffer<float> moments_, partial_;
};

/* n_sets of gradient, weight and two moments. */
class Flat {
public:
  Flat (size_t n, size_t n_sets, cudaStream_t stream)
    : n_ (n), n_sets_ (n_sets), floats_ (4 * n_sets * n), partial_ (n ? n_square_partials + 1 : 0), found_inf_ (n ? 1 : 0)
  {
    if (n == 0)
      return;
    fill_normal (stream, floats_.get (), 3 * n_sets * n, 1, 6);
    KB_CHECK (cudaMemsetAsync (floats_.get () + 3 * n_sets * n, 0, n_sets * n * sizeof (float), stream));
  }
  float *grad (int set) const { return part (0, set); }
  float *weight (int set) const { return part (1, set); }
  float *m (int set) const { return part (2, set); }
  float *v (int set) const { return part (3, set); }
  half *weight16 (int set) const { return reinterpret_cast<half *> (m (set)); } /* when not Adam's */
  float *partial () const { return partial_.get (); }
  float *sum () const { return partial_.get () + n_square_partials; }
  int *found_inf () const { return found_inf_.get (); }

private:
  float *part (int which, int set) const { return floats_.get () + (which * n_sets_ + set % n_sets_) * n_; }

  size_t n_, n_sets_;
  Buffer<float> floats_, partial_;
  Buffer<int> found_inf_;
};

}

/* Its tensors; what finds no room costs the cases that need them, each with the reason. */
template <typename T, typename... Sizes> static std::unique_ptr<T>
make (std::string *ret_why, Sizes... sizes)
{
  try {
    return std::make_unique<T> (sizes...);
  } catch (const Failure &failure) {
    *ret_why = failure.what ();
    return nullptr;
  }
}

static void
measure (Bench &bench, const Case &c, const char *dtype, const std::string &why)
{
  double n = (double) c.rows * (double) c.cols;
  Row row { "streams", c.name, format ("%zux%zu", c.rows, c.cols), dtype, n * c.bytes_per_element };
  std::vector<Row> rows = bench.measure (row, case_s, [&] (Row &measured) {
    if (!why.empty ())
      throw Failure (why);
    Timing time = bench.steady (c.launch);
    double bytes_per_s = row.bytes / time.us * 1e6;
    double copy = bench.copy_bytes_per_s > 0 ? bench.copy_bytes_per_s : bytes_per_s; /* the first case is the copy */
    measured.note = format ("of_copy=%.3f", bytes_per_s / copy);
    return time;
  });
  if (bench.copy_bytes_per_s == 0 && !rows.empty ())
    bench.copy_bytes_per_s = rows[0].rate () * 1e9;
}

static std::vector<Case>
elementwise_cases (Bench &bench, const Tensors &t, size_t rows, size_t cols)
{
  cudaStream_t stream = bench.stream ();
  size_t n = rows * cols;
  std::vector<Case> cases = {
    { "copy", rows, cols, 2 * elt, [=, &t] (int i) { copy (stream, t.x (i), t.y (i), n); } },
    { "memcpy", rows, cols, 2 * elt,
      [=, &t] (int i) {
        KB_CHECK (cudaMemcpyAsync (t.y (i), t.x (i), n * sizeof (half), cudaMemcpyDeviceToDevice, stream));
      } },
    { "memset", rows, cols, elt,
      [=, &t] (int i) { KB_CHECK (cudaMemsetAsync (t.y (i), 0, n * sizeof (half), stream)); } },
    { "add", rows, cols, 3 * elt, [=, &t] (int i) { add (stream, t.x (i), t.dy (i), t.y (i), n); } },
    { "residual-grad-add", rows, cols, 3 * elt, [=, &t] (int i) { add_in_place (stream, t.y (i), t.dy (i), n); } },
    { "bias-add", rows, cols, 2 * elt,
      [=, &t] (int i) { bias_add (stream, t.x (i), t.vector (0), t.y (i), rows, cols); } },
    { "bias-gelu", rows, cols, 2 * elt,
      [=, &t] (int i) { bias_gelu (stream, t.x (i), t.vector (0), t.y (i), rows, cols); } },
    { "gelu-bwd", rows, cols, 3 * elt,
      [=, &t] (int i) { bias_gelu_bwd (stream, t.dy (i), t.x (i), t.vector (0), t.y (i), rows, cols); } },
    { "bias-dropout-add", rows, cols, 3 * elt + 1,
      [=, &t] (int i) {
        bias_dropout_add (stream, t.x (i), t.vector (0), t.residual (i), t.y (i), t.mask (i), rows, cols, p_drop, i);
      } },
    { "dropout", rows, cols, 2 * elt + 1,
      [=, &t] (int i) { dropout (stream, t.x (i), t.y (i), t.mask (i), n, p_drop, i); } },
    { "dropout-bwd", rows, cols, 2 * elt + 1,
      [=, &t] (int i) { dropout_bwd (stream, t.dy (i), t.mask (i), t.y (i), n, p_drop); } },
    { "bias-grad", rows, cols, elt,
      [=, &t] (int i) { column_sum (stream, t.dy (i), t.partial (), t.vector (3), rows, cols); } },
  };
  return cases;
}

static std::vector<Case>
softmax_cases (Bench &bench, const Tensors &t, size_t heads)
{
  cudaStream_t stream = bench.stream ();
  size_t rows = heads * seq;
  return {
    { "scale-mask-softmax", rows, seq, elt * (1 + lower_triangle),
      [=, &t] (int i) { causal_softmax (stream, t.x (i), t.y (i), rows, 0.125f); } },
    { "scale-mask-softmax-bwd", rows, seq, elt * (1 + 2 * lower_triangle),
      [=, &t] (int i) { causal_softmax_bwd (stream, t.dy (i), t.x (i), t.y (i), rows, 0.125f); } },
  };
}

static std::vector<Case>
norm_cases (Bench &bench, const Tensors &t, size_t rows, size_t cols)
{
  cudaStream_t stream = bench.stream ();
  return {
    { "layernorm-fwd", rows, cols, 2 * elt,
      [=, &t] (int i) {
        layernorm (stream, t.x (i), t.vector (1), t.vector (2), t.y (i), t.mean (), t.rstd (), rows, cols);
      } },
    { "layernorm-dgrad", rows, cols, 3 * elt,
      [=, &t] (int i) {
        layernorm_dgrad (stream, t.dy (i), t.x (i), t.vector (1), t.mean (), t.rstd (), t.y (i), rows, cols);
      } },
    { "layernorm-gamma-beta-grad", rows, cols, 2 * elt,
      [=, &t] (int i) {
        layernorm_gamma_beta (stream, t.dy (i), t.x (i), t.mean (), t.rstd (), t.partial (), t.vector (4), t.vector (5),
                              rows, cols);
      } },
  };
}

/* In this order the 16-bit copy of the weights is there before it is read. */
static std::vector<Case>
optimizer_cases (Bench &bench, const Flat &f, size_t n)
{
  cudaStream_t stream = bench.stream ();
  return {
    { "adam", 1, n, 28,
      [=, &f] (int i) { adam (stream, f.grad (i), f.weight (i), f.m (i), f.v (i), n, AdamStep ()); } },
    { "weight-copy", 1, n, 4 + elt, [=, &f] (int i) { float_to_half (stream, f.weight (i), f.weight16 (i), n); } },
    { "main-grad-copy", 1, n, elt + 4, [=, &f] (int i) { half_to_float (stream, f.weight16 (i), f.grad (i), n); } },
    { "grad-unscale", 1, n, 8, [=, &f] (int i) { unscale (stream, f.grad (i), n, 1, f.found_inf ()); } },
    { "grad-norm", 1, n, 4, [=, &f] (int i) { sum_squares (stream, f.grad (i), f.partial (), f.sum (), n); } },
    { "grad-clip", 1, n, 8, [=, &f] (int i) { scale_in_place (stream, f.grad (i), n, 1); } },
  };
}

static void
bench_activations (Bench &bench)
{
  size_t n = n_heads * seq * seq;
  std::string why;
  std::unique_ptr<Tensors> made = make<Tensors> (&why, bench.is_dry () ? 0 : n, bench.stream ());
  const Tensors none (0, nullptr), &t = made ? *made : none;
  std::vector<Case> cases = elementwise_cases (bench, t, n_heads * seq, seq);
  auto append = [&cases] (const std::vector<Case> &more) { cases.insert (cases.end (), more.begin (), more.end ()); };
  append (elementwise_cases (bench, t, mlp_rows, mlp_cols));
  append (softmax_cases (bench, t, n_heads));
  append (softmax_cases (bench, t, n_heads_small));
  append (norm_cases (bench, t, mlp_rows, mlp_cols));
  append (norm_cases (bench, t, mlp_rows / 2, 2 * mlp_cols));
  append (norm_cases (bench, t, mlp_rows / 4, 20480));
  cudaStream_t stream = bench.stream ();
  append ({ { "embedding-lookup", mlp_rows, mlp_cols, 2 * elt, [=, &t] (int i) {
               gather (stream, t.table (), t.ids (), t.y (i), mlp_rows, mlp_cols);
             } } });
  for (const Case &c : cases)
    measure (bench, c, "fp16", why);
}

static void
bench_optimizer (Bench &bench, size_t n, size_t sets)
{
  std::string why;
  std::unique_ptr<Flat> made = make<Flat> (&why, bench.is_dry () ? 0 : n, sets, bench.stream ());
  const Flat none (0, sets, nullptr), &f = made ? *made : none;
  for (const Case &c : optimizer_cases (bench, f, n))
    measure (bench, c, "fp32", why);
}

void
bench_streams (Bench &bench)
{
  bench.wake_up ();
  bench_activations (bench);
  bench_optimizer (bench, n_params_small, n_sets);
  bench_optimizer (bench, n_params_large, 1); /* 2 GB and more per tensor: far beyond any L2 */
}

}
