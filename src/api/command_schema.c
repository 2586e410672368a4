/* `lockstep schema`: what JSON of ours may hold. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "show/schema/schemas.h"

static const LsOption own[] = {
  { "name", .is_positional = TRUE, .argument = "NAME", .meaning = "Which; default: what there is" },
  { NULL },
};

static gboolean
run (const LsRequest *r, LsAnswer *a, GError **error)
{
  const char *name = ls_request_text (r, "name");
  char *text = name ? ls_schema_to_json (name, error) : ls_schemas_list ();
  if (text)
    ls_answer_take_text (a, text);
  return text != NULL;
}

const Command command_schema = {
  .shown = {
    .name = "schema",
    .line = "the JSON Schema of what is read and written",
    .usage = "schema [NAME]",
    .summary = "Prints the JSON Schema (2020-12) of a kind of file that is read, or of the JSON that a\n"
               "command prints. Without a name it lists them.",
    .examples = "Examples:\n  lockstep schema run\n  lockstep schema cluster > cluster.schema.json",
  },
  .own = own,
  .run = run,
};
