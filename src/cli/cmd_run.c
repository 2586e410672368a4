#include "cli/job_args.h"

#include <langinfo.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  CliJob job; /* first: callbacks of its entries get the address of all */
  char *chrome_trace;
  char *csv;
  char *links;
  char *memory_chart;
  char *residuals;
  char **timelines;
  char *emit;
  gboolean json, show_placement, require_fit, critical_path, sensitivity;
} Args;

static void
args_clear (Args *args)
{
  cli_job_clear (&args->job);
  g_free (args->chrome_trace);
  g_free (args->csv);
  g_free (args->links);
  g_free (args->memory_chart);
  g_free (args->residuals);
  g_strfreev (args->timelines);
  g_free (args->emit);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

static const CliHelp help = {
  .usage = "run --model NAME|FILE|--trace NAME|FILE --cluster NAME|FILE [OPTION...]",
  .summary
  = "Simulates one training job: step time, where it goes, memory. Times are in seconds,\n"
    "batches in sequences, degrees in ranks. Options override --strategy, which overrides --software.",
  .job = CLI_JOB_SHOWN,
  .description
  = "Example:\n"
    "  lockstep run --model gpt3-175b --cluster dgx-a100-80g --nodes 8 --tp 8 --pp 8 --vpp 3 \\\n"
    "    --sp --recompute selective --global-batch 64",
};

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry others[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &args->json, "Print JSON", NULL },
    { "chrome-trace", 0, 0, G_OPTION_ARG_FILENAME, &args->chrome_trace,
      "Write a trace for Perfetto or chrome://tracing", "FILE" },
    { "csv", 0, 0, G_OPTION_ARG_FILENAME, &args->csv, "Write every span: a row each, times in picoseconds",
      "FILE" },
    { "links", 0, 0, G_OPTION_ARG_FILENAME, &args->links, "Write what each link carried: a row each",
      "FILE" },
    { "timeline", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &args->timelines,
      "Draw the step (.svg or .png, by gnuplot; .gp: its script); may be repeated", "FILE" },
    { "memory-chart", 0, 0, G_OPTION_ARG_FILENAME, &args->memory_chart,
      "Draw what the fullest rank holds over the step (.svg or .png; .gp: its script)", "FILE" },
    { "critical-path", 0, 0, G_OPTION_ARG_NONE, &args->critical_path,
      "Which ops, links and ranks the step went through", NULL },
    { "sensitivity", 0, 0, G_OPTION_ARG_NONE, &args->sensitivity,
      "What a percent more FLOPs, bandwidth, latency is worth: a dozen runs more", NULL },
    { "emit", 0, 0, G_OPTION_ARG_STRING, &args->emit,
      "Print the job for another program instead: megatron, torchtitan, deepspeed", "PROGRAM" },
    { "residuals", 0, 0, G_OPTION_ARG_FILENAME, &args->residuals,
      "Measured runs that the interval around the step comes from; none: no interval; default: those that "
      "the cluster was fitted to, else residuals",
      "NAME|FILE" },
    { "show-placement", 0, 0, G_OPTION_ARG_NONE, &args->show_placement,
      "Print which rank runs on which GPU with whom", NULL },
    { "require-fit", 0, 0, G_OPTION_ARG_NONE, &args->require_fit, "Exit 4 if it does not fit into memory",
      NULL },
    G_OPTION_ENTRY_NULL,
  };
  g_autoptr (GArray) entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  cli_job_entries (&args->job, NULL, entries);
  g_array_append_vals (entries, others, G_N_ELEMENTS (others) - 1);

  if (!cli_parse (argc, argv, &help, (const GOptionEntry *) (gpointer) entries->data, args, ret_done, error))
    return FALSE;
  if (!*ret_done && *argc > 1) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "unexpected argument \"%s\"", (*argv)[1]);
    return FALSE;
  }
  if (!*ret_done && args->emit && args->json) {
    g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE,
                         "--emit does not go with --json: each prints what it has instead of the summary");
    return FALSE;
  }
  return *ret_done || !args->emit || ls_check_emit_target (args->emit, error);
}

/* Before the run: a mistake must not cost it. */
static gboolean
check_files (const Args *args, GError **error)
{
  if (args->chrome_trace && !ls_check_output_path (LS_OUTPUT_CHROME_TRACE, args->chrome_trace, error))
    return FALSE;
  if (args->csv && !ls_check_output_path (LS_OUTPUT_CSV, args->csv, error))
    return FALSE;
  if (args->links && !ls_check_output_path (LS_OUTPUT_CSV, args->links, error))
    return FALSE;
  if (args->memory_chart && !ls_check_output_path (LS_OUTPUT_PLOT, args->memory_chart, error))
    return FALSE;
  for (char **path = args->timelines; path && *path; path++)
    if (!ls_check_output_path (LS_OUTPUT_TIMELINE, *path, error))
      return FALSE;
  return TRUE;
}

static gboolean
write_files (const LsResult *result, const Args *args, GError **error)
{
  if (args->chrome_trace && !ls_result_write_chrome_trace (result, args->chrome_trace, error))
    return FALSE;
  if (args->csv && !ls_result_write_csv (result, args->csv, error))
    return FALSE;
  if (args->links && !ls_result_write_links (result, args->links, error))
    return FALSE;
  if (args->memory_chart && !ls_result_write_memory_chart (result, -1, args->memory_chart, error))
    return FALSE;
  for (char **path = args->timelines; path && *path; path++)
    if (!ls_result_write_timeline (result, *path, error))
      return FALSE;
  return TRUE;
}

/* Colour for a terminal that wants it (no-color.org), block characters for UTF-8. */
static LsTextStyle
text_style (void)
{
  gboolean is_color
      = isatty (STDOUT_FILENO) && !g_getenv ("NO_COLOR") && g_strcmp0 (g_getenv ("TERM"), "dumb") != 0;
  gboolean is_utf8 = strcmp (nl_langinfo (CODESET), "UTF-8") == 0;
  return (is_color ? LS_TEXT_COLOR : LS_TEXT_PLAIN) | (is_utf8 ? LS_TEXT_PLAIN : LS_TEXT_ASCII);
}

/* What takes more than the run. */
static gboolean
explain (LsResult *result, const LsJob *job, const Args *args, GError **error)
{
  if (args->critical_path && !ls_result_find_critical_path (result, error))
    return FALSE;
  return !args->sensitivity || ls_result_find_sensitivity (result, job, 0, error);
}

static gboolean
print_emitted (const LsResult *result, const LsJob *job, const char *target, GError **error)
{
  g_autofree char *notes = NULL;
  g_autofree char *fragment = ls_result_emit (result, job, target, &notes, error);
  if (!fragment)
    return FALSE;
  cli_note (notes);
  return cli_print (fragment, error);
}

static gboolean
print_result (const LsResult *result, const Args *args, GError **error)
{
  if (args->json) {
    g_autofree char *json = ls_result_json (result);
    return cli_print (json, error);
  }
  if (args->show_placement) {
    g_autofree char *placement = ls_result_placement (result);
    if (!cli_print (placement, error) || !cli_print ("\n", error))
      return FALSE;
  }
  g_autofree char *summary = ls_result_summary (result, text_style ());
  return cli_print (summary, error);
}

#define FIT_NOTE "lockstep memory, with the same options, simulates what would make it fit"

gboolean
cli_run (int argc, char **argv, GError **error)
{
  g_auto (Args) args = { 0 };
  cli_job_init (&args.job);
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;

  g_autoptr (LsJob) job = cli_job_new (&args.job, error);
  if (!job || !check_files (&args, error)
      || (args.residuals && !ls_job_set (job, "residuals", args.residuals, error)))
    return FALSE;
  g_autoptr (LsResult) result = ls_job_run (job, error);
  if (!result)
    return FALSE;
  g_autofree char *notes = ls_result_notes (result);
  cli_note (notes);
  if (!explain (result, job, &args, error) || !write_files (result, &args, error))
    return FALSE;
  return (args.emit ? print_emitted (result, job, args.emit, error) : print_result (result, &args, error))
      && cli_report_fit (result, args.require_fit, FIT_NOTE, error);
}
