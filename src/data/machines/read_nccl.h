/* data/machines/read_nccl.h — NCCL on one accelerator, a file of topologies/calib. */
#ifndef LS_DATA_MACHINES_READ_NCCL_H
#define LS_DATA_MACHINES_READ_NCCL_H

#include "data/text/field.h"
#include "network/coll.h"

extern const LsField ls_nccl_fields[];

/* By name or path. On success the caller clears *ret_nccl; on failure it is
 * untouched and diags says why (LS_ERROR_INPUT). */
bool ls_nccl_load (const char *name, LsNccl *ret_nccl, LsDiagList *diags);
bool ls_nccl_read (const LsJsonDoc *doc, LsNccl *ret_nccl, LsDiagList *diags);

#endif
