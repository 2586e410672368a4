/* sweep/reconcile_job.h — a job simulated, and a profile of one of its ranks laid beside it. */
#ifndef LS_SWEEP_RECONCILE_JOB_H
#define LS_SWEEP_RECONCILE_JOB_H

#include "io/write_reconcile.h"
#include "sweep/job.h"

typedef struct {
  const LsJobSpec *job;
  const char *path; /* of the profile (io/read_kineto.h)                                  */
  const char *step; /* which (sweep/measured_step.h); NULL: it finds one                  */
  int64_t rank;     /* which of the job's; -1: the one that the profile says, else 0      */
} LsReconcileSpec;

typedef struct LsReconcileRun LsReconcileRun;

/* NULL: errors of ls_job_spec_run(), LS_ERROR_USAGE (--step), LS_ERROR_INPUT (the profile),
 * LS_ERROR_CONFLICT (the job has no such rank). */
LsReconcileRun *ls_reconcile_run_new (const LsReconcileSpec *spec, GError **error);
void ls_reconcile_run_free (LsReconcileRun *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsReconcileRun, ls_reconcile_run_free)

const LsReconcileReport *ls_reconcile_run_report (const LsReconcileRun *run);
/* What to know about the profile, a line each. */
const GPtrArray *ls_reconcile_run_notes (const LsReconcileRun *run);

#endif
