/* data/launch/litgpt/litgpt_rules.h — jobs of LitGPT, of a configuration and of a command line (private to
 * launch/). */
#ifndef LS_DATA_LAUNCH_LITGPT_RULES_H
#define LS_DATA_LAUNCH_LITGPT_RULES_H

#include "data/launch/option_table.h"

/* What `litgpt NAME` runs, and what it takes where nothing is said: arguments of setup() in
 * litgpt/pretrain.py and litgpt/finetune. */
typedef struct {
  const char *name;
  const char *model;   /* its argument that says which model, which a word without an option is too */
  const char *refused; /* why it is not simulated; NULL: it is */
  const char *sharded, *whole, *mixed; /* profiles: on several GPUs, on one, on one with mixed precision */
  const char *dp_kind;                 /* on several GPUs                     */
  guint global_batch, micro_batch, devices; /* 0: all GPUs of a node          */
  bool is_within_node;                      /* shards are of a node           */
  bool reduces_as_wide;                     /* mixed precision reduces gradients in fp32          */
  bool recomputes;                          /* each layer, on several GPUs                        */
  bool trains_whole_sequences, has_adapters;
} LitgptCommand;

extern const OptionTable litgpt_options;

/* By its name; NULL: it is none of training. */
const LitgptCommand *litgpt_command (const char *name);
/* By the options of a configuration. */
const LitgptCommand *litgpt_command_of (const cJSON *tree);

/* What a configuration of its Config says (litgpt/config.py), under "model_config.". */
void litgpt_set_dimensions (LaunchJob *job);

/* Takes the tree. False: with a diagnostic. */
bool litgpt_read (cJSON *tree, const LitgptCommand *command, const ImportFiles *files, LsImport *import,
                  LsDiagList *diags);

#endif
