#include "ops_row.cuh"

namespace kb {

namespace {

struct NormArgs {
  const half *x, *dy, *gamma, *beta;
  half *y; /* dx in the backward */
  float *mean, *rstd;
  int cols;
};

}

/* A block per row, Vectors * 8 elements per thread. The variance is that of the
 * deviations from the mean, for which the row is still in registers. */
template <int Vectors> static __global__ void
forward_kernel (NormArgs a)
{
  int cols = a.cols;
  __shared__ float scratch[row_threads / 32];
  size_t at = (size_t) blockIdx.x * cols;
  Half8 x[Vectors];
  float sum = 0, squares = 0;

  load_row_vectors (x, a.x + at, cols);
#pragma unroll
  for (int i = 0; i < Vectors * 4; i++) {
    float2 v = get (x[i / 4], i % 4);
    sum += v.x + v.y;
  }
  float mean = block_sum (sum, scratch) / cols;
#pragma unroll
  for (int i = 0; i < Vectors * 4; i++) {
    float2 v = get (x[i / 4], i % 4);
    if (is_in_row (i / 4, cols))
      squares += (v.x - mean) * (v.x - mean) + (v.y - mean) * (v.y - mean);
  }
  float rstd = rsqrtf (block_sum (squares, scratch) / cols + layernorm_epsilon);

#pragma unroll
  for (int i = 0; i < Vectors; i++) {
    if (!is_in_row (i, cols))
      break;
    Half8 gamma = load8 (a.gamma, i * row_threads + threadIdx.x), beta = load8 (a.beta, i * row_threads + threadIdx.x), y;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 v = get (x[i], j), g = get (gamma, j), b = get (beta, j);
      y.pair[j] = __floats2half2_rn ((v.x - mean) * rstd * g.x + b.x, (v.y - mean) * rstd * g.y + b.y);
    }
    store8 (a.y + at, i * row_threads + threadIdx.x, y);
  }
  if (threadIdx.x == 0) {
    a.mean[blockIdx.x] = mean;
    a.rstd[blockIdx.x] = rstd;
  }
}

template <int Vectors> static __global__ void
backward_kernel (NormArgs a)
{
  int cols = a.cols;
  __shared__ float scratch[row_threads / 32];
  size_t at = (size_t) blockIdx.x * cols;
  float mean = a.mean[blockIdx.x], rstd = a.rstd[blockIdx.x];
  Half8 x[Vectors], dy[Vectors];
  float sum_g = 0, sum_gz = 0;

  load_row_vectors (x, a.x + at, cols);
  load_row_vectors (dy, a.dy + at, cols);
#pragma unroll
  for (int i = 0; i < Vectors; i++) {
    if (!is_in_row (i, cols))
      break;
    Half8 gamma = load8 (a.gamma, i * row_threads + threadIdx.x);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 v = get (x[i], j), d = get (dy[i], j), w = get (gamma, j);
      float2 g = { d.x * w.x, d.y * w.y };
      sum_g += g.x + g.y;
      sum_gz += g.x * (v.x - mean) * rstd + g.y * (v.y - mean) * rstd;
    }
  }
  float mean_g = block_sum (sum_g, scratch) / cols, mean_gz = block_sum (sum_gz, scratch) / cols;

#pragma unroll
  for (int i = 0; i < Vectors; i++) {
    if (!is_in_row (i, cols))
      break;
    Half8 gamma = load8 (a.gamma, i * row_threads + threadIdx.x), dx;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 v = get (x[i], j), d = get (dy[i], j), w = get (gamma, j);
      dx.pair[j] = __floats2half2_rn (rstd * (d.x * w.x - mean_g - (v.x - mean) * rstd * mean_gz),
                                      rstd * (d.y * w.y - mean_g - (v.y - mean) * rstd * mean_gz));
    }
    store8 (a.y + at, i * row_threads + threadIdx.x, dx);
  }
}

static void
launch (cudaStream_t stream, const NormArgs &args, size_t rows, bool is_backward)
{
  for_row_vectors ("layernorm", args.cols, [&] (auto n) {
    constexpr int vectors = decltype (n)::value;
    if (is_backward)
      backward_kernel<vectors><<<(unsigned) rows, row_threads, 0, stream>>> (args);
    else
      forward_kernel<vectors><<<(unsigned) rows, row_threads, 0, stream>>> (args);
  });
  KB_CHECK_LAUNCH ();
}

void
layernorm (cudaStream_t stream, const half *x, const half *gamma, const half *beta, half *y, float *mean,
           float *rstd, size_t rows, size_t cols)
{
  launch (stream, NormArgs { x, nullptr, gamma, beta, y, mean, rstd, (int) cols }, rows, false);
}

void
layernorm_dgrad (cudaStream_t stream, const half *dy, const half *x, const half *gamma, const float *mean,
                 const float *rstd, half *dx, size_t rows, size_t cols)
{
  NormArgs args = { x, dy, gamma, nullptr, dx, const_cast<float *> (mean), const_cast<float *> (rstd), (int) cols };
  launch (stream, args, rows, true);
}

}
