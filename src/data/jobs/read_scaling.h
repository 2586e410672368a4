/* data/jobs/read_scaling.h — models/scaling/NAME.json: laws of loss and batch (model/scaling.h). */
#ifndef LS_DATA_JOBS_READ_SCALING_H
#define LS_DATA_JOBS_READ_SCALING_H

#include "data/text/field.h"
#include "model/scaling.h"

extern const LsField ls_scaling_fields[];

/* By name or path. On success the caller clears *ret_law; on failure it is untouched and diags says why
 * (LS_ERROR_INPUT): a term with two forms, tokens and steps, steps without a critical batch of the loss, or
 * nothing of either. */
bool ls_scaling_load (const char *name, LsScalingLaw *ret_law, LsDiagList *diags);
bool ls_scaling_read (const LsJsonDoc *doc, LsScalingLaw *ret_law, LsDiagList *diags);

#endif
