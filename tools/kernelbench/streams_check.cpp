/* Every memory-bound kernel against a double-precision reference. */
#include "bench.h"
#include "compare.h"

namespace kb {

static constexpr float p_drop = 0.1f;
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
