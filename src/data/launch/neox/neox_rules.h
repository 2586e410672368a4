/* data/launch/neox/neox_rules.h — what keys of gpt-neox mean together (private to launch/). */
#ifndef LS_DATA_LAUNCH_NEOX_NEOX_RULES_H
#define LS_DATA_LAUNCH_NEOX_NEOX_RULES_H

#include "data/launch/option_table.h"

/* The model, behind option_read_all(). pattern: the letters of attention_config; NULL: it is another. */
void neox_model (LaunchJob *job, const char *pattern);

#endif
