/* The expected errors of tolerance.h against roundings carried out one by one: formats, tf32
 * by truncation, sums of 10^4 terms in fp32, fp8 products added as Hopper does. Each simulated
 * error must be within a factor of what is expected, to either side: a tolerance that is too
 * wide would let a wrong kernel pass. Needs no GPU. */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "../tolerance.h"

using namespace kb;

static int n_failed;

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
