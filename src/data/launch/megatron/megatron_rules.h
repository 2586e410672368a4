/* data/launch/megatron/megatron_rules.h — what options of Megatron-LM mean together, and what they are where
 * they are not given (private to launch/). */
#ifndef LS_DATA_LAUNCH_MEGATRON_RULES_H
#define LS_DATA_LAUNCH_MEGATRON_RULES_H

#include "data/launch/option_table.h"

/* Reads all options: job->table is set by it. */
void megatron_read (LaunchJob *job);

/* Of it: */
void megatron_model (LaunchJob *job);
void megatron_strategy (LaunchJob *job);
void megatron_kernels (LaunchJob *job);

#endif
