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
  if (!ls_request_threads (r, &spec->n_threads, error))
    return FALSE;
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

static bool
is_given (gconstpointer request, const char *option)
{
  return ls_request_text (request, option) != NULL;
}

static void
note_of_run (const LsRequest *r, const LsImported *from, LsAnswer *a)
{
  g_autofree char *out = from ? ls_import_of_run (from, is_given, r) : NULL,
                  *what = out ? ls_printable (out) : NULL;
  if (what)
    ls_answer_note (a, "%s says more of the run, which is not taken: %s", from->path, what);
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
    ls_override_note_job (&spec.job, report->job, "the step", LS_KEYS_OF_PRICE, report->notes);
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
