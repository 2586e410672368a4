/* tools/kernelbench/tolerance.h — how far a right kernel may be from its reference.
 *
 * Errors are ||out - reference|| / ||reference||, so they are means over many elements, and
 * what is expected can be computed. Let a number have b significant bits (fp16 and tf32 11,
 * bf16 8, fp32 24), its mantissa m be spread over [1, 2) as logarithms are, E[m] = 1 / ln 2 and
 * E[m^2] = 3 / (2 ln 2).
 *
 *   rounded to nearest   the error is uniform in half a unit to either side:
 *                        2^-b / sqrt (3 E[m^2]) = 0.39 2^-b
 *   truncated            uniform between 0 and a unit, towards zero. It has a part that
 *                        shrinks all values alike, 2^-b E[m] / E[m^2] = 0.67 2^-b, and one
 *                        that is random, 0.41 2^-b. Only the first adds up coherently.
 *   tf32                 the matrix units drop the lower 13 bits of fp32 operands: of a
 *                        product both are truncated, so it is off by
 *                        sqrt ((2 * 0.67)^2 + 2 * 0.41^2) 2^-11 = 7.1e-4
 *   a sum in fp32        of n terms of random sign, one after another: each addition rounds a
 *                        partial sum of sqrt (j) terms, 0.39 2^-24 sqrt (n / 2) of the result;
 *                        10^4 terms: 1.6e-6. Sums in a tree are better, sums of one sign alike.
 *   a sum of fp8         Hopper's matrix units add 32 products at a time to a sum of which
 *                        about 14 bits are kept (DeepSeek-AI 2024, "DeepSeek-V3 Technical
 *                        Report", section 3.3.2), so it is truncated k / 32 times. The partial
 *                        sums grow with the result: half of k / 32 coherent shares count; the
 *                        products are aligned to the largest of them first, once more 2^-13.
 *
 * Allowed is four times what is expected: a kernel that forgets a term is off by much more.
 * Host code; tests/test_reference.cpp computes all of these by simulating the roundings. */
#ifndef LS_KERNELBENCH_TOLERANCE_H
#define LS_KERNELBENCH_TOLERANCE_H

#include <cmath>
#include <cstddef>

namespace kb {

constexpr double tolerance_margin = 4;

inline double
rounding_error (int bits)
{
  return 0.3925 * std::ldexp (1.0, -bits);
}

/* The coherent and the random part of a truncation. */
inline double
truncation_bias (int bits)
{
  return 0.667 * std::ldexp (1.0, -bits);
}

inline double
truncation_noise (int bits)
{
  return 0.414 * std::ldexp (1.0, -bits);
}

inline double
tf32_error ()
{
  return std::hypot (2 * truncation_bias (11), std::sqrt (2.0) * truncation_noise (11));
}

inline double
sum_error (size_t n)
{
  return rounding_error (24) * std::sqrt ((double) n / 2);
}

inline double
fp8_sum_error (size_t k)
{
  double n_steps = std::ceil ((double) k / 32);
  return truncation_bias (14) * n_steps / 2 + truncation_noise (14) * std::sqrt (n_steps / 2) + 2 * truncation_bias (13);
}

/* Of what fp32 arithmetic gives: n terms added, functions (exp, tanh, rsqrt) good to 4 units in
 * the last place of an argument up to 16. */
inline double
fp32_tolerance (size_t n = 1)
{
  return tolerance_margin * (sum_error (n) + std::ldexp (1.0, -18));
}

/* The same, rounded to 16 bits in the end. */
inline double
fp16_tolerance (size_t n = 1)
{
  return tolerance_margin * rounding_error (11) + fp32_tolerance (n);
}

inline double
bf16_tolerance (size_t n = 1)
{
  return tolerance_margin * rounding_error (8) + fp32_tolerance (n);
}

inline double
tf32_tolerance (size_t n)
{
  return tolerance_margin * tf32_error () + fp32_tolerance (n);
}

/* Of fp8 products with an fp32 result. */
inline double
fp8_tolerance (size_t k)
{
  return tolerance_margin * fp8_sum_error (k);
}

}

#endif
