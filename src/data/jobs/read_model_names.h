/* data/jobs/read_model_names.h — published models by the names that programs and hubs give them:
 * models/names/published.json.
 *
 *     { "schema": "lockstep.model-names/1", "name": "published", "source": "...", "models": [
 *       { "names": ["llama3/8B", "meta-llama/Llama-3.1-8B"], "model": "llama3.1-8b" },
 *       { "names": ["gpt2"], "model": { a file of a model } } ] } */
#ifndef LS_DATA_JOBS_READ_MODEL_NAMES_H
#define LS_DATA_JOBS_READ_MODEL_NAMES_H

#include "base/diag.h"
#include "data/text/field.h"
#include "model/model.h"

extern const LsField ls_model_names_fields[];

/* The model of a name, in which capital letters are as small ones. On success the caller clears *ret_model;
 * false: nobody has that name, and *ret_model is untouched. */
bool ls_model_of_name (const char *name, LsModel *ret_model);

/* How many names a file has, each of one model that is without mistakes; 0: diagnostics. */
guint ls_model_names_check (const LsJsonDoc *doc, LsDiagList *diags);

#endif
