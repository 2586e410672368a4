/* data/launch/torchtitan_options.h — options of torchtitan and what they are in our files, by the sections of
 * its TOML (private to data/). Names and rules as in torchtitan/config/job_config.py of January 2026
 * (pytorch/torchtitan@6408426b6), and of releases since May 2024 where they differ. Configurations in Python,
 * which came in February 2026, are not read. */
#ifndef LS_DATA_LAUNCH_TORCHTITAN_OPTIONS_H
#define LS_DATA_LAUNCH_TORCHTITAN_OPTIONS_H

#include "data/launch/option_table.h"

extern const OptionTable torchtitan_options;

/* PyTorch's name of a schedule of ours, and the other way round; NULL: there is none. Several of its names
 * may be one of ours. */
const char *torchtitan_schedule (const char *ours);
const char *torchtitan_schedule_ours (const char *its);
/* Whether a stage has one chunk with it. */
bool torchtitan_is_single (const char *ours);

#endif
