/* tools/kernelbench/host/fault.h — where calls of the host's runtime may be made to fail.
 *
 * no_fault.cpp: they do not. tests/injected_fault.cpp: as the environment says. */
#ifndef LS_KERNELBENCH_HOST_FAULT_H
#define LS_KERNELBENCH_HOST_FAULT_H

#include <cuda_runtime.h>

namespace kb {

/* What a call of that name returns before it does anything. */
cudaError_t fault_of (const char *call);
/* How many devices there seem to be; all are the host. */
int device_count ();

}

#endif
