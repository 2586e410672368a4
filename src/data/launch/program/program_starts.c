/* The command that starts a job, and the variables of its script, in expressions; scripts that train
 * nothing. */
#include <lockstep/error.h>

#include <string.h>

#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/shell/shell.h"

/* --- functions ----------------------------------------------------------------------------------------- */

/* GPUs that the command is started on; 0: not known. */
static ProgramValue
f_gpus (ProgramRun *run, const ProgramArgument *a)
{
  return program_number ((double) run->job->gpus);
}

/* A number that what starts the script is told, as torchrun by --nproc_per_node; 0: none. */
static ProgramValue
f_starter (ProgramRun *run, const ProgramArgument *a)
{
  if (!run->script || !run->script->front)
    return program_number (0);
  g_autoptr (LaunchWords) words = launch_words_new ();
  launch_words_add (words, (char *const *) run->script->front->pdata, run->script->front->len);
  const char *text = launch_words_text (words, a[0].word);
  return program_number (text ? (double) g_ascii_strtoull (text, NULL, 10) : 0);
}

/* What a script sets it to; NULL: it does not, or none starts the job. */
static const char *
variable_of (const ProgramRun *run, const char *name)
{
  return run->job->variables ? g_hash_table_lookup (run->job->variables, name) : NULL;
}

static ProgramValue
f_variable (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = variable_of (run, a[0].word);
  return text ? program_text (text) : program_none ();
}

/* Of what a script sets for its processes; none: it is not set, or left open, which is told. */
static ProgramValue
f_set (ProgramRun *run, const ProgramArgument *a)
{
  LsImport *import = run->job->import;
  const char *text = variable_of (run, a[0].word);
  if (!text || !*text)
    return program_none ();
  import_note_word (import, a[0].word, NULL);
  if (!ls_shell_has_hole (text))
    return program_text (text);
  g_autofree char *names = ls_shell_hole_names (text);
  import_unknown (import, "%s: its value is %s, which is not said here", a[0].word, names);
  return program_none ();
}

/* Whether processes see a variable that would matter; that they do not is told. */
static ProgramValue
f_exported (ProgramRun *run, const ProgramArgument *a)
{
  GHashTable *exported = run->job->exported;
  bool is_exported = !exported || g_hash_table_contains (exported, a[0].word);
  if (!is_exported)
    import_unknown (run->job->import, "%s: it is set and not exported; processes are assumed not to see it",
                    a[0].word);
  return program_number (is_exported);
}

/* What processes are told by a variable that the script sets, or by an option of that name, as files of
 * recipes have it. */
static ProgramValue
f_setting (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = variable_of (run, a[0].word);
  g_autofree char *of_recipe = g_strconcat ("env_vars.", a[0].word, NULL);
  text = text ? text : option_text (run->job, a[0].word);
  text = text ? text : option_text (run->job, of_recipe);
  return text ? program_text (text) : program_none ();
}

/* A variable of the script, or given beside it, which says what it is set to as an option does. */
static ProgramValue
f_environment (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = program_environment (run, a[0].word);
  if (text)
    import_note_word (run->job->import, a[0].word, NULL);
  return text ? program_text (text) : program_none ();
}

/* A number of what a batch system was asked, "slices": 0: not known. */
static ProgramValue
f_batch (ProgramRun *run, const ProgramArgument *a)
{
  g_autofree char *name = g_strconcat ("batch.", a[0].word, NULL);
  const char *text = run->script ? launch_words_text (run->script->batch, name) : NULL;
  return program_number (text ? g_ascii_strtod (text, NULL) : 0);
}

/* Whether a command starts it, or else it is a configuration alone. */
static ProgramValue
f_script (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (run->script != NULL);
}

/* Whether that command begins with the program: no other one starts processes. */
static ProgramValue
f_is_bare (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (run->script && run->script->front && run->script->front->len == 0);
}

/* What the command says by an option of its own. */
static ProgramValue
f_argument (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = run->script ? launch_words_text (run->script->words, a[0].word) : NULL;
  return text ? program_text (text) : program_none ();
}

/* --- scripts that train nothing ------------------------------------------------------------------------ */

/* A diagnostic if its script trains nothing; false: it does. */
bool
program_refuse_other (const ProgramRun *run)
{
  const char *script = run->script->script,
             *other = script ? launch_other (&(LaunchKind) { run->map, run->file }, script) : NULL;
  if (other)
    ls_diag_add (run->diags, LS_ERROR_UNSUPPORTED, run->path, 0, 0, NULL, NULL, NULL,
                 "%s %s; a job of Lockstep trains a decoder on the next token", script, other);
  return other != NULL;
}

/* --- the table ----------------------------------------------------------------------------------------- */

const ProgramFunction program_start_functions[] = {
  { "gpus", "", f_gpus },
  { "starter", "w", f_starter },
  { "variable", "w", f_variable },
  { "set", "w", f_set },
  { "exported", "w", f_exported },
  { "setting", "w", f_setting },
  { "environment", "w", f_environment },
  { "batch", "w", f_batch },
  { "script", "", f_script },
  { "is_bare", "", f_is_bare },
  { "argument", "w", f_argument },
  { NULL },
};
