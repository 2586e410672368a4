/* data/jobs/read_model.h — models/NAME.json, or the config.json of a Hugging Face model
 * (which is told by its "model_type" or "architectures"; see read_hf.h). */
#ifndef LS_DATA_JOBS_READ_MODEL_H
#define LS_DATA_JOBS_READ_MODEL_H

#include "data/text/field.h"
#include "model/model.h"

extern const LsField ls_model_fields[];

/* By name or path. notes (char *, owned by the array) takes what of a foreign file
 * was not understood or had to be assumed; NULL if nobody wants to know. On success
 * the caller clears *ret_model; on failure it is untouched and diags says why
 * (LS_ERROR_INPUT; LS_ERROR_UNSUPPORTED for models that are no decoders). */
bool ls_model_load (const char *name, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags);
/* Experts and latents: what may be left out is filled in, what does not fit is reported. */
bool ls_model_complete (const LsJsonDoc *doc, LsModel *m, LsDiagList *diags);
/* A model that is a part of another file, of any name. */
bool ls_model_read_part (const LsJsonDoc *doc, LsModel *ret_model, LsDiagList *diags);
bool ls_model_read (const LsJsonDoc *doc, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags);

#endif
