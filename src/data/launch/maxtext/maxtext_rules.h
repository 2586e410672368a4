/* data/launch/maxtext/maxtext_rules.h — options of MaxText, and what they mean together (private to launch/).
 * Names and rules as in src/maxtext/configs of AI-Hypercomputer/maxtext (e591f30cb, August 2026), and of 2023
 * to 2025. */
#ifndef LS_DATA_LAUNCH_MAXTEXT_RULES_H
#define LS_DATA_LAUNCH_MAXTEXT_RULES_H

#include "data/launch/launch_script.h"
#include "data/launch/option_table.h"

extern const OptionTable maxtext_options;

bool maxtext_has (const LaunchJob *job, const char *name); /* given, on or off */
double maxtext_real (const LaunchJob *job, const char *name, double otherwise);
/* Whether an option that is not given is as in base.yml: not if a configuration on top of it, which is not
 * here, may say it. */
bool maxtext_is_of_base (const LaunchJob *job, const char *name);

/* The job of a configuration, by its options. Takes tree. script: that starts it, for the devices that it
 * has; NULL: none. False: with a diagnostic. */
bool maxtext_read_tree (cJSON *tree, const char *path, const LaunchScript *script, LsImport *import,
                        LsDiagList *diags);

/* maxtext_mesh.c: sets degrees, ways of data parallelism and the GPUs. Copies of the model that have
 * sequences of their own; 0: not known. A device of the job may be a part of a chip (job->of_chip). */
guint64 maxtext_set_mesh (LaunchJob *job);

/* Sets the model. */
void maxtext_model (LaunchJob *job);

#endif
