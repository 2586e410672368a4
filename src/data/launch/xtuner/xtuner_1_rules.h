/* data/launch/xtuner/xtuner_1_rules.h — jobs of XTuner v1 (private to launch/). */
#ifndef LS_DATA_LAUNCH_XTUNER_1_RULES_H
#define LS_DATA_LAUNCH_XTUNER_1_RULES_H

#include "data/launch/launch_script.h"
#include "data/launch/option_table.h"

/* Members of its Trainer: "fsdp_cfg.ep_size". What a configuration is made by is "model_cfg.class". */
extern const OptionTable xtuner_1_options;
/* Arguments of its command line, in these. */
extern const OptionTable xtuner_1_arguments;

/* What is set in the environment of a job; an open value is one with a hole. */
typedef struct {
  const ImportFiles *files;
  GHashTable *variables; /* of the script; NULL: there is none */
  GPtrArray *asked;      /* char *: what was asked for and the script sets, "A=1" */
  GPtrArray *unset;      /* char *: what was asked for and is not set */
  char *ranks;           /* WORLD_SIZE, which torchrun sets; NULL: it is not known */
} Xtuner1Environment;

/* NULL: it is not set, which is noted. */
const char *xtuner_1_variable (const char *name, gpointer environment);

/* --- xtuner_1_model.c: once all options are read ---------------------------------------------------- */

void xtuner_1_model (LaunchJob *job);

/* --- xtuner_1_strategy.c: once the model is known --------------------------------------------------- */

void xtuner_1_strategy (LaunchJob *job, Xtuner1Environment *environment);

#endif
