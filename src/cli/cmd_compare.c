#include "cli/cli.h"

static const CliHelp help = {
  .usage = "compare A.json B.json... | --spans MEASURED.csv PREDICTED.csv",
  .summary
  = "Results of lockstep run --json side by side: which options differ, which parts of the step,\n"
    "of the memory and of the links moved, and by how much; of more than two, a column each. Or spans that "
    "kernelbench --plan measured on a\n"
    "GPU beside those that lockstep run --csv predicted: by kernel, gaps and the whole.",
  .description = "Examples:\n"
                 "  lockstep compare before.json after.json\n"
                 "  lockstep compare --spans measured.csv predicted.csv --json\n\n" CLI_EXIT_CODES,
};

typedef struct {
  gboolean spans, json;
  char *max_error; /* text of a number; NULL: no limit */
} Args;

static void
args_clear (Args *args)
{
  g_free (args->max_error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Args, args_clear)

static char *
compare (const Args *args, char **files, int n, GError **error)
{
  if (args->spans)
    return ls_compare_spans (files[0], files[1], args->json, error);
  return n > 2 ? ls_compare_many ((const char *const *) files, args->json, error)
               : ls_compare_results (files[0], files[1], args->json, error);
}

gboolean
cli_compare (int argc, char **argv, GError **error)
{
  g_auto (Args) args = { 0 };
  double max_error = 0;
  gboolean is_done = FALSE;
  const GOptionEntry entries[] = {
    { "spans", 0, 0, G_OPTION_ARG_NONE, &args.spans, "The files hold spans, the measured ones first", NULL },
    { "max-error", 0, 0, G_OPTION_ARG_FILENAME, &args.max_error,
      "With --spans: exit 5 if the predicted step is off by more percent", "P" },
    { "json", 0, 0, G_OPTION_ARG_NONE, &args.json, "Print JSON", NULL },
    G_OPTION_ENTRY_NULL,
  };
  if (!cli_parse (&argc, &argv, &help, entries, NULL, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;
  if (argc < 3 || (args.spans && argc != 3)) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "expected two files%s; got %d",
                 args.spans ? "" : " or more", argc - 1);
    return FALSE;
  }
  if (args.max_error && !args.spans) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--max-error goes with --spans");
    return FALSE;
  }
  if (!cli_parse_percent ("max-error", args.max_error, G_MAXDOUBLE, &max_error, error))
    return FALSE;
  g_autofree char *text = compare (&args, argv + 1, argc - 1, error);
  if (!text || !cli_print (text, error))
    return FALSE;
  return !args.max_error || ls_check_spans (argv[1], argv[2], max_error, error);
}
