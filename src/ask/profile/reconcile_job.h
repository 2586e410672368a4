/* ask/profile/reconcile_job.h — a job simulated, and a profile of one of its ranks laid beside it. */
#ifndef LS_ASK_PROFILE_RECONCILE_JOB_H
#define LS_ASK_PROFILE_RECONCILE_JOB_H

#include "ask/profile/seen_report.h"
#include "job/job.h"

/* All borrowed. */
typedef struct {
  const LsReconciled *reconciled;
  const LsLayerReport *layer;
  const LsSeenReport *software;
  const char *profile; /* path                          */
  const char *step;    /* which of the profile          */
  const char *gpu;     /* as the profile says, or NULL  */
  const char *cluster;
  uint32_t rank;
} LsReconcileReport;

typedef struct {
  const LsJobSpec *job;
  const char *path; /* of the profile (data/measured/read_kineto.h)                                  */
  const char *step; /* which (ask/profile/measured_step.h); NULL: it finds one                  */
  int64_t rank;     /* which of the job's; -1: the one that the profile says, else 0      */
  bool other_job;   /* also where it is plainly of another one (ls_reconciled_other()) */
} LsReconcileSpec;

typedef struct LsReconcileRun LsReconcileRun;

/* NULL: errors of ls_job_spec_run(), LS_ERROR_USAGE (--step), LS_ERROR_INPUT (the profile),
 * LS_ERROR_CONFLICT (the job has no such rank; the profile is of another job). */
LsReconcileRun *ls_reconcile_run_new (const LsReconcileSpec *spec, GError **error);
void ls_reconcile_run_free (LsReconcileRun *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsReconcileRun, ls_reconcile_run_free)

const LsReconcileReport *ls_reconcile_run_report (const LsReconcileRun *run);
/* What to know about the profile, a line each. */
const GPtrArray *ls_reconcile_run_notes (const LsReconcileRun *run);

#endif
