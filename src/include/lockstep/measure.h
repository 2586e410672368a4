/* lockstep/measure.h — what was measured beside what is predicted: validation, kernels, calibration,
 * profiles. Include <lockstep/lockstep.h>. */
#ifndef LOCKSTEP_MEASURE_H
#define LOCKSTEP_MEASURE_H

#include <lockstep/job.h>

G_BEGIN_DECLS

/* ---- Validation against published measurements --------------------------- */

typedef struct {
  const char *cases_path; /* CSV                                             */
  const char *split;      /* only rows whose `split` is this; NULL: all      */
  const char *only;       /* only rows whose id this regex matches; NULL: all */
  guint n_threads;        /* 0: one per processor; the result is the same    */
  const char *fold;       /* as ls_job_set(); NULL: the default              */
  const char *coarsen;
  const char *network;
  const char *debug;
  const char *const *assume; /* "knob=value" set for every row, whatever the row
                                says: of the strategy, or a host cost;
                                NULL-terminated; NULL: nothing                */
  gboolean ablate;           /* simulate all rows again with each mechanism off, and
                             add what that makes of the errors               */
  gboolean coverage;         /* text and JSON say whether intervals hold: each source by the others */
  LsProgressFunc progress;   /* or NULL                                       */
  gpointer progress_data;
} LsValidateOptions;

typedef struct LsValidation LsValidation;

/* A row that cannot be simulated counts as refused, with its reason; only bad
 * options (LS_ERROR_USAGE, LS_ERROR_UNSUPPORTED), a selection that no row matches
 * (LS_ERROR_USAGE) and a bad file or one without rows (LS_ERROR_INPUT) fail. Free with
 * ls_validation_free(). */
LS_PUBLIC LsValidation *ls_validation_run (const LsValidateOptions *options, GError **error);
LS_PUBLIC void ls_validation_free (LsValidation *validation); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsValidation, ls_validation_free)

LS_PUBLIC char *ls_validation_text (const LsValidation *validation);
LS_PUBLIC char *ls_validation_json (const LsValidation *validation);

/* The scores by family as a table in Markdown; predicted over measured time as .svg or
 * .png, drawn by gnuplot. Errors as of ls_check_output_path() and LS_ERROR_IO;
 * LS_ERROR_FAILED: no row was simulated, so there is nothing to draw. */
LS_PUBLIC gboolean ls_validation_write_markdown (const LsValidation *validation, const char *path,
                                                 GError **error);
LS_PUBLIC gboolean ls_validation_plot (const LsValidation *validation, const char *path, GError **error);

/* FALSE, with LS_ERROR_CONFLICT, if all cases were refused: the result says why. */
LS_PUBLIC gboolean ls_validation_check_simulated (const LsValidation *validation, GError **error);

/* FALSE, with LS_ERROR_TOLERANCE, if the mean absolute error exceeds max_pct or
 * nothing could be simulated; LS_ERROR_USAGE unless max_pct is 0 or more and finite. */
LS_PUBLIC gboolean ls_validation_check_mape (const LsValidation *validation, double max_pct, GError **error);

/* The same, of a validation with `coverage`, if the intervals of all sources, each source counting once,
 * hold less than min_pct of the measured steps, or their median width exceeds max_width_pct. */
LS_PUBLIC gboolean ls_validation_check_coverage (const LsValidation *validation, double min_pct,
                                                 double max_width_pct, GError **error);

/* What was measured over what was predicted, as NAME.json, which the knob "residuals" of a job names.
 * LS_ERROR_USAGE: another suffix; LS_ERROR_TOLERANCE: nothing could be simulated; LS_ERROR_IO. */
LS_PUBLIC gboolean ls_validation_write_residuals (const LsValidation *validation, const char *path,
                                                  GError **error);
/* Whether that can begin; creates nothing. */
LS_PUBLIC gboolean ls_validation_check_residuals_path (const char *path, GError **error);

/* ---- Kernels ------------------------------------------------------------- */

typedef struct LsKernelQuery LsKernelQuery;

/* Which kernels on which GPU. Free with ls_kernel_query_free(). */
LS_PUBLIC LsKernelQuery *ls_kernel_query_new (void);
LS_PUBLIC void ls_kernel_query_free (LsKernelQuery *query); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsKernelQuery, ls_kernel_query_free)

/* Keys are the long flags of `lockstep kernel` without dashes, except json; a switch is
 * "1". LS_ERROR_USAGE if the key is unknown or the value malformed; nothing changes then. */
LS_PUBLIC gboolean ls_kernel_query_set (LsKernelQuery *query, const char *key, const char *value,
                                        GError **error);

/* Their times, for people and for programs. LS_ERROR_USAGE: no GPU, not exactly one kernel
 * or table, no row selected; LS_ERROR_INPUT: a file; LS_ERROR_CONFLICT: a number format
 * that the GPU's matrix units lack; LS_ERROR_LIMIT: a time that cannot be represented. */
LS_PUBLIC char *ls_kernel_query_text (const LsKernelQuery *query, GError **error);
LS_PUBLIC char *ls_kernel_query_json (const LsKernelQuery *query, GError **error);

/* ---- Calibration --------------------------------------------------------- */

typedef struct LsCalibrated LsCalibrated;

/* Fits the efficiency of a GPU's kernels to measured ones: profiles of tools/kernelbench (JSON or CSV) and
 * tables of others, as `lockstep calibrate` reads them. files ends in NULL; gpu: name or path, NULL if a
 * profile says which. cluster: name or path, or NULL: launches, copies and the like that a profile has are
 * held against what is assumed of it. holds_half: half of the families of kernels is kept from the fit and
 * predicted, not a fifth. LS_ERROR_USAGE: no file, no GPU to be found; LS_ERROR_INPUT: a file is missing or
 * damaged, or says what cannot be. Free with ls_calibrated_free(). */
LS_PUBLIC LsCalibrated *ls_calibrate_kernels (const char *const *files, const char *gpu, const char *cluster,
                                              gboolean holds_half, GError **error);
/* Fits the figures of NCCL to outputs of nccl-tests, text or JSON, of one cluster. op: what
 * ran ("all-reduce"), NULL if the files say so. Errors as above; LS_ERROR_UNSUPPORTED: a
 * torus. */
LS_PUBLIC LsCalibrated *ls_calibrate_collectives (const char *const *files, const char *cluster,
                                                  const char *op, GError **error);
LS_PUBLIC void ls_calibrated_free (LsCalibrated *calibrated); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCalibrated, ls_calibrated_free)

/* Fits what is physical about a cluster (compute, overlap, links, host) to step times that were
 * measured on it: a CSV as ls_validation_run() reads it, all rows of one cluster. cluster:
 * name or path, in place of the column's; NULL: the column's. n_threads: 0: one per processor;
 * the result is the same. progress: or NULL. LS_ERROR_INPUT: the file, or no row of it can be
 * simulated; LS_ERROR_CONFLICT: rows of several clusters. */
LS_PUBLIC LsCalibrated *ls_calibrate_runs (const char *path, const char *cluster, guint n_threads,
                                           LsProgressFunc progress, gpointer data, GError **error);

/* Errors on what was fitted and on what was held out, for people. */
LS_PUBLIC char *ls_calibrated_text (const LsCalibrated *calibrated);
/* Of kernels: LS_ERROR_TOLERANCE if those held out are off by more than max_pct percent in the mean, or none
 * was. */
LS_PUBLIC gboolean ls_calibrated_check_mape (const LsCalibrated *calibrated, double max_pct, GError **error);
/* What was left out, a line each; "" if nothing was. */
LS_PUBLIC char *ls_calibrated_notes (const LsCalibrated *calibrated);
/* The file, NAME.json, that a GPU's file names as its `calibration` or `nccl`; of runs a cluster. The same
 * input gives the same bytes. LS_ERROR_USAGE: another suffix; LS_ERROR_IO. */
LS_PUBLIC gboolean ls_calibrated_write (const LsCalibrated *calibrated, const char *path, GError **error);
/* Of kernels: the cluster that was named, NAME.json, with what was measured of its links; its GPUs take the
 * calibration that is at that path, unless that is NULL. Errors as above; LS_ERROR_USAGE: no cluster was
 * named; LS_ERROR_CONFLICT: it has other GPUs than were measured. */
LS_PUBLIC gboolean ls_calibrated_write_cluster (const LsCalibrated *calibrated, const char *path,
                                                const char *calibration, GError **error);
/* Whether ls_calibrated_write() can begin; creates nothing. */
LS_PUBLIC gboolean ls_calibrated_check_path (const char *path, GError **error);
/* Of kernels: predicted over measured time, .svg or .png, by gnuplot, or .gp. Errors as of
 * ls_result_write_timeline(); LS_ERROR_USAGE: of collectives. */
LS_PUBLIC gboolean ls_calibrated_plot (const LsCalibrated *calibrated, const char *path, GError **error);

/* ---- Profiles beside predictions ------------------------------------------ */

typedef struct LsReconciliation LsReconciliation;

/* Simulates a job and lays a profile of one of its ranks beside it: a Chrome trace of
 * torch.profiler, plain or gzip. step: which of its steps, "12" for ProfilerStep#12 or a range
 * "120ms:180ms"; NULL: the last whole one. rank: of the job; -1: as the profile says, else 0.
 * Errors as of ls_job_run(); LS_ERROR_INPUT: the profile is damaged or has no such step.
 * Free with ls_reconciliation_free(). */
LS_PUBLIC LsReconciliation *ls_job_reconcile (const LsJob *job, const char *path, const char *step,
                                              gint64 rank, GError **error);
LS_PUBLIC void ls_reconciliation_free (LsReconciliation *reconciliation); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsReconciliation, ls_reconciliation_free)

/* By class of kernels and by size of collectives, where the step went, and what looks wrong. */
LS_PUBLIC char *ls_reconciliation_text (const LsReconciliation *reconciliation);
LS_PUBLIC char *ls_reconciliation_json (const LsReconciliation *reconciliation);
/* What the profile shows of the software that ran it, as a file of software (lockstep.software/1), NAME.json,
 * for the job's option "software". LS_ERROR_USAGE: the path is no such; LS_ERROR_CONFLICT: it shows nothing;
 * LS_ERROR_IO. */
LS_PUBLIC gboolean ls_reconciliation_write_software (const LsReconciliation *reconciliation, const char *path,
                                                     GError **error);
/* What to know about the profile, a line each; "" if nothing. */
LS_PUBLIC char *ls_reconciliation_notes (const LsReconciliation *reconciliation);

G_END_DECLS

#endif
