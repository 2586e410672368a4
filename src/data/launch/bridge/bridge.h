/* data/launch/bridge/bridge.h — recipes of Megatron-Bridge in Python (private to launch/). */
#ifndef LS_DATA_LAUNCH_BRIDGE_BRIDGE_H
#define LS_DATA_LAUNCH_BRIDGE_BRIDGE_H

#include "data/launch/import_reader.h"

/* A recipe, or on top of one what changes it, by the map of NeMo. model: its name, or NULL; is_whole: nothing
 * stands in another recipe that is not here. It is freed; false: a diagnostic. */
bool bridge_read (cJSON *tree, const ImportFile *file, const char *model, bool is_whole, LsImport *import,
                  LsDiagList *diags);

/* The configuration that a recipe in Python is, of the files from `first` on; NULL: a diagnostic. *ret_model:
 * as bridge_read() takes it; the caller frees both. */
cJSON *bridge_recipe (const ImportFiles *files, guint first, const char *recipe, char **ret_model,
                      bool *ret_is_whole, LsImport *import, LsDiagList *diags);

/* "bf16_with_mxfp8_mixed" of "fp8_mx", as scripts and recipes for performance call it; static; NULL: it is
 * none of theirs. */
const char *bridge_precision_of (const char *name);

/* "bridge/qwen3_8b" of "qwen3_8b_pretrain_8gpu_h100_bf16_config"; the caller frees it. */
char *bridge_model_of (const char *recipe);

#endif
