/* data/measured/read_residuals.h — topologies/calib/residuals.json: what published runs measured over
 * what was predicted for them. `lockstep validate CASES.csv --residuals FILE.json` writes it. */
#ifndef LS_DATA_MEASURED_READ_RESIDUALS_H
#define LS_DATA_MEASURED_READ_RESIDUALS_H

#include "analysis/interval.h"
#include "data/text/field.h"

extern const LsField ls_residuals_fields[];

/* By name or path; NULL and diagnostics (LS_ERROR_INPUT). Free with ls_residuals_free(). */
LsResiduals *ls_residuals_load (const char *name, LsDiagList *diags);
LsResiduals *ls_residuals_read (const LsJsonDoc *doc, LsDiagList *diags);

/* Whether there is a file of that name. */
bool ls_residuals_exist (const char *name);

#endif
