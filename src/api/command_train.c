/* `lockstep train`: a training run of weeks, with its failures. */
#include <string.h>

#include "api/commands.h"
#include "api/job_answer.h"
#include "base/printable.h"
#include "show/draw/pictures.h"
#include "show/answers.h"
#include "train/train.h"

static char *
to_text (gconstpointer data, const LsTextStyle *style)
{
  const LsTitled *d = data;
  return ls_train_to_text (d->result, d->title, d->subtitle);
}

LS_ANSWER_FORM (to_json, ls_train_to_json (((const LsTitled *) data)->result))
LS_ANSWER_FORM (to_csv, ls_train_to_csv (((const LsTitled *) data)->result))

static gboolean
write_plot (gconstpointer data, const char *path, GError **error)
{
  const LsTitled *d = data;
  g_autofree char *line = g_strndup (d->subtitle, strcspn (d->subtitle, "\n"));
  g_autoptr (LsDrawing) drawing = ls_draw_train (d->result, d->title, line);
  return ls_drawing_write (drawing, path, error);
}

static void
page (gconstpointer data, LsPage *p)
{
  const LsTitled *d = data;
  ls_page_set_title (p, d->title, d->subtitle);
}

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, ls_titled_free, page };

LS_REQUEST_SET (set_knob, ls_train_spec_set)

static gboolean
read_spec (const LsRequest *r, LsTrainSpec *spec, GError **error)
{
  guint n_threads;
  if (!ls_request_threads (r, &n_threads, error))
    return FALSE;
  spec->n_threads = n_threads;
  spec->progress = ls_request_progress (r);
  spec->team = ls_request_team (r);
  spec->keeps_timeline = ls_request_text (r, "plot") != NULL;
  g_autofree const char **phases = ls_request_texts (r, "phase");
  for (guint i = 0; phases && phases[i]; i++)
    g_ptr_array_add (spec->phases, g_strdup (phases[i]));
  return ls_request_set_own (r, set_knob, spec, error)
      && ls_request_set_job (r, ls_request_set_knob, &spec->job, error);
}

/* A job that cannot run has neither days nor costs, unless these are asked for all the same. */
static gboolean
check_fit (const LsRequest *r, const LsTrainReport *report, LsAnswer *a, GError **error)
{
  const LsTrainPhase *phase = NULL;
  for (guint i = 0; i < report->phases->len && (!phase || phase->fits); i++)
    phase = &g_array_index (report->phases, LsTrainPhase, i);
  if (phase->fits)
    return TRUE;
  g_autofree char *text
      = g_strdup_printf ("phase %s does not fit into memory: no such run is possible\nlockstep memory, with "
                         "the same options, simulates what would make it fit",
                         phase->name);
  if (ls_request_is_on (r, "ignore-memory")) {
    ls_answer_warn (a, g_steal_pointer (&text));
    return TRUE;
  }
  return ls_fail (error, LS_ERROR_NO_FIT, "%s; --ignore-memory answers all the same", text);
}

/* What launch files say of a run, not of a step: how their options end, those of this command that stand for
 * them, and what to type. */
static const struct {
  const char *names, *options, *instead;
} of_run[] = {
  { "rampup_batch_size batch_size_rampup", "batch-ramp", "--batch-ramp" },
  { "train_samples train_iters train_tokens train_steps steps max_steps max_step max_epochs "
    "num_train_epochs num_epochs max_duration max_tokens",
    "tokens train-steps phase days loss", "--tokens or --train-steps" },
  { "save_interval save_steps checkpoint.interval checkpoint_interval checkpoint_period every_n_train_steps "
    "ckpt_every_steps",
    "checkpoint-every", "--checkpoint-every" },
  { "async_save async_mode async_checkpointing", "checkpoint-async", "--checkpoint-async" },
};

static gboolean
ends_with_one (const char *option, const char *names)
{
  g_autofree char *key = g_strconcat (".", option + strspn (option, "-"), NULL);
  g_auto (GStrv) ends = g_strsplit (names, " ", -1);
  g_strdelimit (key, "-", '_');
  for (char **end = ends; *end; end++)
    if (g_str_has_suffix (key, *end) && key[strlen (key) - strlen (*end) - 1] == '.')
      return TRUE;
  return FALSE;
}

static gboolean
has_any (const LsRequest *r, const char *options)
{
  g_auto (GStrv) names = g_strsplit (options, " ", -1);
  gboolean has = FALSE;
  for (char **name = names; *name; name++)
    has |= ls_request_text (r, *name) != NULL;
  return has;
}

static void
note_of_run (const LsRequest *r, const LsImported *from, LsAnswer *a)
{
  g_autoptr (GString) out = g_string_new (NULL);
  for (guint i = 0; from && i < from->remarks->len; i++) {
    const LsRemark *o = &g_array_index (from->remarks, LsRemark, i);
    for (guint k = 0; o->kind == LS_REMARK_OPTION && k < G_N_ELEMENTS (of_run); k++)
      if (ends_with_one (o->text, of_run[k].names) && !has_any (r, of_run[k].options))
        g_string_append_printf (out, "%s%s%s%s (%s)", out->len > 0 ? ", " : "", o->text, o->value ? " " : "",
                                o->value ? o->value : "", of_run[k].instead);
  }
  if (out->len > 0) {
    g_autofree char *what = ls_printable (out->str);
    ls_answer_note (a, "%s says more of the run, which is not taken: %s", from->path, what);
  }
}

gboolean
command_train (const LsRequest *r, LsAnswer *a, GError **error)
{
  LsTrainSpec spec;
  ls_train_spec_init (&spec);
  gboolean ok = read_spec (r, &spec, error);
  if (ok)
    ls_job_tell_from (&spec.job, a);
  if (ok)
    note_of_run (r, spec.job.from, a);
  LsTrainReport *report = ok ? ls_train_run (&spec, error) : NULL;
  if (report && !check_fit (r, report, a, error))
    g_clear_pointer (&report, ls_train_report_free);
  if (report)
    ls_job_tell_interval (&spec.job, report->job, "a step (days, money and energy are in proportion)", a);
  ls_train_spec_clear (&spec);
  if (!report)
    return FALSE;
  ls_answer_note_all (a, report->notes);
  ls_answer_take (a, ls_titled_new (report, (GDestroyNotify) ls_train_report_free, report->job), &forms);
  if (!ls_request_leads (r))
    return TRUE;
  ls_answer_write (a, r, "plot", write_plot);
  return TRUE;
}
