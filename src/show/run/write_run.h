/* show/run/write_run.h — results of a run, of its memory and of its profile, for people and for programs. */
#ifndef LS_SHOW_RUN_WRITE_RUN_H
#define LS_SHOW_RUN_WRITE_RUN_H

#include <glib.h>

#include "analysis/critical_path.h"
#include "analysis/interval.h"
#include "analysis/report.h"
#include "ask/memory_view.h"
#include "ask/profile/reconcile_job.h"
#include "ask/reruns.h"
#include "ask/step_spread.h"
#include "ask/whatif.h"
#include "cluster/cluster.h"
#include "data/jobs/imported.h"
#include "data/text/json_out.h"
#include "exec/memory/history.h"
#include "exec/replay/timeline.h"

/* --- what single changes gain, for people and for programs --------------------------------------- */

typedef struct {
  const char *title, *subtitle; /* borrowed */
  guint
      top; /* changes shown that gain and fit; 0: all changes, also those that gain nothing or were refused */
} LsWhatIfText;

/* Newly allocated, ending in a newline. JSON and CSV have all rows. */
char *ls_what_if_to_text (const LsWhatIf *w, const LsWhatIfText *text);
char *ls_what_if_to_json (const LsWhatIf *w);
char *ls_what_if_to_csv (const LsWhatIf *w);

/* A section of a summary: the first `top` changes that gain, with a heading. */
void ls_what_if_print_gains (const LsWhatIf *w, guint top, GString *out);

/* A table of the first `top` changes that fit, or that do not, with the memory that they save; top 0: of
 * all. */
void ls_what_if_print_savings (const LsWhatIf *w, bool that_fit, guint top, GString *out);
/* The keys of all of it, in the object that is open. */
void ls_json_what_if (LsJsonOut *out, const LsWhatIf *w);

/* --- write_summary.c: the result of a run for people, at a terminal of 80 columns or more -------- */

/* What was asked for besides; NULL: it was not. Borrowed. */
typedef struct {
  const LsInterval *interval;
  const LsPathSummary *critical_path;
  const LsSensitivityTable *sensitivity;
  const LsFaultTable *faults;
  const LsEcmpTable *ecmp;
  const LsWhatIf *what_if;
  const LsStepSpread *step_spread;
  const LsMeasured *measured; /* of time 0: none */
  const GPtrArray *findings;  /* char *, with measured */
} LsReportExtras;

/* What the report does not know. Strings are borrowed; NULL ones leave their line out. */
typedef struct {
  const char *title;    /* "gpt3-175b on dgx-a100-80g, 64 GPUs"            */
  const char *subtitle; /* "tp 8, pp 8, interleaved-1f1b, ..."             */
  LsReportExtras x;
  bool color; /* ANSI escapes                                     */
  bool ascii; /* no block characters: the terminal is not UTF-8   */
} LsSummaryText;

/* Newly allocated, ends in a newline. */
char *ls_summary_format (const LsReport *r, const LsSummaryText *text);

/* Whether a job fits: "fits, 7.80 GiB free", "fits, but leaves 0.02 of a headroom of 6.60 GiB", "does not
 * fit: 3.10 GiB too much"; newly allocated. What was asked for and is not left, does not fit. */
char *ls_headroom_verdict (const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes);

/* A line with its parts, so far indented; nothing if there is no headroom. */
void ls_headroom_print (const LsHeadroom *h, guint indent, GString *out);

/* --- write_memory.c: what ranks hold, for people and for programs (`memory --json`) ---------------- */

/* "These changes make it fit ...", a table; nothing for NULL. */
void ls_memory_advice_print (const LsWhatIf *a, GString *out);
/* Its keys, in the object that is open. */
void ls_json_advice (LsJsonOut *w, const LsWhatIf *a);

/* Newly allocated, ending in a newline. */
char *ls_memory_to_text (const LsMemoryTable *t);
char *ls_memory_to_json (const LsMemoryTable *t);
char *ls_memory_to_csv (const LsMemoryTable *t);

/* --- write_summary.c: tables of a run ---------------------------------------------------------------- */

/* `run --links`: what each link of the cluster carried in the window, a row per trunk, idle ones too, in the
 * order of the cluster. Errors as of ls_write_file(). */
gboolean ls_links_write (const LsTimeline *timeline, const LsCluster *cluster, const char *path,
                         GError **error);

/* --- write_reconcile.c: a profiled step beside the predicted one, for people and programs ---------- */

/* Newly allocated, ending in a newline. */
char *ls_reconcile_to_text (const LsReconcileReport *report);
char *ls_reconcile_to_json (const LsReconcileReport *report);

/* What the profile shows of the software that ran it, as keys of a strategy.
 * As a file lockstep.software/1, of this name, based on what the job has. NULL, LS_ERROR_CONFLICT: the
 * profile shows no key at all. */
char *ls_seen_report_file (const LsReconcileReport *report, const char *name, GError **error);

/* The spans of a timeline as comma-separated text (RFC 4180), for data frames, spreadsheets and awk:
 * `run --csv`.
 *
 *     rank,stream,name,tag,micro_batch,chunk,stage,layer,start_ps,matched_ps,end_ps,cause,span,cause_span
 *     0,tp,all-reduce,F,0,0,0,1,5000000000,5002000000,6000000000,dep,3,2
 *
 * A row per span, by rank and in the order in which they ended up in the timeline.
 * Times are whole picoseconds from the start of the window. Spans are not cut at its
 * edges: one that began in the step before has a negative start.
 *
 *   stream      that of the op, or "host" where the host itself is busy or waits
 *   layer       within the chunk; empty: the op belongs to none
 *   matched_ps  communication: when all partners were there; empty for other ops, and
 *               where they never were
 *   end_ps      empty: still running when the simulation stopped
 *   cause       none, stream, dep, host: what the op waited for last (exec/replay/timeline.h)
 *   span        number of the row within its rank
 *   cause_span  the row of the same rank that it waited for; empty: none in the window */

/* With more rows than this only ranks that were simulated have any. */
#define LS_SPANS_MAX_ROWS 20000000

/* Writes path as a whole or not at all. A rank that another stood for has the rows of that one,
 * which are its own to the picosecond; but where one rank of each role was recorded, only those
 * have rows. LS_ERROR_USAGE, LS_ERROR_IO: see ls_write_file(). */
gboolean ls_spans_write (const LsTimeline *t, const char *path, GError **error);
/* The same as a text, newly allocated (g_free). */
char *ls_spans_to_csv (const LsTimeline *t);

/* --- write_summary.c: the result of a run for programs (`run --json`) ---------------------------- */

/* Where a result comes from. All strings borrowed; NULL ones are left out. */
typedef struct {
  const char *version;
  const char *trace, *trace_source; /* that does not say what is trained */
  const char *model, *model_source;
  const char *cluster, *cluster_source;
  const char *strategy, *strategy_source;
  const LsImported *from;                       /* the launch file that says the job */
  const char *software;                         /* whose defaults the strategy began with */
  const char *calibration, *calibration_source; /* kernel times        */
  const char *network, *network_source;         /* NCCL figures        */
  const char *options;                          /* the resolved knobs, as one would type them   */
  const GArray *assumptions;                    /* LsAssumption (job/assumptions.h)             */
  const GArray *knobs;                          /* the same of all other knobs                  */
} LsReportProvenance;

/* Newly allocated, ends in a newline. extras: what to add. A figure that is not finite becomes
 * null. */
char *ls_report_to_json (const LsReport *r, const LsReportProvenance *p, const LsReportExtras *extras);

/* --- write_snapshot.c ------------------------------------------------------------------------------ */

typedef struct {
  uint32_t rank; /* as it was asked for */
  const LsMemoryHistory *history;
  const GArray *parts; /* LsRankPart */
} LsSnapshotDevice;

typedef struct {
  const char *title;
  const LsPlan *plan;
  const uint32_t *first_layers; /* of each global stage; NULL: not known */
  const LsSnapshotDevice *devices;
  guint n_devices;
} LsSnapshot;

/* LS_ERROR_IO, LS_ERROR_USAGE: it cannot be written. */
gboolean ls_snapshot_write (const LsSnapshot *s, const char *path, GError **error);

#endif
