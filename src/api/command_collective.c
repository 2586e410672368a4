/* `lockstep collective`: collectives timed alone, or tables of the best ways for NCCL's tuner. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "api/job_answer.h"
#include "ask/collective/collective_table.h"
#include "ask/reruns.h"
#include "base/list.h"
#include "data/text/write_file.h"
#include "show/plot/plots.h"
#include "show/answers.h"

LS_ANSWER_FORM (to_text, ls_collective_to_text (&((const LsCollectiveRun *) data)->table))
LS_ANSWER_FORM (to_json, ls_collective_to_json (&((const LsCollectiveRun *) data)->table))
LS_ANSWER_FORM (to_csv, ls_collective_to_csv (&((const LsCollectiveRun *) data)->table))
LS_ANSWER_FREE (run_free, ls_collective_run_free)

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, run_free };

/* CSV has a row for each call. */
static const LsAnswerForms message_forms = { to_text, to_json, NULL, NULL, run_free };

static gboolean
plot (gconstpointer run, const char *path, GError **error)
{
  return ls_plot_collective (&((const LsCollectiveRun *) run)->table, path, error);
}

LS_REQUEST_SET (set_knob, ls_collective_spec_set)

static LsCollectiveRun *
simulate (const LsRequest *r, LsAnswer *a, GError **error)
{
  LsCollectiveSpec spec;
  ls_collective_spec_init (&spec);
  spec.progress = ls_request_progress (r);
  gboolean ok = ls_request_set_own (r, set_knob, &spec, error);
  g_autofree const char **more = ls_request_texts (r, "file");
  spec.more = g_strdupv ((char **) more);
  LsCollectiveRun *run = ok ? ls_collective_run_new (&spec, error) : NULL;
  if (run) {
    ls_override_note_collective (&spec, &run->table, run->notes);
    ls_answer_note_all (a, run->notes);
  }
  ls_collective_spec_clear (&spec);
  return run;
}

/* --- tables for a tuner ------------------------------------------------------------------------------- */

LS_ANSWER_FORM (tune_to_text, ls_tune_to_text (data))
LS_ANSWER_FORM (tune_to_csv, ls_tune_to_csv (data))
LS_ANSWER_FREE (tune_free, ls_tune_free)

static gboolean
write_table (gconstpointer tune, const char *path, GError **error)
{
  g_autofree char *text = ls_tune_to_csv (tune);
  return ls_write_text (path, text, error);
}

/* A job for each file, or that of the options. */
static gboolean
tune (const LsRequest *r, LsAnswer *a, GError **error)
{
  static const LsAnswerForms tune_forms = { .text = tune_to_text, .csv = tune_to_csv, .free = tune_free };
  g_autofree const char **files = ls_request_texts (r, "file");
  const guint n = files ? g_strv_length ((char **) files) : 0;
  g_autoptr (GArray) specs = ls_list_new (sizeof (LsJobSpec), (GDestroyNotify) ls_job_spec_clear);
  for (guint i = 0; i < MAX (1, n); i++) {
    LsJobSpec *spec = ls_list_add (specs, &(LsJobSpec) { 0 });
    if (!ls_request_job_of (r, n > 0 ? files[i] : NULL, spec, error))
      return FALSE;
    ls_job_tell_from (spec, a);
  }
  LsTune *t = ls_tune_new ((const LsJobSpec *) (gpointer) specs->data, specs->len, error);
  if (!t)
    return FALSE;
  ls_answer_note_all (a, t->notes);
  ls_job_tell_idle (r, LS_IDLE_OF_REPLAY, a);
  ls_answer_take (a, t, &tune_forms);
  ls_answer_write (a, r, "output", write_table);
  return TRUE;
}

gboolean
command_collective (const LsRequest *r, LsAnswer *a, GError **error)
{
  if (ls_request_is_on (r, "tune"))
    return tune (r, a, error);
  LsCollectiveRun *run = simulate (r, a, error);
  if (!run)
    return FALSE;
  ls_answer_take (a, run, run->table.messages ? &message_forms : &forms);
  ls_answer_write (a, r, "plot", plot);
  return TRUE;
}
