/* validate/validate.h — simulate measured runs and score the predictions.
 *
 * Each row becomes a model (data/measured/read_cases.h), a strategy
 * and a cluster of as many nodes as its GPUs need, and is run like any job. A row
 * that cannot be simulated (a cluster without a file, a mechanism that is not built)
 * is refused with the reason and leaves the others alone. */
#ifndef LS_VALIDATE_VALIDATE_H
#define LS_VALIDATE_VALIDATE_H

#include "base/team.h"
#include "exec/run.h"
#include "validate/scores.h"

typedef struct {
  const char *const *paths; /* of tables and logs: job/job_cases.h */
  const char *cluster;      /* of logs; NULL: there are none       */
  const char *split;        /* NULL: all           */
  const char *only;         /* regex on id, or NULL */
  guint n_threads;          /* 0: one per processor */
  const LsRunOptions *options;
  const char *const *assume; /* knobs of the strategy, host costs: "key=value"; or NULL */
  bool ablate;               /* simulate all rows again with each mechanism off (validate/scores.h) */
  bool with_coverage;        /* of intervals (analysis/interval.h)           */
  LsProgress progress;       /* in simulations                */
  LsTeam *team;              /* of processes that share the rows; NULL: none */
} LsValidateSpec;

typedef struct LsValidationRun LsValidationRun;

/* The result does not depend on n_threads and team, of which each process gets all. LS_ERROR_USAGE: a bad
 * regex, or no row matches; LS_ERROR_INPUT: a bad file, or one without rows; those of ls_team_each(). Free
 * with ls_validation_run_free(). */
LsValidationRun *ls_validate (const LsValidateSpec *spec, GError **error);
void ls_validation_run_free (LsValidationRun *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsValidationRun, ls_validation_run_free)

/* Borrowed until the run is freed. Families in order of their first row. */
const LsScores *ls_validation_run_scores (const LsValidationRun *run);

/* The text of a file of that name that data/machines/machines.h reads. Newly allocated. */
char *ls_validation_run_residuals (const LsValidationRun *run, const char *name, const char *version);

#endif
