/* cli/job_args.h — the flags that say which job: those of the knobs that ls_knobs() lists, and --set. */
#ifndef LS_CLI_JOB_ARGS_H
#define LS_CLI_JOB_ARGS_H

#include "cli/cli.h"

typedef struct {
  GArray *knobs; /* key and value, in the order given */
} CliJob;

void cli_job_init (CliJob *job);
void cli_job_clear (CliJob *job);

/* Appends a GOptionEntry for each flag but those of `without` (NULL: none). They are hidden: the help of
 * cli_parse() shows them by topic. The group_data of cli_parse() must then be the address of job. */
void cli_job_entries (CliJob *job, const char *const *without, GArray *entries);

/* Sets each knob that was given, LS_DEBUG and what sets defaults first. */
typedef gboolean (*CliJobSetter) (gpointer target, const char *key, const char *value, GError **error);
gboolean cli_job_apply (const CliJob *args, CliJobSetter set, gpointer target, GError **error);

/* The job that was asked for, LS_DEBUG included. Free with ls_job_free(). */
LsJob *cli_job_new (const CliJob *args, GError **error);

#endif
