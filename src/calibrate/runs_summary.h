/* calibrate/runs_summary.h — what runs say of the next job on the cluster that was fitted to them: how far
 * off each was that was left out, and what they have (LsFittedRuns, cluster/cluster.h). */
#ifndef LS_CALIBRATE_RUNS_SUMMARY_H
#define LS_CALIBRATE_RUNS_SUMMARY_H

#include "analysis/likeness.h"
#include "cluster/cluster.h"

/* A run. Logarithms of seconds. */
typedef struct {
  double log_measured, log_start; /* predicted by the cluster as it is */
  double log_fitted;              /* by the fit to all runs            */
  double log_left_out;            /* by a fit without its job          */
  double mfu;                     /* by the cluster as it is           */
  LsTraits traits;
} LsSummedRun;

/* Runs that the cluster as it is predicts alike are of one job: jobs[i] is the first of them. */
void ls_runs_number_jobs (const double *log_start, guint n, guint *ret_jobs);

/* n > 0. Clear with ls_runs_summary_clear(). */
void ls_runs_summary (const LsSummedRun *runs, guint n, const char *file, const char *architecture,
                      LsFittedRuns *ret_summary);
void ls_runs_summary_clear (LsFittedRuns *summary);

#endif
