#include <curand_kernel.h>

#include "ops_map.cuh"

namespace kb {

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

}
