/* Single changes to a job: LsWhatIfs of lockstep/lockstep.h. */
#include "api/job.h"
#include "ask/whatif.h"
#include "show/write_whatif.h"

struct LsWhatIfs {
  LsWhatIf *table;
  char *title, *subtitle;
};

/* The job as what-ifs need it: without intervals and notes, in one network. */
static LsJobResult *
run_now (const LsJob *job, GError **error)
{
  LsJobSpec spec = job->spec; /* borrows all */
  if (spec.network == LS_JOB_NETWORK_ALL)
    spec.network = LS_JOB_NETWORK_FLOW;
  return ls_job_spec_run (&spec, error);
}

LsWhatIfs *
ls_what_ifs_new (const LsJob *job, guint n_threads, LsProgressFunc progress, gpointer data, GError **error)
{
  g_return_val_if_fail (job, NULL);
  g_autoptr (LsJobResult) now = run_now (job, error);
  if (!now)
    return NULL;
  const LsProgress told = { progress, data };
  LsWhatIf *table = ls_what_if_new (&job->spec, now, n_threads, &told, error);
  if (!table)
    return NULL;
  LsWhatIfs *w = g_new (LsWhatIfs, 1);
  *w = (LsWhatIfs) { table, ls_job_title (now), ls_job_subtitle (now) };
  return w;
}

void
ls_what_ifs_free (LsWhatIfs *w)
{
  if (!w)
    return;
  ls_what_if_free (w->table);
  g_free (w->title);
  g_free (w->subtitle);
  g_free (w);
}

char *
ls_what_ifs_text (const LsWhatIfs *w, guint top)
{
  g_return_val_if_fail (w, NULL);
  const LsWhatIfText text = { w->title, w->subtitle, top };
  return ls_what_if_to_text (w->table, &text);
}

char *
ls_what_ifs_json (const LsWhatIfs *w)
{
  g_return_val_if_fail (w, NULL);
  return ls_what_if_to_json (w->table);
}

char *
ls_what_ifs_csv (const LsWhatIfs *w)
{
  g_return_val_if_fail (w, NULL);
  return ls_what_if_to_csv (w->table);
}
