/* data/launch/megatron/megatron_options.h — options of Megatron-LM and what they are in our files (private to
 * launch/). Names and rules as in megatron/training/arguments.py of Megatron-LM (main, autumn 2025, core
 * 0.15), and of releases since 2020 where they differ. */
#ifndef LS_DATA_LAUNCH_MEGATRON_OPTIONS_H
#define LS_DATA_LAUNCH_MEGATRON_OPTIONS_H

#include "data/launch/option_table.h"

extern const OptionTable megatron_options;

#endif
