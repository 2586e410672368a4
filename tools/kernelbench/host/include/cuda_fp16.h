/* tools/kernelbench/host/include/cuda_fp16.h — a name: the host's kernels compute in bf16. */
#ifndef LS_KERNELBENCH_HOST_CUDA_FP16_H
#define LS_KERNELBENCH_HOST_CUDA_FP16_H

struct half;
struct float2;

#endif
