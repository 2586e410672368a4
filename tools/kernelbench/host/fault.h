/* tools/kernelbench/host/fault.h — what a test may make of the host's runtime: calls that fail, devices, a small cache.
 *
 * runtime.cpp: nothing. tests/injected_fault.cpp, where it is linked: as the environment says. */
#ifndef LS_KERNELBENCH_HOST_FAULT_H
#define LS_KERNELBENCH_HOST_FAULT_H

#include <cuda_runtime.h>

namespace kb {

/* What a call of that name returns before it does anything. */
cudaError_t fault_of (const char *call);
/* How many devices there seem to be; all are the host. */
int device_count ();
/* Bytes of the last cache, of which four times are read before each isolated launch; 0: what the host has. */
long cache_bytes ();

}

#endif
