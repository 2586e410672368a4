/* tools/kernelbench/compare.cuh — results of the GPU against references.
 *
 * An output is poisoned before its kernel runs: every byte 0xff, a NaN in all three
 * floating-point types, so an element that was not written cannot pass. */
#ifndef LS_KERNELBENCH_COMPARE_CUH
#define LS_KERNELBENCH_COMPARE_CUH

#include <cmath>
#include <cstdio>

#include "bench.cuh"
#include "ops.cuh"

namespace kb {

/* Largest ||out - reference|| / ||reference||: fp16 rounds to 2^-11 = 4.9e-4,
 * uniformly 2.0e-4 in this norm, bf16 to eight times that; fp32 sums reorder. */
constexpr double fp16_tolerance = 1e-3, bf16_tolerance = 6e-3, fp32_tolerance = 1e-5;
/* tf32 rounds both operands as fp16 does. The matrix units add fp8 products with less
 * than fp32: about 14 bits on Hopper (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report",
 * section 3.3.2). */
constexpr double tf32_tolerance = 1e-3, fp8_sum_tolerance = 1e-3;

template <typename T> Buffer<T>
poisoned (size_t n)
{
  Buffer<T> out (n);
  KB_CHECK (cudaMemset (out.get (), 0xff, n * sizeof (T)));
  KB_CHECK (cudaDeviceSynchronize ());
  return out;
}

template <typename T> Buffer<T>
random_normal (cudaStream_t stream, size_t n, uint64_t seed, float deviation = 1)
{
  Buffer<T> x (n);
  fill_normal (stream, x.get (), n, deviation, seed);
  return x;
}

template <typename T> std::vector<T>
download_raw (cudaStream_t stream, const Buffer<T> &buffer)
{
  std::vector<T> host (buffer.size ());
  KB_CHECK (cudaStreamSynchronize (stream));
  KB_CHECK (cudaMemcpy (host.data (), buffer.get (), host.size () * sizeof (T), cudaMemcpyDeviceToHost));
  return host;
}

template <typename T> std::vector<double>
download (cudaStream_t stream, const Buffer<T> &buffer)
{
  std::vector<double> values;
  values.reserve (buffer.size ());
  for (const T &v : download_raw (stream, buffer))
    values.push_back ((double) (float) v);
  return values;
}

/* Three random tensors and a random row. */
struct Inputs {
  cudaStream_t stream;
  Buffer<half> a, b, c, row, row2;
  Vector host_a, host_b, host_c, host_row, host_row2;

  Inputs (cudaStream_t s, size_t n, size_t n_cols, uint64_t seed)
    : stream (s), a (random_normal<half> (s, n, seed)), b (random_normal<half> (s, n, seed + 1)),
      c (random_normal<half> (s, n, seed + 2)), row (random_normal<half> (s, n_cols, seed + 3)),
      row2 (random_normal<half> (s, n_cols, seed + 4)), host_a (download (s, a)), host_b (download (s, b)),
      host_c (download (s, c)), host_row (download (s, row)), host_row2 (download (s, row2)) {}
};

/* How many expect_close () have failed. */
inline int n_failed_checks = 0;

/* Fails if they differ by more, or if out holds a NaN. */
inline void
expect_close (const char *what, const std::vector<double> &out, const std::vector<double> &reference, double tolerance)
{
  double error = 0, norm = 0;
  for (size_t i = 0; i < reference.size (); i++) {
    error += (out[i] - reference[i]) * (out[i] - reference[i]);
    norm += reference[i] * reference[i];
  }
  double relative = std::sqrt (error / norm);
  bool passes = relative <= tolerance; /* false for NaN */
  fprintf (stderr, "check %-32s %s  error %.2e, allowed %.0e\n", what, passes ? "ok" : "FAILED", relative, tolerance);
  n_failed_checks += !passes;
}

}

#endif
