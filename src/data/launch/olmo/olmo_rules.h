/* data/launch/olmo/olmo_rules.h — what options of OLMo mean together (private to olmo/). Names, defaults and
 * rules are those of olmo/config.py, olmo/model.py, olmo/train.py and scripts/train.py of allenai/OLMo
 * (59a53e3f, September 2025). */
#ifndef LS_DATA_LAUNCH_OLMO_OLMO_RULES_H
#define LS_DATA_LAUNCH_OLMO_OLMO_RULES_H

#include "data/launch/option_table.h"

typedef struct {
  LaunchJob job;
  bool is_compiled, has_wandb; /* these sections are there */
  guint64 of_node;             /* GPUs of a node; 0: not known */
} Olmo;

/* The keys of the model. */
void olmo_set_model (LaunchJob *job);
/* Those of the strategy, once the model's are set. */
void olmo_set_strategy (const Olmo *o);

#endif
