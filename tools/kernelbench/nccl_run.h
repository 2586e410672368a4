/* tools/kernelbench/nccl_run.h — collectives over the GPUs of this machine. */
#ifndef LS_KERNELBENCH_NCCL_RUN_H
#define LS_KERNELBENCH_NCCL_RUN_H

#include <cstddef>

namespace kb {

/* Prints the output of nccl-tests for all-reduce, all-gather and reduce-scatter, one behind the
 * other, up to that size. Returns 1 if a result was wrong. Throws Failure: fewer than two GPUs, no libnccl, a call
 * that failed. */
int run_nccl (size_t most_bytes);

}

#endif
