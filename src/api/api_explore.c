/* What lockstep/explore.h has, but for sweeps; and the version. */
#include <math.h>

#include <lockstep/lockstep.h>
#include <lockstep/version.h>

#include "ask/collective_sizes.h"
#include "ask/compare.h"
#include "ask/override_notes.h"
#include "ask/schedule.h"
#include "ask/topology_view.h"
#include "base/suggest.h"
#include "data/text/write_file.h"
#include "show/catalog.h"
#include "show/plot/plots.h"
#include "show/write_collective.h"
#include "show/write_compare.h"
#include "show/write_compare_many.h"
#include "show/write_dot.h"
#include "show/write_schedule.h"
#include "show/write_schedule_all.h"
#include "show/write_topology.h"

/* --- collectives --- */

struct LsCollective {
  LsCollectiveRun *run;
};

/* All malformed values are reported. */
static gboolean
read_collective_options (const LsCollectiveOptions *o, LsCollectiveSpec *spec, GError **error)
{
  const struct {
    const char *key, *value;
  } knobs[] = {
    { "cluster", o->cluster },
    { "op", o->op },
    { "nodes", o->nodes },
    { "gpus", o->gpus },
    { "algorithm", o->algorithm },
    { "protocol", o->protocol },
    { "network", o->network },
    { "min", o->min },
    { "max", o->max },
    { "factor", o->factor },
    { "compare", o->compare },
    { "trust", o->trust },
    { "slice", o->slice },
    { "nccl", o->nccl },
  };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    if (knobs[i].value)
      ls_collective_spec_set (spec, knobs[i].key, knobs[i].value, diags);
  return ls_diag_list_to_error (diags, error);
}

LsCollective *
ls_collective_run (const LsCollectiveOptions *options, GError **error)
{
  g_return_val_if_fail (options, NULL);
  LsCollectiveSpec spec;
  ls_collective_spec_init (&spec);
  spec.progress = (LsProgress) { options->progress, options->progress_data };
  LsCollectiveRun *run
      = read_collective_options (options, &spec, error) ? ls_collective_run_new (&spec, error) : NULL;
  if (run)
    ls_override_note_collective (&spec, ls_collective_run_table (run), ls_collective_run_notes (run));
  ls_collective_spec_clear (&spec);
  if (!run)
    return NULL;
  LsCollective *collective = g_new0 (LsCollective, 1);
  collective->run = run;
  return collective;
}

void
ls_collective_free (LsCollective *collective)
{
  if (!collective)
    return;
  ls_collective_run_free (collective->run);
  g_free (collective);
}

char *
ls_collective_text (const LsCollective *collective)
{
  g_return_val_if_fail (collective, NULL);
  return ls_collective_to_text (ls_collective_run_table (collective->run));
}

char *
ls_collective_json (const LsCollective *collective)
{
  g_return_val_if_fail (collective, NULL);
  return ls_collective_to_json (ls_collective_run_table (collective->run));
}

char *
ls_collective_csv (const LsCollective *collective)
{
  g_return_val_if_fail (collective, NULL);
  return ls_collective_to_csv (ls_collective_run_table (collective->run));
}

char *
ls_collective_notes (const LsCollective *collective)
{
  g_return_val_if_fail (collective, NULL);
  const GPtrArray *notes = ls_collective_run_notes (collective->run);
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < notes->len; i++)
    g_string_append_printf (text, "%s\n", (const char *) g_ptr_array_index (notes, i));
  return g_string_free (text, FALSE);
}

gboolean
ls_collective_plot (const LsCollective *collective, const char *path, GError **error)
{
  g_return_val_if_fail (collective && path, FALSE);
  return ls_plot_collective (ls_collective_run_table (collective->run), path, error);
}

/* --- pipeline schedules --- */

struct LsSchedule {
  LsScheduleSpec spec;
  LsScheduleRun *run; /* one of the two is NULL */
  LsScheduleTable *table;
};

/* All malformed values are reported. */
static gboolean
read_schedule_options (const LsScheduleOptions *o, LsScheduleSpec *spec, GError **error)
{
  const struct {
    const char *key, *value;
  } knobs[] = {
    { "schedule", o->schedule },
    { "pp", o->pp },
    { "vpp", o->vpp },
    { "micro-batches", o->micro_batches },
    { "group", o->group },
    { "rounds", o->rounds },
    { "waves", o->waves },
    { "pipes", o->pipes },
    { "f-time", o->f_time },
    { "b-time", o->b_time },
    { "w-time", o->w_time },
    { "fb-time", o->fb_time },
    { "comm-time", o->comm_time },
    { "memory-limit", o->memory_limit },
  };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    if (knobs[i].value)
      ls_schedule_spec_set (spec, knobs[i].key, knobs[i].value, diags);
  return ls_diag_list_to_error (diags, error);
}

LsSchedule *
ls_schedule_new (const LsScheduleOptions *options, GError **error)
{
  g_return_val_if_fail (options, NULL);
  g_autoptr (LsSchedule) s = g_new0 (LsSchedule, 1);
  ls_schedule_spec_init (&s->spec);
  if (!read_schedule_options (options, &s->spec, error))
    return NULL;
  if (options->all)
    s->table = ls_schedule_all (&s->spec, error);
  else
    s->run = ls_schedule_run_new (&s->spec, error);
  return s->table || s->run ? g_steal_pointer (&s) : NULL;
}

void
ls_schedule_free (LsSchedule *schedule)
{
  if (!schedule)
    return;
  ls_schedule_spec_clear (&schedule->spec);
  ls_schedule_run_free (schedule->run);
  ls_schedule_table_free (schedule->table);
  g_free (schedule);
}

char *
ls_schedule_text (const LsSchedule *schedule, LsTextStyle style, guint width)
{
  g_return_val_if_fail (schedule, NULL);
  const LsScheduleText text = { style & LS_TEXT_COLOR, style & LS_TEXT_ASCII, width };
  return schedule->run ? ls_schedule_to_text (&schedule->run->view, &text)
                       : ls_schedule_all_to_text (schedule->table);
}

char *
ls_schedule_json (const LsSchedule *schedule)
{
  g_return_val_if_fail (schedule, NULL);
  return schedule->run ? ls_schedule_to_json (&schedule->run->view)
                       : ls_schedule_all_to_json (schedule->table);
}

char *
ls_schedule_csv (const LsSchedule *schedule)
{
  g_return_val_if_fail (schedule, NULL);
  return schedule->run ? ls_schedule_to_csv (&schedule->run->view) : ls_schedule_all_to_csv (schedule->table);
}

gboolean
ls_schedule_plot (const LsSchedule *schedule, const char *path, GError **error)
{
  g_return_val_if_fail (schedule && path, FALSE);
  if (schedule->run)
    return ls_plot_schedule (&schedule->run->view, path, error);
  g_autoptr (LsBubbles) bubbles = ls_schedule_bubbles (&schedule->spec, error);
  return bubbles && ls_plot_bubbles (bubbles, path, error);
}

gboolean
ls_schedule_write (const char *text, const char *path, GError **error)
{
  g_return_val_if_fail (text && path, FALSE);
  return ls_write_text (path, text, error);
}

/* --- clusters described --- */

struct LsTopology {
  LsTopologyRun *run;
};

/* All malformed values are reported. */
static gboolean
read_topology_options (const LsTopologyOptions *o, LsJobSpec *spec, GError **error)
{
  const struct {
    const char *key, *value;
  } knobs[]
      = { { "cluster", o->cluster }, { "nodes", o->nodes }, { "gpus", o->gpus }, { "slice", o->slice } };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    if (knobs[i].value)
      ls_job_spec_set (spec, knobs[i].key, knobs[i].value, diags);
  return ls_diag_list_to_error (diags, error);
}

LsTopology *
ls_topology_new (const LsTopologyOptions *options, GError **error)
{
  g_return_val_if_fail (options, NULL);
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  LsTopologyRun *run = read_topology_options (options, &spec, error)
      ? ls_topology_run_new (&spec, options->paths, error)
      : NULL;
  ls_job_spec_clear (&spec);
  if (!run)
    return NULL;
  LsTopology *topology = g_new0 (LsTopology, 1);
  topology->run = run;
  return topology;
}

void
ls_topology_free (LsTopology *topology)
{
  if (!topology)
    return;
  ls_topology_run_free (topology->run);
  g_free (topology);
}

char *
ls_topology_text (const LsTopology *topology, LsTopologyDetail detail, LsTextStyle style)
{
  g_return_val_if_fail (topology, NULL);
  const LsTopologyText text = {
    .has_links = detail >= LS_TOPOLOGY_LINKS,
    .has_all = detail >= LS_TOPOLOGY_ALL,
    .ascii = (style & LS_TEXT_ASCII) != 0,
  };
  return ls_topology_to_text (topology->run->map, topology->run->paths, &text);
}

char *
ls_topology_json (const LsTopology *topology, LsTopologyDetail detail)
{
  g_return_val_if_fail (topology, NULL);
  return ls_topology_to_json (topology->run->map, topology->run->paths, detail >= LS_TOPOLOGY_ALL);
}

void
ls_topology_print_json (const LsTopology *topology, LsTopologyDetail detail, FILE *out)
{
  g_return_if_fail (topology && out);
  ls_topology_write_json (topology->run->map, topology->run->paths, detail >= LS_TOPOLOGY_ALL, out);
}

gboolean
ls_topology_write_dot (const LsTopology *topology, const char *path, GError **error)
{
  g_return_val_if_fail (topology && path, FALSE);
  g_autofree char *text = ls_dot_format (topology->run->cluster);
  return ls_write_text (path, text, error);
}

gboolean
ls_topology_plot (const LsTopology *topology, const char *path, GError **error)
{
  g_return_val_if_fail (topology && path, FALSE);
  return ls_plot_topology (topology->run->map, path, error);
}

/* --- comparisons --- */

static LsResultCompare *
compare_results (const LsResultFile *a, const LsResultFile *b, const LsDiagList *diags, GError **error)
{
  return ls_diag_list_to_error (diags, error) ? ls_result_compare_new (a, b) : NULL;
}

char *
ls_compare_results (const char *path_a, const char *path_b, gboolean as_json, GError **error)
{
  g_return_val_if_fail (path_a && path_b, NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsResultFile) a = ls_result_file_load (path_a, diags);
  g_autoptr (LsResultFile) b = ls_result_file_load (path_b, diags);
  g_autoptr (LsResultCompare) compare = compare_results (a, b, diags, error);
  if (!compare)
    return NULL;
  return as_json ? ls_result_compare_to_json (compare) : ls_result_compare_to_text (compare);
}

char *
ls_compare_many (const char *const *paths, gboolean as_json, GError **error)
{
  g_return_val_if_fail (paths && paths[0] && paths[1], NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_result_file_free);
  for (; *paths; paths++)
    g_ptr_array_add (files, ls_result_file_load (*paths, diags));
  if (!ls_diag_list_to_error (diags, error))
    return NULL;
  LsResultFile *const *all = (LsResultFile *const *) (gpointer) files->pdata;
  return as_json ? ls_compare_many_to_json (all, files->len) : ls_compare_many_to_text (all, files->len);
}

/* Which of the two files is which is known by their columns. */
static gboolean
check_sides (const LsSpanTable *measured, const LsSpanTable *predicted, GError **error)
{
  if (measured->is_measured && !predicted->is_measured)
    return TRUE;
  g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE,
                       measured->is_measured        ? "both files hold measured spans"
                           : predicted->is_measured ? "the measured spans (kernelbench --plan) come first"
                                                    : "both files hold predicted spans");
  return FALSE;
}

static LsSpanCompare *
load_spans (const char *path_measured, const char *path_predicted, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsSpanTable) measured = ls_span_table_load (path_measured, diags);
  g_autoptr (LsSpanTable) predicted = ls_span_table_load (path_predicted, diags);
  if (!ls_diag_list_to_error (diags, error) || !check_sides (measured, predicted, error))
    return NULL;
  return ls_span_compare_new (measured, predicted, error);
}

char *
ls_compare_spans (const char *path_measured, const char *path_predicted, gboolean as_json, GError **error)
{
  g_return_val_if_fail (path_measured && path_predicted, NULL);
  g_autoptr (LsSpanCompare) compare = load_spans (path_measured, path_predicted, error);
  if (!compare)
    return NULL;
  return as_json ? ls_span_compare_to_json (compare) : ls_span_compare_to_text (compare);
}

gboolean
ls_check_spans (const char *path_measured, const char *path_predicted, double max_pct, GError **error)
{
  g_return_val_if_fail (path_measured && path_predicted, FALSE);
  g_autoptr (LsSpanCompare) compare = load_spans (path_measured, path_predicted, error);
  if (!compare)
    return FALSE;
  double error_pct = 100 * (compare->predicted.step_us / compare->measured.step_us - 1);
  if (fabs (error_pct) <= max_pct)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_TOLERANCE,
               "the predicted step is off by %+.2f %%, more than %.2f %%", error_pct, max_pct);
  return FALSE;
}

/* --- lists and checks --- */

const char *
ls_nearest_word (const char *typed, const char *const *words)
{
  g_return_val_if_fail (typed && words, NULL);
  return ls_suggest (typed, words);
}

char *
ls_list_text (const char *kind, GError **error)
{
  return ls_catalog_list (kind, error);
}

char *
ls_check_file (const char *path, const char *model, const char *cluster, GError **error)
{
  g_return_val_if_fail (path && !model == !cluster, NULL);
  return ls_catalog_check (path, model, cluster, error);
}

/* --- the version --- */

const char *
ls_version (void)
{
  return LS_VERSION;
}
