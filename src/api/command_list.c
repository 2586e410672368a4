/* api/command_list.c — commands of data files: list, check, schema. */
#include "api/answer.h"
#include "api/commands.h"
#include "api/request.h"
#include "show/catalog.h"
#include "show/schema/schemas.h"

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
    .usage = "list [models|clusters|gpus|strategies|software|kernels|programs|optimizers|reliability|scaling|"
             "jitter|traces|schedules] [--json]",
    .summary = "Lists what is at hand, and where each file was found.",
    .examples = "Example:\n  lockstep list clusters",
  },
  .own = own,
  .run = run,
};

/* --- `lockstep check`: whether data files are right ---------------------------------------------- */

static const LsOption own_check[] = {
  { "file", .is_positional = TRUE, .is_repeated = TRUE, .takes_json = TRUE, .argument = "FILE",
    .meaning = "Data files" },
  { "model", .argument = "NAME|FILE", .meaning = "Check strategies against this model" },
  { "cluster", .argument = "NAME|FILE", .meaning = "Check them against this cluster" },
  { "json", .meaning = "Print JSON, also of files that are wrong" },
  { NULL },
};

LS_ANSWER_FORM (to_text_check, ls_checked_files_to_text (data))
LS_ANSWER_FORM (to_json_check, ls_checked_files_to_json (data))

static void
free_files (gpointer data)
{
  g_ptr_array_unref (data);
}

static void
free_file (gpointer data)
{
  ls_checked_file_free (data);
}

/* What is wrong in all files, with the code of the first; NULL: nothing. */
static GError *
error_of (const GPtrArray *files)
{
  g_autoptr (GString) wrong = g_string_new (NULL);
  const GError *first = NULL;
  for (guint i = 0; i < files->len; i++) {
    const LsCheckedFile *f = g_ptr_array_index (files, i);
    if (!f->problem)
      continue;
    g_string_append_printf (wrong, "%s%s", wrong->len > 0 ? "\n" : "", f->problem->message);
    first = first ? first : f->problem;
  }
  return first ? g_error_new_literal (first->domain, first->code, wrong->str) : NULL;
}

static gboolean
run_check (const LsRequest *r, LsAnswer *a, GError **error)
{
  static const LsAnswerForms forms = { .text = to_text_check, .json = to_json_check, .free = free_files };
  const char *model = ls_request_text (r, "model"), *cluster = ls_request_text (r, "cluster");
  g_autofree const char **paths = ls_request_texts (r, "file");
  if (!paths)
    return ls_request_refuse ("expected a file to check", error);
  if (!model != !cluster)
    return ls_request_refuse ("--model and --cluster go together", error);
  GPtrArray *files = g_ptr_array_new_with_free_func (free_file);
  for (guint i = 0; paths[i]; i++)
    g_ptr_array_add (files, ls_catalog_check (paths[i], model, cluster));
  GError *wrong = error_of (files);
  if (wrong)
    ls_answer_fail (a, wrong);
  ls_answer_take (a, files, &forms);
  return TRUE;
}

const Command command_check = {
  .shown = {
    .name = "check",
    .line = "read data files and report every mistake",
    .usage = "check [--model NAME|FILE --cluster NAME|FILE] [--json] FILE...",
    .summary = "Reads data files (models, clusters, GPUs, strategies, calibrations, traces, Hugging\n"
               "Face config.json) and reports every mistake in them.",
    .examples = "Examples:\n"
                "  lockstep check my-cluster.json\n"
                "  lockstep check --model gpt3-175b --cluster dgx-a100-80g my-strategy.json",
  },
  .own = own_check,
  .run = run_check,
};

/* --- `lockstep schema`: what JSON of ours may hold ----------------------------------------------- */

static const LsOption own_schema[] = {
  { "name", .is_positional = TRUE, .argument = "NAME", .meaning = "Which; default: what there is" },
  { NULL },
};

static gboolean
run_schema (const LsRequest *r, LsAnswer *a, GError **error)
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
  .own = own_schema,
  .run = run_schema,
};
