/* `lockstep sweep`: the best of all legal configurations. */
#include <string.h>
#include <lockstep/error.h>

#include "api/answer.h"
#include "api/commands.h"
#include "api/job_answer.h"
#include "api/request.h"
#include "ask/captured.h"
#include "data/datadir.h"
#include "data/jobs/emit.h"
#include "data/machines/machines.h"
#include "data/text/override.h"
#include "data/text/write_file.h"
#include "show/answers.h"
#include "show/plot/plots.h"
#include "sweep/sweep_charts.h"

/* --- layouts of a program, each captured --------------------------------------------------------- */

LS_ANSWER_FORM (layouts_to_text, ls_capture_layouts_to_text (data))
LS_ANSWER_FORM (layouts_to_json, ls_capture_layouts_to_json (data))
LS_ANSWER_FREE (free_layouts, ls_capture_layouts_free)

static const LsAnswerForms layouts_forms
    = { layouts_to_text, layouts_to_json, NULL, NULL, free_layouts, NULL };

typedef struct {
  char *cluster;
  GArray *axes; /* LsCaptureAxis */
} Said;

static gboolean
take_knob (gpointer target, const char *key, const char *value, LsDiagList *diags)
{
  Said *said = target;
  (void) diags;
  if (strcmp (key, "cluster") == 0) {
    g_free (said->cluster);
    said->cluster = g_strdup (value);
    return TRUE;
  }
  const LsCaptureAxis axis = { g_strdelimit (g_strdup (key), "_", '-'), g_strsplit (value, ",", -1) };
  g_array_append_val (said->axes, axis);
  return TRUE;
}

static gboolean
capture (const LsRequest *r, Said *said, const LsClusterSpec *cluster, LsAnswer *a, GError **error)
{
  const LsProgress progress = ls_request_progress (r);
  g_autofree const char **words = ls_request_texts (r, "command");
  g_autofree char *message = NULL, *models = ls_data_find (LS_DATA_MODEL_NAMES, "published", &message);
  const LsCaptureAsk ask = { .gpu = &cluster->gpu,
                             .gpus_per_node = cluster->gpus_per_node,
                             .which = LS_CAPTURE_AUTO,
                             .steps = 2,
                             .command = words[0] && strcmp (words[0], "--") == 0 ? words + 1 : words,
                             .models = models,
                             .stop = ls_request_stop (r),
                             .progress = &progress };
  LsCaptureLayouts *layouts = ls_capture_layouts (&ask, said->cluster, g_steal_pointer (&said->axes), error);
  if (!layouts)
    return FALSE;
  const LsCaptureLayout *best = &g_array_index (layouts->layouts, LsCaptureLayout, 0);
  ls_answer_take (a, layouts, &layouts_forms);
  if (best->error && !best->is_too_large)
    ls_answer_fail_with (a, LS_ERROR_FAILED, "no layout could be simulated: %s", best->error);
  else if (!best->fits)
    ls_answer_fail_with (a, LS_ERROR_NO_FIT, "no layout fits");
  return TRUE;
}

static gboolean
sweep_capture (const LsRequest *r, LsAnswer *a, GError **error)
{
  Said said = { NULL, ls_capture_axes_new () };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree const char **words = ls_request_texts (r, "command");
  LsClusterSpec cluster;
  gboolean ok = ls_request_set_job (r, take_knob, &said, error);
  if (ok && (!said.cluster || !words))
    ok = ls_request_refuse ("--capture: expected --cluster, and -- and a command with {tp} and the like",
                            error);
  if (ok && !ls_cluster_load (said.cluster, &cluster, diags))
    ok = ls_diag_list_to_error (diags, error);
  else if (ok) {
    ok = capture (r, &said, &cluster, a, error);
    ls_cluster_spec_clear (&cluster);
  }
  g_free (said.cluster);
  g_clear_pointer (&said.axes, g_array_unref);
  return ok;
}

/* --- the best of all legal configurations -------------------------------------------------------- */

typedef struct {
  LsSweepSpec spec;
  LsSweepRun *run;
  char *emitted; /* for another program, in place of the table; NULL: nobody asked */
} Data;

static void
data_free (gpointer data)
{
  Data *s = data;
  ls_sweep_run_free (s->run);
  ls_sweep_spec_clear (&s->spec);
  g_free (s->emitted);
  g_free (s);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Data, data_free)

/* --- what it prints and writes -------------------------------------------------------------------- */

static const LsSweepReport *
report (gconstpointer data)
{
  return ls_sweep_run_report (((const Data *) data)->run);
}

static char *
to_text (gconstpointer data, const LsTextStyle *style)
{
  if (((const Data *) data)->emitted)
    return g_strdup (((const Data *) data)->emitted);
  return ls_sweep_to_text (report (data));
}

LS_ANSWER_FORM (to_json, ls_sweep_to_json (report (data)))
LS_ANSWER_FORM (to_csv, ls_sweep_to_csv (report (data)))

static void
page (gconstpointer data, LsPage *page)
{
  ls_page_set_title (page, report (data)->title, NULL);
  ls_page_take_packed (page, "simulated", ls_sweep_run_list (((const Data *) data)->run));
}

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, data_free, page };

static gboolean
write_list (gconstpointer data, const char *path, GError **error)
{
  g_autofree char *text = ls_sweep_run_list (((const Data *) data)->run);
  return ls_write_text (path, text, error);
}

static gboolean
write_heat_map (gconstpointer data, const char *path, GError **error)
{
  g_auto (LsHeatMap) map = { 0 };
  ls_sweep_run_heat_map (((const Data *) data)->run, &map);
  return ls_plot_heat (&map, path, error);
}

static gboolean
write_pareto_chart (gconstpointer data, const char *path, GError **error)
{
  g_auto (LsParetoPlot) plot = { 0 };
  ls_sweep_run_pareto (((const Data *) data)->run, &plot);
  return ls_plot_pareto (&plot, path, error);
}

static gboolean
write_scaling_chart (gconstpointer data, const char *path, GError **error)
{
  return ls_plot_scaling (report (data), path, error);
}

/* --- the command ---------------------------------------------------------------------------------- */

static gboolean
load_ranges (LsSweepSpec *spec, const char *path, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsRanges ranges;
  if (!ls_ranges_load (path, &ranges, diags))
    return ls_diag_list_to_error (diags, error);
  ls_space_set_ranges (&spec->space, &ranges);
  ls_ranges_clear (&ranges);
  return TRUE;
}

LS_REQUEST_SET (set_knob, ls_sweep_spec_set)

/* What a chart needs is gathered while it searches. */
static gboolean
ask_for_charts (LsSweepSpec *spec, const LsRequest *r, GError **error)
{
  const char *axes = ls_request_text (r, "heat-axes"), *figure = ls_request_text (r, "heat-figure");
  gboolean has_map = ls_request_text (r, "heat-map") != NULL;
  spec->pareto = ls_request_is_on (r, "pareto") || ls_request_text (r, "pareto-chart");
  spec->scaling_chart = ls_request_text (r, "scaling-chart") != NULL;
  return !has_map || ls_sweep_spec_set_heat (spec, axes, figure, error);
}

static gboolean
read_spec (LsSweepSpec *spec, const LsRequest *r, GError **error)
{
  const char *ranges = ls_request_text (r, "ranges");
  if ((ranges && !load_ranges (spec, ranges, error)) || !ls_request_set_job (r, set_knob, spec, error)
      || !ls_request_set_own (r, set_knob, spec, error) || !ask_for_charts (spec, r, error))
    return FALSE;
  spec->has_timing = ls_request_is_on (r, "timing");
  spec->journal = ls_request_text (r, "journal");
  spec->team = ls_request_team (r);
  spec->stop = ls_request_stop (r);
  spec->progress = ls_request_progress (r);
  return TRUE;
}

/* What was said of the cluster and changes nothing for the best. */
static void
note_idle (const Data *s, GPtrArray *notes)
{
  LsJobSpec job = s->spec.job; /* borrows all */
  if (report (s)->best->len == 0 || !(job.nccl || job.gpu_calibration || ls_override_find (job.cluster)))
    return;
  const LsSweepRow *best = &g_array_index (report (s)->best, LsSweepRow, 0);
  job.strategy = best->strategy;
  g_autoptr (LsJobResult) r = ls_job_spec_run (&job, NULL);
  if (r && r->timeline->window_end - r->timeline->window_start == best->step)
    ls_override_note_job (&job, r, "the step of the best", LS_KEYS_OF_PRICE, notes);
}

static void
check_result (const LsSweepReport *s, LsAnswer *a)
{
  if (s->is_interrupted)
    ls_answer_fail_with (a, LS_ERROR_STOPPED,
                         "stopped with %" G_GUINT64_FORMAT
                         " configurations left: these are the results so far",
                         s->counts.left);
  else if (s->best->len == 0)
    ls_answer_fail_with (a, LS_ERROR_NO_FIT,
                         "of %" G_GUINT64_FORMAT " configurations %" G_GUINT64_FORMAT
                         " are illegal and %" G_GUINT64_FORMAT " do not fit",
                         s->counts.enumerated, s->counts.illegal, s->counts.infeasible);
}

/* Only a sweep for the program tries what it can run. */
static gboolean
check_emit (const LsRequest *r, const LsSweepSpec *spec, GError **error)
{
  const char *target = ls_request_text (r, "emit");
  if (!target)
    return TRUE;
  if (!ls_emit_check_target (target, error))
    return FALSE;
  if (spec->job.program && strcmp (spec->job.program->emit, target) == 0)
    return TRUE;
  return ls_fail (error, LS_ERROR_USAGE, "--emit %s goes with --for %s, so that it can run what is found",
                  target, target);
}

static void
emit (Data *s, const LsRequest *r, LsAnswer *a)
{
  GError *error = NULL;
  g_autofree char *notes = NULL;
  const char *target = ls_request_text (r, "emit");
  s->emitted = target && report (s)->best->len > 0 ? ls_sweep_emit (s->run, target, &notes, &error) : NULL;
  if (s->emitted)
    ls_answer_note_lines (a, notes);
  else if (error)
    ls_answer_fail (a, error);
}

/* All but these belong to layouts of a model. */
static gboolean
check_capture (const LsRequest *r, GError **error)
{
  static const char *const allowed[] = { "capture", "command", "format", "json", NULL };
  const GArray *own = ls_request_command (r)->own;
  for (guint i = 0; i < own->len; i++) {
    const LsOption *o = &g_array_index (own, LsOption, i);
    if (g_strv_contains (allowed, o->key) || (!ls_request_text (r, o->key) && !ls_request_is_on (r, o->key)))
      continue;
    return ls_fail (error, LS_ERROR_USAGE, "--%s does not go with --capture", o->key);
  }
  return TRUE;
}

/* Of a team only the leader has results. */
gboolean
command_sweep (const LsRequest *r, LsAnswer *a, GError **error)
{
  if (ls_request_is_on (r, "capture"))
    return check_capture (r, error) && sweep_capture (r, a, error);
  g_autoptr (Data) made = g_new0 (Data, 1);
  ls_sweep_spec_init (&made->spec);
  if (!read_spec (&made->spec, r, error) || !check_emit (r, &made->spec, error))
    return FALSE;
  ls_job_tell_from (&made->spec.job, a);
  ls_job_tell_unasked (&made->spec.job, a);
  made->run = ls_sweep_spec_run (&made->spec, error);
  if (!made->run)
    return FALSE;
  if (!ls_request_leads (r)) {
    ls_answer_take_text (a, g_strdup (""));
    return TRUE;
  }
  Data *s = g_steal_pointer (&made);
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  ls_sweep_run_notes (s->run, notes);
  note_idle (s, notes);
  ls_answer_note_all (a, notes);
  ls_answer_take (a, s, &forms);
  emit (s, r, a);
  ls_answer_write (a, r, "list", write_list);
  ls_answer_write (a, r, "heat-map", write_heat_map);
  ls_answer_write (a, r, "pareto-chart", write_pareto_chart);
  ls_answer_write (a, r, "scaling-chart", write_scaling_chart);
  check_result (report (s), a);
  return TRUE;
}

LsTeam *
ls_team_join (GError **error)
{
  return ls_team_new (error);
}

guint
ls_team_rank (const LsTeam *team)
{
  g_return_val_if_fail (team, 0);
  return ls_team_own_rank (team);
}

void
ls_team_leave (LsTeam *team, const GError *error)
{
  ls_team_free (team, error);
}
