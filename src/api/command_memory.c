/* `lockstep memory`: what each rank of a job holds. */
#include "api/commands.h"
#include "api/job_answer.h"
#include "api/answers.h"
#include "ask/memory_advice.h"
#include "ask/memory_view.h"

static const LsOption own[] = {
  { "memory-chart", .argument = "FILE", .writes = LS_WRITES_DRAWING,
    .meaning = "Draw a rank over the step (.svg; .png by gnuplot; .gp: its script)" },
  { "snapshot", .argument = "FILE", .writes = LS_WRITES_FILE,
    .meaning = "Write what PyTorch's allocator does as a memory snapshot of PyTorch (.pickle), for "
               "pytorch.org/memory_viz" },
  { "rank", .argument = "N[,N...]",
    .meaning = "The rank that --memory-chart draws, those that --snapshot has; default: the fullest" },
  LS_OPTION_REPORT,
  LS_OPTION_FORMAT ("text|json|csv|markdown"),
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

static const LsAnswerForms forms
    = { to_text, to_json, to_csv, NULL, ls_job_answer_free, ls_job_answer_memory_page };

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

/* uint32_t; empty: the fullest. */
static GArray *
ranks_of (const LsRequest *r, GError **error)
{
  g_autoptr (GArray) ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  const char *text = ls_request_text (r, "rank");
  g_auto (GStrv) words = g_strsplit (text ? text : "", ",", LS_SNAPSHOT_MAX_RANKS + 1);
  for (char **word = words; *word; word++) {
    guint64 rank;
    if (word - words == LS_SNAPSHOT_MAX_RANKS
        || !g_ascii_string_to_unsigned (*word, 10, 0, UINT32_MAX - 1, &rank, NULL)) {
      g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
                   "--rank: expected a rank, or at most %d with a comma between two; got \"%s\"",
                   LS_SNAPSHOT_MAX_RANKS, text);
      return NULL;
    }
    uint32_t value = (uint32_t) rank;
    g_array_append_val (ranks, value);
  }
  if (ranks->len > 1 && ls_request_text (r, "memory-chart")) {
    ls_request_refuse ("--memory-chart draws one rank: --rank N", error);
    return NULL;
  }
  return g_steal_pointer (&ranks);
}

static gint64
first_of (const GArray *ranks)
{
  return ranks->len > 0 ? (gint64) g_array_index (ranks, uint32_t, 0) : -1;
}

static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  g_autoptr (GArray) ranks = ranks_of (r, error);
  g_autoptr (LsJobAnswer) made = ranks ? ls_job_answer_new (r, a, error) : NULL;
  const char *chart = ls_request_text (r, "memory-chart"), *snapshot = ls_request_text (r, "snapshot");
  if (!made || (chart && !ls_job_answer_plot_memory (made, first_of (ranks), chart, error))
      || (snapshot && !ls_job_answer_write_snapshot (made, ranks, snapshot, a, error)))
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
      "  lockstep memory --model llama3.1-70b --cluster dgx-h100 --nodes 1 --tp 8 --memory-chart memory.svg\n"
      "  lockstep memory --model llama3.1-8b --cluster dgx-h100 --nodes 1 --tp 2 --snapshot memory.pickle",
    .job = LS_JOB_TAKEN,
  },
  .own = own,
  .run = run,
};
