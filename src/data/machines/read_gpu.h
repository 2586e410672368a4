/* data/machines/read_gpu.h — topologies/gpu/NAME.json: an accelerator. */
#ifndef LS_DATA_MACHINES_READ_GPU_H
#define LS_DATA_MACHINES_READ_GPU_H

#include "cluster/gpu.h"
#include "data/text/field.h"

extern const LsField ls_gpu_fields[];

/* Of an LsKnown; what one of its keys alone cannot show. `at` is where it stands, NULL: nowhere. */
extern const LsField ls_known_fields[];
bool ls_known_check (const LsJsonDoc *doc, const cJSON *at, const LsKnown *known, LsDiagList *diags);

/* By name or path. On success the caller clears *ret_gpu; on failure it is
 * untouched and diags says why (LS_ERROR_INPUT). */
bool ls_gpu_load (const char *name, LsGpu *ret_gpu, LsDiagList *diags);
bool ls_gpu_read (const LsJsonDoc *doc, LsGpu *ret_gpu, LsDiagList *diags);

/* The same of an object inside a document, which needs no "schema", "name" and "source" there: the first says
 * nothing, and the others are as_name and as_source then. */
bool ls_gpu_read_part (const LsJsonDoc *doc, const cJSON *object, const char *as_name, const char *as_source,
                       LsGpu *ret_gpu, LsDiagList *diags);

#endif
