/* data/launch/neox_options.h — options of gpt-neox and what they are in our files (private to launch/). Names
 * as in megatron/neox_arguments of EleutherAI/gpt-neox (ea7aefd8, May 2026), and of releases since 2021. */
#ifndef LS_DATA_LAUNCH_NEOX_OPTIONS_H
#define LS_DATA_LAUNCH_NEOX_OPTIONS_H

#include "data/launch/option_table.h"

extern const OptionTable neox_options;

#endif
