/* tools/kernelbench/compare.h — results of the GPU against references.
 *
 * An output is poisoned before its kernel runs: every byte 0xff, a NaN in all three
 * floating-point types, so an element that was not written cannot pass. */
#ifndef LS_KERNELBENCH_COMPARE_H
#define LS_KERNELBENCH_COMPARE_H

#include "bench.h"
#include "ops.h"
#include "tolerance.h"

namespace kb {

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

}

#endif
