#include "api/job_answer.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "ask/memory_view.h"
#include "ask/reruns.h"
#include "job/assumptions.h"
#include "job/job_steps.h"
#include "job/job_from.h"
#include "job/knobs.h"
#include "show/draw/pictures.h"
#include "show/page/page.h"
#include "show/run/write_run.h"

/* --- lockstep run --timeline --------------------------------------------------------------------- */

#define MAX_RANKS 256

static gboolean
read_rows (const LsRequest *r, LsTimelineRows *rows, GError **error)
{
  const char *text = ls_request_text (r, "timeline-rows");
  static const char *const names[] = { [LS_TIMELINE_RANKS] = "ranks",
                                       [LS_TIMELINE_MICRO_BATCHES] = "micro-batches",
                                       [LS_TIMELINE_STREAMS] = "streams",
                                       [LS_TIMELINE_OPS] = "ops",
                                       NULL };
  for (guint i = 0; names[i]; i++)
    if (!text || strcmp (text, names[i]) == 0) {
      *rows = (LsTimelineRows) i;
      return TRUE;
    }
  return ls_request_refuse_word ("--timeline-rows", names, text, error);
}

/* uint32_t; none: NULL. */
static gboolean
read_ranks (const LsRequest *r, GArray **ret_ranks, GError **error)
{
  bool is_set = ls_request_text (r, "timeline-ranks") != NULL;
  *ret_ranks = is_set
      ? ls_request_ranks (r, "timeline-ranks", MAX_RANKS, "at most 256 ranks with a comma between two", error)
      : NULL;
  return !is_set || *ret_ranks;
}

static gboolean
read_window (const LsRequest *r, LsTime *from, LsTime *to, GError **error)
{
  const char *text = ls_request_text (r, "timeline-window"), *expected;
  g_auto (GStrv) ends = g_strsplit (text ? text : "", "..", 2);
  if (!text)
    return TRUE;
  if (g_strv_length (ends) == 2 && ls_parse_time (ends[0], from, &expected)
      && ls_parse_time (ends[1], to, &expected) && *from >= 0 && *to > *from)
    return TRUE;
  return ls_fail (error, LS_ERROR_USAGE,
                  "--timeline-window: expected two times with units, such as 1.2s..1.35s; got \"%s\"", text);
}

/* Free ret->ranks. */
static gboolean
read_options (const LsRequest *r, LsTimelinePicture *ret, GArray **ret_ranks, GError **error)
{
  gint64 width = LS_TIMELINE_WIDTH;
  *ret = (LsTimelinePicture) { 0 };
  *ret_ranks = NULL;
  if (!ls_request_number (r, "timeline-width", LS_TIMELINE_MIN_WIDTH, LS_TIMELINE_MAX_WIDTH, &width, error)
      || !read_rows (r, &ret->rows, error) || !read_window (r, &ret->from, &ret->to, error)
      || !read_ranks (r, ret_ranks, error))
    return FALSE;
  ret->width = (guint) width;
  ret->has_arrows = ls_request_is_on (r, "timeline-arrows");
  ret->ranks = *ret_ranks;
  return TRUE;
}

gboolean
ls_timeline_options_check (const LsRequest *r, GError **error)
{
  LsTimelinePicture picture;
  g_autoptr (GArray) ranks = NULL;
  return read_options (r, &picture, &ranks, error);
}

static gboolean
check_ranks (const LsTimeline *t, const GArray *ranks, GError **error)
{
  for (guint i = 0; ranks && i < ranks->len; i++) {
    uint32_t rank = g_array_index (ranks, uint32_t, i);
    bool is_there = rank < t->n_ranks;
    if (is_there && (!t->is_sampled || ls_timeline_multiplicity (t, rank) > 0))
      continue;
    return ls_fail (
        error, LS_ERROR_USAGE,
        is_there ? "--timeline-ranks: spans of rank %u were not kept, only those of one rank of each role"
                 : "--timeline-ranks: there is no rank %u",
        rank);
  }
  return TRUE;
}

static gboolean
draw (const LsJobAnswer *j, const LsRequest *r, const char *path, GError **error)
{
  LsTimelinePicture picture;
  g_autoptr (GArray) ranks = NULL;
  const LsTimeline *t = j->job->timeline;
  if (!read_options (r, &picture, &ranks, error) || !check_ranks (t, ranks, error))
    return FALSE;
  if (picture.from >= t->window_end - t->window_start)
    return ls_request_refuse ("--timeline-window: the step is over by then", error);
  picture.title = j->title;
  g_autoptr (LsDrawing) drawing = ls_draw_timeline (t, &picture);
  return ls_drawing_write (drawing, path, error);
}

void
ls_job_answer_draw_timelines (const LsJobAnswer *j, const LsRequest *r, LsAnswer *a)
{
  g_autofree const char **paths = ls_request_texts (r, "timeline");
  for (const char **path = paths; path && *path; path++) {
    GError *error = NULL;
    if (!draw (j, r, *path, &error))
      ls_answer_fail (a, error);
  }
}

/* --- a job that was run, and what was found out about it: what `run` and `memory` show ----------- */

#define MAX_CURVES 16

/* The fullest rank first, then one of each stage. uint32_t. */
static GArray *
ranks_of (const LsJobResult *r)
{
  const LsPlan *plan = r->plan;
  GArray *ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autofree bool *is_taken = g_new0 (bool, plan->n_roles);
  uint32_t fullest = r->report.peak_rank;
  g_array_append_val (ranks, fullest);
  is_taken[ls_plan_role (plan, fullest)] = true;
  for (uint32_t rank = 0; rank < plan->n_ranks && ranks->len < MAX_CURVES; rank++)
    if (!is_taken[ls_plan_role (plan, rank)]) {
      is_taken[ls_plan_role (plan, rank)] = true;
      g_array_append_val (ranks, rank);
    }
  return ranks;
}

static char *
memory_of (const LsJobAnswer *j)
{
  const LsJobResult *r = j->job;
  g_autoptr (GArray) ranks = ranks_of (r);
  g_autoptr (GPtrArray) curves = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  LsPageMemory shown[MAX_CURVES];
  for (guint i = 0; i < ranks->len; i++) {
    uint32_t rank = g_array_index (ranks, uint32_t, i);
    GArray *samples = ls_memory_curve_of (r, &j->spec.options.memory, rank, NULL);
    if (!samples)
      continue;
    shown[curves->len] = (LsPageMemory) { rank, samples };
    g_ptr_array_add (curves, samples);
  }
  return ls_page_memory (shown, curves->len, r->timeline->window_end - r->timeline->window_start,
                         r->report.capacity_bytes);
}

static char *
links_of (const LsJobResult *r)
{
  g_autoptr (LsCluster) whole = ls_cluster_spell_out (r->cluster);
  g_autoptr (LsTopoMap) map = ls_topo_map_new (whole);
  g_autoptr (LsTopoUse) use = ls_topo_use_new (whole, r->timeline);
  g_autoptr (LsDrawing) drawing = ls_draw_topology (map, use);
  return ls_drawing_to_svg (drawing);
}

void
ls_job_answer_memory_page (gconstpointer job_answer, LsPage *page)
{
  const LsJobAnswer *j = job_answer;
  ls_page_set_title (page, j->title, j->subtitle);
  ls_page_take_packed (page, "memory", memory_of (j));
}

void
ls_job_answer_page (gconstpointer job_answer, LsPage *page)
{
  const LsJobAnswer *j = job_answer;
  ls_job_answer_memory_page (j, page);
  ls_page_take_packed (page, "timeline", ls_page_timeline (j->job->timeline));
  ls_page_take_packed (page, "links", links_of (j->job));
}

/* --- the job ---------------------------------------------------------------------------------------- */

/* "gpt3-175b on 64 GPUs of dgx-a100-80g". */
static char *
title_of (const LsJobResult *r)
{
  return g_strdup_printf ("%s on %u %s of %s", r->model.name ? r->model.name : r->trace, r->plan->n_ranks,
                          ls_cluster_chip_word (&r->cluster->spec, r->plan->n_ranks), r->cluster->spec.name);
}

char *
ls_job_subtitle (const LsJobResult *r)
{
  g_autofree char *knobs
      = r->model.name ? ls_knobs_summary (&r->strategy, &r->model) : g_strdup (r->trace_source),
      *taken = ls_segment_text (&r->cluster->spec), *assumed = ls_assumptions_text (r->assumptions);
  return g_strconcat (knobs, taken ? ", on " : "", taken ? taken : "", assumed ? "\n" : NULL, assumed, NULL);
}

LsTitled *
ls_titled_new (gpointer result, GDestroyNotify free, const LsJobResult *job)
{
  LsTitled *t = g_new (LsTitled, 1);
  *t = (LsTitled) { result, title_of (job), ls_job_subtitle (job), free, 0 };
  return t;
}

void
ls_titled_free (gpointer titled)
{
  LsTitled *t = titled;
  t->free (t->result);
  g_free (t->title);
  g_free (t->subtitle);
  g_free (t);
}

void
ls_job_tell_from (LsJobSpec *spec, LsAnswer *a)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  ls_job_from_notes (spec, notes);
  ls_job_from_measure (spec, notes);
  ls_answer_note_all (a, notes);
}

void
ls_job_tell_unasked (const LsJobSpec *spec, LsAnswer *a)
{
  if (!spec->from || spec->program)
    return;
  const char *writer = spec->software ? spec->software->emit : NULL;
  ls_answer_note (a, "that %s can run what is found was not checked: %s%s%s", spec->from->program,
                  writer ? "with --for " : "no list of what it cannot run is known", writer ? writer : "",
                  writer ? " only what it runs is looked at" : "");
}

void
ls_job_tell_idle (const LsRequest *r, LsIdleOptions of, LsAnswer *a)
{
  static const char *const flags[] = { "headroom", "memory-clock", "memory-allocator", "network",
                                       "steps",    "slow",         "measured",         "published" };
  for (guint i = 0; i < (of == LS_IDLE_OF_MEMORY ? 3 : G_N_ELEMENTS (flags)); i++) {
    g_autofree char *key = g_strdelimit (g_strdup (flags[i]), "-", '_'); /* of a knob of a job */
    if (ls_request_text (r, flags[i]) || ls_request_text (r, key))
      ls_answer_note (a, "--%s has no effect here: %s", flags[i],
                      i < 3 ? "it is of memory as run and memory show it" : "nothing is replayed");
  }
}

void
ls_job_tell_interval (const LsJobSpec *spec, const LsJobResult *r, const char *what, LsAnswer *a)
{
  g_autoptr (LsResiduals) residuals = NULL;
  if (!ls_job_residuals_load (spec, r, &residuals, NULL) || !residuals)
    return;
  LsInterval interval;
  ls_job_interval (spec, r, residuals, NULL, &interval);
  double step_s = r->report.step_time_s;
  g_autofree char *label = ls_interval_label (&interval),
                  *low = ls_format_time (ls_time_from_s (interval.low * step_s)),
                  *high = ls_format_time (ls_time_from_s (interval.high * step_s));
  if (interval.none)
    ls_answer_note (a, "the interval of %s is %s", what, label);
  else
    ls_answer_note (a, "%s takes %s to %s: %s", what, low, high, label);
  ls_interval_clear (&interval);
}

static void
note_result (const LsJobAnswer *j, LsAnswer *a)
{
  ls_answer_note_all (a, j->job->notes);
  const LsReport *r = &j->job->report;
  if (r->mfu > 1)
    ls_answer_note (
        a,
        "an MFU above 100 %% is no error: kernels compute less than the FLOPs of the model, as where "
        "attention has windows or chosen keys, or run in a format with a higher peak than the job's");
  else if (r->mfu_all_pairs > 1 || r->hfu_all_pairs > 1)
    ls_answer_note (a,
                    "MFU %.0f %% of all pairs counts attention that a causal mask leaves out, as Megatron-LM "
                    "prints it; kernels compute the causal half",
                    100 * r->mfu_all_pairs);
}

/* The interval, what the numbers say, and how it is called. */
static void
explain (LsJobAnswer *j, const LsResiduals *residuals)
{
  const LsJobSpec *spec = &j->spec;
  LsJobResult *r = j->job;
  ls_override_note_job (spec, r, "the step", NULL, r->notes);
  if (residuals) {
    j->interval = g_new0 (LsInterval, 1);
    ls_job_interval (spec, r, residuals, NULL, j->interval);
  }
  const LsModel *model = r->model.name ? &r->model : NULL;
  ls_job_note_contradictions (r, &spec->measured, "--measured", r->notes);
  j->findings = ls_measured_explain (&spec->measured, &r->report, model, &r->strategy);
  j->title = title_of (r);
  j->subtitle = ls_job_subtitle (r);
}

LsJobAnswer *
ls_job_answer_new (const LsRequest *r, LsAnswer *a, GError **error)
{
  return ls_job_answer_new_of (r, NULL, a, error);
}

LsJobAnswer *
ls_job_answer_new_of (const LsRequest *r, const char *from, LsAnswer *a, GError **error)
{
  g_autoptr (LsJobAnswer) j = g_new0 (LsJobAnswer, 1);
  g_autoptr (LsResiduals) residuals = NULL, its = NULL;
  if (!ls_request_job_of (r, from, &j->spec, error)
      || !ls_job_residuals_load (&j->spec, NULL, &residuals, error))
    return NULL;
  ls_job_tell_from (&j->spec, a);
  j->job = ls_job_spec_run (&j->spec, error);
  if (!j->job || (j->spec.trace && !ls_job_residuals_load (&j->spec, j->job, &its, error)))
    return NULL;
  explain (j, its ? its : residuals);
  note_result (j, a);
  return g_steal_pointer (&j);
}

/* As one would type them: knobs of the strategy, and what was asked for besides. */
static char *
options_of (const LsJobAnswer *j)
{
  g_autofree char *knobs = ls_job_knobs (&j->spec, &j->job->model, true, &j->job->strategy),
                  *asked = ls_job_options (&j->spec);
  return g_strchomp (g_strconcat (knobs, " ", asked, NULL));
}

LsReportExtras
ls_job_answer_extras (const LsJobAnswer *j)
{
  return (LsReportExtras) { j->interval, j->critical_summary, j->sensitivity,    j->faults,  j->ecmp,
                            j->what_if,  j->step_spread,      &j->spec.measured, j->findings };
}

char *
ls_job_answer_to_json (const LsJobAnswer *j, const char *version)
{
  const LsJobResult *r = j->job;
  g_autofree char *options = r->model.name ? options_of (j) : NULL;
  const LsReportProvenance provenance = {
    .version = version,
    .trace = r->trace,
    .trace_source = r->trace_source,
    .model = r->model.name,
    .model_source = r->model.source,
    .cluster = r->cluster->spec.name,
    .cluster_source = r->cluster->spec.source,
    .strategy = r->strategy.name,
    .strategy_source = r->strategy.source,
    .from = j->spec.from,
    .software = r->strategy.program.software,
    .calibration = r->hardware->calibration.name,
    .calibration_source = r->hardware->calibration.source,
    .network = r->hardware->nccl.name,
    .network_source = r->hardware->nccl.source,
    .options = options,
    .assumptions = r->assumptions,
    .knobs = r->knobs,
  };
  const LsReportExtras extras = ls_job_answer_extras (j);
  return ls_report_to_json (&r->report, &provenance, &extras);
}

void
ls_job_answer_free (gpointer answer)
{
  LsJobAnswer *j = answer;
  if (!j)
    return;
  ls_path_summary_free (j->critical_summary);
  ls_critical_path_free (j->critical_path);
  g_free (j->sensitivity);
  ls_fault_table_free (j->faults);
  ls_ecmp_table_free (j->ecmp);
  ls_what_if_free (j->what_if);
  ls_step_spread_free (j->step_spread);
  ls_job_result_free (j->job);
  ls_what_if_free (j->advice);
  if (j->interval)
    ls_interval_clear (j->interval);
  g_free (j->interval);
  g_clear_pointer (&j->findings, g_ptr_array_unref);
  g_free (j->title);
  g_free (j->subtitle);
  g_free (j->emitted);
  ls_job_spec_clear (&j->spec);
  g_free (j);
}

/* --- memory --------------------------------------------------------------------------------------- */

GError *
ls_job_misfit (const LsReport *r)
{
  int largest = 0;
  for (int c = 1; c < LS_N_MEM; c++)
    if (r->at_peak[c] > r->at_peak[largest])
      largest = c;
  g_autofree char *needed = ls_format_bytes (r->needed_bytes);
  g_autofree char *capacity = ls_format_bytes (r->capacity_bytes);
  g_autofree char *most = ls_format_bytes (r->at_peak[largest]);
  g_autofree char *headroom = ls_headroom_text (&r->headroom);
  return g_error_new (LS_ERROR, LS_ERROR_NO_FIT,
                      "does not fit: rank %u needs %s, %s available%s%s; largest: %s %s", r->peak_rank,
                      needed, capacity, r->headroom.is_asked ? ", headroom " : "",
                      r->headroom.is_asked ? headroom : "", ls_mem_category_names[largest].name, most);
}

void
ls_job_answer_check_fit (const LsJobAnswer *j, const LsRequest *r, const char *help, LsAnswer *a)
{
  if (j->job->report.fits)
    return;
  GError *error = ls_job_misfit (&j->job->report);
  if (ls_request_is_on (r, "require-fit")) {
    ls_answer_fail (a, error);
    return;
  }
  ls_answer_warn (a, g_strconcat (error->message, help ? "\n" : NULL, help, NULL));
  g_error_free (error);
}

gboolean
ls_job_answer_plot_memory (const LsJobAnswer *j, gint64 rank, const char *path, GError **error)
{
  const LsJobResult *job = j->job;
  const LsMemoryOptions *options = &j->spec.options.memory;
  uint32_t shown = rank < 0 ? job->report.peak_rank : (uint32_t) MIN (rank, G_MAXUINT32);
  g_autoptr (GArray) samples = ls_memory_curve_of (job, options, shown, error);
  if (!samples)
    return FALSE;
  const LsTimeline *t = job->timeline;
  g_autofree char *capacity = ls_format_bytes (job->report.capacity_bytes);
  g_autofree char *note = g_strdup_printf ("rank %u%s, stage %u, %s clock; %s for the job", shown,
                                           shown == job->report.peak_rank ? ", the fullest" : "",
                                           job->plan->programs[ls_plan_role (job->plan, shown)].stage,
                                           ls_memory_clock_names[options->clock].name, capacity);
  const LsMemoryPlot plot = {
    .title = j->title,
    .note = note,
    .samples = samples,
    .window = t->window_end - t->window_start,
    .capacity_bytes = job->report.capacity_bytes,
  };
  g_autoptr (LsDrawing) drawing = ls_draw_memory (&plot);
  return ls_drawing_write (drawing, path, error);
}
