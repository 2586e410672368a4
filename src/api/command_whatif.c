/* `lockstep whatif`: single changes to a job. */
#include "api/commands.h"
#include "api/job_answer.h"
#include "ask/whatif.h"
#include "show/run/write_run.h"

#define DEFAULT_TOP 15

static const LsOption own[] = {
  { "top", .argument = "N", .meaning = "Changes shown that gain and fit; default 15" },
  { "all", .meaning = "Show all, also those that gain nothing or are not possible, with the reasons" },
  { "software-each",
    .meaning = "In the place of changes, the job in each program that can run it, with that one's defaults" },
  { "threads", .letter = 'j', .argument = "N", .meaning = "Simulations at once; default one per processor" },
  LS_OPTION_REPORT,
  LS_OPTION_FORMAT ("text|json|csv|markdown"),
  { "json", .meaning = "Print JSON" },
  { "csv", .meaning = "Print a row for each change" },
  { NULL },
};

typedef struct {
  LsWhatIf *table;
  char *title, *subtitle;
  guint top; /* 0: all */
} Data;

static void
data_free (gpointer data)
{
  Data *w = data;
  ls_what_if_free (w->table);
  g_free (w->title);
  g_free (w->subtitle);
  g_free (w);
}

static char *
to_text (gconstpointer data, const LsTextStyle *style)
{
  const Data *w = data;
  const LsWhatIfText text = { w->title, w->subtitle, w->top };
  return ls_what_if_to_text (w->table, &text);
}

LS_ANSWER_FORM (to_json, ls_what_if_to_json (((const Data *) data)->table))
LS_ANSWER_FORM (to_csv, ls_what_if_to_csv (((const Data *) data)->table))

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, data_free };

/* The job as what-ifs need it: without intervals, in one network. */
static LsJobResult *
run_now (const LsJobSpec *job, GError **error)
{
  LsJobSpec spec = *job; /* borrows all */
  if (spec.network == LS_JOB_NETWORK_ALL)
    spec.network = LS_JOB_NETWORK_FLOW;
  return ls_job_spec_run (&spec, error);
}

static Data *
simulate (const LsJobSpec *job, const LsRequest *r, guint n_threads, LsAnswer *a, GError **error)
{
  g_autoptr (LsJobResult) now = run_now (job, error);
  if (!now)
    return NULL;
  ls_job_tell_result (job, now, a);
  ls_job_tell_interval (job, now, "a step of the job as it is now", a);
  const LsProgress progress = ls_request_progress (r);
  bool is_each = ls_request_is_on (r, "software-each");
  LsWhatIf *table = (is_each ? ls_what_if_softwares : ls_what_if_new) (job, now, n_threads, &progress, error);
  if (!table)
    return NULL;
  Data *w = g_new (Data, 1);
  *w = (Data) { table, ls_job_title (now), ls_job_subtitle (now), DEFAULT_TOP };
  return w;
}

static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  gint64 top = DEFAULT_TOP;
  guint n_threads;
  if (!ls_request_number (r, "top", 1, 1000, &top, error) || !ls_request_threads (r, &n_threads, error))
    return FALSE;
  LsJobSpec job;
  gboolean ok = ls_request_job (r, &job, error);
  if (ok) {
    ls_job_tell_from (&job, a);
    ls_job_tell_unasked (&job, a);
  }
  Data *w = ok ? simulate (&job, r, n_threads, a, error) : NULL;
  ls_job_spec_clear (&job);
  if (!w)
    return FALSE;
  w->top = ls_request_is_on (r, "all") ? 0 : (guint) top;
  ls_answer_take (a, w, &forms);
  return TRUE;
}

const Command command_whatif = {
  .shown = {
    .name = "whatif",
    .line = "single changes to a job, simulated and ranked by what they gain",
    .usage = "whatif --model NAME|FILE --cluster NAME|FILE [OPTION...]",
    .summary = "Makes single changes to a job, simulates each, and ranks them by what they gain: pipeline\n"
               "schedules and chunks, layouts, micro-batches, recomputation, offloading, overlap, data\n"
               "parallelism, number formats, faster links, later GPUs. Each line shows the options to "
               "append\n"
               "to the job. The options that say which job are those of lockstep run.",
    .examples
    = "Examples:\n"
      "  lockstep whatif --model llama3.1-8b --cluster dgx-h100 --gpus 16 --tp 2 --global-batch 64\n"
      "  lockstep whatif --model gpt-18.4b --cluster dgx-a100-80g --gpus 8 --tp 2 --pp 4 --sp "
      "--global-batch 16 --all",
    .job = LS_JOB_TAKEN,
  },
  .own = own,
  .run = run,
};
