/* data/launch/xtuner/xtuner_rules.h — jobs of XTuner (private to launch/). */
#ifndef LS_DATA_LAUNCH_XTUNER_RULES_H
#define LS_DATA_LAUNCH_XTUNER_RULES_H

#include "data/launch/launch_script.h"

bool xtuner_is_config (const char *text);

/* The job of a configuration. script: the command that starts it, whose --deepspeed and --cfg-options are
 * heeded; NULL: none does. False: with a diagnostic. */
bool xtuner_read_text (const ImportFiles *files, const char *text, gsize n, const char *name,
                       const LaunchScript *script, LsImport *import, LsDiagList *diags);

#endif
