#include "cli/job_args.h"

#include <string.h>

static const CliHelp help = {
  .usage = "trace export --cluster NAME|FILE [OPTION...] -o FILE",
  .summary = "Writes the plan of a job, what each rank runs and exchanges, as a file that lockstep run\n"
             "--trace replays: on the same cluster with the same result, or on another. All options of\n"
             "lockstep run that say which job are taken, from --model to --strategy. The format is\n"
             "documented in the manual, formats/trace.md.",
  .job = CLI_JOB_TAKEN,
  .description
  = "Examples:\n"
    "  lockstep trace export --model gpt3-175b --cluster dgx-a100-80g --nodes 8 --tp 8 --pp 8 -o gpt3.json\n"
    "  lockstep run --trace ./gpt3.json --cluster dgx-h100\n\n" CLI_EXIT_CODES,
};

typedef struct {
  CliJob job; /* first: see cli_job_entries() */
  char *output;
} Args;

static void
args_clear (Args *args)
{
  cli_job_clear (&args->job);
  g_free (args->output);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

static gboolean
parse_args (int *argc, char ***argv, Args *args, gboolean *ret_done, GError **error)
{
  const GOptionEntry output
      = { "output", 'o', 0, G_OPTION_ARG_FILENAME, &args->output, "Where to write; required", "FILE" };
  g_autoptr (GArray) entries = g_array_new (TRUE, TRUE, sizeof (GOptionEntry));
  cli_job_entries (&args->job, NULL, entries);
  g_array_append_val (entries, output);
  if (!cli_parse (argc, argv, &help, (const GOptionEntry *) (gpointer) entries->data, args, ret_done, error))
    return FALSE;
  if (*ret_done)
    return TRUE;
  if (*argc < 2)
    g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE, "expected \"export\"");
  else if (strcmp ((*argv)[1], "export") != 0)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "expected \"export\"; got \"%s\"", (*argv)[1]);
  else if (*argc > 2)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "unexpected argument \"%s\"", (*argv)[2]);
  else if (!args->output)
    g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE, "expected -o FILE");
  else
    return TRUE;
  return FALSE;
}

gboolean
cli_trace (int argc, char **argv, GError **error)
{
  g_auto (Args) args = { 0 };
  cli_job_init (&args.job);
  gboolean is_done = FALSE;
  if (!parse_args (&argc, &argv, &args, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;
  g_autoptr (LsJob) job = cli_job_new (&args.job, error);
  return job && ls_check_output_path (LS_OUTPUT_TRACE, args.output, error)
      && ls_job_write_trace (job, args.output, error);
}
