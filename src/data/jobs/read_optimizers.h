/* data/jobs/read_optimizers.h — strategies/optimizers/NAME.json: optimizers that are not Adam
 * (model/optimizer_kind.h). */
#ifndef LS_DATA_JOBS_READ_OPTIMIZERS_H
#define LS_DATA_JOBS_READ_OPTIMIZERS_H

#include "data/text/field.h"
#include "model/optimizer_kind.h"

extern const LsField ls_optimizer_fields[];

/* What --optimizer calls the one that is built in. */
bool ls_optimizer_is_adam (const char *name);

/* By name or path; NULL and diagnostics (LS_ERROR_INPUT) if the file is wrong: keys, a kernel that is
 * neither a stream nor a product, no part for all tensors. */
LsOptimizerKind *ls_optimizer_load (const char *name, LsDiagList *diags);
LsOptimizerKind *ls_optimizer_read (const LsJsonDoc *doc, LsDiagList *diags);

#endif
