/* data/launch/nemo/nemo_rules.h — options of NeMo 1, NeMo 2 and Megatron-Bridge, and which of Megatron-LM
 * they are (private to launch/).
 *
 * All three build Megatron-Core's configurations. A row of the table with a key is an OPTION_RULE; its key
 * is the name of Megatron-LM's option of the same value. Names of NeMo 1 are as in
 * examples/nlp/language_modeling/conf of NVIDIA/NeMo 1.23 and 2.0; of the others as in the dataclasses of
 * megatron/core (transformer_config.py, model_parallel_config.py, distributed_data_parallel_config.py; core
 * 0.15), and in src/megatron/bridge/training of NVIDIA-NeMo/Megatron-Bridge (067f987df, August 2026).
 */
#ifndef LS_DATA_LAUNCH_NEMO_NEMO_RULES_H
#define LS_DATA_LAUNCH_NEMO_NEMO_RULES_H

#include "data/launch/option_table.h"

extern const OptionTable nemo_options;

typedef struct {
  LaunchJob job;         /* by NeMo's options */
  LaunchWords *megatron; /* what they are     */
  bool is_nemo1, is_bridge;
  bool is_whole;                /* of Megatron-Bridge: a recipe, not what changes one */
  char *target;                 /* the class of its model; NULL: none is named */
  const char *named, *software; /* said by who reads a tree; NULL: not */
} Nemo;

/* nemo_kind.c: whether a model is one of Lockstep, and learns the next token; false: with a diagnostic. */
bool nemo_check_kind (const cJSON *tree, const char *path, LsDiagList *diags);
bool nemo_has_sides (const cJSON *tree); /* T5, which says each side by itself */

/* Reads a configuration, which is freed. Where it has no model, that of the name `named`, and in place of the
 * software that follows from it the one given, unless they are NULL; program NULL: by what it has. */
bool nemo_read_tree (cJSON *tree, const ImportFile *file, const char *program, const char *named,
                     const char *software, LsImport *import, LsDiagList *diags);

/* The same of a recipe of Megatron-Bridge; is_whole: nothing stands in another one that is not here. */
bool nemo_read_recipe (cJSON *tree, const ImportFile *file, const char *named, bool is_whole,
                       LsImport *import, LsDiagList *diags);

/* The configuration that a recipe in Python is, of the files from `first` on; NULL: a diagnostic. *ret_model:
 * as nemo_read_recipe() takes it; the caller frees both. */
cJSON *bridge_recipe (const ImportFiles *files, guint first, const char *recipe, char **ret_model,
                      bool *ret_is_whole, LsImport *import, LsDiagList *diags);

/* The software of the release whose checkout the file is in, by its package_info.py; NULL: it is in none. The
 * caller frees it. */
char *bridge_software (const char *path, LsImport *import);

/* "bf16_with_mxfp8_mixed" of "fp8_mx", as scripts and recipes for performance call it; static; NULL: it is
 * none of theirs. */
const char *bridge_precision_of (const char *name);

/* "bridge/qwen3_8b" of "qwen3_8b_pretrain_8gpu_h100_bf16_config"; the caller frees it. */
char *bridge_model_of (const char *recipe);

/* Of NeMo's options: */
const char *nemo_text (const Nemo *n, const char *name); /* NULL: not given, or with a hole */
bool nemo_is_on (const Nemo *n, const char *name);
bool nemo_is_off (const Nemo *n, const char *name);

/* Adds an option of Megatron-LM; value NULL: it is on. */
void nemo_say (Nemo *n, const char *megatron, const char *value);

/* Says in options of Megatron-LM what no table tells. */
void nemo_say_model (Nemo *n);
void nemo_say_strategy (Nemo *n);
void nemo_say_precision (Nemo *n); /* a part of that */

/* Sets what no option of Megatron-LM is. */
void nemo_set_margin (Nemo *n);
void nemo_set_amax_reduction (Nemo *n);
void nemo_set_offload (Nemo *n);

#endif
