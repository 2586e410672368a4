#include "cli/cli.h"

#include <string.h>

static const CliHelp help = {
  .usage = "check [--model NAME|FILE --cluster NAME|FILE] FILE...",
  .summary = "Reads data files (models, clusters, GPUs, strategies, calibrations, traces, Hugging\n"
             "Face config.json) and reports every mistake in them.",
  .description
  = "Examples:\n"
    "  lockstep check my-cluster.json\n"
    "  lockstep check --model gpt3-175b --cluster dgx-a100-80g my-strategy.json\n\n" CLI_EXIT_CODES,
};

/* Checks every file; the first error gives the code, all of them the text. */
static char *
check_all (int n, char **paths, const char *model, const char *cluster, GError **error)
{
  g_autoptr (GString) fine = g_string_new (NULL);
  g_autoptr (GString) wrong = g_string_new (NULL);
  g_autoptr (GError) first = NULL;

  for (int i = 0; i < n; i++) {
    g_autoptr (GError) problem = NULL;
    g_autofree char *line = ls_check_file (paths[i], model, cluster, &problem);
    if (line) {
      g_string_append_printf (fine, "%s\n", line);
      continue;
    }
    g_string_append_printf (wrong, "%s%s", wrong->len > 0 ? "\n" : "", problem->message);
    if (!first)
      first = g_steal_pointer (&problem);
  }
  if (first) {
    g_set_error_literal (error, first->domain, first->code, wrong->str);
    return NULL;
  }
  return g_string_free (g_steal_pointer (&fine), FALSE);
}

gboolean
cli_check (int argc, char **argv, GError **error)
{
  g_autofree char *model = NULL;
  g_autofree char *cluster = NULL;
  const GOptionEntry entries[] = {
    { "model", 0, 0, G_OPTION_ARG_FILENAME, &model, "Check strategies against this model", "NAME|FILE" },
    { "cluster", 0, 0, G_OPTION_ARG_FILENAME, &cluster, "Check them against this cluster", "NAME|FILE" },
    G_OPTION_ENTRY_NULL,
  };
  gboolean is_done = FALSE;
  if (!cli_parse (&argc, &argv, &help, entries, NULL, &is_done, error))
    return FALSE;
  if (is_done)
    return TRUE;
  if (argc < 2 || !model != !cluster) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "%s",
                 argc < 2 ? "expected a file to check" : "--model and --cluster go together");
    return FALSE;
  }
  g_autofree char *text = check_all (argc - 1, argv + 1, model, cluster, error);
  return text && cli_print (text, error);
}
