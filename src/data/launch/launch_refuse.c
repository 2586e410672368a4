/* Why a script is not read: what it starts is no program that is, or does something else. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/launch_script.h"

#define MAX_NAMES 3 /* programs that are told */

/* Words of names such as "dpo_tune_cache.py" and "verl.trainer.main_ppo". */
static bool
has_part (const char *name, const char *const *parts)
{
  g_auto (GStrv) words = g_strsplit_set (name, "_-. /", -1);
  for (char **word = words; *word; word++)
    if (g_strv_contains (parts, *word))
      return true;
  return false;
}

bool
launch_learns (const char *name)
{
  static const char *const parts[] = { "dpo",  "grpo",  "ppo", "kto",       "orpo",   "rloo", "gspo",
                                       "dapo", "simpo", "mpo", "reinforce", "reward", NULL };
  return has_part (name, parts);
}

bool
launch_uses_model (const char *name)
{
  static const char *const parts[]
      = { "generate",  "generation", "inference", "infer", "eval",  "evaluate",     "evaluation",
          "lighteval", "merge",      "chatbot",   "vllm",  "serve", "benchmarking", NULL };
  return has_part (name, parts);
}

/* The script, or with a launcher that is not known "colossalai run", what the command is. */
static void
take_program (const LsShellCommand *c, gpointer data)
{
  GPtrArray *names = data;
  g_autofree char *script = NULL;
  g_autoptr (GPtrArray) words = g_ptr_array_new ();
  guint at;
  for (guint i = 0; i < c->n; i++)
    g_ptr_array_add (words, c->words[i]);
  launch_find_script (words, &at, &script);
  for (guint i = 0; i < c->n && !script; i++)
    if (launch_has_end (c->words[i], ".sh .sbatch"))
      script = g_path_get_basename (c->words[i]);
  if (script && !ls_shell_has_hole (script) && names->len < 100
      && !g_ptr_array_find_with_equal_func (names, script, g_str_equal, NULL))
    g_ptr_array_add (names, g_steal_pointer (&script));
}

/* char *, newly allocated. */
static GPtrArray *
programs_of (const ImportFile *file)
{
  static const LsShellFuncs funcs = { .command = take_program };
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (LsShell) shell = ls_shell_new (&funcs, names);
  g_free (ls_shell_read (shell, "script", file->text, file->n)); /* what is before a fault is told */
  return names;
}

char *
launch_started (const ImportFile *file)
{
  g_autoptr (GPtrArray) names = programs_of (file);
  GString *told = g_string_new (NULL);
  for (guint i = 0; i < names->len && i < MAX_NAMES; i++)
    g_string_append_printf (told, "%s%s", i > 0 ? ", " : "", (char *) names->pdata[i]);
  if (names->len > MAX_NAMES)
    g_string_append (told, ", ...");
  return g_string_free (told, told->len == 0);
}

bool
launch_refuse_task (const ImportFile *file, LsDiagList *diags)
{
  g_autoptr (GPtrArray) names = programs_of (file);
  for (guint i = 0; i < names->len; i++)
    if (launch_learns (names->pdata[i])) {
      import_refuse_task (file->path, diags, "%s, which learns from rewards or preferences",
                          (const char *) names->pdata[i]);
      return true;
    }
  return false;
}

bool
launch_script_refuse (const ImportFile *file, LsDiagList *diags)
{
  bool is_script
      = g_str_has_prefix (file->text, "#!") || launch_has_end (file->path, ".sh .bash .slurm .sbatch .sub");
  if (!is_script || launch_refuse_task (file, diags))
    return is_script;
  g_autofree char *started = launch_started (file);
  ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL, IMPORT_ELSE,
               "a script, but no command of it launches a program that is read%s%s",
               started ? "; it starts " : "", started ? started : "");
  return true;
}
