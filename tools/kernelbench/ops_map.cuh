/* tools/kernelbench/ops_map.cuh — a functor for every group of elements: the shape
 * of all elementwise kernels. One thread per group, as the vectorised elementwise
 * kernels of the frameworks are launched. */
#ifndef LS_KERNELBENCH_OPS_MAP_CUH
#define LS_KERNELBENCH_OPS_MAP_CUH

#include "bench.h"
#include "ops.h"

namespace kb {

constexpr int map_threads = 256;

/* Eight halves, moved by one 16-byte access. */
struct alignas (16) Half8 {
  half2 pair[4];
};

__device__ inline float2
get (const Half8 &v, int i)
{
  return __half22float2 (v.pair[i]);
}

__device__ inline Half8
load8 (const half *x, size_t i)
{
  return reinterpret_cast<const Half8 *> (x)[i];
}

__device__ inline void
store8 (half *x, size_t i, const Half8 &v)
{
  reinterpret_cast<Half8 *> (x)[i] = v;
}

template <typename F> __global__ void
map_kernel (F f, unsigned n)
{
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    f (i);
}

/* f (i) for i from 0 to n - 1. */
template <typename F> void
map (cudaStream_t stream, size_t n, const F &f)
{
  map_kernel<<<(unsigned) ((n + map_threads - 1) / map_threads), map_threads, 0, stream>>> (f, (unsigned) n);
  KB_CHECK_LAUNCH ();
}

}

#endif
