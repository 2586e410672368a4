/* io/read_gpu.h — topologies/gpu/NAME.json: an accelerator. */
#ifndef LS_IO_READ_GPU_H
#define LS_IO_READ_GPU_H

#include "cluster/gpu.h"
#include "io/field.h"

extern const LsField ls_gpu_fields[];

/* By name or path. On success the caller clears *ret_gpu; on failure it is
 * untouched and diags says why (LS_ERROR_INPUT). */
bool ls_gpu_load (const char *name, LsGpu *ret_gpu, LsDiagList *diags);
bool ls_gpu_read (const LsJsonDoc *doc, LsGpu *ret_gpu, LsDiagList *diags);

#endif
