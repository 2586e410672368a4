#include <algorithm>

#include <curand_kernel.h>

#include "ops_map.cuh"

namespace kb {

static constexpr int threads = 256;
static constexpr int threads_per_sm = 2048;

/* Four halves: what one Philox call decides about. */
struct alignas (8) Half4 {
  half2 pair[2];
};

static __device__ Half4
load4 (const half *x, size_t i)
{
  return reinterpret_cast<const Half4 *> (x)[i];
}

static __device__ void
store4 (half *x, size_t i, float a, float b, float c, float d)
{
  reinterpret_cast<Half4 *> (x)[i] = { { __floats2half2_rn (a, b), __floats2half2_rn (c, d) } };
}

static __device__ uchar4
draw_mask (curandStatePhilox4_32_10_t *state, float keep)
{
  float4 u = curand_uniform4 (state);
  return make_uchar4 (u.x < keep, u.y < keep, u.z < keep, u.w < keep);
}

/* Where Residual, y = residual + dropout (x + bias); otherwise y = dropout (x). */
struct DropoutArgs {
  const half *x, *bias, *residual;
  half *y;
  uint8_t *mask;
  unsigned n4, cols4;
  float keep;
  uint64_t seed;
};

template <bool Residual> static __global__ void
dropout_kernel (DropoutArgs a)
{
  unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, n_threads = gridDim.x * blockDim.x;
  float scale = 1 / a.keep;
  curandStatePhilox4_32_10_t state;
  curand_init (a.seed, thread, 0, &state);

  for (unsigned i = thread; i < a.n4; i += n_threads) {
    Half4 x = load4 (a.x, i);
    float2 u = __half22float2 (x.pair[0]), v = __half22float2 (x.pair[1]);
    float2 r = { 0, 0 }, s = { 0, 0 };
    if (Residual) {
      Half4 bias = load4 (a.bias, i % a.cols4), residual = load4 (a.residual, i);
      float2 b = __half22float2 (bias.pair[0]), c = __half22float2 (bias.pair[1]);
      u = { u.x + b.x, u.y + b.y };
      v = { v.x + c.x, v.y + c.y };
      r = __half22float2 (residual.pair[0]);
      s = __half22float2 (residual.pair[1]);
    }
    uchar4 m = draw_mask (&state, a.keep);
    store4 (a.y, i, r.x + m.x * scale * u.x, r.y + m.y * scale * u.y, s.x + m.z * scale * v.x, s.y + m.w * scale * v.y);
    reinterpret_cast<uchar4 *> (a.mask)[i] = m;
  }
}

static unsigned
n_blocks (size_t n)
{
  int n_sms = 0;
  KB_CHECK (cudaDeviceGetAttribute (&n_sms, cudaDevAttrMultiProcessorCount, 0));
  size_t needed = (n / 4 + threads - 1) / threads;
  return (unsigned) std::min (needed, (size_t) n_sms * (threads_per_sm / threads));
}

size_t
dropout_threads (size_t n)
{
  return (size_t) n_blocks (n) * threads;
}

void
dropout (cudaStream_t stream, const half *x, half *y, uint8_t *mask, size_t n, float p, uint64_t seed)
{
  DropoutArgs args = { x, nullptr, nullptr, y, mask, (unsigned) (n / 4), 1, 1 - p, seed };
  dropout_kernel<false><<<n_blocks (n), threads, 0, stream>>> (args);
  KB_CHECK_LAUNCH ();
}

void
bias_dropout_add (cudaStream_t stream, const half *x, const half *bias, const half *residual, half *y,
                  uint8_t *mask, size_t rows, size_t cols, float p, uint64_t seed)
{
  size_t n = rows * cols;
  DropoutArgs args = { x, bias, residual, y, mask, (unsigned) (n / 4), (unsigned) (cols / 4), 1 - p, seed };
  dropout_kernel<true><<<n_blocks (n), threads, 0, stream>>> (args);
  KB_CHECK_LAUNCH ();
}

namespace {

struct alignas (8) Mask8 {
  uint8_t keep[8];
};

struct DropoutBwd {
  const half *dy;
  const uint8_t *mask;
  half *dx;
  float scale;
  __device__ void operator() (unsigned i) const
  {
    Half8 g = load8 (dy, i), y;
    Mask8 m = reinterpret_cast<const Mask8 *> (mask)[i];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 v = get (g, j);
      y.pair[j] = __floats2half2_rn (m.keep[2 * j] * scale * v.x, m.keep[2 * j + 1] * scale * v.y);
    }
    store8 (dx, i, y);
  }
};

}

void
dropout_bwd (cudaStream_t stream, const half *dy, const uint8_t *mask, half *dx, size_t n, float p)
{
  map (stream, n / 8, DropoutBwd { dy, mask, dx, 1 / (1 - p) });
}

}
