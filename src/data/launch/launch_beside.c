/* What a command names: its script, files next to those that are read; what a text begins with; on how many
 * GPUs it starts a job; and why a script is not read. */
#include <lockstep/error.h>
#include <string.h>

#include "base/list.h"
#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/text/read_file.h"

#define MAX_ABOVE 4 /* folders */

/* Rows of the map of what starts programs, or a text; NULL: it has none. */
static const cJSON *
starter_rows (const char *name)
{
  const ProgramMap *map = program_doors->map_get ("starters");
  return map ? cJSON_GetObjectItemCaseSensitive (map->tables, name) : NULL;
}

static const char *
starters (const char *name)
{
  return cJSON_GetStringValue (starter_rows (name));
}

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
find_recipe (char *const *words, guint n)
{
  bool is_tune = false;
  for (guint i = 1; i < n; i++) {
    is_tune = is_tune || (strcmp (words[i - 1], "tune") == 0 && strcmp (words[i], "run") == 0);
    if (is_tune && i > 1 && strcmp (words[i], "--config") == 0)
      return i - 1;
  }
  return 0;
}

/* "swift sft", "srun -N 2 litgpt pretrain": where what such a command is told to do stands; 0: it is another
 * one. */
static guint
find_command (char *const *words, guint n)
{
  bool is_started = n > 0 && ls_is_one_of (words[0], starters ("before"));
  for (guint i = 1; i < n && (i == 1 || is_started); i++)
    if (ls_is_one_of (words[i - 1], starters ("commands")) && g_ascii_isalpha (*words[i]))
      return i;
  return 0;
}

guint
launch_find_script (char *const *words, guint n, guint *ret_at, char **ret_script)
{
  guint recipe = find_recipe (words, n), command = find_command (words, n);
  *ret_at = recipe;
  *ret_script = recipe > 0 ? g_strdup (words[recipe]) : NULL;
  if (recipe > 0)
    return recipe + 1;
  if (command > 0) {
    *ret_at = command - 1;
    *ret_script = g_strdup_printf ("%s %s", words[command - 1], words[command]);
    return command + 1;
  }
  for (guint i = 0; i < n; i++) {
    bool is_module = i > 0 && is_module_flag (words[i - 1]);
    if (g_str_has_suffix (words[i], ".py")
        || (is_module && !ls_is_one_of (words[i], starters ("launchers")))) {
      *ret_script = g_path_get_basename (words[i]);
      *ret_at = i;
      return i + 1;
    }
  }
  return 0;
}

guint64
launch_last_number (const char *text)
{
  const char *colon = strrchr (text, ':');
  guint64 value = 0;
  return g_ascii_string_to_unsigned (colon ? colon + 1 : text, 10, 1, 1 << 20, &value, NULL) ? value : 0;
}

/* The first of these options with a number; 0: none has. */
static guint64
first_of (const LaunchWords *w, const char *const *names)
{
  guint64 value = 0;
  for (; *names && value == 0; names++) {
    const char *text = launch_words_text (w, *names);
    value = text && !ls_shell_has_hole (text) ? launch_last_number (text) : 0;
  }
  return value;
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
    *ret_nodes = first_of (own, (const char *const[]) { "num-nodes", "nodes", "nnodes", NULL });
    *ret_each = first_of (own, (const char *const[]) { "gpus", "gpus-per-node", "num-gpus", NULL });
    launch_find_script ((char *const *) words->pdata, words->len, &at, &starter);
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
  ls_diag_add (diags, LS_ERROR_INPUT, import->made.path, 0, 0, NULL, NULL, "give it too, after the script",
               "a script of %s, whose configuration%s%s is not here", import->made.program, name ? " " : "",
               name ? name : "");
  return false;
}

gboolean
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
launch_has_any_line (const char *text, const char *starts, const char *separator)
{
  return program_any_word (starts, separator, launch_has_line, text);
}

bool
launch_has_end (const char *name, const char *ends)
{
  return program_any_word (ends, " ", g_str_has_suffix, name);
}

bool
launch_is_yaml (const char *name)
{
  return launch_has_end (name, ".yaml .yml");
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
    if (text && launch_has_any_line (text, marks, " "))
      return true;
  }
  return false;
}

bool
launch_sets_up_shell (const char *name)
{
  return ls_is_one_of (name, starters ("shells"));
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

#define MAX_NAMES 3       /* programs that are told */
#define PARTS     "_-. /" /* between words of "dpo_tune_cache.py" and "verl.trainer.main_ppo" */

bool
launch_has_part (const char *name, const char *separators, const char *parts)
{
  g_auto (GStrv) words = g_strsplit_set (name, separators, -1);
  for (char **word = words; *word; word++)
    if (ls_is_one_of (*word, parts))
      return true;
  return false;
}

bool
launch_learns (const char *name)
{
  return launch_has_part (name, PARTS, starters ("learns"));
}

bool
launch_uses_model (const char *name)
{
  return launch_has_part (name, PARTS, starters ("uses"));
}

/* The script, or with a launcher that is not known "colossalai run", what the command is. */
static void
take_program (const LsShellCommand *c, gpointer data)
{
  GPtrArray *names = data;
  g_autofree char *script = NULL;
  guint at;
  launch_find_script (c->words, c->n, &at, &script);
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

/* --- the batch system ------------------------------------------------------------------------------ */

/* "A=1": sets a variable, by its name and value; false: it is a name alone. */
static bool
split_pair (char *item, const char **ret_value)
{
  char *equals = strchr (item, '=');
  if (!equals || equals == item)
    return false;
  *equals = '\0';
  *ret_value = equals + 1;
  return true;
}

/* "--export=ALL,A=1": variables of the job. */
static void
read_export (LsShell *shell, const LaunchWords *w)
{
  const char *said = launch_words_text (w, "export"), *value;
  g_auto (GStrv) items = g_strsplit (said ? said : "", ",", -1);
  for (char **item = items; *item; item++)
    if (split_pair (*item, &value))
      ls_shell_set (shell, *item, value);
}

static gboolean
is_not_named (gpointer name, gpointer value, gpointer items)
{
  (void) value;
  return !g_strv_contains (items, name);
}

/* slurm.schedmd.com/srun.html: --export=[ALL,]A=1,B; NONE. */
void
launch_export (char *const *words, guint n, GHashTable *variables, GHashTable *exported)
{
  guint at = 0;
  while (at < n && strcmp (ls_shell_base_of (words[at]), "srun") != 0)
    at++;
  if (at == n)
    return;
  g_autoptr (LaunchWords) w = launch_words_new ();
  launch_words_add (w, words + at, n - at);
  const char *said = launch_words_text (w, "export"), *value;
  if (!said || ls_shell_has_hole (said))
    return;
  g_auto (GStrv) items = g_strsplit (said, ",", -1);
  if (!g_strv_contains ((const char *const *) items, "ALL"))
    g_hash_table_foreach_remove (exported, is_not_named, items);
  for (char **item = items; *item; item++)
    if (split_pair (*item, &value)) {
      g_hash_table_replace (variables, g_strdup (*item), g_strdup (value));
      g_hash_table_add (exported, g_strdup (*item));
    }
}

/* How many words stand in front of the first that is no option and ends so; 0: there is none. */
static guint
words_until (const LsShellCommand *c, const char *ends)
{
  for (guint i = 1; i < c->n; i++)
    if (*c->words[i] != '-' && launch_has_end (c->words[i], ends))
      return i;
  return 0;
}

/* The row of the map for such a line, and how many words of it are read; NULL: it asks for nothing. */
static const cJSON *
row_of (const LsShellCommand *c, guint *ret_n)
{
  const char *first = *c->words[0] == '#' ? c->words[0] : ls_shell_base_of (c->words[0]);
  const cJSON *row;
  cJSON_ArrayForEach (row, starter_rows ("lines"))
  {
    g_auto (GStrv) words = program_words (program_member (row, "words"), " ");
    const char *until = program_member (row, "until");
    guint i = 0;
    while (words[i] && i < c->n && g_pattern_match_simple (words[i], i == 0 ? first : c->words[i]))
      i++;
    *ret_n = until ? words_until (c, until) : c->n;
    if (!words[i] && *ret_n > 0)
      return row;
  }
  return NULL;
}

/* "batch.nodes 4", which a rule adds, is kept; "set.SLURM_NNODES 4" sets a variable. */
static void
take_added (const LaunchWords *w, LaunchWords *batch, LsShell *shell)
{
  for (guint i = 0; i < w->options->len; i++) {
    const LaunchOption *o = w->options->pdata[i];
    const char *value = o->values->len > 0 ? o->values->pdata[0] : "";
    if (g_str_has_prefix (o->name, "batch."))
      launch_words_add_value (batch, o->name, value);
    else if (g_str_has_prefix (o->name, "set."))
      ls_shell_set (shell, o->name + strlen ("set."), value);
  }
}

void
launch_read_batch (LaunchWords *batch, LsShell *shell, const LsShellCommand *c, LsImport *import)
{
  guint n;
  const cJSON *row = row_of (c, &n);
  if (!row)
    return;
  g_autoptr (LaunchWords) w = launch_words_new ();
  LaunchJob job = { .import = import, .words = w };
  g_autoptr (GStrvBuilder) all = g_strv_builder_new ();
  for (guint i = 0; i < n; i++)
    g_strv_builder_add (all, c->words[i]);
  g_auto (GStrv) words = g_strv_builder_end (all);
  g_autofree char *line = g_strjoinv (" ", words);
  launch_words_add (w, words, n);
  launch_words_add_value (w, "line", line);
  launch_words_add_words (w, batch);
  program_doors->run_map ("starters", program_member (row, "part"), &(ProgramWith) { NULL }, &job, NULL,
                          NULL);
  take_added (w, batch, shell);
  if (cJSON_IsTrue (cJSON_GetObjectItemCaseSensitive (row, "exports")))
    read_export (shell, w);
}

void
launch_given_nodes (LaunchWords *batch, const char *name, const char *value)
{
  if (ls_is_one_of (name, starters ("nodes")))
    launch_words_add_value (batch, "batch.submitted-nodes", value);
}

/* --- the launcher ---------------------------------------------------------------------------------- */

/* A program without its folder, as a word between others. */
static char *
word_of (const char *text)
{
  static const char others[] = { ' ', ',', LS_SHELL_HOLE, LS_SHELL_HOLE_END, '\0' };
  return g_strdelimit (g_strdup (ls_shell_base_of (text)), others, '~');
}

/* Whether a word may be options of torchrun that nobody knows, or how many it starts: not the value of
 * another option. */
static bool
is_open (const GPtrArray *front, guint i)
{
  static const char others[] = "--standalone --no-python --no_python --module -m --run-path --run_path "
                               "--nnodes --nproc-per-node --nproc_per_node";
  const char *before = i > 0 ? front->pdata[i - 1] : "";
  bool is_value = *before == '-' && !strchr (before, '=') && !ls_is_one_of (before, others);
  return *(const char *) front->pdata[i] == LS_SHELL_HOLE && !is_value;
}

/* The words in front, the first, and what is not decided. */
static void
add_front (LaunchWords *w, const GPtrArray *front)
{
  GString *all = g_string_new (NULL);
  const char *first = front->len > 0 ? front->pdata[0] : "", *open = NULL;
  for (guint i = 0; i < front->len; i++) {
    g_autofree char *base = word_of (front->pdata[i]);
    g_string_append_printf (all, "%s%s", i > 0 ? " " : "", base);
    open = open || !is_open (front, i) ? open : front->pdata[i];
  }
  g_autofree char *hole = open ? ls_shell_hole_names (open) : NULL,
                  *written = ls_shell_has_hole (first) ? ls_shell_hole_names (first) : g_strdup (first),
                  *base = word_of (first);
  launch_words_add_value (w, "front.words", all->str);
  launch_words_add_value (w, "front.first", base);
  launch_words_add_value (w, "front.written", written);
  launch_words_add_value (w, "front.hole", hole ? hole : "");
  g_string_free (all, TRUE);
}

guint64
launch_count_gpus (const LaunchPlace *place, const GPtrArray *front, bool is_command, LsImport *import)
{
  g_autoptr (LaunchWords) w = launch_words_new ();
  LaunchJob job = { .import = import, .words = w, .variables = place->seen };
  launch_words_add (w, (char *const *) front->pdata, front->len);
  add_front (w, front);
  launch_words_add_words (w, place->batch);
  launch_words_add_value (w, "front.is-one", place->is_one_of_many ? "true" : "");
  program_doors->run_map ("starters", is_command ? "by_variables" : "by_words", &(ProgramWith) { NULL }, &job,
                          NULL, NULL);
  return job.gpus;
}
