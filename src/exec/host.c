/* exec/host.c — what issuing an op costs the host. */
#include "exec/run.h"

/* Kernel launch: PyTorch dispatch plus cudaLaunchKernel from a compiled or
 * Megatron-style eager layer; communication calls go through c10d and NCCL's
 * group launch; a synchronising call returns some microseconds after the device. */
void
ls_host_costs_default (LsHostCosts *ret_costs)
{
  *ret_costs = (LsHostCosts) {
    .cost = {
      [LS_HOST_LAUNCH] = 5 * LS_US,
      [LS_HOST_COMM] = 12 * LS_US,
      [LS_HOST_FREE] = 0,
      [LS_HOST_SYNC] = 10 * LS_US,
    },
    .source = "to be sourced",
  };
}
