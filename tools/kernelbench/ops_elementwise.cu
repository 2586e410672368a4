#include <algorithm>
#include <cmath>

#include <curand_kernel.h>

#include "ops_map.cuh"

namespace kb {

namespace {

/* y = f (a, b) for eight elements. */
template <typename F> __device__ Half8
combine (const Half8 &a, const Half8 &b, const F &f)
{
  Half8 y;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float2 u = get (a, i), v = get (b, i);
    y.pair[i] = __floats2half2_rn (f (u.x, v.x), f (u.y, v.y));
  }
  return y;
}

struct Sum {
  __device__ float operator() (float a, float b) const { return a + b; }
};

constexpr float sqrt_2_over_pi = 0.79788456f;
constexpr float gelu_cubic = 0.044715f;

struct Gelu {
  __device__ float operator() (float x, float bias) const
  {
    float z = x + bias;
    return 0.5f * z * (1 + tanhf (sqrt_2_over_pi * (z + gelu_cubic * z * z * z)));
  }
};

struct GeluGradient {
  __device__ float operator() (float x, float bias) const
  {
    float z = x + bias;
    float t = tanhf (sqrt_2_over_pi * (z + gelu_cubic * z * z * z));
    float slope = sqrt_2_over_pi * (1 + 3 * gelu_cubic * z * z);
    return 0.5f * (1 + t) + 0.5f * z * (1 - t * t) * slope;
  }
};


struct Copy {
  const half *x;
  half *y;
  __device__ void operator() (unsigned i) const { store8 (y, i, load8 (x, i)); }
};

struct Add {
  const half *a, *b;
  half *y;
  __device__ void operator() (unsigned i) const { store8 (y, i, combine (load8 (a, i), load8 (b, i), Sum ())); }
};

/* With a bias of `cols8` vectors. */
template <typename F> struct WithBias {
  const half *x, *bias;
  half *y;
  unsigned cols8;
  __device__ void operator() (unsigned i) const
  {
    store8 (y, i, combine (load8 (x, i), load8 (bias, i % cols8), F ()));
  }
};

struct BiasGeluBwd {
  const half *dy, *x, *bias;
  half *dx;
  unsigned cols8;
  __device__ void operator() (unsigned i) const
  {
    Half8 a = load8 (x, i), b = load8 (bias, i % cols8), g = load8 (dy, i), y;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float2 u = get (a, j), v = get (b, j), w = get (g, j);
      y.pair[j] = __floats2half2_rn (w.x * GeluGradient () (u.x, v.x), w.y * GeluGradient () (u.y, v.y));
    }
    store8 (dx, i, y);
  }
};

struct Gather {
  const half *table;
  const int *ids;
  half *y;
  unsigned cols8;
  __device__ void operator() (unsigned i) const
  {
    unsigned row = i / cols8, col = i % cols8;
    store8 (y, i, load8 (table, (size_t) ids[row] * cols8 + col));
  }
};

}

void
copy (cudaStream_t stream, const half *x, half *y, size_t n)
{
  map (stream, n / 8, Copy { x, y });
}

void
add (cudaStream_t stream, const half *a, const half *b, half *y, size_t n)
{
  map (stream, n / 8, Add { a, b, y });
}

void
add_in_place (cudaStream_t stream, half *a, const half *b, size_t n)
{
  map (stream, n / 8, Add { a, b, a });
}

void
bias_add (cudaStream_t stream, const half *x, const half *bias, half *y, size_t rows, size_t cols)
{
  map (stream, rows * cols / 8, WithBias<Sum> { x, bias, y, (unsigned) (cols / 8) });
}

void
bias_gelu (cudaStream_t stream, const half *x, const half *bias, half *y, size_t rows, size_t cols)
{
  map (stream, rows * cols / 8, WithBias<Gelu> { x, bias, y, (unsigned) (cols / 8) });
}

void
bias_gelu_bwd (cudaStream_t stream, const half *dy, const half *x, const half *bias, half *dx, size_t rows, size_t cols)
{
  map (stream, rows * cols / 8, BiasGeluBwd { dy, x, bias, dx, (unsigned) (cols / 8) });
}

void
gather (cudaStream_t stream, const half *table, const int *ids, half *y, size_t rows, size_t cols)
{
  map (stream, rows * cols / 8, Gather { table, ids, y, (unsigned) (cols / 8) });
}

/* ---- dropout ---- */

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

/* ---- optimizers ---- */

namespace {

__device__ float4
load4 (const float *x, size_t i)
{
  return reinterpret_cast<const float4 *> (x)[i];
}

__device__ void
store4 (float *x, size_t i, float4 v)
{
  reinterpret_cast<float4 *> (x)[i] = v;
}

/* Kingma and Ba (2015) with decoupled decay (Loshchilov and Hutter 2019). */
struct Adam {
  const float *grad;
  float *weight, *m, *v;
  AdamStep step;
  float correction1, correction2; /* 1 - beta^step */

  __device__ void update (float g, float *w, float *m1, float *m2) const
  {
    *m1 = step.beta1 * *m1 + (1 - step.beta1) * g;
    *m2 = step.beta2 * *m2 + (1 - step.beta2) * g * g;
    float direction = (*m1 / correction1) / (sqrtf (*m2 / correction2) + step.epsilon);
    *w -= step.rate * (direction + step.decay * *w);
  }

  __device__ void operator() (unsigned i) const
  {
    float4 g = load4 (grad, i), w = load4 (weight, i), m1 = load4 (m, i), m2 = load4 (v, i);
    update (g.x, &w.x, &m1.x, &m2.x);
    update (g.y, &w.y, &m1.y, &m2.y);
    update (g.z, &w.z, &m1.z, &m2.z);
    update (g.w, &w.w, &m1.w, &m2.w);
    store4 (weight, i, w);
    store4 (m, i, m1);
    store4 (v, i, m2);
  }
};

struct HalfToFloat {
  const half *x;
  float *y;
  __device__ void operator() (unsigned i) const
  {
    Half8 h = load8 (x, i);
    float2 a = get (h, 0), b = get (h, 1), c = get (h, 2), d = get (h, 3);
    store4 (y, 2 * (size_t) i, make_float4 (a.x, a.y, b.x, b.y));
    store4 (y, 2 * (size_t) i + 1, make_float4 (c.x, c.y, d.x, d.y));
  }
};

struct FloatToHalf {
  const float *x;
  half *y;
  __device__ void operator() (unsigned i) const
  {
    float4 a = load4 (x, 2 * (size_t) i), b = load4 (x, 2 * (size_t) i + 1);
    store8 (y, i, Half8 { { __floats2half2_rn (a.x, a.y), __floats2half2_rn (a.z, a.w),
                            __floats2half2_rn (b.x, b.y), __floats2half2_rn (b.z, b.w) } });
  }
};

__device__ float4
scaled (float4 v, float factor)
{
  return make_float4 (v.x * factor, v.y * factor, v.z * factor, v.w * factor);
}

struct Scale {
  float *x, factor;
  __device__ void operator() (unsigned i) const { store4 (x, i, scaled (load4 (x, i), factor)); }
};

struct Unscale {
  float *x, factor;
  int *found_inf;
  __device__ void operator() (unsigned i) const
  {
    float4 v = load4 (x, i);
    if (!isfinite (v.x) || !isfinite (v.y) || !isfinite (v.z) || !isfinite (v.w))
      *found_inf = 1;
    store4 (x, i, scaled (v, factor));
  }
};

}

void
adam (cudaStream_t stream, const float *grad, float *weight, float *m, float *v, size_t n, const AdamStep &step)
{
  float correction1 = 1 - powf (step.beta1, (float) step.step), correction2 = 1 - powf (step.beta2, (float) step.step);
  map (stream, n / 4, Adam { grad, weight, m, v, step, correction1, correction2 });
}

void
half_to_float (cudaStream_t stream, const half *x, float *y, size_t n)
{
  map (stream, n / 8, HalfToFloat { x, y });
}

void
float_to_half (cudaStream_t stream, const float *x, half *y, size_t n)
{
  map (stream, n / 8, FloatToHalf { x, y });
}

void
scale_in_place (cudaStream_t stream, float *x, size_t n, float factor)
{
  map (stream, n / 4, Scale { x, factor });
}

void
unscale (cudaStream_t stream, float *x, size_t n, float factor, int *found_inf)
{
  map (stream, n / 4, Unscale { x, factor, found_inf });
}

/* ---- random numbers ---- */

template <typename T> static __device__ T convert (float x);
template <> __device__ half convert<half> (float x) { return __float2half (x); }
template <> __device__ __nv_bfloat16 convert<__nv_bfloat16> (float x) { return __float2bfloat16 (x); }
template <> __device__ float convert<float> (float x) { return x; }
template <> __device__ __nv_fp8_e4m3 convert<__nv_fp8_e4m3> (float x) { return __nv_fp8_e4m3 (x); }

namespace {

template <typename T> struct FillNormal {
  T *x;
  size_t n;
  float deviation;
  uint64_t seed;
  __device__ void operator() (unsigned i) const
  {
    curandStatePhilox4_32_10_t state;
    curand_init (seed, i, 0, &state);
    float4 v = curand_normal4 (&state);
    float values[4] = { v.x, v.y, v.z, v.w };
    for (int j = 0; j < 4 && 4 * (size_t) i + j < n; j++)
      x[4 * (size_t) i + j] = convert<T> (deviation * values[j]);
  }
};

struct FillIds {
  int *ids;
  int n_words;
  uint64_t seed;
  __device__ void operator() (unsigned i) const
  {
    curandStatePhilox4_32_10_t state;
    curand_init (seed, i, 0, &state);
    ids[i] = (int) (curand (&state) % (unsigned) n_words);
  }
};

}

template <typename T> static void
fill (cudaStream_t stream, T *x, size_t n, float deviation, uint64_t seed)
{
  if (n > 0)
    map (stream, (n + 3) / 4, FillNormal<T> { x, n, deviation, seed });
}

void
fill_normal (cudaStream_t stream, half *x, size_t n, float deviation, uint64_t seed)
{
  fill (stream, x, n, deviation, seed);
}

void
fill_normal (cudaStream_t stream, __nv_bfloat16 *x, size_t n, float deviation, uint64_t seed)
{
  fill (stream, x, n, deviation, seed);
}

void
fill_normal (cudaStream_t stream, float *x, size_t n, float deviation, uint64_t seed)
{
  fill (stream, x, n, deviation, seed);
}

void
fill_normal (cudaStream_t stream, __nv_fp8_e4m3 *x, size_t n, float deviation, uint64_t seed)
{
  fill (stream, x, n, deviation, seed);
}

void
fill_ids (cudaStream_t stream, int *ids, size_t n, int n_words, uint64_t seed)
{
  map (stream, n, FillIds { ids, n_words, seed });
}

/* ---- a flush of the L2 ---- */

/* The store never happens, but the compiler cannot know. */
static __global__ void
read_kernel (const uint4 *data, size_t n, unsigned *sink)
{
  unsigned folded = 0;
  for (size_t i = blockIdx.x * (size_t) blockDim.x + threadIdx.x; i < n; i += (size_t) gridDim.x * blockDim.x) {
    uint4 v = data[i];
    folded |= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (folded == 1)
    *sink = folded;
}

void
read_all (cudaStream_t stream, const unsigned *x, size_t n, int n_blocks)
{
  read_kernel<<<n_blocks, 256, 0, stream>>> ((const uint4 *) x, n / 4, (unsigned *) x);
  KB_CHECK_LAUNCH ();
}

cudaError_t
find_code ()
{
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes (&attributes, read_kernel);
}

}
