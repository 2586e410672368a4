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
/* Formats (torchtitan_precision.c), once the model is known; whether layers are compiled. */
void torchtitan_precision (LaunchJob *job);
bool torchtitan_compiles (const LaunchJob *job);

/* Adds a configuration as Python made it, or as a log of such a release prints it, by the names of TOML where
 * it has them; module: of the model, NULL: not known. tree is changed. */
void torchtitan_add_config (LaunchWords *words, cJSON *tree, const char *module);
/* Adds what a function of a file of Python returns. asked: its name; NULL: its only one. */
bool torchtitan_add_python (LaunchWords *words, const ImportFile *file, const char *asked, const char *module,
                            LsImport *import, LsDiagList *diags);
/* What a command chooses by "activation_checkpoint:full". */
void torchtitan_add_policies (LaunchWords *words, const LaunchWords *command);
/* Whether batches are counted in tokens, as since August 2026. */
bool torchtitan_counts_tokens (const LaunchJob *job);
/* Of releases of torchtitan by what they have: the first that set micro-batches by their size, in April 2025,
 * names no option of an earlier one. */
bool torchtitan_is_early (const LaunchJob *job);

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
