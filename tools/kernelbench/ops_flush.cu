#include "bench.h"

namespace kb {

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
