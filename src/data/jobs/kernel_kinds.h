/* data/jobs/kernel_kinds.h — kinds of kernels as files and flags name them. */
#ifndef LS_DATA_JOBS_KERNEL_KINDS_H
#define LS_DATA_JOBS_KERNEL_KINDS_H

#include "data/text/field.h"
#include "model/kernel.h"

/* By LsKernelKind, then { NULL }. */
extern const LsEnumName ls_kernel_kind_names[LS_N_KERNEL_KINDS + 1];

extern const LsEnumName ls_access_names[LS_N_ACCESSES + 1]; /* by LsAccess */

/* Those that only stream: neither GEMM nor attention. */
#define LS_STREAM_KIND_NAMES (ls_kernel_kind_names + LS_KERNEL_SOFTMAX)

#endif
