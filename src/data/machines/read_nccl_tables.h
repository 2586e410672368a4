/* data/machines/read_nccl_tables.h — topologies/nccl/NAME.json: NCCL's numbers for a generation of GPUs. */
#ifndef LS_DATA_MACHINES_READ_NCCL_TABLES_H
#define LS_DATA_MACHINES_READ_NCCL_TABLES_H

#include "data/text/field.h"
#include "network/nccl/tables.h"

extern const LsField ls_nccl_tables_fields[];

/* By name or path. On success the caller clears *ret_tables; on failure it is
 * untouched and diags says why (LS_ERROR_INPUT). */
bool ls_nccl_tables_load (const char *name, LsNcclTables *ret_tables, LsDiagList *diags);
bool ls_nccl_tables_read (const LsJsonDoc *doc, LsNcclTables *ret_tables, LsDiagList *diags);

/* Of all files that are found by name, that of the compute capability with this major number; the caller
 * clears it. False with diagnostics if a file cannot be read, or with *reterr_why, newly allocated, if none
 * has it: "expected 7x (v100) or 8x (a100-80g)", with the usual GPUs. */
bool ls_nccl_tables_find (uint32_t compute_capability, LsNcclTables *ret_tables, char **reterr_why,
                          LsDiagList *diags);

#endif
