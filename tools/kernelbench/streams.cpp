/* Memory-bound kernels, steady: GB/s by the bytes that the algorithm must move, the
 * same count as the simulator's, and the fraction of what a copy reaches.
 *
 * Operands rotate among sets, so that none is still in L2 from the launch before. */
#include <algorithm>
#include <memory>

#include "bench.h"
#include "compare.h"
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

/* ---- against their references ---- */

/* Every memory-bound kernel against a double-precision reference. */

static constexpr size_t rows = 24, cols = 512;

/* The reference of an elementwise kernel: f (element, column). */
template <typename F> static Vector
reference (size_t n, size_t n_cols, const F &f)
{
  Vector y (n);
  for (size_t i = 0; i < n; i++)
    y[i] = f (i, i % n_cols);
  return y;
}

static void
check_elementwise (Checks &checks, cudaStream_t stream)
{
  size_t n = rows * cols;
  Inputs in (stream, n, cols, 100);
  auto expect = [&] (const char *name, const Buffer<half> &out, auto f) {
    checks.expect_close (name, download (stream, out), reference (n, cols, f), fp16_tolerance ());
  };

  Buffer<half> y = poisoned<half> (n);
  copy (stream, in.a.get (), y.get (), n);
  expect ("copy", y, [&] (size_t i, size_t) { return in.host_a[i]; });

  y = poisoned<half> (n);
  add (stream, in.a.get (), in.b.get (), y.get (), n);
  expect ("add", y, [&] (size_t i, size_t) { return in.host_a[i] + in.host_b[i]; });

  y = poisoned<half> (n);
  bias_add (stream, in.a.get (), in.row.get (), y.get (), rows, cols);
  expect ("bias-add", y, [&] (size_t i, size_t col) { return in.host_a[i] + in.host_row[col]; });

  y = poisoned<half> (n);
  bias_gelu (stream, in.a.get (), in.row.get (), y.get (), rows, cols);
  expect ("bias-gelu", y, [&] (size_t i, size_t col) { return gelu (in.host_a[i] + in.host_row[col]); });

  y = poisoned<half> (n);
  bias_gelu_bwd (stream, in.b.get (), in.a.get (), in.row.get (), y.get (), rows, cols);
  expect ("gelu-bwd", y, [&] (size_t i, size_t col) {
    return in.host_b[i] * gelu_slope (in.host_a[i] + in.host_row[col]);
  });

  add_in_place (stream, in.c.get (), in.a.get (), n);
  expect ("residual-grad-add", in.c, [&] (size_t i, size_t) { return in.host_c[i] + in.host_a[i]; });
}

static void
check_gather (Checks &checks, cudaStream_t stream)
{
  constexpr int n_words = 97;
  Buffer<half> table = random_normal<half> (stream, n_words * cols, 120), y = poisoned<half> (rows * cols);
  Buffer<int> ids (rows);
  fill_ids (stream, ids.get (), rows, n_words, 121);
  gather (stream, table.get (), ids.get (), y.get (), rows, cols);
  Vector words = download (stream, table);
  std::vector<int> host_ids = download_raw (stream, ids);
  checks.expect_close ("embedding-lookup", download (stream, y),
                reference (rows * cols, cols,
                           [&] (size_t i, size_t col) { return words[(size_t) host_ids[i / cols] * cols + col]; }),
                fp16_tolerance ());
}

static void
check_dropout (Checks &checks, cudaStream_t stream)
{
  constexpr size_t dropout_cols = 64;
  size_t n_threads = dropout_threads (SIZE_MAX / 2);
  size_t n = dropout_cols * ((2 * 4 * n_threads + 1000) / dropout_cols); /* three calls for some threads */
  uint64_t seed = 0x123456789abcdefull;
  Inputs in (stream, n, dropout_cols, 130);
  Vector keep (n);
  for (size_t i = 0; i < n; i++)
    keep[i] = is_kept (i, dropout_threads (n), p_drop, seed);
  auto expect = [&] (const char *name, const Buffer<half> &out, auto f) {
    checks.expect_close (name, download (stream, out), reference (n, dropout_cols, f), fp16_tolerance ());
  };
  double scale = 1 / (1 - (double) p_drop);

  Buffer<half> y = poisoned<half> (n);
  Buffer<uint8_t> mask = poisoned<uint8_t> (n);
  dropout (stream, in.a.get (), y.get (), mask.get (), n, p_drop, seed);
  checks.expect_close ("dropout mask", download (stream, mask), keep, 0);
  expect ("dropout", y, [&] (size_t i, size_t) { return keep[i] * scale * in.host_a[i]; });

  y = poisoned<half> (n);
  dropout_bwd (stream, in.b.get (), mask.get (), y.get (), n, p_drop);
  expect ("dropout-bwd", y, [&] (size_t i, size_t) { return keep[i] * scale * in.host_b[i]; });

  y = poisoned<half> (n);
  mask = poisoned<uint8_t> (n);
  bias_dropout_add (stream, in.a.get (), in.row.get (), in.b.get (), y.get (), mask.get (), n / dropout_cols,
                    dropout_cols, p_drop, seed);
  checks.expect_close ("bias-dropout-add mask", download (stream, mask), keep, 0);
  expect ("bias-dropout-add", y, [&] (size_t i, size_t col) {
    return in.host_b[i] + keep[i] * scale * (in.host_a[i] + in.host_row[col]);
  });
}

static void
check_softmax (Checks &checks, cudaStream_t stream)
{
  constexpr size_t s = softmax_cols, n = 2 * s * s; /* two heads */
  constexpr float scale = 0.125f;
  Inputs in (stream, n, 1, 140);
  Buffer<half> out = poisoned<half> (n);

  causal_softmax (stream, in.a.get (), out.get (), n / s, scale);
  checks.expect_close ("scale-mask-softmax", download (stream, out), causal_softmax_reference (in.host_a, s, scale), fp16_tolerance ());

  out = poisoned<half> (n);
  causal_softmax_bwd (stream, in.b.get (), in.c.get (), out.get (), n / s, scale);
  checks.expect_close ("scale-mask-softmax-bwd", download (stream, out),
                causal_softmax_bwd_reference (in.host_b, in.host_c, s, scale), fp16_tolerance ());
}

static void
check_norm (Checks &checks, cudaStream_t stream, size_t h)
{
  constexpr size_t n_rows = 37; /* no multiple of the ranges of the reduction */
  size_t n = n_rows * h;
  Inputs in (stream, n, h, 150);
  NormReference r = layernorm_reference (in.host_a, in.host_b, in.host_row, in.host_row2, n_rows, h, layernorm_epsilon);
  auto name = [h] (const char *what) { return format ("%s %zu", what, h); };

  Buffer<half> y = poisoned<half> (n);
  Buffer<float> mean = poisoned<float> (n_rows), rstd = poisoned<float> (n_rows);
  layernorm (stream, in.a.get (), in.row.get (), in.row2.get (), y.get (), mean.get (), rstd.get (), n_rows, h);
  checks.expect_close (name ("layernorm-fwd"), download (stream, y), r.y, fp16_tolerance ());
  checks.expect_close (name ("layernorm-fwd mean"), download (stream, mean), r.mean, 100 * fp32_tolerance (h)); /* near 0 */
  checks.expect_close (name ("layernorm-fwd rstd"), download (stream, rstd), r.rstd, fp32_tolerance ());

  y = poisoned<half> (n);
  layernorm_dgrad (stream, in.b.get (), in.a.get (), in.row.get (), mean.get (), rstd.get (), y.get (), n_rows, h);
  checks.expect_close (name ("layernorm-dgrad"), download (stream, y), r.dx, fp16_tolerance ());

  Buffer<half> dgamma = poisoned<half> (h), dbeta = poisoned<half> (h), sums = poisoned<half> (h);
  Buffer<float> partial = poisoned<float> (2 * n_partials * h);
  layernorm_gamma_beta (stream, in.b.get (), in.a.get (), mean.get (), rstd.get (), partial.get (), dgamma.get (),
                        dbeta.get (), n_rows, h);
  checks.expect_close (name ("layernorm-gamma-beta-grad gamma"), download (stream, dgamma), r.dgamma, fp16_tolerance ());
  checks.expect_close (name ("layernorm-gamma-beta-grad beta"), download (stream, dbeta), r.dbeta, fp16_tolerance ());

  partial = poisoned<float> (n_partials * h);
  column_sum (stream, in.b.get (), partial.get (), sums.get (), n_rows, h);
  checks.expect_close (name ("bias-grad"), download (stream, sums), r.dbeta, fp16_tolerance ());
}

static void
check_adam (Checks &checks, cudaStream_t stream, size_t n)
{
  Buffer<float> grad = random_normal<float> (stream, n, 160), weight = random_normal<float> (stream, n, 161);
  Buffer<float> m = random_normal<float> (stream, n, 162), v (n);
  /* second moments are not negative: the squares of the weights */
  Vector w = download (stream, weight), g = download (stream, grad), m1 = download (stream, m), m2 (n);
  std::vector<float> squares (n);
  for (size_t i = 0; i < n; i++)
    m2[i] = squares[i] = (float) (w[i] * w[i]);
  KB_CHECK (cudaMemcpy (v.get (), squares.data (), n * sizeof (float), cudaMemcpyHostToDevice));

  AdamStep s;
  s.rate = 0.1f; /* as large as the weights, or the update would hide in their norm */
  adam (stream, grad.get (), weight.get (), m.get (), v.get (), n, s);
  adam_reference ({ s.rate, s.beta1, s.beta2, s.epsilon, s.decay, s.step }, g, &w, &m1, &m2);
  checks.expect_close ("adam weight", download (stream, weight), w, fp32_tolerance ());
  checks.expect_close ("adam m", download (stream, m), m1, fp32_tolerance ());
  checks.expect_close ("adam v", download (stream, v), m2, fp32_tolerance ());
}

static void
check_unscale (Checks &checks, cudaStream_t stream, size_t n)
{
  Buffer<float> x = random_normal<float> (stream, n, 170);
  Buffer<int> found (1);
  Vector reference_x = download (stream, x);
  for (double &v : reference_x)
    v *= 0.25;
  KB_CHECK (cudaMemset (found.get (), 0, sizeof (int)));
  KB_CHECK (cudaDeviceSynchronize ());
  unscale (stream, x.get (), n, 0.25f, found.get ());
  checks.expect_close ("grad-unscale", download (stream, x), reference_x, fp32_tolerance ());
  bool found_early = download_raw (stream, found)[0] != 0;

  float inf = INFINITY;
  KB_CHECK (cudaMemcpy (x.get () + n - 2, &inf, sizeof inf, cudaMemcpyHostToDevice));
  unscale (stream, x.get (), n, 0.25f, found.get ());
  bool found_late = download_raw (stream, found)[0] == 1;
  checks.expect_close ("grad-unscale finds inf", { (double) !found_early, (double) found_late }, { 1, 1 }, 0);
}

static void
check_flat (Checks &checks, cudaStream_t stream)
{
  constexpr size_t n = 100'000;
  Buffer<float> x = random_normal<float> (stream, n, 180), y = poisoned<float> (n);
  Buffer<float> partial = poisoned<float> (n_square_partials), sum = poisoned<float> (1);
  Buffer<half> h = poisoned<half> (n);
  Vector host_x = download (stream, x);

  float_to_half (stream, x.get (), h.get (), n);
  Vector host_h = download (stream, h);
  checks.expect_close ("weight-copy", host_h, host_x, fp16_tolerance ());
  half_to_float (stream, h.get (), y.get (), n);
  checks.expect_close ("main-grad-copy", download (stream, y), host_h, 0);

  double squares = 0;
  for (double v : host_x)
    squares += v * v;
  sum_squares (stream, x.get (), partial.get (), sum.get (), n);
  checks.expect_close ("grad-norm", download (stream, sum), { squares }, fp32_tolerance (n));

  scale_in_place (stream, x.get (), n, 0.5f);
  for (double &v : host_x)
    v *= 0.5;
  checks.expect_close ("grad-clip", download (stream, x), host_x, 0);
  check_adam (checks, stream, n);
  check_unscale (checks, stream, n);
}

void
check_streams (Checks &checks, cudaStream_t stream)
{
  checks.run ({ "copy", "add", "bias-add", "bias-gelu", "gelu-bwd", "residual-grad-add" }, [&] { check_elementwise (checks, stream); });
  checks.run ({ "embedding-lookup" }, [&] { check_gather (checks, stream); });
  checks.run ({ "dropout", "dropout-bwd", "bias-dropout-add" }, [&] { check_dropout (checks, stream); });
  checks.run ({ "scale-mask-softmax", "scale-mask-softmax-bwd" }, [&] { check_softmax (checks, stream); });
  for (size_t h : { 1024, 6144, 12288, 20480 })
    checks.run ({ "layernorm-fwd", "layernorm-dgrad", "layernorm-gamma-beta-grad", "bias-grad" },
                [&] { check_norm (checks, stream, h); });
  checks.run ({ "adam", "weight-copy", "main-grad-copy", "grad-unscale", "grad-norm", "grad-clip" },
              [&] { check_flat (checks, stream); });
}

}
