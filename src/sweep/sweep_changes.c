/* sweep/sweep_changes.c — the best configuration of somebody's own job in the words of a program: as a
 * fragment, and as changes to the files that the job came from. */
#include "sweep/sweep_state.h"

#include <math.h>
#include <string.h>

#include "job/job_written.h"

void
ls_sweep_changes_free (LsSweepChanges *c)
{
  if (!c)
    return;
  g_free (c->path);
  g_free (c->program);
  g_free (c->now_refused);
  g_clear_pointer (&c->changes, g_ptr_array_unref);
  g_free (c);
}

static const LsSweepRow *
best_of (const LsSweepRun *x)
{
  return x->report.best && x->report.best->len > 0 ? &g_array_index (x->report.best, LsSweepRow, 0) : NULL;
}

static char *
emit (const LsSweepRun *x, const LsModel *model, const LsStrategy *s, const char *target, char **ret_notes,
      GError **error)
{
  g_autofree char *title
      = g_strdup_printf ("%s on %u %s of %s", model->name, s->gpus,
                         ls_cluster_chip_word (&x->hardware->spec, s->gpus), x->hardware->spec.name);
  const LsEmitJob job = { .model = model, .strategy = s, .title = title };
  return ls_job_emit (&x->spec->job, &job, target, ret_notes, error);
}

char *
ls_sweep_emit (const LsSweepRun *x, const char *target, char **ret_notes, GError **error)
{
  const LsSweepRow *best = best_of (x);
  if (best)
    return emit (x, &x->model, &best->strategy, target, ret_notes, error);
  g_set_error (error, LS_ERROR, LS_ERROR_NO_FIT, "nothing to be written: no configuration is legal and fits");
  return NULL;
}

/* --- the job as it is ------------------------------------------------------------------------------ */

static gboolean
set (LsJobSpec *now, const char *key, const char *value, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return !value || ls_job_spec_set (now, key, value, diags) || ls_diag_list_to_error (diags, error);
}

/* What its files say, with nothing that was asked of the sweep but where it runs and how many GPUs there are,
 * if they do not say. */
static gboolean
ask_now (const LsJobSpec *job, uint32_t gpus, LsJobSpec *now, GError **error)
{
  GPtrArray *asked = job->from->asked;
  GString *files = g_string_new (NULL);
  for (guint i = 0; i < asked->len; i++)
    g_string_append_printf (files, "%s%s", i > 0 ? "\n" : "", (const char *) asked->pdata[i]);
  bool ok = set (now, "for", job->software_name, error) && set (now, "model", job->model, error)
      && set (now, "from", files->str, error) && set (now, "cluster", job->cluster, error)
      && set (now, "gpu-calibration", job->gpu_calibration, error) && set (now, "nccl", job->nccl, error);
  g_string_free (files, TRUE);
  if (now->strategy.gpus == 0)
    now->strategy.gpus = gpus;
  now->no_notes = true;
  return ok;
}

static char *
first_line (const char *message)
{
  g_autofree char *line = g_strndup (message, strcspn (message, "\n"));
  const char *mark = strstr (line, "error: ");
  return g_strdup (mark ? mark + strlen ("error: ") : line);
}

/* Its fragment; NULL: it has none. */
static char *
look_at_now (const LsSweepRun *x, const LsSweepRow *best, LsSweepChanges *c)
{
  LsJobSpec now;
  g_autoptr (GError) error = NULL;
  g_autofree char *notes = NULL;
  char *fragment = NULL;
  ls_job_spec_init (&now);
  gboolean ok = ask_now (&x->spec->job, best->strategy.gpus, &now, &error);
  g_autoptr (LsJobResult) r = ok ? ls_job_spec_run (&now, &error) : NULL;
  if (r) {
    c->now_s = ls_job_result_step_time_s (r);
    c->now_gpus = r->strategy.gpus;
    c->now_fits = r->report.fits;
    fragment = emit (x, &r->model, &r->strategy, now.program->emit, &notes, NULL);
  } else
    c->now_refused = first_line (error->message);
  ls_job_spec_clear (&now);
  return fragment;
}

LsSweepChanges *
ls_sweep_changes_new (const LsSweepRun *x)
{
  const LsJobSpec *job = &x->spec->job;
  const LsSweepRow *best = best_of (x);
  if (!best || !job->from || !job->program || strcmp (job->program->program, job->from->program) != 0)
    return NULL;
  g_autofree char *notes = NULL, *wanted = ls_sweep_emit (x, job->program->emit, &notes, NULL);
  if (!wanted)
    return NULL;
  LsSweepChanges *c = g_new0 (LsSweepChanges, 1);
  c->path = g_strdup (job->from->path);
  c->program = g_strdup (job->program->program);
  c->now_s = NAN;
  c->best_s = ls_time_to_s (best->step);
  c->best_gpus = best->strategy.gpus;
  g_autofree char *now = look_at_now (x, best, c);
  c->changes = ls_launch_changes (job->from, now, wanted);
  return c;
}
