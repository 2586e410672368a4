/* `lockstep memory`: what each rank of a job holds. */
#include "api/commands.h"
#include "api/job_answer.h"
#include "ask/memory_view.h"
#include "ask/memory_advice.h"

static const LsOption own[] = {
  { "memory-chart", .argument = "FILE", .writes = LS_WRITES_PICTURE,
    .meaning = "Draw a rank over the step (.svg or .png, by gnuplot; .gp: its script)" },
  { "rank", .argument = "N", .meaning = "The rank that --memory-chart draws; default: the fullest" },
  { "no-advice", .meaning = "Do not simulate what would make it fit" },
  { "json", .meaning = "Print JSON" },
  { "csv", .meaning = "Print a row for each class of ranks" },
  { "require-fit", .meaning = "Exit 4 if it does not fit into memory" },
  { NULL },
};

static char *
format (const LsJobAnswer *j, char *(*to) (const LsMemoryTable *t))
{
  g_auto (LsMemoryTable) table = { 0 };
  ls_memory_table_init (&table, j->job, j->title, j->subtitle, j->advice);
  return to (&table);
}

LS_ANSWER_FORM (to_text, format (data, ls_memory_to_text))
LS_ANSWER_FORM (to_json, format (data, ls_memory_to_json))
LS_ANSWER_FORM (to_csv, format (data, ls_memory_to_csv))

static const LsAnswerForms forms = { to_text, to_json, to_csv, NULL, ls_job_answer_free };

/* A trace has no changes to try: the table goes without. */
static void
advise (LsJobAnswer *j, LsAnswer *a)
{
  g_autoptr (GError) error = NULL;
  if (j->job->report.fits)
    return;
  j->advice = ls_memory_advise (&j->spec, j->job, &error);
  if (!j->advice)
    ls_answer_note (a, error->message);
}

static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  gint64 rank = -1;
  if (!ls_request_number (r, "rank", 0, G_MAXINT64, &rank, error))
    return FALSE;
  g_autoptr (LsJobAnswer) made = ls_job_answer_new (r, a, error);
  const char *chart = ls_request_text (r, "memory-chart");
  if (!made || (chart && !ls_job_answer_plot_memory (made, rank, chart, error)))
    return FALSE;
  LsJobAnswer *j = g_steal_pointer (&made);
  ls_answer_take (a, j, &forms);
  if (!ls_request_is_on (r, "no-advice"))
    advise (j, a);
  ls_job_answer_check_fit (j, r, NULL, a);
  return TRUE;
}

const Command command_memory = {
  .shown = {
    .name = "memory",
    .line = "what each rank holds at its peak, and what would make it fit",
    .usage = "memory --model NAME|FILE --cluster NAME|FILE [OPTION...]",
    .summary = "What each rank of a job holds at its peak, by category, when and in which op, beside the\n"
               "formulas of the papers. If it does not fit: which changes make it fit, simulated, the\n"
               "fastest first. The options that say which job are those of lockstep run.",
    .examples
    = "Examples:\n"
      "  lockstep memory --model gpt-22b --cluster dgx-a100-80g --tp 8 --micro-batch 4 --memory-clock "
      "device\n"
      "  lockstep memory --model llama3.1-70b --cluster dgx-h100 --nodes 1 --tp 8 --memory-chart memory.svg",
    .job = LS_JOB_TAKEN,
  },
  .own = own,
  .run = run,
};
