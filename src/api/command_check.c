/* `lockstep check`: whether data files are right. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "show/catalog.h"

static const LsOption own[] = {
  { "file", .is_positional = TRUE, .is_repeated = TRUE, .argument = "FILE", .meaning = "Data files" },
  { "model", .argument = "NAME|FILE", .meaning = "Check strategies against this model" },
  { "cluster", .argument = "NAME|FILE", .meaning = "Check them against this cluster" },
  { NULL },
};

/* Checks every file; the first error gives the code, all of them the text. */
static char *
check_all (const char *const *paths, const char *model, const char *cluster, GError **error)
{
  g_autoptr (GString) fine = g_string_new (NULL);
  g_autoptr (GString) wrong = g_string_new (NULL);
  g_autoptr (GError) first = NULL;
  for (; *paths; paths++) {
    g_autoptr (GError) problem = NULL;
    g_autofree char *line = ls_catalog_check (*paths, model, cluster, &problem);
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

static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  const char *model = ls_request_text (r, "model"), *cluster = ls_request_text (r, "cluster");
  g_autofree const char **paths = ls_request_texts (r, "file");
  if (!paths)
    return ls_request_refuse ("expected a file to check", error);
  if (!model != !cluster)
    return ls_request_refuse ("--model and --cluster go together", error);
  char *text = check_all (paths, model, cluster, error);
  if (text)
    ls_answer_take_text (a, text);
  return text != NULL;
}

const Command command_check = {
  .shown = {
    .name = "check",
    .line = "read data files and report every mistake",
    .usage = "check [--model NAME|FILE --cluster NAME|FILE] FILE...",
    .summary = "Reads data files (models, clusters, GPUs, strategies, calibrations, traces, Hugging\n"
               "Face config.json) and reports every mistake in them.",
    .examples = "Examples:\n"
                "  lockstep check my-cluster.json\n"
                "  lockstep check --model gpt3-175b --cluster dgx-a100-80g my-strategy.json",
  },
  .own = own,
  .run = run,
};
