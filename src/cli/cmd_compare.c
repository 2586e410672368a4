#include "cli/cli.h"

static const CliHelp help = {
  .usage = "compare A.json B.json... | --spans MEASURED.csv PREDICTED.csv",
  .summary = "Results of lockstep run --json side by side: which options differ, which parts of the step,\n"
             "of the memory and of the links moved, and by how much; of more than two, a column each. Or spans that kernelbench --plan measured on a\n"
             "GPU beside those that lockstep run --csv predicted: by kernel, gaps and the whole.",
  .description = "Examples:\n"
                 "  lockstep compare before.json after.json\n"
                 "  lockstep compare --spans measured.csv predicted.csv --json\n\n" CLI_EXIT_CODES,
};

typedef struct {
  gboolean spans, json;
} Args;

gboolean
cli_compare (int argc, char **argv, GError **error)
{
  Args args = { 0 };
  gboolean is_done = FALSE;
  const GOptionEntry entries[] = {
    { "spans", 0, 0, G_OPTION_ARG_NONE, &args.spans, "The files hold spans, the measured ones first", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &args.json, "Print JSON", NULL },
    G_OPTION_ENTRY_NULL,
  };
  if (!cli_parse (&argc, &argv, &help, entries, NULL, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;
  if (argc < 3 || (args.spans && argc != 3)) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "expected two files%s; got %d", args.spans ? "" : " or more", argc - 1);
    return FALSE;
  }
  g_autofree char *text = args.spans ? ls_compare_spans (argv[1], argv[2], args.json, error)
                           : argc > 3 ? ls_compare_many ((const char *const *) argv + 1, args.json, error)
                                      : ls_compare_results (argv[1], argv[2], args.json, error);
  return text && cli_print (text, error);
}
