/* What a command names: its script, files next to those that are read; what a text begins with; and why a
 * script is not read. */
#include <lockstep/error.h>
#include <string.h>

#include "data/launch/launch_script.h"
#include "data/text/read_file.h"

#define MAX_ABOVE 4 /* folders */

/* Commands that packages install. A script of Python behind one is the value of an option:
 * "--external_plugins reward.py". */
static const char *const commands[]
    = { "axolotl", "litgpt", "llamafactory-cli", "megatron", "swift", "trl", "xtuner", NULL };

/* "-m", "-um": flags of python of one letter stand together; "--module" of launchers. */
static bool
is_module_flag (const char *word)
{
  gsize n = strlen (word);
  return strcmp (word, "--module") == 0
      || (n >= 2 && word[0] == '-' && word[n - 1] == 'm' && strspn (word + 1, "bBEIOPqsSuvx") == n - 2);
}

/* "tune run --nproc_per_node 8 RECIPE --config NAME", in which options of torchrun stand in front of a
 * recipe: where that is; 0: it is another command. */
static guint
find_recipe (const GPtrArray *words)
{
  bool is_tune = false;
  for (guint i = 1; i < words->len; i++) {
    is_tune = is_tune || (strcmp (words->pdata[i - 1], "tune") == 0 && strcmp (words->pdata[i], "run") == 0);
    if (is_tune && i > 1 && strcmp (words->pdata[i], "--config") == 0)
      return i - 1;
  }
  return 0;
}

/* "swift sft", "srun -N 2 litgpt pretrain": where what such a command is told to do stands; 0: it is another
 * one. */
static guint
find_command (const GPtrArray *words)
{
  static const char *const starters[] = { "srun", "uv", "poetry", "nohup", "env", "time", NULL };
  bool is_started = words->len > 0 && g_strv_contains (starters, words->pdata[0]);
  for (guint i = 1; i < words->len && (i == 1 || is_started); i++)
    if (g_strv_contains (commands, words->pdata[i - 1]) && g_ascii_isalpha (*(const char *) words->pdata[i]))
      return i;
  return 0;
}

guint
launch_find_script (const GPtrArray *words, guint *ret_at, char **ret_script)
{
  static const char *const launchers[] = { "torch.distributed.launch", "torch.distributed.run",
                                           "deepspeed.launcher.runner", "accelerate.commands.launch", NULL };
  guint recipe = find_recipe (words), command = find_command (words);
  *ret_at = recipe;
  *ret_script = recipe > 0 ? g_strdup (words->pdata[recipe]) : NULL;
  if (recipe > 0)
    return recipe + 1;
  if (command > 0) {
    *ret_at = command - 1;
    *ret_script
        = g_strdup_printf ("%s %s", (char *) words->pdata[command - 1], (char *) words->pdata[command]);
    return command + 1;
  }
  for (guint i = 0; i < words->len; i++) {
    bool is_module = i > 0 && is_module_flag (words->pdata[i - 1]);
    if (g_str_has_suffix (words->pdata[i], ".py")
        || (is_module && !g_strv_contains (launchers, words->pdata[i]))) {
      *ret_script = g_path_get_basename (words->pdata[i]);
      *ret_at = i;
      return i + 1;
    }
  }
  return 0;
}

/* The index behind the "--"; 0: there is none. */
static guint
find_started (const GPtrArray *words)
{
  guint behind = 0;
  bool is_before = false;
  for (guint i = 0; i < words->len; i++) {
    bool is_script = g_str_has_suffix (words->pdata[i], ".py");
    if (behind > 0 && is_script)
      return behind;
    if (behind == 0 && is_before && strcmp (words->pdata[i], "--") == 0)
      behind = i + 1;
    is_before = is_before || is_script;
  }
  return 0;
}

char *
launch_drop_starter (GPtrArray *words, guint64 *ret_nodes, guint64 *ret_each)
{
  guint n = find_started (words), at;
  char *starter = NULL;
  *ret_nodes = *ret_each = 0;
  if (n > 0) {
    g_autoptr (LaunchWords) own = launch_words_new ();
    launch_words_add (own, (char *const *) words->pdata, n);
    *ret_nodes = launch_first_of (own, (const char *const[]) { "num-nodes", "nodes", "nnodes", NULL });
    *ret_each = launch_first_of (own, (const char *const[]) { "gpus", "gpus-per-node", "num-gpus", NULL });
    launch_find_script (words, &at, &starter);
    g_ptr_array_remove_range (words, 0, n);
  }
  return starter;
}

/* A file is one of the job's, like those that were given: it is told so. */
static void
add_file (const ImportFiles *files, const char *path)
{
  const char *own = g_str_has_prefix (path, "./") ? path + 2 : path;
  if (!g_ptr_array_find_with_equal_func (files->found, own, g_str_equal, NULL))
    g_ptr_array_add (files->found, g_strdup (own));
}

char *
launch_read_beside (const ImportFiles *files, const char *name, bool is_of_job, gsize *ret_n)
{
  g_autofree char *folder = g_path_get_dirname (files->files[0].path),
                  *path = g_build_filename (folder, name, NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  char *text = g_file_test (path, G_FILE_TEST_IS_REGULAR)
      ? ls_read_file (path, LAUNCH_MAX_BESIDE, ret_n, diags)
      : NULL;
  if (text && is_of_job)
    add_file (files, path);
  return text;
}

char *
launch_read_above (const ImportFiles *files, const char *name, bool is_of_job, gsize *ret_n)
{
  char *text = NULL;
  g_autoptr (GString) path = g_string_new (name);
  for (guint i = 0; i < MAX_ABOVE && !text; i++) {
    g_string_prepend (path, "../");
    text = launch_read_beside (files, path->str, is_of_job, ret_n);
  }
  return text;
}

/* is_of_job: what is found is read for the job, not to see what it is. */
static char *
find_file (const ImportFiles *files, const char *name, bool is_of_job, gsize *ret_n)
{
  g_autofree char *base = g_path_get_basename (name);
  const char *written = g_hash_table_lookup (files->written, base);
  if (written) {
    *ret_n = strlen (written);
    return g_strdup (written);
  }
  for (guint i = 1; i < files->n; i++)
    if (g_str_has_suffix (files->files[i].path, base)) {
      if (is_of_job)
        import_use_file (&files->files[i]);
      *ret_n = files->files[i].n;
      return g_strndup (files->files[i].text, files->files[i].n);
    }
  bool can_be_above = strchr (name, '/') && *name != '/' && !ls_shell_has_hole (name);
  char *text = launch_read_beside (files, name, is_of_job, ret_n);
  text = text || !can_be_above ? text : launch_read_above (files, name, is_of_job, ret_n);
  return text ? text : launch_read_beside (files, base, is_of_job, ret_n);
}

char *
launch_file_of (const ImportFiles *files, const char *name, gsize *ret_n)
{
  return find_file (files, name, true, ret_n);
}

bool
launch_refuse_config (const char *name, const LsImport *import, LsDiagList *diags)
{
  ls_diag_add (diags, LS_ERROR_INPUT, import->path, 0, 0, NULL, NULL, "give it too, after the script",
               "a script of %s, whose configuration%s%s is not here", import->program, name ? " " : "",
               name ? name : "");
  return false;
}

bool
launch_has_line (const char *text, const char *start)
{
  for (const char *p = strstr (text, start); p; p = strstr (p + 1, start)) {
    const char *q = p;
    while (q > text && (q[-1] == ' ' || q[-1] == '\t'))
      q--;
    if (q == text || q[-1] == '\n')
      return true;
  }
  return false;
}

bool
launch_has_end (const char *name, const char *ends)
{
  g_auto (GStrv) all = g_strsplit (ends, " ", -1);
  bool has_one = false;
  for (char **end = all; *end && !has_one; end++)
    has_one = g_str_has_suffix (name, *end);
  return has_one;
}

bool
launch_is_yaml (const char *name)
{
  return launch_has_end (name, ".yaml .yml");
}

static bool
has_any_line (const char *text, const char *starts)
{
  g_auto (GStrv) items = g_strsplit (starts, " ", -1);
  for (char **start = items; *start; start++)
    if (launch_has_line (text, *start))
      return true;
  return false;
}

bool
launch_names_file (const ImportFiles *files, char *const *words, guint n, const char *marks)
{
  for (guint i = 0; i < n; i++) {
    const char *equals = words[i][0] == '-' ? strchr (words[i], '=') : NULL,
               *name = equals ? equals + 1 : words[i];
    gsize size;
    bool is_json = g_str_has_suffix (name, ".json");
    g_autofree char *text = launch_is_yaml (name) || is_json ? find_file (files, name, false, &size) : NULL;
    if (text && has_any_line (text, marks))
      return true;
  }
  return false;
}

bool
launch_sets_up_shell (const char *name)
{
  static const char *const names[] = { "activate", "conda.sh", "mamba.sh",   ".bashrc", ".bash_profile",
                                       ".profile", "bashrc",   "modules.sh", NULL };
  return g_strv_contains (names, name);
}

char *
launch_with_names (const char *text)
{
  GString *out = g_string_new (NULL);
  for (const char *p = text; *p; p++) {
    if (*p != LS_SHELL_HOLE) {
      g_string_append_c (out, *p);
      continue;
    }
    const char *name = p + 1;
    while (*name && *name != LS_SHELL_HOLE_END && !g_ascii_isalnum (*name) && *name != '_')
      name++;
    g_string_append_printf (out, "$%.*s", (int) strspn (name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_"),
                            name);
    p = strchr (p, LS_SHELL_HOLE_END);
    if (!p)
      break;
  }
  return g_string_free (out, FALSE);
}

/* --- why a script is not read: what it starts is no program that is, or does something else ------------ */

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
