/* tools/kernelbench/bench_groups.h — the groups of a GPU, and the checks of its kernels. */
#ifndef LS_KERNELBENCH_BENCH_GROUPS_H
#define LS_KERNELBENCH_BENCH_GROUPS_H

#include "bench.h"

namespace kb {

/* capability: 90 for 9.0. What a GPU cannot run is not checked. */
void check_streams (Checks &checks, cudaStream_t stream);
void check_operators (Checks &checks, cudaStream_t stream, int capability);
void check_gemm (Checks &checks, cudaStream_t stream, int capability);
void bench_host (Bench &bench);
void bench_streams (Bench &bench);
void bench_copies (Bench &bench);
void bench_operators (Bench &bench);
void bench_attention (Bench &bench);
void bench_gemm_isolated (Bench &bench);
void bench_gemm_batched (Bench &bench);
void bench_slowdown (Bench &bench);
void bench_context (Bench &bench);
void bench_gemm_sustained (Bench &bench);

}

#endif
