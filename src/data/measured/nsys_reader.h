/* data/measured/nsys_reader.h — what Nsight Systems wrote of a run: `nsys export --type sqlite`. */
#ifndef LS_DATA_MEASURED_NSYS_READER_H
#define LS_DATA_MEASURED_NSYS_READER_H

#include "data/measured/read_kineto.h"

/* CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, demangledName)
 *     CUPTI_ACTIVITY_KIND_MEMCPY, _MEMSET     the same without a name; copyKind
 *     CUPTI_ACTIVITY_KIND_RUNTIME (start, end, correlationId, globalTid, nameId)
 *     CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (streamId, correlationId, ...)
 *     NVTX_EVENTS (start, end, text or textId, globalTid, jsonText or jsonTextId)
 *     StringIds (id, value), TARGET_INFO_GPU (id, name)
 *
 * Times are nanoseconds. Which columns there are differs by release: what is missing is done without, but
 * for start, end and stream of kernels. It becomes what a profile of torch.profiler does
 * (data/measured/read_kineto.h):
 *
 *     steps         NVTX ranges "ProfilerStep#N", "step N" or "iteration N", also with "_", "#", ":" or
 *                   nothing between
 *     collectives   of kernels of NCCL that were launched within a range of NCCL's own
 *     one device    of several that with the lowest number, of its first process; said as a note */

/* Whether the bytes begin as SQLite's do. */
bool ls_nsys_is (const void *bytes, size_t n);

/* By path; or, with bytes not NULL, n bytes in memory of that name. NULL, with diagnostics
 * (LS_ERROR_INPUT). */
LsKineto *ls_nsys_load (const char *path, const void *bytes, size_t n, LsDiagList *diags);

#endif
