/* data/launch/torchtitan/torchtitan_rules.h — what options of torchtitan mean together, and what
 * they are where they are not given (private to launch/). */
#ifndef LS_DATA_LAUNCH_TORCHTITAN_TORCHTITAN_RULES_H
#define LS_DATA_LAUNCH_TORCHTITAN_TORCHTITAN_RULES_H

#include "data/launch/option_table.h"

/* Reads all options: job->table is set by it. False: with a diagnostic, for models that are no decoders. */
bool torchtitan_read (LaunchJob *job, LsDiagList *diags);

/* Of it. The first of an option's names, section.name, that is given: in [parallelism], [experimental] or
 * [training], as releases have had it. */
const char *torchtitan_text (const LaunchJob *job, const char *name);
void torchtitan_strategy (LaunchJob *job);

/* --- torchtitan_rules.c -------------------------------------------------------------------------- */

/* Options of torchtitan and what they are in our files, by the sections of its TOML. Names and rules as in
 * torchtitan/config/job_config.py of January 2026 (pytorch/torchtitan@6408426b6), and of releases since May
 * 2024 where they differ. Configurations in Python, which came in February 2026, are not read. */

extern const OptionTable torchtitan_options;

/* PyTorch's name of a schedule of ours, and the other way round; NULL: there is none. Several of its names
 * may be one of ours. */
const char *torchtitan_schedule (const char *ours);
const char *torchtitan_schedule_ours (const char *its);
/* Whether a stage has one chunk with it. */
bool torchtitan_is_single (const char *ours);

#endif
