#include "api/commands.h"

#include <string.h>

#include "api/answer.h"
#include "api/request.h"
#include "base/handover.h"
#include "base/suggest.h"
#include "data/jobs/job_files.h"

static const struct {
  const char *name;
  CommandRun *run;
} table[] = {
  { "run", command_run },           { "sweep", command_sweep },         { "collective", command_collective },
  { "kernel", command_kernel },     { "calibrate", command_calibrate }, { "compare", command_compare },
  { "topology", command_topology }, { "schedule", command_schedule },   { "validate", command_validate },
  { "whatif", command_whatif },     { "train", command_train },         { "memory", command_memory },
  { "capture", command_capture },   { "share", command_share },         { "place", command_place },
  { "trace", command_trace },       { "import", command_import },       { "list", command_list },
  { "check", command_check },       { "schema", command_schema },       { "lab", command_lab },
};
#define N_COMMANDS G_N_ELEMENTS (table)

const LsCommand *const *
ls_commands (void)
{
  static const LsCommand *shown[N_COMMANDS + 1];
  static GPtrArray *commands; /* kept: the first, which all have in common, is not shown */
  static gsize is_made;
  if (ls_once_enter (&is_made)) {
    commands = commands_read ();
    g_assert (commands->len == N_COMMANDS + 1);
    for (guint i = 0; i < N_COMMANDS; i++) {
      Command *c = commands->pdata[i + 1];
      g_assert (strcmp (c->shown.name, table[i].name) == 0);
      c->run = table[i].run;
      shown[i] = &c->shown;
    }
    ls_once_leave (&is_made);
  }
  return shown;
}

const LsCommand *
ls_command_find (const char *name, GError **error)
{
  g_return_val_if_fail (name, NULL);
  const LsCommand *const *commands = ls_commands ();
  const char *names[N_COMMANDS + 1] = { NULL };
  for (guint i = 0; i < N_COMMANDS; i++) {
    names[i] = commands[i]->name;
    if (strcmp (names[i], name) == 0)
      return commands[i];
  }
  const char *near = ls_suggest (name, names);
  return ls_fail_null (error, LS_ERROR_USAGE,
                       near ? "unknown command \"%s\"; did you mean \"%s\"?" : "unknown command \"%s\"", name,
                       near);
}

const char *
ls_nearest_word (const char *typed, const char *const *words)
{
  g_return_val_if_fail (typed && words, NULL);
  return ls_suggest (typed, words);
}

/* --- requests ------------------------------------------------------------------------------------- */

LsRequest *
ls_request_new (const char *command, GError **error)
{
  const LsCommand *found = ls_command_find (command, error);
  return found ? ls_request_of ((const Command *) found) : NULL;
}

/* "--seq 8k is 8192": a letter could be meant otherwise. */
static void
note_counts (const LsRequest *r, LsAnswer *a)
{
  guint n;
  const LsOption *options = ls_command_options (&ls_request_command (r)->shown, &n);
  for (guint i = 0; i < n; i++) {
    const char *text = options[i].topic ? ls_request_text (r, options[i].key) : NULL;
    const LsField *f = text ? ls_field_find (ls_strategy_fields, options[i].key) : NULL;
    uint64_t count;
    if (!f || (f->kind != LS_FIELD_UINT && f->kind != LS_FIELD_UINT64) || !ls_parse_count (text, &count, NULL)
        || !g_ascii_isalpha (text[strlen (text) - 1]))
      continue;
    g_autofree char *flag = ls_field_option (f, text);
    ls_answer_note (a, "%s is %" G_GUINT64_FORMAT, flag, (guint64) count);
  }
}

/* Outputs are checked before: a mistake must not cost the run. */
static LsAnswer *
answer (const LsRequest *r, GError **error)
{
  LsForm form;
  if (!ls_request_form (r, &form, error) || !ls_request_check_rules (r, error)
      || !ls_request_check_outputs (r, error))
    return NULL;
  if (ls_request_is_on (r, "mpi") && !ls_request_team (r)) {
    ls_request_refuse ("--mpi: this program did not join the others: ls_team_join()", error);
    return NULL;
  }
  g_autoptr (LsAnswer) a = ls_answer_new ();
  ls_answer_set_form (a, form);
  ls_answer_set_command (a, ls_request_command (r)->shown.name, ls_request_to_text (r));
  if (!ls_request_command (r)->run (r, a, error))
    return NULL;
  g_autoptr (GPtrArray) again = g_ptr_array_new_with_free_func (g_free);
  ls_request_note_again (r, again);
  ls_answer_note_all (a, again);
  note_counts (r, a);
  ls_answer_write_page (a, r);
  return g_steal_pointer (&a);
}

LsAnswer *
ls_request_run (const LsRequest *r, GError **error)
{
  g_return_val_if_fail (r, NULL);
  GError *problem = NULL;
  ls_request_name_files (r);
  LsAnswer *a = answer (r, &problem);
  if (problem) {
    ls_error_make_printable (problem);
    g_propagate_error (error, problem);
  }
  return a;
}
