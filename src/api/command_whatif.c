/* `lockstep whatif`: single changes to a job. */
#include "api/commands.h"
#include "api/job_answer.h"
#include "ask/whatif.h"
#include "show/run/write_run.h"

#define DEFAULT_TOP 15

static char *
to_text (gconstpointer data, const LsTextStyle *style)
{
  const LsTitled *w = data;
  const LsWhatIfText text = { w->title, w->subtitle, w->top };
  return ls_what_if_to_text (w->result, &text);
}

LS_ANSWER_FORM (to_json, ls_what_if_to_json (((const LsTitled *) data)->result))
LS_ANSWER_FORM (to_csv, ls_what_if_to_csv (((const LsTitled *) data)->result))

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, ls_titled_free };

/* The job as what-ifs need it: without intervals, in one network. */
static LsJobResult *
run_now (const LsJobSpec *job, GError **error)
{
  LsJobSpec spec = *job; /* borrows all */
  if (spec.network == LS_JOB_NETWORK_ALL)
    spec.network = LS_JOB_NETWORK_FLOW;
  return ls_job_spec_run (&spec, error);
}

static LsTitled *
simulate (const LsJobSpec *job, const LsRequest *r, guint top, guint n_threads, LsAnswer *a, GError **error)
{
  g_autoptr (LsJobResult) now = run_now (job, error);
  if (!now)
    return NULL;
  ls_override_note_job (job, now, "the step", LS_KEYS_OF_PRICE, now->notes);
  ls_answer_note_all (a, now->notes);
  ls_job_tell_interval (job, now, "a step of the job as it is now", a);
  const LsProgress progress = ls_request_progress (r);
  LsWhatIf *table = ls_request_is_on (r, "software-each")
      ? ls_what_if_softwares (job, now, n_threads, &progress, error)
      : ls_what_if_new (job, now, top, n_threads, &progress, error);
  return table ? ls_titled_new (table, (GDestroyNotify) ls_what_if_free, now) : NULL;
}

gboolean
command_whatif (const LsRequest *r, LsAnswer *a, GError **error)
{
  gint64 top = DEFAULT_TOP;
  guint n_threads;
  if (!ls_request_number (r, "top", 1, 1000, &top, error) || !ls_request_threads (r, &n_threads, error))
    return FALSE;
  top = ls_request_is_on (r, "all") ? 0 : top;
  LsJobSpec job;
  gboolean ok = ls_request_job (r, &job, error);
  if (ok) {
    ls_job_tell_from (&job, a);
    ls_job_tell_unasked (&job, a);
  }
  LsTitled *w = ok ? simulate (&job, r, (guint) top, n_threads, a, error) : NULL;
  ls_job_spec_clear (&job);
  if (!w)
    return FALSE;
  w->top = (guint) top;
  ls_answer_take (a, w, &forms);
  return TRUE;
}
