/* data/jobs/read_model.h — models: files of ours, those of others by their names and their config.json. */
#ifndef LS_DATA_JOBS_READ_MODEL_H
#define LS_DATA_JOBS_READ_MODEL_H

#include "base/diag.h"
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

/* --- published models by the names that programs and hubs give them: models/names/published.json --- */

/* { "schema": "lockstep.model-names/1", "name": "published", "source": "...", "models": [
 *       { "names": ["llama3/8B", "meta-llama/Llama-3.1-8B"], "model": "llama3.1-8b" },
 *       { "names": ["gpt2"], "model": { a file of a model } } ] } */

extern const LsField ls_model_names_fields[];

/* The model of a name, in which capital letters are as small ones. On success the caller clears *ret_model;
 * false: nobody has that name, and *ret_model is untouched. */
bool ls_model_of_name (const char *name, LsModel *ret_model);

/* How many names a file has, each of one model that is without mistakes; 0: diagnostics. */
guint ls_model_names_check (const LsJsonDoc *doc, LsDiagList *diags);

/* The config.json of a Hugging Face model, where it describes a decoder of a type that
 * models/types/huggingface.json has; of a multimodal model, the part that reads text. */

/* Defaults of keys that a file leaves out are those of the configuration classes
 * of Transformers (src/transformers/models/FAMILY/configuration_FAMILY.py). The
 * training length is not in such files: seq becomes the longest position, with a
 * note. Encoders and layers that a model cannot have are refused. */

/* Whether the document says that it is one. */
bool ls_is_hf_config (const LsJsonDoc *doc);

/* As ls_model_read(). The model is named after the file, or after its folder if
 * the file is called config.json. */
bool ls_model_read_hf (const LsJsonDoc *doc, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags);

/* Of lockstep.model-types/1, which models/types/huggingface.json is. */
const LsField *ls_model_types_fields (void);
/* Such a file with all that it says of each type, which are counted; 0: diagnostics. */
guint ls_model_types_check (const LsJsonDoc *doc, LsDiagList *diags);

/* Takes out the note about seq, once the training length is known from elsewhere. */
void ls_model_notes_drop_length (GPtrArray *notes);

#endif
