/* Sweeps: LsSweep of lockstep/lockstep.h. */
#include <lockstep/lockstep.h>

#include "data/jobs/read_strategy.h"
#include "data/text/write_file.h"
#include "show/plot/plots.h"
#include "show/write_sweep.h"
#include "sweep/sweep_charts.h"

struct LsSweep {
  LsSweepSpec spec;
  LsSweepRun *run; /* NULL: not yet */
  char *journal;
};

LsSweep *
ls_sweep_new (void)
{
  LsSweep *sweep = g_new0 (LsSweep, 1);
  ls_sweep_spec_init (&sweep->spec);
  return sweep;
}

void
ls_sweep_free (LsSweep *sweep)
{
  if (!sweep)
    return;
  ls_sweep_run_free (sweep->run);
  ls_sweep_spec_clear (&sweep->spec);
  g_free (sweep->journal);
  g_free (sweep);
}

gboolean
ls_sweep_set (LsSweep *sweep, const char *key, const char *value, GError **error)
{
  g_return_val_if_fail (sweep && key && value, FALSE);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_sweep_spec_set (&sweep->spec, key, value, diags) || ls_diag_list_to_error (diags, error);
}

gboolean
ls_sweep_load_strategy (LsSweep *sweep, const char *name_or_path, GError **error)
{
  g_return_val_if_fail (sweep && name_or_path, FALSE);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_job_spec_load_strategy (&sweep->spec.job, name_or_path, diags)
      || ls_diag_list_to_error (diags, error);
}

gboolean
ls_sweep_load_ranges (LsSweep *sweep, const char *path, GError **error)
{
  g_return_val_if_fail (sweep && path, FALSE);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsRanges ranges;
  if (!ls_ranges_load (path, &ranges, diags))
    return ls_diag_list_to_error (diags, error);
  ls_space_set_ranges (&sweep->spec.space, &ranges);
  ls_ranges_clear (&ranges);
  return TRUE;
}

void
ls_sweep_set_pareto (LsSweep *sweep, gboolean is_wanted)
{
  g_return_if_fail (sweep);
  sweep->spec.pareto = is_wanted;
}

void
ls_sweep_set_journal (LsSweep *sweep, const char *path)
{
  g_return_if_fail (sweep);
  g_free (sweep->journal);
  sweep->spec.journal = sweep->journal = g_strdup (path);
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

void
ls_sweep_set_team (LsSweep *sweep, LsTeam *team)
{
  g_return_if_fail (sweep);
  sweep->spec.team = team;
}

gboolean
ls_sweep_set_heat_map (LsSweep *sweep, const char *axes, const char *figure, GError **error)
{
  g_return_val_if_fail (sweep, FALSE);
  return ls_sweep_spec_set_heat (&sweep->spec, axes, figure, error);
}

void
ls_sweep_set_scaling_chart (LsSweep *sweep, gboolean is_wanted)
{
  g_return_if_fail (sweep);
  sweep->spec.scaling_chart = is_wanted;
}

gboolean
ls_sweep_run (LsSweep *sweep, const gint *stop, LsProgressFunc progress, gpointer data, GError **error)
{
  g_return_val_if_fail (sweep && !sweep->run, FALSE);
  sweep->spec.stop = stop;
  sweep->spec.progress = (LsProgress) { progress, data };
  sweep->run = ls_sweep_spec_run (&sweep->spec, error);
  return sweep->run != NULL;
}

gboolean
ls_sweep_was_stopped (const LsSweep *sweep)
{
  g_return_val_if_fail (sweep && sweep->run, FALSE);
  return ls_sweep_run_report (sweep->run)->is_interrupted;
}

gboolean
ls_sweep_check (const LsSweep *sweep, GError **error)
{
  g_return_val_if_fail (sweep && sweep->run, FALSE);
  const LsSweepReport *r = ls_sweep_run_report (sweep->run);
  if (r->is_interrupted)
    g_set_error (error, LS_ERROR, LS_ERROR_STOPPED,
                 "stopped with %" G_GUINT64_FORMAT " configurations left: these are the results so far",
                 r->counts.left);
  else if (r->best->len == 0)
    g_set_error (error, LS_ERROR, LS_ERROR_NO_FIT,
                 "of %" G_GUINT64_FORMAT " configurations %" G_GUINT64_FORMAT
                 " are illegal and %" G_GUINT64_FORMAT " do not fit",
                 r->counts.enumerated, r->counts.illegal, r->counts.infeasible);
  return !r->is_interrupted && r->best->len > 0;
}

void
ls_sweep_set_timing (LsSweep *sweep, gboolean is_wanted)
{
  g_return_if_fail (sweep);
  sweep->spec.has_timing = is_wanted;
}

char *
ls_sweep_text (const LsSweep *sweep)
{
  g_return_val_if_fail (sweep && sweep->run, NULL);
  return ls_sweep_to_text (ls_sweep_run_report (sweep->run));
}

char *
ls_sweep_json (const LsSweep *sweep)
{
  g_return_val_if_fail (sweep && sweep->run, NULL);
  return ls_sweep_to_json (ls_sweep_run_report (sweep->run));
}

char *
ls_sweep_csv (const LsSweep *sweep)
{
  g_return_val_if_fail (sweep && sweep->run, NULL);
  return ls_sweep_to_csv (ls_sweep_run_report (sweep->run));
}

gboolean
ls_sweep_write_list (const LsSweep *sweep, const char *path, GError **error)
{
  g_return_val_if_fail (sweep && sweep->run && path, FALSE);
  g_autofree char *text = ls_sweep_run_list (sweep->run);
  return ls_write_text (path, text, error);
}

gboolean
ls_sweep_write_heat_map (const LsSweep *sweep, const char *path, GError **error)
{
  g_return_val_if_fail (sweep && sweep->run && sweep->spec.heat_map && path, FALSE);
  g_auto (LsHeatMap) map = { 0 };
  ls_sweep_run_heat_map (sweep->run, &map);
  return ls_plot_heat (&map, path, error);
}

gboolean
ls_sweep_write_pareto_chart (const LsSweep *sweep, const char *path, GError **error)
{
  g_return_val_if_fail (sweep && sweep->run && sweep->spec.pareto && path, FALSE);
  g_auto (LsParetoPlot) plot = { 0 };
  ls_sweep_run_pareto (sweep->run, &plot);
  return ls_plot_pareto (&plot, path, error);
}

gboolean
ls_sweep_write_scaling_chart (const LsSweep *sweep, const char *path, GError **error)
{
  g_return_val_if_fail (sweep && sweep->run && path, FALSE);
  return ls_plot_scaling (ls_sweep_run_report (sweep->run), path, error);
}
