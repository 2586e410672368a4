/* data/launch/internevo/internevo_rules.h — jobs of InternEvo (private to launch/). */
#ifndef LS_DATA_LAUNCH_INTERNEVO_RULES_H
#define LS_DATA_LAUNCH_INTERNEVO_RULES_H

#include "data/launch/option_table.h"

extern const OptionTable internevo_options;

/* Whether a text sets the sections that a configuration has. */
bool internevo_is_config (const char *text);

/* The job of a configuration. gpus: that a script starts; 0: not known. False: with a diagnostic. */
bool internevo_read_text (const ImportFiles *files, const char *text, gsize n, const char *name, guint64 gpus,
                          LsImport *import, LsDiagList *diags);

#endif
