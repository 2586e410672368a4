/* data/launch/torchtune_options.h — the options of torchtune: which of them torchtitan has under another
 * name, which read_torchtune.c reads, which matter neither to time nor to memory (private to launch/). */
#ifndef LS_DATA_LAUNCH_TORCHTUNE_OPTIONS_H
#define LS_DATA_LAUNCH_TORCHTUNE_OPTIONS_H

#include "data/launch/option_table.h"

extern const OptionTable torchtune_options;

#endif
