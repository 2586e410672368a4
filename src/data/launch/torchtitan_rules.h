/* data/launch/torchtitan_rules.h — what options of torchtitan mean together, and what they are where they are
 * not given (private to launch/). */
#ifndef LS_DATA_LAUNCH_TORCHTITAN_RULES_H
#define LS_DATA_LAUNCH_TORCHTITAN_RULES_H

#include "data/launch/option_table.h"

/* Reads all options: job->table is set by it. False: with a diagnostic, for models that are no decoders. */
bool torchtitan_read (LaunchJob *job, LsDiagList *diags);

/* Of it. The first of an option's names, section.name, that is given: in [parallelism], [experimental] or
 * [training], as releases have had it. */
const char *torchtitan_text (const LaunchJob *job, const char *name);
void torchtitan_strategy (LaunchJob *job);

#endif
