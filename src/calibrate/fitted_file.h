/* calibrate/fitted_file.h — what a fit to measured runs leaves: a cluster file, and what runs that were
 * left out say of the next job. */
#ifndef LS_CALIBRATE_FITTED_FILE_H
#define LS_CALIBRATE_FITTED_FILE_H

#include "analysis/likeness.h"
#include "calibrate/calibrate_runs.h"
#include "cluster/cluster.h"
#include "data/text/json_doc.h"

/* The cluster's file with that name, "source" and "fitted". Newly allocated. */
char *ls_fitted_to_json (const LsJsonDoc *base, const LsFittedReport *report, const char *name);

/* Appends "mean absolute error: before 12.30 %, fitted 4.10 %, ..."; what is not known is left out. */
void ls_fitted_error_print (const LsFittedError *error, GString *out);

/* What runs say of the next job on the cluster that was fitted to them: how far off each was that was
 * left out, and what they have (LsFittedRuns, cluster/cluster.h). */

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
