/* tools/kernelbench/host/include/cuda_fp8.h — a name: the host's kernels compute in bf16. */
#ifndef LS_KERNELBENCH_HOST_CUDA_FP8_H
#define LS_KERNELBENCH_HOST_CUDA_FP8_H

struct __nv_fp8_e4m3;

#endif
