/* cli/job_args.h — the flags that say which job: the knobs of ls_job_set(), and
 * --strategy. `run` and `trace export` take the same. */
#ifndef LS_CLI_JOB_ARGS_H
#define LS_CLI_JOB_ARGS_H

#include "cli/cli.h"

typedef struct {
  GArray *knobs; /* key and value, in the order given */
  char *strategy;
} CliJob;

void cli_job_init (CliJob *job);
void cli_job_clear (CliJob *job);

/* Appends a GOptionEntry for each flag, with these flags of GOption besides. The
 * group_data of cli_parse() must then be the address of job. */
void cli_job_entries (CliJob *job, GOptionFlags flags, GArray *entries);

/* Sets each knob that was given, LS_DEBUG and --strategy first, by these. */
typedef struct {
  gboolean (*set) (gpointer target, const char *key, const char *value, GError **error);
  gboolean (*load_strategy) (gpointer target, const char *name_or_path, GError **error);
} CliJobSetter;
gboolean cli_job_apply (const CliJob *args, const CliJobSetter *setter, gpointer target, GError **error);

/* The job that was asked for, LS_DEBUG included. Free with ls_job_free(). */
LsJob *cli_job_new (const CliJob *args, GError **error);

#endif
