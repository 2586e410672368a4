#include "sweep/sweep_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "data/jobs/job_files.h"
#include "data/text/csv.h"
#include "data/text/field.h"
#include "job/job_written.h"
#include "job/knobs.h"
#include "sweep/sweep_state.h"

void
ls_sweep_row_clear (gpointer data)
{
  LsSweepRow *row = data;
  ls_strategy_clear (&row->strategy);
  g_free (row->knobs);
  g_free (row->command);
  g_free (row->instead);
  g_free (row->why);
  g_free (row->rests_on);
  g_free (row->slice);
  g_clear_pointer (&row->also, g_array_unref);
}

void
ls_sweep_none_free (LsSweepNone *none)
{
  if (!none)
    return;
  g_array_unref (none->rules);
  ls_what_if_free (none->advice);
  g_free (none->nearest);
  g_free (none->headroom);
  g_free (none);
}

char *
ls_sweep_layers_text (const LsStrategy *s)
{
  return ls_field_text (ls_field_find (ls_strategy_fields, "layers_per_chunk"), s, NULL);
}

void
ls_sweep_csv_knobs (GString *out, const LsStrategy *s, bool (*is_left_out) (const char *key))
{
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    if (f->file_only || (is_left_out && is_left_out (f->key)))
      continue;
    g_autofree char *text = s ? ls_field_text (f, s, NULL) : g_strdup (f->key);
    g_string_append_c (out, ',');
    ls_csv_append (out, text);
  }
}

/* --- the list ---------------------------------------------------------------------------------------- */

/* Every configuration that a sweep simulated, as CSV. What was not run with its times recorded has a lower
 * bound of its memory and no peak (exec/memory/memory.h). */

static int
compare_indices (gconstpointer a, gconstpointer b)
{
  const Candidate *x = *(Candidate *const *) a, *y = *(Candidate *const *) b;
  return x->index < y->index ? -1 : x->index > y->index;
}

/* With which `lockstep run` takes the same job: what was said of all of them, then the knobs. As a cell. */
static char *
options_of (const LsSweepRun *x, const LsStrategy *s)
{
  g_autofree char *options = ls_job_options (&x->spec->job),
                  *knobs = ls_job_knobs (&x->spec->job, &x->model, false, s);
  g_autoptr (GString) all = g_string_new (options);
  g_string_append (all, knobs);
  g_string_replace (all, "\"", "\"\"", 0);
  return g_strdup_printf ("\"%s\"", all->str);
}

static void
append_row (GString *out, const LsSweepRun *x, const Candidate *c)
{
  LsStrategy s;
  candidate_settled (x, c, &s);
  g_autofree char *options = options_of (x, &s);
  g_string_append_printf (out, "%" PRId64 ",", (int64_t) c->step);
  if (c->is_confirmed)
    g_string_append_printf (out, "%" PRIu64, c->memory_bytes);
  g_string_append_printf (out, ",%s,%s,%" PRIu64, options, c->is_confirmed ? "peak" : "at least",
                          c->memory_bytes);
  ls_sweep_csv_knobs (out, &s, NULL);
  g_string_append_c (out, '\n');
  ls_strategy_clear (&s);
}

char *
ls_sweep_run_list (const LsSweepRun *x)
{
  g_autoptr (GPtrArray) done = g_ptr_array_new ();
  GString *out = g_string_new ("step_time_ps,memory_bytes,knobs,memory_is,memory_at_least_bytes");
  ls_sweep_csv_knobs (out, NULL, NULL);
  g_string_append_c (out, '\n');
  for (guint i = 0; i < x->candidates->len; i++)
    if (candidate_at (x, i)->status == TRY_DONE)
      g_ptr_array_add (done, candidate_at (x, i));
  g_ptr_array_sort (done, compare_indices);
  for (guint i = 0; i < done->len; i++)
    append_row (out, x, done->pdata[i]);
  return g_string_free (out, FALSE);
}

/* --- scaling ----------------------------------------------------------------------------------------- */

/* The best of each number of GPUs and global batch beside the others.
 *
 * Ideal over GPUs: every GPU does as many tokens a second as with the fewest GPUs and the same
 * batch. Ideal over batches: as with the largest batch and the same GPUs, where a step's fixed
 * parts (bubble, reduction of gradients, optimizer) weigh least. Worked example: 100 tokens/s on
 * 4 GPUs, 170 on 8: 25 and 21.25 a GPU, 85 % of ideal. */

static double
per_gpu (const LsSweepGroup *g)
{
  return g->first ? g->first->tokens_per_s / g->gpus : NAN;
}

/* Of those that have a best and agree with g in what is not compared. */
static const LsSweepGroup *
base_of (const GArray *groups, const LsSweepGroup *g, bool over_gpus)
{
  const LsSweepGroup *base = NULL;
  for (guint i = 0; i < groups->len; i++) {
    const LsSweepGroup *other = &g_array_index (groups, LsSweepGroup, i);
    bool is_beside = over_gpus ? other->global_batch == g->global_batch : other->gpus == g->gpus;
    bool is_nearer
        = !base || (over_gpus ? other->gpus < base->gpus : other->global_batch > base->global_batch);
    if (other->first && is_beside && is_nearer)
      base = other;
  }
  return base;
}

/* Days and money to the loss: what lies on the curve is beaten by none. */
static bool
is_beaten (const GArray *groups, const LsSweepGroup *g)
{
  for (guint i = 0; i < groups->len; i++) {
    const LsSweepRow *other = g_array_index (groups, LsSweepGroup, i).first, *own = g->first;
    if (!other || other == own)
      continue;
    double days = other->to_loss.time_s - own->to_loss.time_s, money = other->to_loss.usd - own->to_loss.usd;
    if (days <= 0 && money <= 0 && (days < 0 || money < 0))
      return true;
  }
  return false;
}

void
sweep_scaling (LsSweepReport *report)
{
  for (guint i = 0; i < report->groups->len; i++) {
    LsSweepGroup *g = &g_array_index (report->groups, LsSweepGroup, i);
    g->tokens_per_s_per_gpu = g->of_fewest_gpus = g->of_largest_batch = NAN;
    if (!g->first)
      continue;
    g->tokens_per_s_per_gpu = per_gpu (g);
    g->of_fewest_gpus = per_gpu (g) / per_gpu (base_of (report->groups, g, true));
    g->of_largest_batch = per_gpu (g) / per_gpu (base_of (report->groups, g, false));
    g->is_beaten = is_beaten (report->groups, g);
  }
}

/* ---- the best of somebody's own job in the words of a program ---- */

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
  return ls_job_emit (&x->spec->job, &job, x->report.assumptions, target, ret_notes, error);
}

char *
ls_sweep_emit (const LsSweepRun *x, const char *target, char **ret_notes, GError **error)
{
  const LsSweepRow *best = best_of (x);
  if (best)
    return emit (x, &x->model, &best->strategy, target, ret_notes, error);
  return ls_fail_null (error, LS_ERROR_NO_FIT, "nothing to be written: no configuration is legal and fits");
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
  g_autofree char *files = ls_joined (job->from->asked, 0, "\n");
  const char *runs = job->software_is_from ? NULL : job->software_name;
  bool ok = set (now, job->program ? "for" : "software", runs, error) && set (now, "model", job->model, error)
      && set (now, "from", files, error) && set (now, "cluster", job->cluster, error)
      && set (now, "gpu-calibration", job->gpu_calibration, error) && set (now, "nccl", job->nccl, error);
  if (now->strategy.gpus == 0)
    now->strategy.gpus = gpus;
  now->no_notes = true;
  return ok;
}

/* The caller clears now. */
static LsJobResult *
run_now (const LsJobSpec *job, uint32_t gpus, LsJobSpec *now, GError **error)
{
  ls_job_spec_init (now);
  return ask_now (job, gpus, now, error) ? ls_job_spec_run (now, error) : NULL;
}

void
ls_sweep_note_now (const LsSweepRun *x, GPtrArray *notes)
{
  const LsJobSpec *job = &x->spec->job;
  const LsSweepRow *best = best_of (x);
  if (!best || !job->from || x->report.is_interrupted)
    return;
  LsJobSpec now;
  g_autoptr (LsJobResult) r = run_now (job, best->strategy.gpus, &now, NULL);
  const LsHeadroom *h = r ? &x->headroom[r->strategy.dp_kind] : NULL;
  if (r && !ls_headroom_is_left (h, r->report.needed_bytes, r->report.capacity_bytes)) {
    g_autofree char *needed = ls_format_bytes (r->report.needed_bytes),
                    *capacity = ls_format_bytes (r->report.capacity_bytes),
                    *headroom = ls_format_bytes (h->bytes);
    ls_note (notes,
             "%s as it is needs %s of %s, which does not leave the headroom of %s (--headroom): it is not "
             "among what is found",
             job->from->path, needed, capacity, headroom);
  }
  ls_job_spec_clear (&now);
}

/* Its fragment; NULL: it has none. */
static char *
look_at_now (const LsSweepRun *x, const LsSweepRow *best, LsSweepChanges *c)
{
  LsJobSpec now;
  g_autoptr (GError) error = NULL;
  g_autofree char *notes = NULL;
  char *fragment = NULL;
  g_autoptr (LsJobResult) r = run_now (&x->spec->job, best->strategy.gpus, &now, &error);
  if (r) {
    c->now_s = ls_job_result_step_time_s (r);
    c->now_gpus = r->strategy.gpus;
    c->now_fits = r->report.fits;
    fragment = emit (x, &r->model, &r->strategy, now.program->emit, &notes, NULL);
  } else
    c->now_refused = ls_first_line (error->message);
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
