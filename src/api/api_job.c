/* What lockstep/job.h has, but for the table of knobs. */
#include "api/api_job.h"

#include <string.h>

#include "ask/memory_view.h"
#include "ask/memory_advice.h"
#include "ask/override_notes.h"
#include "ask/sensitivity.h"
#include "ask/whatif.h"
#include "data/jobs/emit.h"
#include "data/jobs/read_hf.h"
#include "data/jobs/read_strategy.h"
#include "data/text/write_file.h"
#include "job/knobs.h"
#include "job/placement.h"
#include "show/plot/picture.h"
#include "show/plot/plots.h"
#include "show/run/trace_chrome.h"
#include "show/run/write_links.h"
#include "show/run/write_memory.h"
#include "show/run/write_report.h"
#include "show/run/write_spans.h"
#include "show/run/write_summary.h"
#include "show/write_whatif.h"

/* --- jobs and results --- */

/* A Chrome trace of more ranks shows one of each role. */
#define TRACE_MAX_RANKS 16

LsJob *
ls_job_new (void)
{
  LsJob *job = g_new0 (LsJob, 1);
  ls_job_spec_init (&job->spec);
  return job;
}

void
ls_job_free (LsJob *job)
{
  if (!job)
    return;
  ls_job_spec_clear (&job->spec);
  g_free (job);
}

gboolean
ls_job_set (LsJob *job, const char *key, const char *value, GError **error)
{
  g_return_val_if_fail (job && key && value, FALSE);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_job_spec_set (&job->spec, key, value, diags) || ls_diag_list_to_error (diags, error);
}

gboolean
ls_job_load_strategy (LsJob *job, const char *name_or_path, GError **error)
{
  g_return_val_if_fail (job && name_or_path, FALSE);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_job_spec_load_strategy (&job->spec, name_or_path, diags) || ls_diag_list_to_error (diags, error);
}

char *
ls_job_title (const LsJobResult *r)
{
  return g_strdup_printf ("%s on %u %s of %s", r->model.name ? r->model.name : r->trace, r->plan->n_ranks,
                          ls_cluster_chip_word (&r->cluster->spec, r->plan->n_ranks), r->cluster->spec.name);
}

char *
ls_job_subtitle (const LsJobResult *r)
{
  if (!r->model.name)
    return g_strdup (r->trace_source);
  g_autofree char *knobs = ls_knobs_summary (&r->strategy), *taken = ls_segment_text (&r->cluster->spec);
  return taken ? g_strconcat (knobs, ", on ", taken, NULL) : g_strdup (knobs);
}

LsResult *
ls_job_run (const LsJob *job, GError **error)
{
  g_return_val_if_fail (job, NULL);
  g_autoptr (LsResiduals) residuals = NULL;
  if (!ls_job_residuals_load (&job->spec, &residuals, error))
    return NULL;
  LsJobResult *r = ls_job_spec_run (&job->spec, error);
  if (!r)
    return NULL;
  ls_override_note_job (&job->spec, r, r->notes);
  LsResult *result = g_new0 (LsResult, 1);
  result->job = r;
  result->memory = job->spec.options.memory;
  if (residuals) {
    result->interval = g_new0 (LsInterval, 1);
    ls_job_interval (&job->spec, r, residuals, result->interval);
  }
  ls_measured_copy (&result->measured, &job->spec.measured);
  result->findings
      = ls_measured_explain (&result->measured, &r->report, r->model.name ? &r->model : NULL, &r->strategy);
  if (job->spec.strategy.seq > 0)
    ls_model_notes_drop_length (r->notes);
  result->title = ls_job_title (r);
  return result;
}

/* "a/gpt3.json" is named gpt3: a file says its own name. */
static char *
name_of (const char *path)
{
  g_autofree char *base = g_path_get_basename (path);
  char *suffix = g_str_has_suffix (base, ".json") ? base + strlen (base) - strlen (".json") : NULL;
  return g_strndup (base, suffix ? (gsize) (suffix - base) : strlen (base));
}

gboolean
ls_job_write_trace (const LsJob *job, const char *path, GError **error)
{
  g_return_val_if_fail (job && path, FALSE);
  g_autofree char *name = name_of (path);
  g_autofree char *text = ls_job_spec_export (&job->spec, name, error);
  return text && ls_write_text (path, text, error);
}

char *
ls_job_shapes (const LsJob *job, GError **error)
{
  g_return_val_if_fail (job, NULL);
  return ls_job_spec_shapes (&job->spec, error);
}

void
ls_result_free (LsResult *result)
{
  if (!result)
    return;
  ls_path_summary_free (result->critical_summary);
  ls_critical_path_free (result->critical_path);
  ls_sensitivity_free (result->sensitivity);
  ls_job_result_free (result->job);
  ls_memory_advice_free (result->advice);
  ls_interval_clear (result->interval);
  g_free (result->interval);
  ls_measured_clear (&result->measured);
  g_ptr_array_unref (result->findings);
  g_free (result->title);
  g_free (result);
}

double
ls_result_step_time_s (const LsResult *result)
{
  g_return_val_if_fail (result, 0);
  return ls_job_result_step_time_s (result->job);
}

gboolean
ls_result_check_fit (const LsResult *result, GError **error)
{
  g_return_val_if_fail (result, FALSE);
  const LsReport *r = &result->job->report;
  if (r->fits)
    return TRUE;

  int largest = 0;
  for (int c = 1; c < LS_N_MEM; c++)
    if (r->at_peak[c] > r->at_peak[largest])
      largest = c;
  g_autofree char *needed = ls_format_bytes (r->needed_bytes);
  g_autofree char *capacity = ls_format_bytes (r->capacity_bytes);
  g_autofree char *most = ls_format_bytes (r->at_peak[largest]);
  g_autofree char *headroom = ls_headroom_text (&r->headroom);
  g_set_error (error, LS_ERROR, LS_ERROR_NO_FIT,
               "does not fit: rank %u needs %s, %s available%s%s; largest: %s %s", r->peak_rank, needed,
               capacity, r->headroom.is_asked ? ", headroom " : "", r->headroom.is_asked ? headroom : "",
               ls_mem_category_name ((LsMemCategory) largest), most);
  return FALSE;
}

char *
ls_result_notes (const LsResult *result)
{
  g_return_val_if_fail (result, NULL);
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < result->job->notes->len; i++)
    g_string_append_printf (text, "%s\n", (const char *) g_ptr_array_index (result->job->notes, i));
  const LsReport *r = &result->job->report;
  if (r->mfu > 1)
    g_string_append_printf (text,
                            "MFU %.0f %% counts attention over all pairs of tokens, as Megatron-LM prints "
                            "it; kernels compute the causal half: "
                            "causal MFU %.1f %%\n",
                            100 * r->mfu, 100 * r->mfu_causal);
  return g_string_free (text, FALSE);
}

char *
ls_result_summary (const LsResult *result, LsTextStyle style)
{
  g_return_val_if_fail (result, NULL);
  g_autofree char *subtitle = ls_job_subtitle (result->job);
  const LsSummaryText text = {
    .title = result->title,
    .subtitle = subtitle,
    .interval = result->interval,
    .measured = &result->measured,
    .findings = result->findings,
    .critical_path = result->critical_summary,
    .sensitivity = result->sensitivity,
    .color = (style & LS_TEXT_COLOR) != 0,
    .ascii = (style & LS_TEXT_ASCII) != 0,
  };
  return ls_summary_format (&result->job->report, &text);
}

char *
ls_result_json (const LsResult *result)
{
  g_return_val_if_fail (result, NULL);
  const LsJobResult *r = result->job;
  g_autofree char *knobs = r->model.name ? ls_knobs_format (&r->strategy) : NULL;
  const LsReportProvenance provenance = {
    .version = ls_version (),
    .trace = r->trace,
    .trace_source = r->trace_source,
    .model = r->model.name,
    .model_source = r->model.source,
    .cluster = r->cluster->spec.name,
    .cluster_source = r->cluster->spec.source,
    .strategy = r->strategy.name,
    .strategy_source = r->strategy.source,
    .software = r->strategy.software,
    .software_is_assumed = r->strategy.software_is_assumed,
    .calibration = r->hardware->calibration.name,
    .calibration_source = r->hardware->calibration.source,
    .network = r->hardware->nccl.name,
    .network_source = r->hardware->nccl.source,
    .options = knobs,
  };
  const LsReportExtras extras = { result->interval, result->critical_summary, result->sensitivity,
                                  &result->measured, result->findings };
  return ls_report_to_json (&r->report, &provenance, &extras);
}

char *
ls_result_placement (const LsResult *result)
{
  g_return_val_if_fail (result, NULL);
  return ls_placement_format (result->job->plan, &result->job->strategy, result->job->cluster);
}

gboolean
ls_check_output_path (LsOutput output, const char *path, GError **error)
{
  g_return_val_if_fail (path, FALSE);
  gboolean is_picture = output == LS_OUTPUT_TIMELINE || output == LS_OUTPUT_PLOT;
  return is_picture ? ls_picture_check (path, error) : ls_write_file_check (path, error);
}

gboolean
ls_result_write_chrome_trace (const LsResult *result, const char *path, GError **error)
{
  g_return_val_if_fail (result && path, FALSE);
  return ls_trace_chrome_write (result->job->timeline, result->critical_path, result->title, TRACE_MAX_RANKS,
                                path, error);
}

gboolean
ls_result_write_csv (const LsResult *result, const char *path, GError **error)
{
  g_return_val_if_fail (result && path, FALSE);
  return ls_spans_write (result->job->timeline, path, error);
}

gboolean
ls_result_write_links (const LsResult *result, const char *path, GError **error)
{
  g_return_val_if_fail (result && path, FALSE);
  return ls_links_write (result->job->timeline, result->job->cluster, path, error);
}

gboolean
ls_result_write_timeline (const LsResult *result, const char *path, GError **error)
{
  g_return_val_if_fail (result && path, FALSE);
  return ls_plot_timeline (result->job->timeline, result->title, path, error);
}

/* --- why a step takes its time; jobs for other programs --- */

gboolean
ls_result_find_critical_path (LsResult *result, GError **error)
{
  g_return_val_if_fail (result, FALSE);
  if (result->critical_path)
    return TRUE;
  const LsJobResult *r = result->job;
  result->critical_path = ls_critical_path_new (r->timeline, r->cluster, &r->hardware->nccl, error);
  if (!result->critical_path)
    return FALSE;
  result->critical_summary = ls_path_summary_new (result->critical_path);
  return TRUE;
}

gboolean
ls_result_find_sensitivity (LsResult *result, const LsJob *job, guint n_threads, GError **error)
{
  g_return_val_if_fail (result && job, FALSE);
  ls_sensitivity_free (result->sensitivity);
  result->sensitivity = ls_sensitivity_new (&job->spec, result->job, n_threads, error);
  return result->sensitivity != NULL;
}

gboolean
ls_check_emit_target (const char *target, GError **error)
{
  g_return_val_if_fail (target, FALSE);
  return ls_emit_check_target (target, error);
}

char *
ls_result_emit (const LsResult *result, const LsJob *job, const char *target, char **ret_notes,
                GError **error)
{
  g_return_val_if_fail (result && job && target && ret_notes, NULL);
  const LsJobResult *r = result->job;
  if (job->spec.trace) {
    g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED,
                 "--emit %s does not go with --trace: it is not known which knobs made its ops", target);
    return NULL;
  }
  const LsEmitJob emitted
      = { .model = &r->model, .strategy = &r->strategy, .order = job->spec.order, .title = result->title };
  return ls_emit (&emitted, target, ret_notes, error);
}

/* --- what single changes gain --- */

struct LsWhatIfs {
  LsWhatIf *table;
  char *title, *subtitle;
};

/* The job as what-ifs need it: without intervals and notes, in one network. */
static LsJobResult *
run_now (const LsJob *job, GError **error)
{
  LsJobSpec spec = job->spec; /* borrows all */
  if (spec.network == LS_JOB_NETWORK_ALL)
    spec.network = LS_JOB_NETWORK_FLOW;
  return ls_job_spec_run (&spec, error);
}

LsWhatIfs *
ls_what_ifs_new (const LsJob *job, guint n_threads, LsProgressFunc progress, gpointer data, GError **error)
{
  g_return_val_if_fail (job, NULL);
  g_autoptr (LsJobResult) now = run_now (job, error);
  if (!now)
    return NULL;
  const LsProgress told = { progress, data };
  LsWhatIf *table = ls_what_if_new (&job->spec, now, n_threads, &told, error);
  if (!table)
    return NULL;
  LsWhatIfs *w = g_new (LsWhatIfs, 1);
  *w = (LsWhatIfs) { table, ls_job_title (now), ls_job_subtitle (now) };
  return w;
}

void
ls_what_ifs_free (LsWhatIfs *w)
{
  if (!w)
    return;
  ls_what_if_free (w->table);
  g_free (w->title);
  g_free (w->subtitle);
  g_free (w);
}

char *
ls_what_ifs_text (const LsWhatIfs *w, guint top)
{
  g_return_val_if_fail (w, NULL);
  const LsWhatIfText text = { w->title, w->subtitle, top };
  return ls_what_if_to_text (w->table, &text);
}

char *
ls_what_ifs_json (const LsWhatIfs *w)
{
  g_return_val_if_fail (w, NULL);
  return ls_what_if_to_json (w->table);
}

char *
ls_what_ifs_csv (const LsWhatIfs *w)
{
  g_return_val_if_fail (w, NULL);
  return ls_what_if_to_csv (w->table);
}

/* --- memory --- */

gboolean
ls_result_advise (LsResult *result, const LsJob *job, GError **error)
{
  g_return_val_if_fail (result && job, FALSE);
  if (result->job->report.fits)
    return TRUE;
  ls_memory_advice_free (result->advice);
  result->advice = ls_memory_advise (&job->spec, result->job, error);
  return result->advice != NULL;
}

static char *
format_memory (const LsResult *result, char *(*to) (const LsMemoryTable *t))
{
  g_autofree char *subtitle = ls_job_subtitle (result->job);
  g_auto (LsMemoryTable) table = { 0 };
  ls_memory_table_init (&table, result->job, result->title, subtitle, result->advice);
  return to (&table);
}

char *
ls_result_memory_text (const LsResult *result)
{
  g_return_val_if_fail (result, NULL);
  return format_memory (result, ls_memory_to_text);
}

char *
ls_result_memory_json (const LsResult *result)
{
  g_return_val_if_fail (result, NULL);
  return format_memory (result, ls_memory_to_json);
}

char *
ls_result_memory_csv (const LsResult *result)
{
  g_return_val_if_fail (result, NULL);
  return format_memory (result, ls_memory_to_csv);
}

gboolean
ls_result_write_memory_chart (const LsResult *result, gint64 rank, const char *path, GError **error)
{
  g_return_val_if_fail (result && path, FALSE);
  const LsJobResult *job = result->job;
  uint32_t shown = rank < 0 ? job->report.peak_rank : (uint32_t) MIN (rank, G_MAXUINT32);
  g_autoptr (GArray) samples = ls_memory_curve_of (job, &result->memory, shown, error);
  if (!samples)
    return FALSE;
  const LsTimeline *t = job->timeline;
  g_autofree char *capacity = ls_format_bytes (job->report.capacity_bytes);
  g_autofree char *note = g_strdup_printf ("rank %u%s, stage %u, %s clock; %s for the job", shown,
                                           shown == job->report.peak_rank ? ", the fullest" : "",
                                           job->plan->programs[job->plan->bindings[shown].role].stage,
                                           ls_memory_clock_name (result->memory.clock), capacity);
  const LsMemoryPlot plot = {
    .title = result->title,
    .note = note,
    .samples = samples,
    .window = t->window_end - t->window_start,
    .capacity_bytes = job->report.capacity_bytes,
  };
  return ls_plot_memory (&plot, path, error);
}
