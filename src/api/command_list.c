/* `lockstep list`: what is at hand. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "show/catalog.h"

static const LsOption own[] = {
  { "kind", .is_positional = TRUE, .argument = "KIND", .meaning = "Only these; default: all" },
  { "json", .meaning = "Print JSON" },
  { NULL },
};

/* What is listed; JSON is made when it is asked for. */
typedef struct {
  char *kind; /* NULL: all */
  char *text;
} Data;

static void
data_free (gpointer data)
{
  Data *list = data;
  g_free (list->kind);
  g_free (list->text);
  g_free (list);
}

LS_ANSWER_FORM (to_text, g_strdup (((const Data *) data)->text))
LS_ANSWER_FORM (to_json, ls_catalog_to_json (((const Data *) data)->kind, NULL))

static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  static const LsAnswerForms forms = { .text = to_text, .json = to_json, .free = data_free };
  const char *kind = ls_request_text (r, "kind");
  char *text = ls_catalog_list (kind, error);
  if (!text)
    return FALSE;
  Data *list = g_new (Data, 1);
  *list = (Data) { g_strdup (kind), text };
  ls_answer_take (a, list, &forms);
  return TRUE;
}

const Command command_list = {
  .shown = {
    .name = "list",
    .line = "models, clusters, GPUs, software, schedules and others at hand",
    .usage = "list [models|clusters|gpus|strategies|software|kernels|optimizers|reliability|scaling|"
             "jitter|traces|schedules] [--json]",
    .summary = "Lists what is at hand, and where each file was found.",
    .examples = "Example:\n  lockstep list clusters",
  },
  .own = own,
  .run = run,
};
