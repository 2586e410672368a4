/* lockstep/lockstep.h — predict one training step of a large model on a cluster.
 *
 *     #include <stdio.h>
 *
 *     #include <lockstep/lockstep.h>
 *
 *     static LsResult *
 *     simulate (GError **error)
 *     {
 *       static const char *const knobs[][2] = {
 *         { "model", "llama3.1-8b" }, { "cluster", "dgx-h100" }, { "gpus", "8" }, { "tp", "2" }, { "pp", "2" },
 *       };
 *       g_autoptr (LsJob) job = ls_job_new ();
 *       for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
 *         if (!ls_job_set (job, knobs[i][0], knobs[i][1], error))
 *           return NULL;
 *       return ls_job_run (job, error);
 *     }
 *
 *     int
 *     main (void)
 *     {
 *       g_autoptr (GError) error = NULL;
 *       g_autoptr (LsResult) result = simulate (&error);
 *       if (!result) {
 *         fprintf (stderr, "%s\n", error->message);
 *         return ls_error_exit_code (error);
 *       }
 *       g_autofree char *summary = ls_result_summary (result, LS_TEXT_PLAIN);
 *       printf ("%s", summary);
 *       return 0;
 *     }
 *
 * All functions that can fail return FALSE or NULL and set an error of LS_ERROR;
 * ls_error_exit_code() turns it into the exit code that the program uses.
 * Nothing is printed, nothing exits. Objects are independent of each other: two
 * threads may run two jobs at once, but not share one. Returned strings are
 * newly allocated UTF-8 (g_free) unless said otherwise.
 *
 * Names of models, clusters, strategies and traces are looked up as a path, then in
 * $LS_DATA_DIR, ./models (./topologies, ./strategies, ./traces) and the installed data. */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include <stdio.h>

#include <glib.h>

#include <lockstep/error.h>
#include <lockstep/units.h>
#include <lockstep/version.h>

G_BEGIN_DECLS

/* Told what a long function has done: n_done simulations of at most n_to_do, which is 0 where nobody
 * can tell. Called from any thread, one call at a time. */
typedef void (*LsProgressFunc) (guint64 n_done, guint64 n_to_do, gpointer data);

/* ---- One job ------------------------------------------------------------- */

typedef struct LsJob LsJob;
typedef struct LsResult LsResult;

LS_PUBLIC LsJob *ls_job_new (void); /* all defaults; model (or trace) and cluster must be set */
LS_PUBLIC void ls_job_free (LsJob *job); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsJob, ls_job_free)

/* A knob of a job. All texts are static. */
typedef struct {
  const char *key;      /* as files have it: "micro_batch"                        */
  const char *flag;     /* "micro-batch": `lockstep run --micro-batch`; NULL: it is set by --set alone */
  const char *topic;    /* of ls_knob_topics()                                    */
  const char *argument; /* what stands for its value: "N", "SIZE"; NULL of a switch, which is "1" or "0" */
  const char *choices;  /* "none, ddp": all of its values; NULL: others           */
  const char *usually;  /* what holds without it, in words; "": nothing           */
  const char *meaning;
  gboolean is_usual;    /* one of those that most jobs set                        */
} LsKnob;

typedef struct {
  const char *name, *title; /* "batch"; as a heading */
} LsKnobTopic;

/* All knobs, by topic, and the topics. Static. */
LS_PUBLIC const LsKnob *ls_knobs (guint *ret_n);
LS_PUBLIC const LsKnobTopic *ls_knob_topics (guint *ret_n);

/* Sets one knob from text: a key of ls_knobs(), with dashes or underscores. Besides: "residuals" (a file of
 * what published runs measured, from which the interval around the step is made, in place of the runs that the
 * cluster was fitted to; "none") and "debug" (a list such as "evq=ref,solver=ref,runahead=off", which selects
 * the reference implementations). "for", "software" and "strategy" come before the other knobs of a strategy, as
 * they set their defaults (LS_ERROR_INPUT if the file is wrong). On and off are "1" and "0". LS_ERROR_USAGE if
 * the key is unknown or the value malformed; the job is then unchanged. */
LS_PUBLIC gboolean ls_job_set (LsJob *job, const char *key, const char *value, GError **error);

/* Takes the strategy of a named or given file instead of what was set so far
 * about parallelism; what is set afterwards overrides the file. LS_ERROR_INPUT. */
LS_PUBLIC gboolean ls_job_load_strategy (LsJob *job, const char *name_or_path, GError **error);

/* Runs the job: LS_ERROR_USAGE (no model or cluster), LS_ERROR_INPUT (a file),
 * LS_ERROR_CONFLICT, LS_ERROR_UNSUPPORTED, LS_ERROR_DEADLOCK. A job that does not
 * fit into memory is a result, not an error. Free with ls_result_free(). */
LS_PUBLIC LsResult *ls_job_run (const LsJob *job, GError **error);

/* Writes the plan of a job, without running it, as a file that the knob "trace"
 * replays; its format is documented in the manual (formats/trace.md). Errors as of ls_job_run() and
 * of the functions below that write. */
LS_PUBLIC gboolean ls_job_write_trace (const LsJob *job, const char *path, GError **error);
/* The kernels of a job, each once, as JSON (lockstep.shapes/1) that tools/kernelbench --shapes
 * times. Newly allocated. Errors as of ls_job_run(). */
LS_PUBLIC char *ls_job_shapes (const LsJob *job, GError **error);

LS_PUBLIC void ls_result_free (LsResult *result); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsResult, ls_result_free)

LS_PUBLIC double ls_result_step_time_s (const LsResult *result);

/* FALSE, with LS_ERROR_NO_FIT that says how much is missing where, if the job
 * needs more memory than a GPU has. */
LS_PUBLIC gboolean ls_result_check_fit (const LsResult *result, GError **error);

/* What had to be assumed to read a foreign model file, options that make no difference to this job, and why, and
 * what a number of the result is not; a line each, "" if nothing. */
LS_PUBLIC char *ls_result_notes (const LsResult *result);

typedef enum {
  LS_TEXT_PLAIN = 0,
  LS_TEXT_COLOR = 1 << 0, /* ANSI escapes                                        */
  LS_TEXT_ASCII = 1 << 1, /* no block characters: the terminal does not do UTF-8 */
} LsTextStyle;

LS_PUBLIC char *ls_result_summary (const LsResult *result, LsTextStyle style); /* for people */
LS_PUBLIC char *ls_result_json (const LsResult *result);                     /* for programs */
LS_PUBLIC char *ls_result_placement (const LsResult *result);                /* one line per rank */

typedef enum {
  LS_OUTPUT_CHROME_TRACE,
  LS_OUTPUT_CSV,
  LS_OUTPUT_TIMELINE, /* needs gnuplot */
  LS_OUTPUT_TRACE,
  LS_OUTPUT_PLOT, /* needs gnuplot */
} LsOutput;

/* Whether the functions below can write there; creates nothing, and is worth asking
 * before a long run. LS_ERROR_USAGE: control characters in the path, or a picture's
 * suffix is neither .svg nor .png; LS_ERROR_IO: it is a folder, its folder is missing,
 * or it must not be written. */
LS_PUBLIC gboolean ls_check_output_path (LsOutput output, const char *path, GError **error);

/* All follow symbolic links, replace what is there only when they succeed, and fail
 * as above or with LS_ERROR_IO while writing.
 *
 * Chrome's trace event format, which Perfetto opens. */
LS_PUBLIC gboolean ls_result_write_chrome_trace (const LsResult *result, const char *path, GError **error);
/* What ran when on which stream of which rank, and what it waited for: a row per span,
 * times in picoseconds. Columns: the manual, formats/csv.md. */
LS_PUBLIC gboolean ls_result_write_csv (const LsResult *result, const char *path, GError **error);
/* What each link carried in the step that is reported, idle ones too: a row per link, or
 * per bundle of links that traffic loads evenly. Columns: formats/csv.md. */
LS_PUBLIC gboolean ls_result_write_links (const LsResult *result, const char *path, GError **error);
/* A picture of the step, .svg or .png, drawn by gnuplot. Named x.gp, as all pictures may be: the
 * script that draws it, with its data in x.dat. */
LS_PUBLIC gboolean ls_result_write_timeline (const LsResult *result, const char *path, GError **error);

/* ---- Why a step takes as long as it does ---------------------------------- */

/* Which ops, links and ranks the step went through: the functions that give text, JSON and a
 * Chrome trace then show it. LS_ERROR_LIMIT: a step too large to keep what every rank did. */
LS_PUBLIC gboolean ls_result_find_critical_path (LsResult *result, GError **error);

/* What a percent more and less of FLOPs, memory, links, latency and host is worth to this job:
 * text and JSON then show it. Takes the time of a dozen runs, on n_threads threads (0: one per
 * processor; the result is the same). Errors as of ls_job_run(). */
LS_PUBLIC gboolean ls_result_find_sensitivity (LsResult *result, const LsJob *job, guint n_threads, GError **error);

/* The result's job as another program is told to run it: "megatron" (flags of Megatron-LM, for
 * a shell), "torchtitan" (TOML), "deepspeed" (JSON). *ret_notes: what is to be said elsewhere, a
 * line each; "" if nothing is. LS_ERROR_UNSUPPORTED: a trace, or knobs that it cannot express;
 * LS_ERROR_USAGE: no such program. */
LS_PUBLIC char *ls_result_emit (const LsResult *result, const LsJob *job, const char *target, char **ret_notes, GError **error);
/* LS_ERROR_USAGE: no such program. */
LS_PUBLIC gboolean ls_check_emit_target (const char *target, GError **error);

/* ---- What single changes gain --------------------------------------------- */

typedef struct LsWhatIfs LsWhatIfs;

/* Single changes to a job, each simulated: schedules, layouts, batches, recomputation, overlap,
 * backends, number formats, links, later GPUs. Ranked by tokens per second. n_threads: 0: one per processor; the result
 * is the same. progress: or NULL. Errors as of ls_job_run(); LS_ERROR_UNSUPPORTED: a trace leaves
 * nothing to change. Under the order of a file only changes that keep it are made. Free with ls_what_ifs_free(). */
LS_PUBLIC LsWhatIfs *ls_what_ifs_new (const LsJob *job, guint n_threads, LsProgressFunc progress, gpointer data, GError **error);
LS_PUBLIC void ls_what_ifs_free (LsWhatIfs *w); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsWhatIfs, ls_what_ifs_free)

/* top: how many that gain and fit are shown; 0: all changes, with the reasons of those that are not
 * possible. JSON and CSV have all. */
LS_PUBLIC char *ls_what_ifs_text (const LsWhatIfs *w, guint top);
LS_PUBLIC char *ls_what_ifs_json (const LsWhatIfs *w);
LS_PUBLIC char *ls_what_ifs_csv (const LsWhatIfs *w);

/* ---- Memory of a job ----------------------------------------------------- */

/* What each class of ranks holds at its peak, when and in which op, beside the formulas of
 * the papers. How it is measured are the knobs "memory-clock" and "memory-allocator". */
LS_PUBLIC char *ls_result_memory_text (const LsResult *result);
LS_PUBLIC char *ls_result_memory_json (const LsResult *result);
LS_PUBLIC char *ls_result_memory_csv (const LsResult *result); /* a row per class: formats/csv.md */

/* If the result of this job does not fit: simulates changes that could make it, and has the
 * functions above list those that do. Takes the time of a dozen runs of one step.
 * LS_ERROR_UNSUPPORTED: of a trace, or in the order of a file. */
LS_PUBLIC gboolean ls_result_advise (LsResult *result, const LsJob *job, GError **error);

/* What a rank holds over the step, by category: .svg or .png, drawn by gnuplot; -1: the
 * fullest. Errors as of ls_result_write_timeline(); LS_ERROR_USAGE too if there is no such
 * rank, or too many to keep the spans of each. */
LS_PUBLIC gboolean ls_result_write_memory_chart (const LsResult *result, gint64 rank, const char *path, GError **error);

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
  gboolean ablate;        /* simulate all rows again with each mechanism off, and
                             add what that makes of the errors               */
  gboolean coverage; /* text and JSON say whether intervals hold: each source by the others */
  LsProgressFunc progress; /* or NULL                                       */
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
LS_PUBLIC gboolean ls_validation_write_markdown (const LsValidation *validation, const char *path, GError **error);
LS_PUBLIC gboolean ls_validation_plot (const LsValidation *validation, const char *path, GError **error);

/* FALSE, with LS_ERROR_CONFLICT, if all cases were refused: the result says why. */
LS_PUBLIC gboolean ls_validation_check_simulated (const LsValidation *validation, GError **error);

/* FALSE, with LS_ERROR_TOLERANCE, if the mean absolute error exceeds max_pct or
 * nothing could be simulated; LS_ERROR_USAGE unless max_pct is 0 or more and finite. */
LS_PUBLIC gboolean ls_validation_check_mape (const LsValidation *validation, double max_pct, GError **error);

/* The same, of a validation with `coverage`, if the intervals of all sources, each source counting once,
 * hold less than min_pct of the measured steps, or their median width exceeds max_width_pct. */
LS_PUBLIC gboolean ls_validation_check_coverage (const LsValidation *validation, double min_pct, double max_width_pct,
                                                 GError **error);

/* What was measured over what was predicted, as NAME.json, which the knob "residuals" of a job names.
 * LS_ERROR_USAGE: another suffix; LS_ERROR_TOLERANCE: nothing could be simulated; LS_ERROR_IO. */
LS_PUBLIC gboolean ls_validation_write_residuals (const LsValidation *validation, const char *path, GError **error);
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
LS_PUBLIC gboolean ls_kernel_query_set (LsKernelQuery *query, const char *key, const char *value, GError **error);

/* Their times, for people and for programs. LS_ERROR_USAGE: no GPU, not exactly one kernel
 * or table, no row selected; LS_ERROR_INPUT: a file; LS_ERROR_CONFLICT: a number format
 * that the GPU's matrix units lack; LS_ERROR_LIMIT: a time that cannot be represented. */
LS_PUBLIC char *ls_kernel_query_text (const LsKernelQuery *query, GError **error);
LS_PUBLIC char *ls_kernel_query_json (const LsKernelQuery *query, GError **error);

/* ---- Calibration --------------------------------------------------------- */

typedef struct LsCalibrated LsCalibrated;

/* Fits the efficiency of a GPU's kernels to measured ones: profiles of tools/kernelbench
 * (JSON or CSV) and tables of others, as `lockstep calibrate` reads them. files ends in NULL;
 * gpu: name or path, NULL if a profile says which. cluster: name or path, or NULL: launches, copies and the like
 * that a profile has are held against what is assumed of it. holds_half: half of the families of kernels
 * is kept from the fit and predicted, not a fifth. LS_ERROR_USAGE: no file, no GPU to be
 * found; LS_ERROR_INPUT: a file is missing or damaged, or says what cannot be. Free with
 * ls_calibrated_free(). */
LS_PUBLIC LsCalibrated *ls_calibrate_kernels (const char *const *files, const char *gpu, const char *cluster, gboolean holds_half,
                                              GError **error);
/* Fits the figures of NCCL to outputs of nccl-tests, text or JSON, of one cluster. op: what
 * ran ("all-reduce"), NULL if the files say so. Errors as above; LS_ERROR_UNSUPPORTED: a
 * torus. */
LS_PUBLIC LsCalibrated *ls_calibrate_collectives (const char *const *files, const char *cluster, const char *op,
                                                  GError **error);
LS_PUBLIC void ls_calibrated_free (LsCalibrated *calibrated); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCalibrated, ls_calibrated_free)

/* Fits what is physical about a cluster (compute, overlap, links, host) to step times that were
 * measured on it: a CSV as ls_validation_run() reads it, all rows of one cluster. cluster:
 * name or path, in place of the column's; NULL: the column's. n_threads: 0: one per processor;
 * the result is the same. progress: or NULL. LS_ERROR_INPUT: the file, or no row of it can be
 * simulated; LS_ERROR_CONFLICT: rows of several clusters. */
LS_PUBLIC LsCalibrated *ls_calibrate_runs (const char *path, const char *cluster, guint n_threads, LsProgressFunc progress,
                                           gpointer data, GError **error);

/* Errors on what was fitted and on what was held out, for people. */
LS_PUBLIC char *ls_calibrated_text (const LsCalibrated *calibrated);
/* Of kernels: LS_ERROR_TOLERANCE if those held out are off by more than max_pct percent in the mean, or none was. */
LS_PUBLIC gboolean ls_calibrated_check_mape (const LsCalibrated *calibrated, double max_pct, GError **error);
/* What was left out, a line each; "" if nothing was. */
LS_PUBLIC char *ls_calibrated_notes (const LsCalibrated *calibrated);
/* The file, NAME.json, that a GPU's file names as its `calibration` or `nccl`; of runs a cluster. The same
 * input gives the same bytes. LS_ERROR_USAGE: another suffix; LS_ERROR_IO. */
LS_PUBLIC gboolean ls_calibrated_write (const LsCalibrated *calibrated, const char *path, GError **error);
/* Of kernels: the cluster that was named, NAME.json, with what was measured of its links; its GPUs take the calibration that is at that
 * path, unless that is NULL. Errors as above; LS_ERROR_USAGE: no cluster was named; LS_ERROR_CONFLICT: it has other GPUs than were measured. */
LS_PUBLIC gboolean ls_calibrated_write_cluster (const LsCalibrated *calibrated, const char *path, const char *calibration, GError **error);
/* Whether ls_calibrated_write() can begin; creates nothing. */
LS_PUBLIC gboolean ls_calibrated_check_path (const char *path, GError **error);
/* Of kernels: predicted over measured time, .svg or .png, by gnuplot, or .gp. Errors as of ls_result_write_timeline(); LS_ERROR_USAGE: of
 * collectives. */
LS_PUBLIC gboolean ls_calibrated_plot (const LsCalibrated *calibrated, const char *path, GError **error);

/* ---- Profiles beside predictions ------------------------------------------ */

typedef struct LsReconciliation LsReconciliation;

/* Simulates a job and lays a profile of one of its ranks beside it: a Chrome trace of
 * torch.profiler, plain or gzip. step: which of its steps, "12" for ProfilerStep#12 or a range
 * "120ms:180ms"; NULL: the last whole one. rank: of the job; -1: as the profile says, else 0.
 * Errors as of ls_job_run(); LS_ERROR_INPUT: the profile is damaged or has no such step.
 * Free with ls_reconciliation_free(). */
LS_PUBLIC LsReconciliation *ls_job_reconcile (const LsJob *job, const char *path, const char *step, gint64 rank, GError **error);
LS_PUBLIC void ls_reconciliation_free (LsReconciliation *reconciliation); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsReconciliation, ls_reconciliation_free)

/* By class of kernels and by size of collectives, where the step went, and what looks wrong. */
LS_PUBLIC char *ls_reconciliation_text (const LsReconciliation *reconciliation);
LS_PUBLIC char *ls_reconciliation_json (const LsReconciliation *reconciliation);
/* What the profile shows of the software that ran it, as a file of software (lockstep.software/1), NAME.json, for the
 * job's option "software". LS_ERROR_USAGE: the path is no such; LS_ERROR_CONFLICT: it shows nothing; LS_ERROR_IO. */
LS_PUBLIC gboolean ls_reconciliation_write_software (const LsReconciliation *reconciliation, const char *path, GError **error);
/* What to know about the profile, a line each; "" if nothing. */
LS_PUBLIC char *ls_reconciliation_notes (const LsReconciliation *reconciliation);

/* ---- Collectives --------------------------------------------------------- */

/* All as text, as the flags of `lockstep collective` of the same names take it; NULL:
 * the default. */
typedef struct {
  const char *cluster;   /* name or path; may be NULL only with `compare`, as op      */
  const char *op;        /* "all-reduce", "all-gather", "reduce-scatter", "broadcast",
                            "reduce", "all-to-all", "gather", "scatter", "barrier",
                            "send-recv" or "p2p"                                     */
  const char *nodes;     /* the file's, or as many as the GPUs need                   */
  const char *gpus;      /* the first so many: "8", or each of "2,4,24" or of the
                            doublings "2..1024"; all of the nodes                    */
  const char *algorithm; /* what NCCL would take                                      */
  const char *protocol;  /* "simple", "ll", "ll128"; what NCCL would take             */
  const char *network;   /* "flow", "alphabeta", "step", or "all" beside each other;
                            "flow"                                                   */
  const char *min, *max; /* sizes such as "1KiB" and "8GiB", which are the defaults;
                            "1MiB" of several numbers of GPUs                         */
  const char *factor;    /* of a size over the one before; "2", of several numbers of
                            GPUs "8"                                                  */
  const char *compare;   /* path of a CSV of measured times, whose rows are simulated
                            instead; cluster, op, nodes, gpus, min and max then
                            select rows                                              */
  const char *trust;     /* only rows of this trust, "all" for any; "A"               */
  const char *slice;     /* chips of a TPU slice, "8x16"; as the file says, or the
                            GPUs need                                                 */
  const char *nccl;      /* NCCL file instead of that of the cluster's GPU            */
  LsProgressFunc progress; /* of messages one by one, on the thread that asks; or NULL */
  gpointer progress_data;
} LsCollectiveOptions;

typedef struct LsCollective LsCollective;

/* Times one operation alone on a cluster, over sizes and numbers of GPUs, or as often as it was
 * measured. A measured row that cannot be simulated is skipped, with a note.
 * LS_ERROR_USAGE: no cluster or op, a malformed value, min above max, no row matches;
 * LS_ERROR_INPUT: a file; LS_ERROR_CONFLICT: more GPUs than there are, or an algorithm
 * that does not do this. Free with ls_collective_free(). */
LS_PUBLIC LsCollective *ls_collective_run (const LsCollectiveOptions *options, GError **error);
LS_PUBLIC void ls_collective_free (LsCollective *collective); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCollective, ls_collective_free)

/* For people, in the shape of nccl-tests; of a comparison a line per cluster and
 * operation. The other two have every row. */
LS_PUBLIC char *ls_collective_text (const LsCollective *collective);
LS_PUBLIC char *ls_collective_json (const LsCollective *collective);
LS_PUBLIC char *ls_collective_csv (const LsCollective *collective);

/* Why measured rows were skipped, a line each; "" if none was. */
LS_PUBLIC char *ls_collective_notes (const LsCollective *collective);

/* Bus bandwidth over size, measured beside simulated, or over GPUs; .svg or .png, drawn by gnuplot, or .gp.
 * Errors as of ls_result_write_timeline();
 * LS_ERROR_CONFLICT: nothing has a size, as of a barrier on one number of GPUs. */
LS_PUBLIC gboolean ls_collective_plot (const LsCollective *collective, const char *path, GError **error);

/* ---- Pipeline schedules -------------------------------------------------- */

/* All as text, as the flags of `lockstep schedule` of the same names take it; NULL: the
 * default. */
typedef struct {
  const char *schedule; /* a name, or a path (with a slash, or ending in .csv) of a file in
                           PyTorch's text format                                       */
  gboolean all;         /* instead: all of them, compared                              */
  const char *pp, *vpp, *micro_batches;
  const char *group, *rounds, *waves, *pipes; /* of the schedules that have such       */
  const char *f_time, *b_time, *w_time, *fb_time, *comm_time; /* "1.5", or all with a
                           unit: "2ms"; of a chunk, with `all` of a rank's share of the
                           model                                                       */
  const char *memory_limit; /* of the schedules that are searched for: micro-batches of
                               a rank's full activations                               */
} LsScheduleOptions;

typedef struct LsSchedule LsSchedule;

/* The order in which each rank of a pipeline executes what it has to, and when that is.
 * LS_ERROR_USAGE: something is missing, malformed or unknown; LS_ERROR_INPUT: the file,
 * or what it says cannot run; LS_ERROR_CONFLICT: the rule that is broken; LS_ERROR_LIMIT.
 * Free with ls_schedule_free(). */
LS_PUBLIC LsSchedule *ls_schedule_new (const LsScheduleOptions *options, GError **error);
LS_PUBLIC void ls_schedule_free (LsSchedule *schedule); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsSchedule, ls_schedule_free)

/* A chart at most `width` columns wide, with its figures; of all a table. CSV is PyTorch's
 * text format; of all a row each. */
LS_PUBLIC char *ls_schedule_text (const LsSchedule *schedule, LsTextStyle style, guint width);
LS_PUBLIC char *ls_schedule_json (const LsSchedule *schedule);
LS_PUBLIC char *ls_schedule_csv (const LsSchedule *schedule);
/* A picture of the chart, or of the bubbles of all over micro-batches and over stages, .svg or
 * .png; errors as of ls_result_write_timeline(). */
LS_PUBLIC gboolean ls_schedule_plot (const LsSchedule *schedule, const char *path, GError **error);
/* Writes one of the texts to a file; errors as of ls_result_write_csv(). */
LS_PUBLIC gboolean ls_schedule_write (const char *text, const char *path, GError **error);

/* ---- Sweeps -------------------------------------------------------------- */

typedef struct LsSweep LsSweep;

/* All legal configurations of a job, the best of them found. */
LS_PUBLIC LsSweep *ls_sweep_new (void);
LS_PUBLIC void ls_sweep_free (LsSweep *sweep); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsSweep, ls_sweep_free)

/* Sets one knob from text, as ls_job_set() does. Axes take a list, "1,2,4", which narrows their
 * range: "gpus", "global-batch", "tp", "pp", "cp", "ep", "vpp", "sp", "zero", "dp-kind",
 * "micro-batch", "schedule", "recompute", "tp-overlap". Besides: "prune" (on, off), "top" (how many
 * are ranked), "threads", "gpu-hour" (dollars), "gpu-watts", "pue". LS_ERROR_USAGE. */
LS_PUBLIC gboolean ls_sweep_set (LsSweep *sweep, const char *key, const char *value, GError **error);
/* Replaces all knobs of the strategy that no axis sets; errors as of ls_job_load_strategy(). */
LS_PUBLIC gboolean ls_sweep_load_strategy (LsSweep *sweep, const char *name_or_path, GError **error);
/* Ranges of axes from a file (the manual: formats/ranges.md); what is set later overrides it. LS_ERROR_INPUT. */
LS_PUBLIC gboolean ls_sweep_load_ranges (LsSweep *sweep, const char *path, GError **error);
/* Also finds what nothing beats in time, memory and cost together. */
LS_PUBLIC void ls_sweep_set_pareto (LsSweep *sweep, gboolean is_wanted);
/* Whether the text and JSON say how long it took, which differs from run to run. */
LS_PUBLIC void ls_sweep_set_timing (LsSweep *sweep, gboolean is_wanted);

/* What charts are wanted, before it runs, so that a mistake costs no search. axes: two, "tp,pp" (NULL:
 * these), across and up; figure: "step", "tokens", "mfu" (NULL: "step"). LS_ERROR_USAGE. */
LS_PUBLIC gboolean ls_sweep_set_heat_map (LsSweep *sweep, const char *axes, const char *figure, GError **error);
LS_PUBLIC void ls_sweep_set_scaling_chart (LsSweep *sweep, gboolean is_wanted);

/* A file to which every simulation is written: a sweep that was stopped, or killed, goes on from
 * there. NULL: none. */
LS_PUBLIC void ls_sweep_set_journal (LsSweep *sweep, const char *path);

/* Processes that mpirun started with one command line, to do one sweep together. The first, of rank 0,
 * leads: it alone has results and a journal. All must join before they do anything that may fail,
 * and leave at the end, with the error if there was one: so the leader gets it, and nobody waits
 * for who is not there. Without mpirun it is one process. */
typedef struct LsTeam LsTeam;
/* LS_ERROR_UNSUPPORTED: this Lockstep is without MPI. */
LS_PUBLIC LsTeam *ls_team_join (GError **error);
LS_PUBLIC guint ls_team_rank (const LsTeam *team);
LS_PUBLIC void ls_team_leave (LsTeam *team, const GError *error); /* frees it; NULL allowed */
/* Borrowed, to the end of the sweep. */
LS_PUBLIC void ls_sweep_set_team (LsSweep *sweep, LsTeam *team);

/* Runs it, once. stop: may be set to 1 at any time, by a signal handler too, and ends the sweep
 * with what it has; or NULL. progress: or NULL. LS_ERROR_IO: the journal; LS_ERROR_INPUT, LS_ERROR_USAGE, LS_ERROR_LIMIT,
 * LS_ERROR_CONFLICT; of a team those of all. A process that does not lead its team helps until the
 * leader leaves, and has no results: nothing below is for it. */
LS_PUBLIC gboolean ls_sweep_run (LsSweep *sweep, const gint *stop, LsProgressFunc progress, gpointer data,
                                 GError **error);

/* Once it has run. */
LS_PUBLIC gboolean ls_sweep_was_stopped (const LsSweep *sweep);
/* FALSE, with LS_ERROR_STOPPED if it was, LS_ERROR_NO_FIT if nothing is legal and fits. */
LS_PUBLIC gboolean ls_sweep_check (const LsSweep *sweep, GError **error);
LS_PUBLIC char *ls_sweep_text (const LsSweep *sweep);
LS_PUBLIC char *ls_sweep_json (const LsSweep *sweep);
LS_PUBLIC char *ls_sweep_csv (const LsSweep *sweep);
/* Every simulated configuration, with its picoseconds and the flags of `lockstep run` that give
 * the same; errors as of ls_result_write_csv(). */
LS_PUBLIC gboolean ls_sweep_write_list (const LsSweep *sweep, const char *path, GError **error);
/* Pictures, .svg or .png; errors as of ls_result_write_timeline(), LS_ERROR_CONFLICT: there is nothing
 * to draw. The best step time (or another figure) over two axes; needs ls_sweep_set_heat_map(). */
LS_PUBLIC gboolean ls_sweep_write_heat_map (const LsSweep *sweep, const char *path, GError **error);
/* All that was simulated by memory, time and cost, the front marked; needs ls_sweep_set_pareto(). */
LS_PUBLIC gboolean ls_sweep_write_pareto_chart (const LsSweep *sweep, const char *path, GError **error);
/* The best over numbers of GPUs and global batches, beside ideal scaling. */
LS_PUBLIC gboolean ls_sweep_write_scaling_chart (const LsSweep *sweep, const char *path, GError **error);

/* ---- Topology ------------------------------------------------------------ */

/* All as text, as the flags of `lockstep topology` of the same names take it; NULL: the
 * default. */
typedef struct {
  const char *cluster; /* name or path                                                  */
  const char *nodes;   /* the file's, or as many as the GPUs need                       */
  const char *gpus;    /* as many nodes as hold so many                                 */
  const char *slice;   /* of a TPU pod, "4x4"                                           */
  const char *const *paths; /* ways to show, each "A,B": two GPUs of the cluster such as
                               "0,12" or "node0/gpu0,node1/gpu4"; NULL-terminated        */
} LsTopologyOptions;

typedef struct LsTopology LsTopology;

typedef enum {
  LS_TOPOLOGY_BRIEF,
  LS_TOPOLOGY_LINKS, /* every kind of link, with its source; JSON always has these */
  LS_TOPOLOGY_ALL,   /* and every link                                            */
} LsTopologyDetail;

/* A cluster described: nodes, fabric, bandwidths. LS_ERROR_USAGE: no cluster, a malformed
 * value, a way from a GPU to itself; LS_ERROR_INPUT: the file; LS_ERROR_CONFLICT: it cannot
 * be built, or has no such GPU. Free with ls_topology_free(). */
LS_PUBLIC LsTopology *ls_topology_new (const LsTopologyOptions *options, GError **error);
LS_PUBLIC void ls_topology_free (LsTopology *topology); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsTopology, ls_topology_free)

LS_PUBLIC char *ls_topology_text (const LsTopology *topology, LsTopologyDetail detail, LsTextStyle style);
LS_PUBLIC char *ls_topology_json (const LsTopology *topology, LsTopologyDetail detail);
/* The same to a file as it is made, as it may be gigabytes; errors stay with the file. */
LS_PUBLIC void ls_topology_print_json (const LsTopology *topology, LsTopologyDetail detail, FILE *out);

/* As a graph for Graphviz; errors as of ls_result_write_csv(). */
LS_PUBLIC gboolean ls_topology_write_dot (const LsTopology *topology, const char *path, GError **error);
/* A picture, .svg or .png; errors as of ls_result_write_timeline(). */
LS_PUBLIC gboolean ls_topology_plot (const LsTopology *topology, const char *path, GError **error);

/* ---- Comparisons --------------------------------------------------------- */

/* Two results as ls_result_json() gives them, from files, side by side: as text for people or
 * as JSON. LS_ERROR_INPUT. */
LS_PUBLIC char *ls_compare_results (const char *path_a, const char *path_b, gboolean as_json, GError **error);

/* Any number of them, two or more, a column for each; paths ends in NULL. LS_ERROR_INPUT. */
LS_PUBLIC char *ls_compare_many (const char *const *paths, gboolean as_json, GError **error);

/* Spans that tools/kernelbench measured on one rank beside those of
 * ls_result_write_csv(). LS_ERROR_INPUT: a file; LS_ERROR_USAGE: one holds the other kind;
 * LS_ERROR_CONFLICT: that rank is not in the prediction. */
LS_PUBLIC char *ls_compare_spans (const char *path_measured, const char *path_predicted, gboolean as_json, GError **error);
/* LS_ERROR_TOLERANCE if the predicted step is off the measured one by more than max_pct percent; other errors as above. */
LS_PUBLIC gboolean ls_check_spans (const char *path_measured, const char *path_predicted, double max_pct, GError **error);

/* ---- What there is ------------------------------------------------------- */

/* kind: "models", "clusters", "gpus", "strategies", "software", "traces", "schedules", or NULL for all.
 * LS_ERROR_USAGE for another one. */
/* The word of a NULL-terminated list that was probably meant by what was typed; NULL: none is near. Borrowed. */
LS_PUBLIC const char *ls_nearest_word (const char *typed, const char *const *words);

LS_PUBLIC char *ls_list_text (const char *kind, GError **error);

/* Reads one data file, of the kind that its "schema" names or a Hugging Face
 * config.json, and checks all that can be checked. A strategy is also checked
 * against a model and a cluster where both are given (or NULL). Returns a line
 * that says what the file holds. LS_ERROR_INPUT, LS_ERROR_CONFLICT. */
LS_PUBLIC char *ls_check_file (const char *path, const char *model, const char *cluster, GError **error);

G_END_DECLS

#endif
