/* The references of the GPU checks, held against closed forms, symmetries and finite
 * differences: a wrong reference would pass a wrong kernel. And how far a right kernel may be from them. Needs no GPU and no CUDA. */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "../reference.h"
#include "../tolerance.h"

using namespace kb;

static int n_failed;

static void
expect (const char *what, double got, double expected, double tolerance)
{
  if (std::fabs (got - expected) <= tolerance)
    return;
  printf ("FAILED %s: got %.12g, expected %.12g within %.1g\n", what, got, expected, tolerance);
  n_failed++;
}

/* Uniform in (-1, 1), from Philox itself. */
static Vector
random_vector (size_t n, uint64_t seed)
{
  Vector x (n);
  for (size_t i = 0; i < n; i++) {
    uint32_t word[4] = { (uint32_t) i, 0, 0, 0 };
    philox (word, seed);
    x[i] = (double) word[0] / 0x80000000u - 1;
  }
  return x;
}

static double
dot (const Vector &a, const Vector &b)
{
  double sum = 0;
  for (size_t i = 0; i < a.size (); i++)
    sum += a[i] * b[i];
  return sum;
}

/* d loss / d x[i] for all i by central differences, beside the gradient under test. */
static void
expect_gradient (const char *what, Vector x, const Vector &gradient, const std::function<double (const Vector &)> &loss)
{
  for (size_t i = 0; i < x.size (); i++) {
    double at = x[i];
    x[i] = at + 1e-5;
    double above = loss (x);
    x[i] = at - 1e-5;
    double below = loss (x);
    x[i] = at;
    expect (what, gradient[i], (above - below) / 2e-5, 1e-7);
  }
}

/* The three known answers that Random123 ships for philox4x32 with ten rounds. */
static void
test_philox ()
{
  static const struct {
    uint32_t counter[4];
    uint64_t key;
    uint32_t out[4];
  } cases[] = {
    { { 0, 0, 0, 0 }, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { ~0u, ~0u, ~0u, ~0u }, ~0ull, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, 0x299f31d0a4093822ull,
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
  };
  for (const auto &c : cases) {
    uint32_t word[4];
    std::copy (c.counter, c.counter + 4, word);
    philox (word, c.key);
    for (int i = 0; i < 4; i++)
      expect ("philox", word[i], c.out[i], 0);
  }
}

static void
test_dropout ()
{
  double kept = 0;
  for (size_t i = 0; i < 40000; i++)
    kept += is_kept (i, 1024, 0.1f, 5);
  expect ("dropout keeps 1 - p", kept / 40000, 0.9, 0.006); /* four standard deviations */
}

static void
test_activations ()
{
  for (double z : { -3.0, -0.7, 0.0, 0.4, 2.5 }) {
    double u = std::sqrt (2 / M_PI) * (z + 0.044715 * z * z * z), t = std::tanh (u);
    double slope = 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * std::sqrt (2 / M_PI) * (1 + 3 * 0.044715 * z * z);
    expect ("gelu odd part", gelu (z) - gelu (-z), z, 1e-12);
    expect ("gelu slope", gelu_slope (z), slope, 1e-9);
    double dgate, dup;
    swiglu_bwd (z, 1.5, 0.25, &dgate, &dup);
    expect ("swiglu, gate", dgate, 0.25 * (swiglu (z + 1e-5, 1.5) - swiglu (z - 1e-5, 1.5)) / 2e-5, 1e-9);
    expect ("swiglu, up", dup, 0.25 * swiglu (z, 1), 1e-12);
    expect ("silu odd part", swiglu (z, 1) - swiglu (-z, 1), z, 1e-12);
  }
}

static void
test_norms ()
{
  constexpr size_t rows = 3, cols = 7;
  Vector x = random_vector (rows * cols, 1), dy = random_vector (rows * cols, 2);
  Vector gamma = random_vector (cols, 3), beta = random_vector (cols, 4), ones (cols, 1), zeros (cols, 0);
  NormReference r = layernorm_reference (x, dy, gamma, beta, rows, cols, 1e-5);
  NormReference rms = rmsnorm_reference (x, dy, gamma, rows, cols, 1e-5);

  expect_gradient ("layernorm dx", x, r.dx,
                   [&] (const Vector &v) { return dot (layernorm_reference (v, dy, gamma, beta, rows, cols, 1e-5).y, dy); });
  expect_gradient ("layernorm dgamma", gamma, r.dgamma,
                   [&] (const Vector &v) { return dot (layernorm_reference (x, dy, v, beta, rows, cols, 1e-5).y, dy); });
  expect_gradient ("layernorm dbeta", beta, r.dbeta,
                   [&] (const Vector &v) { return dot (layernorm_reference (x, dy, gamma, v, rows, cols, 1e-5).y, dy); });
  expect_gradient ("rmsnorm dx", x, rms.dx,
                   [&] (const Vector &v) { return dot (rmsnorm_reference (v, dy, gamma, rows, cols, 1e-5).y, dy); });
  expect_gradient ("rmsnorm dgamma", gamma, rms.dgamma,
                   [&] (const Vector &v) { return dot (rmsnorm_reference (x, dy, v, rows, cols, 1e-5).y, dy); });

  Vector y = layernorm_reference (x, dy, ones, zeros, rows, cols, 0).y;
  Vector z = rmsnorm_reference (x, dy, ones, rows, cols, 0).y;
  for (size_t row = 0; row < rows; row++) {
    Vector of_row (y.begin () + (long) (row * cols), y.begin () + (long) ((row + 1) * cols));
    Vector of_rms (z.begin () + (long) (row * cols), z.begin () + (long) ((row + 1) * cols));
    expect ("layernorm mean", dot (of_row, ones), 0, 1e-12);
    expect ("layernorm variance", dot (of_row, of_row), cols, 1e-11);
    expect ("rmsnorm mean of squares", dot (of_rms, of_rms), cols, 1e-11);
  }
}

static void
test_softmax ()
{
  constexpr size_t cols = 5, n = 2 * cols * cols;
  Vector x = random_vector (n, 5), dy = random_vector (n, 6), y = causal_softmax_reference (x, cols, 0.3);
  for (size_t row = 0; row < n / cols; row++) {
    double sum = 0;
    for (size_t i = 0; i < cols; i++)
      sum += y[row * cols + i];
    expect ("softmax row", sum, 1, 1e-12);
  }
  expect ("softmax of a single score", y[0], 1, 0);
  expect ("softmax above the diagonal", y[1], 0, 0);
  expect ("ratio of two probabilities", y[2 * cols] / y[2 * cols + 1], std::exp (0.3 * (x[2 * cols] - x[2 * cols + 1])), 1e-12);
  expect_gradient ("softmax dx", x, causal_softmax_bwd_reference (dy, y, cols, 0.3),
                   [&] (const Vector &v) { return dot (causal_softmax_reference (v, cols, 0.3), dy); });
}

static void
test_rope ()
{
  constexpr size_t seq = 6, heads = 2, d = 8, n = 2 * seq * heads * d;
  Vector x = random_vector (n, 7), y = rope_reference (x, seq, heads, d, 1e4, 1), back = rope_reference (y, seq, heads, d, 1e4, -1);
  for (size_t i = 0; i < n; i++)
    expect ("rope backwards", back[i], x[i], 1e-12);
  for (size_t i = 0; i < heads * d; i++)
    expect ("rope at position 0", y[i], x[i], 0);
  /* pair 0 turns by one radian a position */
  size_t at = heads * d; /* position 1, head 0 */
  expect ("rope pair 0", y[at], x[at] * std::cos (1) - x[at + d / 2] * std::sin (1), 1e-12);
  /* the product of a query and a key depends on their distance only */
  Vector q (seq * d), k (seq * d), base_q = random_vector (d, 8), base_k = random_vector (d, 9);
  for (size_t i = 0; i < seq * d; i++) {
    q[i] = base_q[i % d];
    k[i] = base_k[i % d];
  }
  q = rope_reference (q, seq, 1, d, 1e4, 1);
  k = rope_reference (k, seq, 1, d, 1e4, 1);
  auto product = [&] (size_t i, size_t j) {
    double sum = 0;
    for (size_t e = 0; e < d; e++)
      sum += q[i * d + e] * k[j * d + e];
    return sum;
  };
  expect ("rope is relative", product (5, 3), product (2, 0), 1e-12);
}

static void
test_attention (bool is_causal)
{
  AttentionShape s = { 2, 4, 4, 2, 3, is_causal };
  size_t n = s.sequences * s.seq * s.heads * s.d, n_kv = s.sequences * s.seq * s.kv_heads * s.d;
  Vector q = random_vector (n, 10), k = random_vector (n_kv, 11), v = random_vector (n_kv, 12), dout = random_vector (n, 13);
  AttentionReference r = attention_reference (s, q, k, v, dout);
  expect_gradient ("attention dq", q, r.dq,
                   [&] (const Vector &x) { return dot (attention_reference (s, x, k, v, dout).out, dout); });
  expect_gradient ("attention dk", k, r.dk,
                   [&] (const Vector &x) { return dot (attention_reference (s, q, x, v, dout).out, dout); });
  expect_gradient ("attention dv", v, r.dv,
                   [&] (const Vector &x) { return dot (attention_reference (s, q, k, x, dout).out, dout); });

  /* equal scores: the mean of the values that are seen, and log of their number */
  r = attention_reference (s, Vector (n, 0), k, v, dout);
  for (size_t head = 0; head < s.heads; head++)
    for (size_t i = 0; i < s.d; i++) {
      size_t t = 2, n_seen = is_causal ? t + 1 : s.seq;
      double sum = 0;
      for (size_t j = 0; j < n_seen; j++)
        sum += v[(j * s.kv_heads + head / 2) * s.d + i];
      expect ("attention of equal scores", r.out[(t * s.heads + head) * s.d + i], sum / (double) n_seen, 1e-12);
      expect ("attention lse", r.lse[head * s.seq + t], std::log ((double) n_seen), 1e-12);
    }
}

static void
test_vocabulary ()
{
  constexpr size_t rows = 4, cols = 6;
  Vector x = random_vector (rows * cols, 14);
  std::vector<int> target = { 3, 0, 3, 5 };
  CrossEntropyReference r = cross_entropy_reference (x, target, cols);
  expect_gradient ("cross-entropy dx", x, r.dx, [&] (const Vector &v) {
    double sum = 0;
    for (double loss : cross_entropy_reference (v, target, cols).loss)
      sum += loss / rows;
    return sum;
  });
  expect ("cross-entropy of equal logits", cross_entropy_reference (Vector (rows * cols, 2), target, cols).loss[1],
          std::log (6.0), 1e-12);

  Vector table = random_vector (6 * cols, 15), dy = random_vector (rows * cols, 16);
  expect_gradient ("embedding gradient", table, embedding_grad_reference (dy, target, 6, cols), [&] (const Vector &v) {
    return dot (permute_reference (v, target, cols), dy); /* the lookup is the same gather */
  });
}

static void
test_routing ()
{
  constexpr size_t tokens = 5, k = 2, cols = 3;
  std::vector<int> expert = { 1, 0, 2, 1, 0, 2, 1, 2, 0, 1 }, source, place;
  route (expert, k, 3, &source, &place);
  for (size_t slot = 0; slot < tokens * k; slot++)
    expect ("a slot's row holds its token", source[(size_t) place[slot]], (double) (slot / k), 0);
  for (size_t i = 1; i < source.size (); i++) { /* sorted by expert */
    auto expert_of = [&] (size_t row) {
      return expert[(size_t) (std::find (place.begin (), place.end (), (int) row) - place.begin ())];
    };
    expect ("rows by expert", expert_of (i - 1) <= expert_of (i), 1, 0);
  }
  Vector x = random_vector (tokens * cols, 17), weight (tokens * k);
  for (size_t t = 0; t < tokens; t++) {
    weight[2 * t] = 0.25;
    weight[2 * t + 1] = 0.75;
  }
  Vector y = unpermute_reference (permute_reference (x, source, cols), place, weight, k, cols);
  for (size_t i = 0; i < x.size (); i++)
    expect ("unpermute of permute", y[i], x[i], 1e-12);
}

/* From zero moments and without decay the first step is `rate` against the gradient. */
static void
test_adam ()
{
  Vector grad = { 3, -0.001, 20 }, weight = { 1, 2, 3 }, m (3, 0), v (3, 0);
  adam_reference ({ 0.1, 0.9, 0.95, 0, 0, 1 }, grad, &weight, &m, &v);
  expect ("adam", weight[0], 0.9, 1e-12);
  expect ("adam", weight[1], 2.1, 1e-12);
  expect ("adam m", m[2], 2, 1e-12);
  expect ("adam v", v[2], 20, 1e-12);
  adam_reference ({ 0.1, 0.9, 0.95, 1e-8, 0.5, 2 }, Vector (3, 0), &weight, &m, &v);
  double direction = 0.9 * 2 / (1 - 0.81) / (std::sqrt (0.95 * 20 / (1 - 0.9025)) + 1e-8);
  expect ("adam, second step", weight[2], 2.9 - 0.1 * (direction + 0.5 * 2.9), 1e-12);
}

static void
test_product ()
{
  Vector a = { 1, 2, 3, 4, 5, 6 }, b = { 1, 0, 2, -1, 1, 3 }, out (5, 1); /* 2x3 by 3x2, from 1 on */
  add_product (out, 1, 2, 2, 3, [&] (size_t i, size_t l) { return a[i * 3 + l]; }, [&] (size_t l, size_t j) { return b[l * 2 + j]; });
  Vector expected = { 1, 1 + 8, 1 + 7, 1 + 20, 1 + 13 };
  for (size_t i = 0; i < out.size (); i++)
    expect ("product", out[i], expected[i], 0);
}

/* ---- tolerances ---- */

/* The expected errors of tolerance.h against roundings carried out one by one: formats, tf32
 * by truncation, sums of 10^4 terms in fp32, fp8 products added as Hopper does. Each simulated
 * error must be within a factor of what is expected, to either side: a tolerance that is too
 * wide would let a wrong kernel pass. */
static void
expect_near (const char *what, double simulated, double expected, double least, double most)
{
  bool is_near = simulated >= least * expected && simulated <= most * expected;
  if (!is_near)
    printf ("FAILED %s: simulated %.3e, expected %.3e\n", what, simulated, expected);
  n_failed += !is_near;
}

/* Sums of twelve uniform numbers: normal enough. */
static double
normal ()
{
  static uint64_t state = 88172645463325252ull;
  double sum = -6;
  for (int i = 0; i < 12; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    sum += (double) (state >> 11) * 0x1p-53;
  }
  return sum;
}

static double
to_bits (double x, int bits, bool truncates)
{
  int exponent;
  double mantissa = std::ldexp (std::frexp (x, &exponent), bits);
  return std::ldexp (truncates ? std::trunc (mantissa) : std::nearbyint (mantissa), exponent - bits);
}

template <typename F> static double
relative (int n, const F &draw)
{
  double error = 0, norm = 0;
  for (int i = 0; i < n; i++) {
    double exact = 0, got = 0;
    draw (&exact, &got);
    error += (got - exact) * (got - exact);
    norm += exact * exact;
  }
  return std::sqrt (error / norm);
}

static void
test_rounding ()
{
  for (int bits : { 8, 11, 24 })
    expect_near ("rounding", relative (40000, [&] (double *x, double *y) { *x = normal (); *y = to_bits (*x, bits, false); }),
                 rounding_error (bits), 0.85, 1.15);
}

static void
test_tf32 ()
{
  double error = relative (2000, [] (double *exact, double *got) {
    for (int i = 0; i < 256; i++) {
      double a = (float) normal (), b = (float) normal ();
      *exact += a * b;
      *got += to_bits (a, 11, true) * to_bits (b, 11, true);
    }
  });
  expect_near ("tf32", error, tf32_error (), 0.85, 1.15);
}

static void
test_sum (int n, bool is_one_sided)
{
  double error = relative (300, [&] (double *exact, double *got) {
    float sum = 0;
    for (int i = 0; i < n; i++) {
      float x = (float) normal ();
      x = is_one_sided ? x * x : x;
      *exact += x;
      sum += x;
    }
    *got = sum;
  });
  expect_near (is_one_sided ? "sum of squares" : "sum", error, sum_error ((size_t) n), 0.3, 1.5);
}

static double
to_e4m3 (double x)
{
  return to_bits (std::clamp (x, -448.0, 448.0), 4, false);
}

/* 32 products and the sum so far, aligned to the largest of them, 13 bits behind its leading
 * one are kept of each; all of the new sum. */
static double
add_aligned (double sum, const double *products, int n)
{
  double largest = std::fabs (sum), total = 0;
  for (int i = 0; i < n; i++)
    largest = std::max (largest, std::fabs (products[i]));
  double unit = largest > 0 ? std::ldexp (1.0, std::ilogb (largest) - 13) : 1;
  for (int i = 0; i < n; i++)
    total += std::trunc (products[i] / unit) * unit;
  return total + std::trunc (sum / unit) * unit;
}

static void
test_fp8 (int k)
{
  double error = relative (400, [&] (double *exact, double *got) {
    for (int step = 0; step < k; step += 32) {
      double products[32];
      for (double &p : products) {
        p = to_e4m3 (normal ()) * to_e4m3 (normal ());
        *exact += p;
      }
      *got = add_aligned (*got, products, 32);
    }
  });
  expect_near ("sum of fp8", error, fp8_sum_error ((size_t) k), 0.25, 1.25);
}

/* A kernel that is wrong where it is easily wrong must not pass: one term of 224 is missing;
 * fp16 is rounded twice as coarsely as it should be by eight bits (bf16). */
static void
test_sharp ()
{
  expect_near ("bf16 instead of fp16", rounding_error (8), fp16_tolerance (), 1.5, 1e9);
  expect_near ("a term of 224 is missing, tf32", 1 / std::sqrt (224.0), tf32_tolerance (224), 5, 1e9);
  expect_near ("a term of 224 is missing, fp8", 1 / std::sqrt (224.0), fp8_tolerance (224), 5, 1e9);
  expect_near ("tf32 instead of fp32", tf32_error (), fp32_tolerance (224), 5, 1e9);
}

int
main ()
{
  test_philox ();
  test_dropout ();
  test_activations ();
  test_norms ();
  test_softmax ();
  test_rope ();
  test_attention (true);
  test_attention (false);
  test_vocabulary ();
  test_routing ();
  test_adam ();
  test_product ();
  test_rounding ();
  test_tf32 ();
  test_sum (10000, false);
  test_sum (10000, true);
  test_sum (224, false);
  test_fp8 (224);
  test_fp8 (4096);
  test_sharp ();
  printf (n_failed == 0 ? "ok\n" : "%d failed\n", n_failed);
  return n_failed != 0;
}
