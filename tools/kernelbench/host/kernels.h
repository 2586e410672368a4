/* tools/kernelbench/host/kernels.h — plain loops that stand for the kernels of a GPU.
 *
 * They prove the route from a measurement to a verdict, not a GPU: one thread, no care for
 * caches beyond what the order of loops gives. */
#ifndef LS_KERNELBENCH_HOST_KERNELS_H
#define LS_KERNELBENCH_HOST_KERNELS_H

#include <cstddef>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace kb {

/* C[m,n] = alpha A[m,k] B[k,n], batched, row-major; bf16 times bf16, added up in fp32. "TN": B is
 * stored transposed, "NT": A is; "NN": neither. C is bf16 or, to add to, fp32. */
struct HostGemm {
  size_t m, n, k, batch;
  const char *layout;
  bool accumulates;
  float alpha;
};
void host_gemm (const HostGemm &g, const __nv_bfloat16 *a, const __nv_bfloat16 *b, void *c);

/* Reads n_read bytes and writes n_write, in multiples of 16. */
void host_stream (const void *from, size_t n_read, void *to, size_t n_write, int *flag);

}

#endif
