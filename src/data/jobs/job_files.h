/* data/jobs/job_files.h — files of models/ and strategies/: models, laws of loss, knobs of a run,
 * optimizers, lists of kernels. */
#ifndef LS_DATA_JOBS_JOB_FILES_H
#define LS_DATA_JOBS_JOB_FILES_H

#include "base/diag.h"
#include "data/datadir.h"
#include "data/text/field.h"
#include "model/kernel.h"
#include "model/model.h"
#include "model/optimizer_kind.h"
#include "model/recipe.h"
#include "model/scaling.h"
#include "strategy/strategy.h"

/* --- read_model.c: models of our own and of others, models/NAME.json --- */

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
 *       { "names": ["gpt2"], "decoder_of": ["a model that sees"], "model": { a file of a model } } ] } */

extern const LsField ls_model_names_fields[];

/* The model of a name, in which capital letters are as small ones; of one that also sees or hears the
 * decoder, which is told. On success the caller clears *ret_model; false: nobody has that name, and
 * *ret_model is untouched. */
bool ls_model_of_name (const char *name, LsModel *ret_model, bool *ret_is_decoder);
/* The other way round: the name "PREFIX/..." of a published model that is the same but for its sequences,
 * newly allocated; NULL: there is none. prefixes end in a NULL. */
char *ls_model_name_of (const LsModel *model, const char *const *prefixes);

/* The published model that lies in a folder, by its last two parts, a cache of the hub, or its last part
 * where one model alone is called so; newly allocated; NULL: there is none. */
char *ls_model_name_of_path (const char *path);

/* What ls_data_load() takes for a model, newly allocated: a file of that name or path, else the published
 * model that is called so, with the changes behind the name. What is neither is handed back as it is; NULL
 * and a diagnostic (LS_ERROR_INPUT): it looks like a name of a hub (OWNER/NAME) that is not known. */
char *ls_model_file_of (const char *name, LsDiagList *diags);

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

/* The file with changes (as ls_override_find() finds them) made: each where its key is read, in the part that
 * reads text or in the spelling that the file has; "layers", "hidden", "heads", "kv_heads", "vocab" and "seq"
 * of a model of ours stand for its own, but with an encoder. NULL and a diagnostic (LS_ERROR_INPUT): nobody
 * reads a key. Takes doc. */
LsJsonDoc *ls_hf_change (LsJsonDoc *doc, const char *changes, LsDiagList *diags);

/* An adapter_config.json of PEFT, which is no model: true, with a diagnostic that names its knobs. */
bool ls_refuse_adapter (const LsJsonDoc *doc, LsDiagList *diags);

/* As ls_model_read(). The model is named after the file, or after its folder if
 * the file is called config.json. */
bool ls_model_read_hf (const LsJsonDoc *doc, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags);

/* Of lockstep.model-types/1, which models/types/huggingface.json is. */
const LsField *ls_model_types_fields (void);
/* Such a file with all that it says of each type, which are counted; 0: diagnostics. */
guint ls_model_types_check (const LsJsonDoc *doc, LsDiagList *diags);

/* Takes out the note about seq, once the training length is known from elsewhere; notes may be NULL. */
void ls_model_notes_drop_length (GPtrArray *notes);
#define LS_HF_SOURCE "Hugging Face configuration" /* begins the source of such a model */

/* --- read_model.c: laws of loss and batch (model/scaling.h), models/scaling/NAME.json --- */

/* LsScalingLaw. Refused is a term with two forms, tokens and steps, steps without a critical batch of the
 * loss, and nothing of either. */
extern const LsDataFile ls_scaling_file;
extern const LsField ls_scaling_fields[];

/* --- strategy_fields.c: the knobs of a run, strategies/NAME.json --- */

/* The same table sets them from flags: ls_field_set_text (ls_strategy_fields, s, "tp", "8", ...). */
extern const LsField ls_strategy_fields[];

/* A word of recompute_parts, from 0 on, as it is written. NULL: there are no more. */
const char *ls_recompute_part_at (guint i);

/* Keys that the file leaves out keep the defaults of ls_strategy_init(). On success the caller clears
 * *ret_strategy; on failure it is untouched and diags says why (LS_ERROR_INPUT). */
bool ls_strategy_read (const LsJsonDoc *doc, LsStrategy *ret_strategy, LsDiagList *diags);
/* Over `base`, which has the values of the keys that the file lacks; *ret_strategy: deep. said: NULL, or a
 * set to which the keys that it has are added (static strings). */
bool ls_strategy_read_over (const LsJsonDoc *doc, const LsStrategy *base, LsStrategy *ret_strategy,
                            GHashTable *said, LsDiagList *diags);

/* --- read_optimizers.c: all but Adam (model/optimizer_kind.h), strategies/optimizers/NAME.json --- */

extern const LsField ls_optimizer_fields[];

/* What --optimizer calls the one that is built in. */
bool ls_optimizer_is_adam (const char *name);

/* By name or path; NULL and diagnostics (LS_ERROR_INPUT) if the file is wrong: keys, a kernel that is
 * neither a stream nor a product, no part for all tensors. */
LsOptimizerKind *ls_optimizer_load (const char *name, LsDiagList *diags);
LsOptimizerKind *ls_optimizer_read (const LsJsonDoc *doc, LsDiagList *diags);

/* --- read_recipes.c: the kernels that software launches for an operator,
 *     strategies/kernels/NAME.json --- */

#define LS_BUILT_IN_KERNELS "built-in" /* what --kernels calls what no list names */

extern const LsField ls_recipes_fields[];
extern const LsEnumName ls_recipe_operator_names[]; /* by LsRecipeOperator */

/* NULL and diagnostics (LS_ERROR_INPUT) if the file is wrong: keys, expressions, sizes that the operator does
 * not have, kernels in the wrong place. */
LsRecipes *ls_recipes_read (const LsJsonDoc *doc, LsDiagList *diags);

/* --- lists by their names ------------------------------------------------------------------------ */

/* By name or path, or several joined by "+", of which a later one goes before those before it; NULL and
 * diagnostics if a file is wrong. */
LsRecipes *ls_recipes_load (const char *name, LsDiagList *diags);
GStrv ls_recipes_parts (const char *text); /* the names in it; the caller frees them */
/* All lists that are at hand, LsRecipes in the order of their names; made once, then static. Those whose
 * file is wrong are left out: `lockstep check` tells. */
const GPtrArray *ls_recipes_all (void);

/* --- kinds of kernels as files and flags name them ----------------------------------------------- */

extern const LsEnumName ls_attention_kernel_names[]; /* those that a job chooses from, then { NULL } */

/* Those that only stream: neither GEMM nor attention. */
#define LS_STREAM_KIND_NAMES (ls_kernel_kind_names + LS_KERNEL_SOFTMAX)

/* Whether the file that the value of a knob names can be read; else its mistakes (LS_ERROR_INPUT). key: of a
 * strategy. Values that are no files are not looked at. */
bool ls_value_file_check (const char *key, const char *text, LsDiagList *diags);

#endif
