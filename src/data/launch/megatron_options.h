/* data/launch/megatron_options.h — options of Megatron-LM and what they are in our files: one table
 * (private to launch/). Names and rules as in megatron/training/arguments.py of Megatron-LM (main, autumn
 * 2025, core 0.15), and of releases since 2020 where they differ. */
#ifndef LS_DATA_LAUNCH_MEGATRON_OPTIONS_H
#define LS_DATA_LAUNCH_MEGATRON_OPTIONS_H

#include <stdbool.h>

typedef enum {
  MEGATRON_MODEL,    /* its value is that of a key of the model    */
  MEGATRON_STRATEGY, /* of the strategy                            */
  MEGATRON_SWITCH,   /* is there or not: a key of the strategy, on */
  MEGATRON_RULE,     /* megatron_rules.c says what it means        */
  MEGATRON_IGNORED,  /* matters neither to time nor to memory      */
} MegatronKind;

typedef struct {
  const char *option; /* without dashes; with * at its end: all that begin so */
  MegatronKind kind;
  const char *key;
  /* the release of strategies/software that is the last to have it; NULL: it is there still */
  const char *until;
} MegatronOption;

/* NULL: it is not known. */
const MegatronOption *megatron_option (const char *name);

/* The option, without dashes, that says a key today; NULL: none does by its value alone. */
const char *megatron_option_of_model (const char *key);
const char *megatron_option_of_strategy (const char *key);

#endif
