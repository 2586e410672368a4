/* data/inspect.h — what does this file hold, and is it right? */
#ifndef LS_DATA_INSPECT_H
#define LS_DATA_INSPECT_H

#include "base/diag.h"
#include "data/datadir.h"
#include "data/text/json_out.h"

typedef enum {
  LS_FILE_MODEL, /* ours, or a Hugging Face config.json */
  LS_FILE_MODEL_NAMES,
  LS_FILE_MODEL_TYPES,
  LS_FILE_CLUSTER,
  LS_FILE_GPU,
  LS_FILE_CALIBRATION,
  LS_FILE_ACCESS,
  LS_FILE_NCCL,
  LS_FILE_NCCL_TABLES,
  LS_FILE_RESIDUALS,
  LS_FILE_STRATEGY,
  LS_FILE_RANGES,
  LS_FILE_JOBS,
  LS_FILE_SOFTWARE,
  LS_FILE_KERNELS,
  LS_FILE_PROGRAM,
  LS_FILE_OPTIMIZER,
  LS_FILE_PLACEMENT,
  LS_FILE_RELIABILITY,
  LS_FILE_SCALING,
  LS_FILE_JITTER,
  LS_FILE_TRACE,
} LsFileKind;

/* Reads a file of the kind that its "schema" names, a Hugging Face model if it has none, or a topology file
 * of NCCL (*.xml), with all checks, also whether a cluster can be built. Returns what it holds in a line
 * ("model, 96 layers, 174.6e9 parameters"), newly allocated, or NULL with located diagnostics. */
char *ls_inspect_file (const char *path, LsFileKind *ret_kind, LsDiagList *diags);

/* The kinds of files of ours, and what each may hold, as JSON Schema by the tables that read them
 * (data/text/field.h): file_schemas.c. */

/* As the "schema" of a file has it: "model" of "lockstep.model/1". Static; NULL behind the last. */
const char *ls_file_schema_kind (guint i);
/* What it is, in words; static. */
const char *ls_file_schema_meaning (guint i);
/* The members of its schema, whose braces the caller writes. */
void ls_file_schema_write (guint i, LsJsonOut *w);

#endif
