/* ask/profile/reconcile_job.h — a job simulated, and a profile of one of its ranks laid next to it. */
#ifndef LS_ASK_PROFILE_RECONCILE_JOB_H
#define LS_ASK_PROFILE_RECONCILE_JOB_H

#include "analysis/layer_kernels.h"
#include "ask/profile/profile_step.h"
#include "job/job.h"

/* The kernels of a profiled layer beside those that the job launches, and those that it would launch
 * with each list of kernels that there is (strategies/kernels). */

typedef struct {
  char *name; /* as --kernels takes it */
  LsLayerKernels kernels;
  guint off; /* ls_layer_kernels_off() from the profile */
} LsLayerList;

typedef struct {
  LsLayerKernels measured;
  GArray *lists;   /* LsLayerList: the job's own, then the others by name; may be empty */
  const char *why; /* static: why it is; NULL: it is not */
  guint nearest;   /* the first of the nearest */
} LsLayerReport;

/* Whether the profile shows a layer, and the job has one. */
bool ls_layer_report_is_there (const LsLayerReport *report);
const LsLayerList *ls_layer_report_job (const LsLayerReport *report); /* of one that is there */
const LsLayerList *ls_layer_report_nearest (const LsLayerReport *report);

/* predicted: of the job. A list that is wrong, or not for the job's number format, is passed over. NULL:
 * LS_ERROR_CONFLICT (the hardware has no such attention). */
LsLayerReport *ls_layer_report_new (const LsStepSide *measured, const LsStepSide *predicted,
                                    const LsJobResult *job, GError **error);
void ls_layer_report_free (LsLayerReport *report); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsLayerReport, ls_layer_report_free)

/* --- a job simulated, and a profile of one of its ranks laid beside it --------------------------- */

/* What a profile shows of the software that ran it: a key of a strategy. */
typedef struct {
  char *value;     /* as its flag takes it; NULL: left  */
  char *why;       /* from what it follows, or why not  */
  const char *key; /* static */
} LsSeenKey;

typedef struct {
  LsKineto *trace; /* with notes on what to know about it */
  LsMeasuredStep measured;
  LsJobResult *job;
  LsStepSide *predicted;
  LsReconciled *reconciled;
  LsLayerReport *layer;
  GArray *seen;        /* LsSeenKey */
  char *based_on;      /* software of the job; NULL: none  */
  char *program;       /* as one would say it              */
  const char *profile; /* path; borrowed, as are: */
  const char *step;    /* which of the profile          */
  const char *gpu;     /* as the profile says, or NULL  */
  const char *cluster;
  uint32_t rank;
} LsReconcileReport;

typedef struct {
  const LsJobSpec *job;
  const char *path; /* of the profile (data/measured/read_kineto.h)                                  */
  const char *step; /* which (ask/profile/profile_step.h); NULL: it finds one                  */
  int64_t rank;     /* which of the job's; -1: the one that the profile says, else 0      */
  bool other_job;   /* also where it is plainly of another one (ls_reconciled_other()) */
} LsReconcileSpec;

/* NULL: errors of ls_job_spec_run(), LS_ERROR_USAGE (--step), LS_ERROR_INPUT (the profile),
 * LS_ERROR_CONFLICT (the job has no such rank; the profile is of another job). */
LsReconcileReport *ls_reconcile_report_new (const LsReconcileSpec *spec, GError **error);
void ls_reconcile_report_free (LsReconcileReport *report); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsReconcileReport, ls_reconcile_report_free)

#endif
