/* lockstep/job.h — one job: knobs, results, why it takes its time, what would change it, and memory. Include
 * <lockstep/lockstep.h>. */
#ifndef LOCKSTEP_JOB_H
#define LOCKSTEP_JOB_H

#include <glib.h>

#include <lockstep/export.h>
#include <lockstep/units.h>

G_BEGIN_DECLS

/* Told what a long function has done: n_done simulations of at most n_to_do, which is 0 where nobody
 * can tell. Called from any thread, one call at a time. */
typedef void (*LsProgressFunc) (guint64 n_done, guint64 n_to_do, gpointer data);

/* ---- One job ------------------------------------------------------------- */

typedef struct LsJob LsJob;
typedef struct LsResult LsResult;

LS_PUBLIC LsJob *ls_job_new (void);      /* all defaults; model (or trace) and cluster must be set */
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
  gboolean is_usual; /* one of those that most jobs set                        */
} LsKnob;

typedef struct {
  const char *name, *title; /* "batch"; as a heading */
} LsKnobTopic;

/* All knobs, by topic, and the topics. Static. */
LS_PUBLIC const LsKnob *ls_knobs (guint *ret_n);
LS_PUBLIC const LsKnobTopic *ls_knob_topics (guint *ret_n);

/* Sets one knob from text: a key of ls_knobs(), with dashes or underscores. Besides: "residuals" (a file of
 * what published runs measured, from which the interval around the step is made, in place of the runs that
 * the cluster was fitted to; "none") and "debug" (a list such as "evq=ref,solver=ref,runahead=off", which
 * selects the reference implementations). "for", "software" and "strategy" come before the other knobs of a
 * strategy, as they set their defaults (LS_ERROR_INPUT if the file is wrong). On and off are "1" and "0".
 * LS_ERROR_USAGE if the key is unknown or the value malformed; the job is then unchanged. */
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

/* What had to be assumed to read a foreign model file, options that make no difference to this job, and why,
 * and what a number of the result is not; a line each, "" if nothing. */
LS_PUBLIC char *ls_result_notes (const LsResult *result);

typedef enum {
  LS_TEXT_PLAIN = 0,
  LS_TEXT_COLOR = 1 << 0, /* ANSI escapes                                        */
  LS_TEXT_ASCII = 1 << 1, /* no block characters: the terminal does not do UTF-8 */
} LsTextStyle;

LS_PUBLIC char *ls_result_summary (const LsResult *result, LsTextStyle style); /* for people */
LS_PUBLIC char *ls_result_json (const LsResult *result);                       /* for programs */
LS_PUBLIC char *ls_result_placement (const LsResult *result);                  /* one line per rank */

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
LS_PUBLIC gboolean ls_result_find_sensitivity (LsResult *result, const LsJob *job, guint n_threads,
                                               GError **error);

/* The result's job as another program is told to run it: "megatron" (flags of Megatron-LM, for
 * a shell), "torchtitan" (TOML), "deepspeed" (JSON). *ret_notes: what is to be said elsewhere, a
 * line each; "" if nothing is. LS_ERROR_UNSUPPORTED: a trace, or knobs that it cannot express;
 * LS_ERROR_USAGE: no such program. */
LS_PUBLIC char *ls_result_emit (const LsResult *result, const LsJob *job, const char *target,
                                char **ret_notes, GError **error);
/* LS_ERROR_USAGE: no such program. */
LS_PUBLIC gboolean ls_check_emit_target (const char *target, GError **error);

/* ---- What single changes gain --------------------------------------------- */

typedef struct LsWhatIfs LsWhatIfs;

/* Single changes to a job, each simulated: schedules, layouts, batches, recomputation, overlap, backends,
 * number formats, links, later GPUs. Ranked by tokens per second. n_threads: 0: one per processor; the result
 * is the same. progress: or NULL. Errors as of ls_job_run(); LS_ERROR_UNSUPPORTED: a trace leaves nothing to
 * change. Under the order of a file only changes that keep it are made. Free with ls_what_ifs_free(). */
LS_PUBLIC LsWhatIfs *ls_what_ifs_new (const LsJob *job, guint n_threads, LsProgressFunc progress,
                                      gpointer data, GError **error);
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
LS_PUBLIC gboolean ls_result_write_memory_chart (const LsResult *result, gint64 rank, const char *path,
                                                 GError **error);

G_END_DECLS

#endif
