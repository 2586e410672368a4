#include "cli/cli.h"

static const CliHelp help = {
  .usage = "list [models|clusters|gpus|strategies|software|kernels|traces|schedules]",
  .summary = "Lists what is at hand, and where each file was found.",
  .description = "Example:\n  lockstep list clusters\n\n" CLI_EXIT_CODES,
};

gboolean
cli_list (int argc, char **argv, GError **error)
{
  static const GOptionEntry entries[] = { G_OPTION_ENTRY_NULL };
  gboolean is_done = FALSE;
  if (!cli_parse (&argc, &argv, &help, entries, NULL, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;
  if (argc > 2) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "unexpected argument \"%s\"", argv[2]);
    return FALSE;
  }
  g_autofree char *text = ls_list_text (argc > 1 ? argv[1] : NULL, error);
  return text && cli_print (text, error);
}
