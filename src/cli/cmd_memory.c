#include "cli/job_args.h"

typedef struct {
  CliJob job; /* first: callbacks of its entries get the address of all */
  char *chart;
  gint64 rank;
  gboolean json, csv, no_advice, require_fit;
} Args;

static void
args_clear (Args *args)
{
  cli_job_clear (&args->job);
  g_free (args->chart);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

static const CliHelp help = {
  .usage = "memory --model NAME|FILE --cluster NAME|FILE [OPTION...]",
  .summary = "What each rank of a job holds at its peak, by category, when and in which op, beside the\n"
             "formulas of the papers. If it does not fit: which changes make it fit, simulated, the\n"
             "fastest first. The options that say which job are those of lockstep run.",
  .job = CLI_JOB_TAKEN,
  .description
  = "Examples:\n"
    "  lockstep memory --model gpt-22b --cluster dgx-a100-80g --tp 8 --micro-batch 4 --memory-clock device\n"
    "  lockstep memory --model llama3.1-70b --cluster dgx-h100 --nodes 1 --tp 8 "
    "--memory-chart memory.svg\n\n" CLI_EXIT_CODES,
};

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry others[] = {
    { "memory-chart", 0, 0, G_OPTION_ARG_FILENAME, &args->chart,
      "Draw a rank over the step (.svg or .png, by gnuplot; .gp: its script)", "FILE" },
    { "rank", 0, 0, G_OPTION_ARG_INT64, &args->rank,
      "The rank that --memory-chart draws; default: the fullest", "N" },
    { "no-advice", 0, 0, G_OPTION_ARG_NONE, &args->no_advice, "Do not simulate what would make it fit",
      NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &args->json, "Print JSON", NULL },
    { "csv", 0, 0, G_OPTION_ARG_NONE, &args->csv, "Print a row for each class of ranks", NULL },
    { "require-fit", 0, 0, G_OPTION_ARG_NONE, &args->require_fit, "Exit 4 if it does not fit into memory",
      NULL },
    G_OPTION_ENTRY_NULL,
  };
  g_autoptr (GArray) entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  cli_job_entries (&args->job, NULL, entries);
  g_array_append_vals (entries, others, G_N_ELEMENTS (others) - 1);
  if (!cli_parse (argc, argv, &help, (const GOptionEntry *) (gpointer) entries->data, args, ret_done, error))
    return FALSE;
  const char *wrong = *ret_done ? NULL
      : args->json && args->csv ? "--json and --csv exclude each other"
                                : NULL;
  if (!*ret_done && !wrong && args->rank < -1)
    wrong = "--rank: expected 0 or more";
  if (wrong)
    g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE, wrong);
  else if (!*ret_done && *argc > 1)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "unexpected argument \"%s\"", (*argv)[1]);
  return *ret_done || (!wrong && *argc == 1);
}

/* A trace has no changes to try: the table goes without. */
static void
advise (LsResult *result, const LsJob *job)
{
  g_autoptr (GError) error = NULL;
  if (!ls_result_advise (result, job, &error))
    cli_note (error->message);
}

gboolean
cli_memory (int argc, char **argv, GError **error)
{
  g_auto (Args) args = { .rank = -1 };
  cli_job_init (&args.job);
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;

  g_autoptr (LsJob) job = cli_job_new (&args.job, error);
  if (!job || (args.chart && !ls_check_output_path (LS_OUTPUT_PLOT, args.chart, error)))
    return FALSE;
  g_autoptr (LsResult) result = ls_job_run (job, error);
  if (!result || (args.chart && !ls_result_write_memory_chart (result, args.rank, args.chart, error)))
    return FALSE;
  g_autofree char *notes = ls_result_notes (result);
  cli_note (notes);
  if (!args.no_advice)
    advise (result, job);
  g_autofree char *text = args.json ? ls_result_memory_json (result)
      : args.csv                    ? ls_result_memory_csv (result)
                                    : ls_result_memory_text (result);
  return cli_print (text, error) && cli_report_fit (result, args.require_fit, NULL, error);
}
