/* `lockstep list`: what is at hand. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "show/catalog.h"

static const LsOption own[] = {
  { "kind", .is_positional = TRUE, .argument = "KIND", .meaning = "Only these; default: all" },
  { NULL },
};

static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  char *text = ls_catalog_list (ls_request_text (r, "kind"), error);
  if (text)
    ls_answer_take_text (a, text);
  return text != NULL;
}

const Command command_list = {
  .shown = {
    .name = "list",
    .line = "models, clusters, GPUs, software, schedules and others at hand",
    .usage = "list [models|clusters|gpus|strategies|software|kernels|traces|schedules]",
    .summary = "Lists what is at hand, and where each file was found.",
    .examples = "Example:\n  lockstep list clusters",
  },
  .own = own,
  .run = run,
};
