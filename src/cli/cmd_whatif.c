#include "cli/job_args.h"
#include "cli/progress.h"

#define DEFAULT_TOP 15

typedef struct {
  CliJob job; /* first: callbacks of its entries get the address of all */
  gint64 top, threads;
  gboolean all, json, csv;
} Args;

static void
args_clear (Args *args)
{
  cli_job_clear (&args->job);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

static const CliHelp help = {
  .usage = "whatif --model NAME|FILE --cluster NAME|FILE [OPTION...]",
  .summary = "Makes single changes to a job, simulates each, and ranks them by what they gain: pipeline\n"
             "schedules and chunks, layouts, micro-batches, recomputation, offloading, overlap, data\n"
             "parallelism, number formats, faster links, later GPUs. Each line shows the options to append\n"
             "to the job. The options that say which job are those of lockstep run.",
  .job = CLI_JOB_TAKEN,
  .description
  = "Examples:\n"
    "  lockstep whatif --model llama3.1-8b --cluster dgx-h100 --gpus 16 --tp 2 --global-batch 64\n"
    "  lockstep whatif --model gpt3-175b --cluster dgx-a100-80g --nodes 8 --tp 8 --pp 8 --global-batch 64 "
    "--all\n\n" CLI_EXIT_CODES,
};

static const char *
check_args (const Args *args, int argc)
{
  if (args->json && args->csv)
    return "--json and --csv exclude each other";
  if (args->top < 1 || args->top > 1000)
    return "--top: expected 1 to 1000";
  if (args->threads < 0 || args->threads > 1024)
    return "--threads: expected 0 to 1024";
  return argc > 1 ? "unexpected argument" : NULL;
}

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry others[] = {
    { "top", 0, 0, G_OPTION_ARG_INT64, &args->top, "Changes shown that gain and fit; default 15", "N" },
    { "all", 0, 0, G_OPTION_ARG_NONE, &args->all,
      "Show all, also those that gain nothing or are not possible, with the reasons", NULL },
    { "threads", 'j', 0, G_OPTION_ARG_INT64, &args->threads, "Simulations at once; default one per processor",
      "N" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &args->json, "Print JSON", NULL },
    { "csv", 0, 0, G_OPTION_ARG_NONE, &args->csv, "Print a row for each change", NULL },
    G_OPTION_ENTRY_NULL,
  };
  g_autoptr (GArray) entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  cli_job_entries (&args->job, NULL, entries);
  g_array_append_vals (entries, others, G_N_ELEMENTS (others) - 1);
  if (!cli_parse (argc, argv, &help, (const GOptionEntry *) (gpointer) entries->data, args, ret_done, error))
    return FALSE;
  const char *wrong = *ret_done ? NULL : check_args (args, *argc);
  if (wrong)
    g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE, wrong);
  return !wrong;
}

static char *
format (const LsWhatIfs *w, const Args *args)
{
  if (args->json)
    return ls_what_ifs_json (w);
  return args->csv ? ls_what_ifs_csv (w) : ls_what_ifs_text (w, args->all ? 0 : (guint) args->top);
}

gboolean
cli_whatif (int argc, char **argv, GError **error)
{
  g_auto (Args) args = { .top = DEFAULT_TOP };
  cli_job_init (&args.job);
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;
  g_autoptr (LsJob) job = cli_job_new (&args.job, error);
  if (!job)
    return FALSE;
  CliProgress progress;
  cli_progress_begin (&progress);
  g_autoptr (LsWhatIfs) w = ls_what_ifs_new (job, (guint) args.threads, cli_progress_show, &progress, error);
  cli_progress_end (&progress);
  g_autofree char *text = w ? format (w, &args) : NULL;
  return text && cli_print (text, error);
}
