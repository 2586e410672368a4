/* `lockstep run`: one job. */
#include <string.h>

#include "api/commands.h"
#include "api/job_answer.h"
#include "ask/memory_view.h"
#include "base/suggest.h"
#include "data/jobs/emit.h"
#include "data/jobs/read_software.h"
#include "data/machines/machines.h"
#include "job/assumptions.h"
#include "job/job.h"
#include "job/job_written.h"
#include "job/softwares.h"
#include "show/run/trace_chrome.h"
#include "show/run/write_run.h"

/* A Chrome trace of more ranks shows one of each role. */
#define TRACE_MAX_RANKS 16
#define TRACE_MAX_OPS   50000 /* 17 MB */

/* --- what it prints ------------------------------------------------------------------------------- */

static char *
summary (const LsJobAnswer *j, const LsTextStyle *style)
{
  const LsSummaryText text
      = { j->title, j->subtitle, ls_job_answer_extras (j), style->has_color, style->is_ascii };
  return ls_summary_format (&j->job->report, &text);
}

static char *
to_text (gconstpointer data, const LsTextStyle *style)
{
  const LsJobAnswer *j = data;
  if (j->emitted)
    return g_strdup (j->emitted);
  g_autofree char *text = summary (j, style);
  if (!j->has_placement)
    return g_steal_pointer (&text);
  g_autofree char *placement = ls_placement_format (j->job->plan, &j->job->strategy, j->job->cluster);
  return g_strconcat (placement, "\n", text, NULL);
}

LS_ANSWER_FORM (to_json, ls_job_answer_to_json (data, ls_version ()))

/* Its spans: what the option csv writes. */
static char *
to_csv (gconstpointer data, const LsTextStyle *style)
{
  const LsTimeline *t = ((const LsJobAnswer *) data)->job->timeline;
  return t ? ls_spans_to_csv (t) : NULL;
}

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, ls_job_answer_free, ls_job_answer_page };

/* --- what it writes ------------------------------------------------------------------------------- */

static LsTraceSize
trace_size (const LsJobAnswer *j)
{
  return j->has_whole_trace ? (LsTraceSize) { 0 } : (LsTraceSize) { TRACE_MAX_RANKS, TRACE_MAX_OPS };
}

static GArray *
memory_of_rank (gconstpointer answer, uint32_t rank)
{
  const LsJobAnswer *j = answer;
  return ls_memory_curve_of (j->job, &j->spec.options.memory, rank, NULL);
}

static gboolean
write_chrome_trace (gconstpointer data, const char *path, GError **error)
{
  const LsJobAnswer *j = data;
  const LsChromeTrace trace = {
    .timeline = j->job->timeline,
    .title = j->title,
    .critical = j->critical_path,
    .cluster = j->job->cluster,
    .nccl = &j->job->hardware->nccl,
    .memory = memory_of_rank,
    .user = j,
    .size = trace_size (j),
  };
  return ls_trace_chrome_write (&trace, path, error);
}

static void
note_left_out (const LsJobAnswer *j, const LsRequest *r, LsAnswer *a)
{
  LsTraceSize size = trace_size (j);
  guint64 n = ls_request_text (r, "chrome-trace") ? ls_trace_chrome_left_out (j->job->timeline, &size) : 0;
  if (n > 0)
    ls_answer_note (a,
                    "the Chrome trace leaves out %" G_GUINT64_FORMAT
                    " ops, to stay below 20 MB: --chrome-trace-all has all",
                    n);
}

static gboolean
write_csv (gconstpointer data, const char *path, GError **error)
{
  return ls_spans_write (((const LsJobAnswer *) data)->job->timeline, path, error);
}

static gboolean
write_links (gconstpointer data, const char *path, GError **error)
{
  const LsJobAnswer *j = data;
  return ls_links_write (j->job->timeline, j->job->cluster, path, error);
}

static gboolean
write_memory_chart (gconstpointer data, const char *path, GError **error)
{
  return ls_job_answer_plot_memory (data, -1, path, error);
}

/* --- the command ---------------------------------------------------------------------------------- */

static gboolean
find_critical_path (LsJobAnswer *j, GError **error)
{
  const LsJobResult *r = j->job;
  j->critical_path = ls_critical_path_new (r->timeline, r->cluster, &r->hardware->nccl, error);
  j->critical_summary = j->critical_path ? ls_path_summary_new (j->critical_path) : NULL;
  return j->critical_path != NULL;
}

/* "each:gpu" is the word, with or without a share; newly allocated, "": none is near. */
static char *
fault_hint (const char *text)
{
  const char *kinds[LS_N_FAULT_KINDS + 1] = { NULL };
  bool has_each = g_str_has_prefix (text, "each:");
  g_autofree char *kind = g_strdup (has_each ? text + strlen ("each:") : text);
  kind[strcspn (kind, "=")] = '\0';
  for (int k = 0; k < LS_N_FAULT_KINDS; k++)
    kinds[k] = ls_fault_kind_names[k];
  const char *near = has_each && g_strv_contains (kinds, kind) ? NULL : ls_suggest (kind, kinds);
  return near ? g_strdup_printf ("; did you mean \"each:%s\"?", near) : g_strdup ("");
}

static gboolean
read_faults (const char *text, LsFaultAsk *ret_ask, GError **error)
{
  if (g_str_has_prefix (text, "each:") && ls_fault_ask_parse (text + strlen ("each:"), ret_ask))
    return TRUE;
  g_autofree char *hint = fault_hint (text);
  return ls_fail (
      error, LS_ERROR_USAGE,
      "--faults: expected each: and link, gpu or node, and what is left of it, such as each:link=0.1 (of "
      "a link from 0 on, of others from %g on; below 1); got \"%s\"%s",
      1 / LS_SLOW_MAX, text, hint);
}

static gboolean
find_faults (LsJobAnswer *j, const LsRequest *r, const char *text, GError **error)
{
  LsFaultAsk ask;
  const LsProgress progress = ls_request_progress (r);
  if (read_faults (text, &ask, error))
    j->faults = ls_fault_table_new (&j->spec, j->job, &ask, 0, &progress, error);
  return j->faults != NULL;
}

static gboolean
find_ecmp (LsJobAnswer *j, const LsRequest *r, GError **error)
{
  gint64 n = 0;
  if (!ls_request_number (r, "ecmp-seeds", 1, LS_ECMP_MAX_SEEDS, &n, error))
    return FALSE;
  j->ecmp = ls_ecmp_table_new (&j->spec, j->job, (guint) n, 0, error);
  return j->ecmp != NULL;
}

static gboolean
find_what_if (LsJobAnswer *j, const LsRequest *r, GError **error)
{
  const LsProgress progress = ls_request_progress (r);
  j->what_if = ls_what_if_new (&j->spec, j->job, LS_WHAT_IFS, 0, &progress, error);
  g_free (j->subtitle);
  j->subtitle = ls_job_subtitle (j->job);
  return j->what_if != NULL;
}

/* What --jitter says. */
typedef struct {
  LsJitter jitter; /* name NULL: off */
  gint64 seed;
  bool is_seeded; /* by an option */
} Variation;

/* Before anything runs. The caller clears ret_v->jitter. */
static gboolean
read_variation (const LsRequest *r, Variation *ret_v, GError **error)
{
  const char *name = ls_request_text (r, "jitter");
  gboolean is_on = name && strcmp (name, LS_JITTER_OFF) != 0;
  *ret_v = (Variation) { .seed = 1, .is_seeded = ls_request_text (r, "jitter-seed") != NULL };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_request_number (r, "jitter-seed", 0, UINT32_MAX, &ret_v->seed, error)
      && (!is_on || ls_data_file_load (&ls_jitter_file, name, &ret_v->jitter, diags)
          || ls_diag_list_to_error (diags, error));
}

static gboolean
find_spread (LsJobAnswer *j, const Variation *v, GError **error)
{
  j->step_spread = ls_step_spread_new (&j->spec, j->job, &v->jitter, (uint32_t) v->seed, 0, error);
  ls_assumptions_add (&j->job->assumptions, "jitter_seed", g_strdup_printf ("%" G_GINT64_FORMAT, v->seed),
                      "jitter of seed %s", v->is_seeded ? NULL : "by default", "--jitter-seed N");
  if (j->step_spread)
    ls_step_spread_assume (j->step_spread, &j->job->assumptions);
  g_free (j->subtitle);
  j->subtitle = ls_job_subtitle (j->job);
  return j->step_spread != NULL;
}

/* Where the step was predicted as another program runs the job; a release is not asked of which it is. */
static void
note_other_program (const LsStrategy *s, const char *target, LsAnswer *a)
{
  LsSoftwareSpec head;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!s->program.software || !ls_software_load_head (s->program.software, &head, diags))
    return;
  bool is_program = head.dp_kinds || head.emit || strcmp (s->program.software, LS_SOFTWARE_TEXTBOOK) == 0;
  if (is_program && g_strcmp0 (head.emit, target) != 0)
    ls_answer_note (
        a, "the step was predicted as %s runs it, with its kernels: --for %s predicts it with its own",
        s->program.software, target);
  ls_software_clear (&head);
}

static gboolean
emit (LsJobAnswer *j, const char *target, LsAnswer *a, GError **error)
{
  if (j->spec.trace)
    return ls_fail (error, LS_ERROR_UNSUPPORTED,
                    "--emit %s does not go with --trace: it is not known which knobs made its ops", target);
  const LsJobResult *r = j->job;
  const LsEmitJob emitted
      = { .model = &r->model, .strategy = &r->strategy, .order = j->spec.order, .title = j->title };
  g_autofree char *notes = NULL;
  j->emitted = ls_job_emit (&j->spec, &emitted, r->assumptions, target, &notes, error);
  if (j->emitted) {
    note_other_program (&r->strategy, target, a);
    ls_answer_note_lines (a, notes);
  }
  return j->emitted != NULL;
}

static gboolean
check (const LsRequest *r, GError **error)
{
  const char *target = ls_request_text (r, "emit"), *faults = ls_request_text (r, "faults");
  LsFaultAsk ask;
  if (faults && !read_faults (faults, &ask, error))
    return FALSE;
  return (!target || ls_emit_check_target (target, error)) && ls_timeline_options_check (r, error);
}

/* What takes more than the run. */
static gboolean
find_more (LsJobAnswer *j, const LsRequest *r, const Variation *v, LsAnswer *a, GError **error)
{
  const char *target = ls_request_text (r, "emit"), *faults = ls_request_text (r, "faults");
  return (!ls_request_is_on (r, "critical-path") || find_critical_path (j, error))
      && (!ls_request_is_on (r, "sensitivity")
          || (j->sensitivity = ls_sensitivity_new (&j->spec, j->job, 0, error)))
      && (!faults || find_faults (j, r, faults, error))
      && (!ls_request_text (r, "ecmp-seeds") || find_ecmp (j, r, error))
      && (!ls_request_is_on (r, "what-if") || find_what_if (j, r, error))
      && (!v->jitter.name || find_spread (j, v, error)) && (!target || emit (j, target, a, error));
}

static gboolean
run_with (const LsRequest *r, const Variation *v, LsAnswer *a, GError **error)
{
  g_autoptr (LsJobAnswer) made = ls_job_answer_new (r, a, error);
  if (!made || !find_more (made, r, v, a, error))
    return FALSE;
  LsJobAnswer *j = g_steal_pointer (&made);
  if (!j->what_if)
    ls_what_if_assume_headroom (&j->spec, NULL, j->job); /* its text has it at the peak */
  ls_answer_take (a, j, &forms);
  j->has_placement = ls_request_is_on (r, "show-placement");
  j->has_whole_trace = ls_request_is_on (r, "chrome-trace-all");
  note_left_out (j, r, a);
  ls_answer_write (a, r, "chrome-trace", write_chrome_trace);
  ls_answer_write (a, r, "csv", write_csv);
  ls_answer_write (a, r, "links", write_links);
  ls_answer_write (a, r, "memory-chart", write_memory_chart);
  ls_job_answer_draw_timelines (j, r, a);
  ls_job_answer_check_fit (j, r, "lockstep memory, with the same options, simulates what would make it fit",
                           a);
  return TRUE;
}

gboolean
command_run (const LsRequest *r, LsAnswer *a, GError **error)
{
  Variation v;
  if (!check (r, error))
    return FALSE;
  gboolean ok = read_variation (r, &v, error) && run_with (r, &v, a, error);
  ls_jitter_clear (&v.jitter);
  return ok;
}
