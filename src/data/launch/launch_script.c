#include "data/launch/launch_script.h"
#include "data/launch/option_table.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/list.h"
#include "data/launch/program/program_map.h"

/* --- what starts programs, by the words of the map "starters" ------------------------------------------ */

/* Rows of the map of what starts programs, or a text; NULL: it has none. */
static const cJSON *
starter_rows (const char *name)
{
  const ProgramMap *map = program_doors->map_get ("starters");
  return program_entry (map, "tables", name);
}

static const char *
starters (const char *name)
{
  return cJSON_GetStringValue (starter_rows (name));
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
    /* "-m", "-um": flags of python of one letter stand together; "--module" of launchers */
    const char *flag = i > 0 ? words[i - 1] : "-";
    bool is_module = strcmp (flag, "--module") == 0
        || (*flag == '-' && strcmp (flag + 1 + strspn (flag + 1, "bBEIOPqsSuvx"), "m") == 0);
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

/* Drops what another command starts this one with, up to its "--": "python submit.py --nodes 8 -- torchrun
 * train.py". That one's name, which the caller frees; NULL: a script of Python is not on both sides.
 * *ret_nodes, *ret_each: how many nodes it is told, and GPUs of each; 0: none are said. */
static char *
drop_starter (GPtrArray *words, guint64 *ret_nodes, guint64 *ret_each)
{
  guint n = 0, at;
  char *starter = NULL;
  bool is_before = false, is_behind = false;
  for (guint i = 0; i < words->len && !is_behind; i++) {
    bool is_script = g_str_has_suffix (words->pdata[i], ".py");
    is_behind = n > 0 && is_script;
    if (n == 0 && is_before && strcmp (words->pdata[i], "--") == 0)
      n = i + 1;
    is_before = is_before || is_script;
  }
  *ret_nodes = *ret_each = 0;
  if (is_behind) {
    g_autoptr (LaunchWords) own = launch_words_new ();
    launch_words_add (own, (char *const *) words->pdata, n);
    *ret_nodes = first_of (own, (const char *const[]) { "num-nodes", "nodes", "nnodes", NULL });
    *ret_each = first_of (own, (const char *const[]) { "gpus", "gpus-per-node", "num-gpus", NULL });
    launch_find_script ((char *const *) words->pdata, words->len, &at, &starter);
    g_ptr_array_remove_range (words, 0, n);
  }
  return starter;
}

/* With "$NAME" for what the script does not decide; newly allocated. */
static char *
with_names (const char *text)
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

/* What it starts, "train.py, eval.sh", newly allocated; NULL: nothing that is known by name. */
static char *
started_by (const ImportFile *file)
{
  g_autoptr (GPtrArray) names = programs_of (file);
  const guint n = names->len;
  g_ptr_array_set_size (names, (gint) MIN (n, MAX_NAMES));
  g_autofree char *told = ls_joined (names, 0, ", ");
  return n > 0 ? g_strconcat (told, n > MAX_NAMES ? ", ..." : "", NULL) : NULL;
}

/* A diagnostic if a program that it starts learns from rewards or preferences; false: none does. */
static bool
refuse_task (const ImportFile *file, LsDiagList *diags)
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
  if (!is_script || refuse_task (file, diags))
    return is_script;
  g_autofree char *started = started_by (file);
  ls_file_diag (diags, LS_ERROR_INPUT, file->path, IMPORT_ELSE,
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

static gboolean
is_not_named (gpointer name, gpointer value, gpointer items)
{
  (void) value;
  return !g_strv_contains (items, name);
}

/* slurm.schedmd.com/srun.html, --export=[ALL,]A=1,B; NONE: of names that a command sees, and of what
 * variables are, those that this changes. Without ALL it sees none but what stands there. */
static void export(char *const *words, guint n, GHashTable *variables, GHashTable *exported)
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

/* The row of the map for such a line, and how many words of it are read, up to the first that is no option
 * and ends as `until` says; NULL: it asks for nothing. */
static const cJSON *
row_of (const LsShellCommand *c, guint *ret_n)
{
  const char *first = *c->words[0] == '#' ? c->words[0] : ls_shell_base_of (c->words[0]);
  const cJSON *row;
  cJSON_ArrayForEach (row, starter_rows ("lines")) {
    g_auto (GStrv) words = program_words (ls_json_text (row, "words"), " ");
    const char *until = ls_json_text (row, "until");
    guint i = 0;
    while (words[i] && i < c->n && g_pattern_match_simple (words[i], i == 0 ? first : c->words[i]))
      i++;
    for (*ret_n = 1; until && *ret_n < c->n; ++*ret_n)
      if (*c->words[*ret_n] != '-' && launch_has_end (c->words[*ret_n], until))
        break;
    bool is_there = !until || *ret_n < c->n;
    *ret_n = until ? *ret_n : c->n;
    if (!words[i] && is_there)
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

/* What a line of a script asks of a batch system is added to batch: "#SBATCH --nodes=4"; "sbatch --nodes=4
 * --export=A=1 job.sh", for the script that it starts; "kubernetes-pods --nodes=16 --gpus-per-node=4", one
 * for each kind of pods (program/program_wrap.c); "xpk workload create --tpu-type=v6e-256". Other commands
 * are passed over. Variables that the batch system sets are set in the shell; what is not decided is told. */
static void
read_batch (LaunchWords *batch, LsShell *shell, const LsShellCommand *c, LsImport *import)
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
  program_doors->run_map ("starters", ls_json_text (row, "part"), (ProgramRun) { NULL }, &job);
  take_added (w, batch, shell);
  const char *said = launch_words_text (w, "export"), *value;
  bool exports = said && cJSON_IsTrue (cJSON_GetObjectItemCaseSensitive (row, "exports"));
  g_auto (GStrv) items = g_strsplit (exports ? said : "", ",", -1);
  for (char **item = items; *item; item++) /* "--export=ALL,A=1": variables of the job */
    if (split_pair (*item, &value))
      ls_shell_set (shell, *item, value);
}

/* --- the launcher ---------------------------------------------------------------------------------- */

/* A program without its folder, as a word between others. */
static char *
word_of (const char *text)
{
  static const char others[] = { ' ', ',', LS_SHELL_HOLE, LS_SHELL_HOLE_END, '\0' };
  return g_strdelimit (g_strdup (ls_shell_base_of (text)), others, '~');
}

/* The words in front, the first, and what is not decided: a word that may be options of torchrun that nobody
 * knows, or how many it starts, not the value of another option. */
static void
add_front (LaunchWords *w, const GPtrArray *front)
{
  static const char others[] = "--standalone --no-python --no_python --module -m --run-path --run_path "
                               "--nnodes --nproc-per-node --nproc_per_node";
  GString *all = g_string_new (NULL);
  const char *first = front->len > 0 ? front->pdata[0] : "", *open = NULL, *before = "";
  for (guint i = 0; i < front->len; i++) {
    const char *word = front->pdata[i];
    g_autofree char *base = word_of (word);
    bool is_value = *before == '-' && !strchr (before, '=') && !ls_is_one_of (before, others);
    g_string_append_printf (all, "%s%s", i > 0 ? " " : "", base);
    open = open || *word != LS_SHELL_HOLE || is_value ? open : word;
    before = word;
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

/* front: char *, the words in front of the program; seen: variables that it sees; is_one_of_many: each
 * process has one GPU, and something else starts them; is_command: it is one that a package installs, which
 * starts processes as variables say. 0: not known; what is not decided is told in import. */
static guint64
count_gpus (const LaunchWords *batch, GHashTable *seen, bool is_one_of_many, const GPtrArray *front,
            bool is_command, LsImport *import)
{
  g_autoptr (LaunchWords) w = launch_words_new ();
  LaunchJob job = { .import = import, .words = w, .variables = seen };
  launch_words_add (w, (char *const *) front->pdata, front->len);
  add_front (w, front);
  launch_words_add_words (w, batch);
  launch_words_add_value (w, "front.is-one", is_one_of_many ? "true" : "");
  program_doors->run_map ("starters", is_command ? "by_variables" : "by_words", (ProgramRun) { NULL }, &job);
  return job.gpus;
}

/* --- what is found ------------------------------------------------------------------------------------- */

#define MAX_WRITTEN 64 /* files that a script writes */

/* What is found while a script is read. */
typedef struct {
  LsShell *shell;
  const LaunchKind *kind; /* NULL: no command is looked for */
  const ImportFiles *files;
  LsImport *import;
  GPtrArray *words; /* char *: of the best command so far */
  guint n_known;    /* options of it that are known       */
  guint n_needed;   /* of a command that launches         */
  bool is_certain, trains;
  guint n_commands; /* that launch too, and do what it does */
  bool has_no_command, starts_any;
  guint n_passed;  /* that launch what trains nothing      */
  GPtrArray *bare; /* char *: lines that are options and no command */
  LaunchWords *batch;
  GHashTable *variables,
      *exported;      /* name -> text, and a set, as the command finds them; NULL: none was found */
  GPtrArray *sources; /* char *: files that are sourced and not there */
  GPtrArray *started; /* the same of scripts that are started */
} Search;

bool
launch_knows (const LaunchKind *kind, const char *name)
{
  const cJSON *of = kind->of;
  if (reads_is (of, "around"))
    return hf_knows (name);
  if (reads_text (of, "config") && *reads_text (of, "config")
      && strcmp (reads_text (of, "config"), name) == 0)
    return true;
  name += reads_text (of, "within") && g_str_has_prefix (name, reads_text (of, "within"))
      ? strlen (reads_text (of, "within"))
      : 0;
  const OptionRow *row = reads_is (of, "means") ? option_find (&kind->map->table, name) : NULL;
  if (row && row->kind != OPTION_IGNORED)
    return true;
  bool is_named = reads_text (of, "config") && !reads_node (of, "overrides") && !reads_is (of, "pairs")
      && !kind->map->arguments;
  if (reads_text (of, "knows"))
    return !reads_is (of, "valued") && !reads_node (of, "needs")
        && option_is_listed (reads_text (of, "knows"), name);
  row = is_named
      ? NULL
      : option_find (kind->map->arguments ? &kind->map->arguments->table : &kind->map->table, name);
  if (reads_is (of, "valued"))
    return option_is_valued (row);
  return row && !(reads_node (of, "needs") && row->kind == OPTION_IGNORED) && strcmp (row->option, "*") != 0;
}

const char *
launch_other (const LaunchKind *kind, const char *script)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, reads_node (kind->of, "others"))
    if (program_any_word (cJSON_GetStringValue (one), " ", g_str_has_prefix, script))
      return one->string;

  return NULL;
}

/* Whether a word is another one, or a path that ends in it. */
static bool
is_path_of (const char *word, const char *other)
{
  gsize n = strlen (word), n_other = strlen (other);
  return strcmp (word, other) == 0
      || (strchr (other, '/') && g_str_has_suffix (word, other) && word[n - n_other - 1] == '/');
}

/* Whether a word, or several one behind the other, "a~b", start the program. */
static bool
starts (const LaunchKind *kind, const LsShellCommand *c)
{
  g_auto (GStrv) all = g_strsplit (reads_text (kind->of, "starts"), " ", -1);
  for (char **start = all; *start; start++) {
    g_auto (GStrv) words = g_strsplit (*start, "~", -1);
    const guint n = g_strv_length (words);
    for (guint i = 0, k = 0; n > 0 && i + n <= c->n; i++, k = 0) {
      while (k < n && is_path_of (c->words[i + k], words[k]))
        k++;
      if (k == n)
        return true;
    }
  }
  return false;
}

/* "--a", "--a=b", "-a", not a value such as "-1"; of pairs "a.b=c", "++a.b=c" of Hydra. */
static guint
count_known (const Search *s, char *const *words, guint n)
{
  bool are_pairs = reads_is (s->kind->of, "pairs");
  guint n_known = 0;
  for (guint i = 0; i < n; i++) {
    const char *word = words[i], *name = word + strspn (word, are_pairs ? "+" : "-");
    g_autofree char *key = g_strndup (name, strcspn (name, "="));
    bool may_be = g_ascii_isalpha (*name) && (are_pairs ? strchr (name, '=') != NULL : name > word);
    n_known += may_be && launch_knows (s->kind, key);
  }
  return n_known;
}

/* Paths from the folder of the script are as names of files beside it. */
static void
add_words (GPtrArray *to, char *const *words, guint n)
{
  for (guint i = 0; i < n; i++) {
    g_auto (GStrv) parts = g_strsplit (words[i], LS_SHELL_FOLDER, -1);
    g_ptr_array_add (to, g_strjoinv (".", parts));
  }
}

/* --- commands --------------------------------------------------------------------------------------- */

/* What processes see of the variables, and what all are, as the command finds them, words of one with blanks
 * between. */
static void
take_values (Search *s)
{
  const GPtrArray *names = ls_shell_names (s->shell);
  g_clear_pointer (&s->variables, g_hash_table_unref);
  g_clear_pointer (&s->exported, g_hash_table_unref);
  s->variables = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  s->exported = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < names->len; i++) {
    g_autoptr (GPtrArray) words = ls_shell_words (s->shell, names->pdata[i]);
    g_hash_table_replace (s->variables, g_strdup (names->pdata[i]), ls_joined (words, 0, " "));
    if (ls_shell_exports (s->shell, names->pdata[i]))
      g_hash_table_add (s->exported, g_strdup (names->pdata[i]));
  }
}

/* By the name of its script. */
static bool
trains_model (const LaunchKind *kind, const LsShellCommand *c)
{
  g_autofree char *script = NULL;
  guint at;
  launch_find_script (c->words, c->n, &at, &script);
  return !script
      || (reads_is (kind->of, "around") ? !launch_learns (script) && !launch_uses_model (script)
                                        : !launch_other (kind, script));
}

static void
take_command (const LsShellCommand *c, gpointer data)
{
  Search *s = data;
  read_batch (s->batch, s->shell, c, s->import);
  if (c->words[0][0] == '#')
    return;
  s->starts_any = true;
  if (g_str_has_prefix (c->words[0], "--")) {
    add_words (s->bare, c->words, c->n);
    return;
  }
  if (!s->kind)
    return;
  const cJSON *of = s->kind->of;
  guint n_known = count_known (s, c->words, c->n);
  if (reads_text (of, "starts"))
    n_known = starts (s->kind, c) ? n_known + s->n_needed : 0;
  if (reads_text (of, "yaml_lines")
      && launch_names_file (s->files, c->words, c->n, reads_text (of, "yaml_lines")))
    n_known += s->n_needed;
  if (n_known < s->n_needed)
    return;
  bool trains = trains_model (s->kind, c), is_first = s->words->len == 0;
  if (!is_first && s->trains > trains) {
    s->n_passed++;
    return;
  }
  if (trains > s->trains) {
    s->n_passed += s->n_commands;
    s->n_commands = 0;
    is_first = true;
  }
  s->n_commands++;
  if (!is_first && (s->is_certain > c->is_certain || s->n_known >= n_known))
    return;
  s->trains = trains;
  g_ptr_array_set_size (s->words, 0);
  add_words (s->words, c->words, c->n);
  s->n_known = n_known;
  s->is_certain = c->is_certain;
  take_values (s);
  export(c->words, c->n, s->variables, s->exported);
}

/* Of the files that were given, the one whose path ends in most of this one; NULL: none does. */
static char *
find_given (const Search *s, const char *path)
{
  for (const char *end = path; end; end = strchr (end, '/')) {
    end += *end == '/';
    for (guint i = 1; i < s->files->n; i++) {
      const char *own = s->files->files[i].path;
      if (g_str_has_suffix (own, end)
          && (strlen (own) == strlen (end) || own[strlen (own) - strlen (end) - 1] == '/')) {
        import_use_file (&s->files->files[i]);
        return g_strndup (s->files->files[i].text, s->files->files[i].n);
      }
    }
  }
  return NULL;
}

/* One that the script wrote, was given, or lies where the path says from its folder, from one above it, where
 * it may be started, or beside it. */
static char *
find_source (const char *path, bool is_started, gpointer data)
{
  Search *s = data;
  const char *hole = strrchr (path, LS_SHELL_HOLE_END), *rest = hole ? hole + 1 : path,
             *name = ls_shell_base_of (path);
  const char *written = g_hash_table_lookup (s->files->written, name);
  bool can_be_above = strchr (rest, '/') && !g_str_has_prefix (path, LS_SHELL_FOLDER) && *path != '/';
  gsize n;
  rest += strspn (rest, "/");
  char *text = written ? g_strdup (written) : find_given (s, rest);
  text = text ? text : launch_read_beside (s->files, rest, true, &n);
  text = text || !can_be_above ? text : launch_read_above (s->files, rest, true, &n);
  text = text ? text : launch_read_beside (s->files, name, true, &n);
  GPtrArray *lacks = is_started ? s->started : s->sources;
  if (!text && !ls_is_one_of (name, starters ("shells")) && lacks->len < 100)
    g_ptr_array_add (lacks, g_strdup (name));
  return text;
}

/* What it writes is beside it then. */
static void
note_written (const char *name, const char *text, bool is_appended, gpointer data)
{
  const Search *s = data;
  g_autofree char *base = g_path_get_basename (name), *own = with_names (text);
  const char *before = is_appended ? g_hash_table_lookup (s->files->written, base) : NULL;
  if (g_hash_table_size (s->files->written) < MAX_WRITTEN && !ls_shell_has_hole (base))
    g_hash_table_replace (s->files->written, g_strdup (base),
                          g_strconcat (before ? before : "", before ? "\n" : "", own, NULL));
}

/* Without a command that launches: the options that variables hold. A variable that another one contains is
 * passed over by what comes of it: an option counts once. */
static void
take_variables (Search *s)
{
  const GPtrArray *names = ls_shell_names (s->shell);
  for (guint i = 0; i < names->len; i++) {
    g_autoptr (GPtrArray) words = ls_shell_words (s->shell, names->pdata[i]);
    guint n_known = words ? count_known (s, (char *const *) words->pdata, words->len) : 0;
    bool has_options = words && words->len > 0 && g_str_has_prefix (words->pdata[0], "--");
    if (n_known > 0 || has_options) {
      add_words (s->words, (char *const *) words->pdata, words->len);
      s->n_known += n_known;
    }
  }
  if (s->n_known == 0)
    g_ptr_array_set_size (s->words, 0);
}

static const char *
program_of (const LaunchKind *kind)
{
  return reads_is (kind->of, "around") ? reads_text (kind->of, "noun") : kind->map->program;
}

/* --- the launch -------------------------------------------------------------------------------------- */

static bool
refuse (const Search *s, const ImportFile *file, LsDiagList *diags)
{
  if (refuse_task (file, diags))
    return false;
  const bool lacks = s->sources->len + s->started->len > 0;
  g_autofree char *started = lacks ? NULL : started_by (file), *sources = ls_joined (s->sources, 0, ", "),
                  *scripts = ls_joined (s->started, 0, ", ");
  const char *hint = lacks ? "give these files too, after it"
      : reads_text (s->kind->of, "yaml_lines")
          && g_regex_match_simple ("\\.ya?ml", file->text, G_REGEX_RAW, 0)
      ? "give the YAML that it names too, after it"
      : started
      ? "if another script starts this one and sets its variables, give that one in front; else " IMPORT_ELSE
      : IMPORT_ELSE;
  return ls_file_diag (diags, LS_ERROR_INPUT, file->path, hint, "nothing here launches %s%s%s%s%s%s%s%s",
                       program_of (s->kind),
                       reads_is (s->kind->of, "last") ? ", nor another program that is read" : "",
                       started ? "; it starts " : "", started ? started : "",
                       *sources ? "; it sources what is not here: " : "", sources,
                       *scripts ? "; it starts what is not here: " : "", scripts);
}

static void
tell_script (const Search *s, LsImport *import)
{
  GList *unset = ls_shell_unset (s->shell);
  GString *names = g_string_new (NULL);
  for (GList *at = unset; at; at = at->next)
    g_string_append_printf (names, "%s%s%s", names->len > 0 ? ", " : "",
                            g_ascii_isdigit (*(const char *) at->data) ? "$" : "", (const char *) at->data);
  if (names->len > 0)
    import_infer (import, "taken as not set outside of the script: %s", names->str);
  if (s->n_commands > 1)
    import_infer (import, "of %u commands that launch, the one with the most options", s->n_commands);
  if (s->n_passed > 0)
    import_infer (import,
                  "of the commands %u %s passed over: by the name of what they start they train nothing",
                  s->n_passed, s->n_passed == 1 ? "is" : "are");
  bool is_whole = !s->starts_any; /* nothing is left to what starts it */
  for (guint i = 0; i < s->words->len; i++)
    is_whole = is_whole && !ls_shell_has_hole (s->words->pdata[i]);
  if (s->has_no_command && is_whole)
    import_infer (import, "the command: none is here, all options that variables hold are its");
  else if (s->has_no_command)
    import_unknown (import, "which command is run: none here has these options, which variables hold");
  if (s->n_commands > 0 && !s->is_certain)
    import_unknown (import, "whether this command is run: the script does not decide it");
  for (guint i = 0; i < s->sources->len; i++)
    import_unknown (import, "what %s sets: it is sourced, and not here", (const char *) s->sources->pdata[i]);
  g_string_free (names, TRUE);
  g_list_free (unset);
}

/* The first file, with what is given. */
static bool
read_shell (Search *s, LsDiagList *diags)
{
  const ImportFile *file = &s->files->files[0];
  ImportGiven *given = s->files->given, *end = given + s->files->n_given;
  for (const ImportGiven *g = given; g < end; g++) {
    ls_shell_set (s->shell, g->name, g->value);
    if (ls_is_one_of (g->name, starters ("nodes"))) /* that goes before lines, too */
      launch_words_add_value (s->batch, "batch.submitted-nodes", g->value);
  }
  g_autofree char *name = g_path_get_basename (file->path),
                  *why = ls_shell_read (s->shell, name, file->text, file->n);
  for (ImportGiven *g = given; g < end; g++) {
    LsShellOutside what = ls_shell_outside (s->shell, g->name);
    g->is_used = what == LS_SHELL_ASKED;
    g->is_lost = what == LS_SHELL_OVERWRITTEN;
  }
  return !why || ls_file_diag (diags, LS_ERROR_INPUT, file->path, NULL, "this script is not read: %s", why);
}

static bool
search (Search *s, LsImport *import, LsDiagList *diags)
{
  if (!read_shell (s, diags))
    return false;
  import->made.program = program_of (s->kind);
  if (s->words->len > 0 && s->bare->len > 0)
    import_unknown (import, "%s: lines of options that belong to no command; is a \\ missing?",
                    (const char *) s->bare->pdata[0]);
  if (s->words->len == 0 && count_known (s, (char *const *) s->bare->pdata, s->bare->len) > 0)
    add_words (s->words, (char *const *) s->bare->pdata, s->bare->len);
  s->has_no_command = s->words->len == 0 && reads_is (s->kind->of, "takes_variables");
  if (s->has_no_command)
    take_variables (s);
  if (s->words->len == 0)
    return refuse (s, &s->files->files[0], diags);
  tell_script (s, import);
  return true;
}

/* Those that processes see; it borrows. */
static GHashTable *
seen_of (const Search *s)
{
  GHashTable *seen = g_hash_table_new (g_str_hash, g_str_equal);
  GHashTableIter iter;
  gpointer name;
  g_hash_table_iter_init (&iter, s->exported);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    g_hash_table_insert (seen, name, g_hash_table_lookup (s->variables, name));
  return seen;
}

static void
split (Search *s, LaunchScript *ret, LsImport *import)
{
  const cJSON *of = s->kind->of;
  g_autofree char *starter = drop_starter (s->words, &ret->nodes, &ret->of_node);
  if (starter)
    import_unknown (import, "how %s starts this command, and on how many nodes", starter);
  guint at, first = launch_find_script ((char *const *) s->words->pdata, s->words->len, &at, &ret->script);
  ret->front = g_ptr_array_new_with_free_func (g_free);
  add_words (ret->front, (char *const *) s->words->pdata, first > 0 ? at : 0);
  ret->words = launch_words_new ();
  g_autoptr (GPtrArray) rest = g_ptr_array_new ();
  for (guint i = first; i < s->words->len; i++) { /* pairs are of no option in front of them but others */
    char *word = s->words->pdata[i];
    bool is_pair = reads_is (of, "pairs") && *word != '-' && strchr (word, '=');
    g_ptr_array_add (is_pair ? ret->words->others : rest, is_pair ? g_strdup (word) : word);
  }
  launch_words_add (ret->words, (char *const *) rest->pdata, rest->len);
  /* with pairs the program says how many, if that is what submits it */
  bool is_said = reads_text (of, "gpus") ? launch_words_first (ret->words, reads_text (of, "gpus")) != NULL
                                         : reads_is (of, "pairs") && reads_is (of, "submits");
  g_autoptr (GHashTable) seen = seen_of (s);
  const char *size = g_hash_table_lookup (s->variables, "WORLD_SIZE");
  bool is_one_of_many
      = launch_words_find (ret->words, "use-mpi") || (size && *size && strcmp (size, "1") != 0);
  bool is_command = ret->script && strchr (ret->script, ' ');
  ret->gpus = is_said ? 0 : count_gpus (s->batch, seen, is_one_of_many, ret->front, is_command, import);
  ret->batch = g_steal_pointer (&s->batch);
}

static void
search_init (Search *s, const ImportFiles *files, const LaunchKind *kind, LsImport *import)
{
  static const LsShellFuncs funcs = { take_command, find_source, note_written };
  const cJSON *of = kind ? kind->of : NULL;
  ProgramRun look = { .map = kind ? kind->map : NULL, .text = files->files[0].text };
  g_auto (ProgramValue) needs = program_value_of (&look, of ? reads_node (of, "needs") : NULL);
  *s = (Search) {
    .files = files, .import = import, .kind = kind, .n_needed = (guint) fmax (1, needs.number)
  };
  s->shell = ls_shell_new (&funcs, s);
  s->batch = launch_words_new ();
  s->words = g_ptr_array_new_with_free_func (g_free);
  s->bare = g_ptr_array_new_with_free_func (g_free);
  s->sources = g_ptr_array_new_with_free_func (g_free);
  s->started = g_ptr_array_new_with_free_func (g_free);
}

static void
search_clear (Search *s)
{
  ls_shell_free (s->shell);
  launch_words_free (s->batch);
  g_clear_pointer (&s->variables, g_hash_table_unref);
  g_clear_pointer (&s->exported, g_hash_table_unref);
  g_ptr_array_unref (s->words);
  g_ptr_array_unref (s->bare);
  g_ptr_array_unref (s->sources);
  g_ptr_array_unref (s->started);
}

bool
launch_script_read (const ImportFiles *files, const LaunchKind *kind, LaunchScript *ret_script,
                    LsImport *import, LsDiagList *diags)
{
  Search s;
  *ret_script = (LaunchScript) { 0 };
  search_init (&s, files, kind, import);
  bool ok = search (&s, import, diags);
  if (ok) {
    if (!s.variables)
      take_values (&s);
    split (&s, ret_script, import);
    launch_python (files, kind, s.words, ret_script->words, s.variables, s.exported, import);
    ret_script->variables = g_hash_table_ref (s.variables);
    launch_environment (reads_is (kind->of, "te"), s.variables, s.exported, import);
  }
  search_clear (&s);
  return ok;
}

LaunchWords *
launch_script_variables (const ImportFiles *files, LsImport *import, bool *ret_lacks, LsDiagList *diags)
{
  Search s;
  search_init (&s, files, NULL, import);
  LaunchWords *words = read_shell (&s, diags) ? launch_words_new () : NULL;
  const GPtrArray *names = ls_shell_names (s.shell);
  for (guint i = 0; words && i < names->len; i++) {
    g_autoptr (GPtrArray) values = ls_shell_words (s.shell, names->pdata[i]);
    launch_words_add_value (words, names->pdata[i], values && values->len > 0 ? values->pdata[0] : "");
  }
  *ret_lacks = s.sources->len > 0;
  if (words)
    tell_script (&s, import);
  search_clear (&s);
  return words;
}

void
launch_script_clear (LaunchScript *script)
{
  launch_words_free (script->words);
  launch_words_free (script->batch);
  if (script->variables)
    g_hash_table_unref (script->variables);
  g_free (script->script);
  if (script->front)
    g_ptr_array_unref (script->front);
  *script = (LaunchScript) { 0 };
}
