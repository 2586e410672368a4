#include "data/launch/launch_script.h"
#include "data/launch/option_table.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/list.h"
#include "data/launch/program/program_map.h"

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
  bool has_no_command;
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
  {
    if (program_any_word (cJSON_GetStringValue (one), " ", g_str_has_prefix, script))
      return one->string;
  }
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

/* "a~b": words one behind the other. */
static bool
are_at (const LsShellCommand *c, guint i, const char *words)
{
  g_auto (GStrv) all = g_strsplit (words, "~", -1);
  guint n = g_strv_length (all), k = 0;
  while (k < n && i + k < c->n && is_path_of (c->words[i + k], all[k]))
    k++;
  return n > 0 && k == n;
}

/* Whether a word, or several, start the program. */
static bool
starts (const LaunchKind *kind, const LsShellCommand *c)
{
  g_auto (GStrv) all = g_strsplit (reads_text (kind->of, "starts"), " ", -1);
  for (guint i = 0; i < c->n; i++)
    for (char **word = all; *word; word++)
      if (are_at (c, i, *word))
        return true;
  return false;
}

/* "--a", "--a=b", "-a": not a value such as "-1". */
static bool
is_known (const Search *s, const char *word)
{
  const char *p = word + strspn (word, "-");
  g_autofree char *name = g_strndup (p, strcspn (p, "="));
  return p > word && g_ascii_isalpha (*p) && launch_knows (s->kind, name);
}

/* "a.b=c", "++a.b=c" of Hydra. */
static bool
is_known_pair (const Search *s, const char *word)
{
  const char *name = word + strspn (word, "+"), *equals = strchr (name, '=');
  g_autofree char *key = equals ? g_strndup (name, (gsize) (equals - name)) : NULL;
  return key && g_ascii_isalpha (key[0]) && launch_knows (s->kind, key);
}

static guint
count_known (const Search *s, char *const *words, guint n)
{
  guint n_known = 0;
  for (guint i = 0; i < n; i++)
    n_known += reads_is (s->kind->of, "pairs") ? is_known_pair (s, words[i]) : is_known (s, words[i]);
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

/* As they are, words of one with blanks between. */
static GHashTable *
values_of (const LsShell *shell)
{
  GHashTable *values = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  const GPtrArray *names = ls_shell_names (shell);
  for (guint i = 0; i < names->len; i++) {
    g_autoptr (GPtrArray) words = ls_shell_words (shell, names->pdata[i]);
    g_hash_table_replace (values, g_strdup (names->pdata[i]), ls_joined (words, 0, " "));
  }
  return values;
}

/* What processes see of the variables, and what all are, as the command finds them. */
static void
take_values (Search *s)
{
  if (s->variables) {
    g_hash_table_unref (s->variables);
    g_hash_table_unref (s->exported);
  }
  s->variables = values_of (s->shell);
  s->exported = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  const GPtrArray *names = ls_shell_names (s->shell);
  for (guint i = 0; i < names->len; i++)
    if (ls_shell_exports (s->shell, names->pdata[i]))
      g_hash_table_add (s->exported, g_strdup (names->pdata[i]));
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
  launch_read_batch (s->batch, s->shell, c, s->import);
  if (c->words[0][0] == '#')
    return;
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
  launch_export (c->words, c->n, s->variables, s->exported);
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
  if (!text && !launch_sets_up_shell (name) && lacks->len < 100)
    g_ptr_array_add (lacks, g_strdup (name));
  return text;
}

/* What it writes is beside it then. */
static void
note_written (const char *name, const char *text, bool is_appended, gpointer data)
{
  const Search *s = data;
  g_autofree char *base = g_path_get_basename (name), *own = launch_with_names (text);
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

static void
add_names (GString *why, const char *what, const GPtrArray *names)
{
  for (guint i = 0; i < names->len; i++)
    g_string_append_printf (why, "%s%s", i == 0 ? what : ", ", (const char *) names->pdata[i]);
}

static bool
refuse (const Search *s, const ImportFile *file, LsDiagList *diags)
{
  if (launch_refuse_task (file, diags))
    return false;
  g_autofree char *started = s->sources->len + s->started->len > 0 ? NULL : launch_started (file);
  GString *why = g_string_new (NULL);
  g_string_printf (why, "nothing here launches %s%s%s%s", program_of (s->kind),
                   reads_is (s->kind->of, "last") ? ", nor another program that is read" : "",
                   started ? "; it starts " : "", started ? started : "");
  add_names (why, "; it sources what is not here: ", s->sources);
  add_names (why, "; it starts what is not here: ", s->started);
  const char *hint = s->sources->len + s->started->len > 0 ? "give these files too, after it"
      : reads_text (s->kind->of, "yaml_lines")
          && g_regex_match_simple ("\\.ya?ml", file->text, G_REGEX_RAW, 0)
      ? "give the YAML that it names too, after it"
      : started
      ? "if another script starts this one and sets its variables, give that one in front; else " IMPORT_ELSE
      : IMPORT_ELSE;
  ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL, hint, "%s", why->str);
  g_string_free (why, TRUE);
  return false;
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
  if (s->has_no_command)
    import_unknown (import, "which command is run: none here has these options, which variables hold");
  if (s->n_commands > 0 && !s->is_certain)
    import_unknown (import, "whether this command is run: the script does not decide it");
  for (guint i = 0; i < s->sources->len; i++)
    import_unknown (import, "what %s sets: it is sourced, and not here", (const char *) s->sources->pdata[i]);
  g_string_free (names, TRUE);
  g_list_free (unset);
}

static void
set_given (Search *s)
{
  for (guint i = 0; i < s->files->n_given; i++) {
    ls_shell_set (s->shell, s->files->given[i].name, s->files->given[i].value);
    launch_given_nodes (s->batch, s->files->given[i].name, s->files->given[i].value);
  }
}

static void
look_given (const Search *s)
{
  for (guint i = 0; i < s->files->n_given; i++) {
    LsShellOutside what = ls_shell_outside (s->shell, s->files->given[i].name);
    s->files->given[i].is_used = what == LS_SHELL_ASKED;
    s->files->given[i].is_lost = what == LS_SHELL_OVERWRITTEN;
  }
}

/* The first file, with what is given. */
static bool
read_shell (Search *s, LsDiagList *diags)
{
  const ImportFile *file = &s->files->files[0];
  set_given (s);
  g_autofree char *name = g_path_get_basename (file->path),
                  *why = ls_shell_read (s->shell, name, file->text, file->n);
  look_given (s);
  if (why)
    ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL, NULL, "this script is not read: %s",
                 why);
  return !why;
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

/* What it starts is one process of several, which another script starts. */
static bool
is_one_of_many (const Search *s, const LaunchWords *words)
{
  const char *size = g_hash_table_lookup (s->variables, "WORLD_SIZE");
  return launch_words_find (words, "use-mpi") || (size && *size && strcmp (size, "1") != 0);
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
  g_autofree char *starter = launch_drop_starter (s->words, &ret->nodes, &ret->of_node);
  if (starter)
    import_unknown (import, "how %s starts this command, and on how many nodes", starter);
  guint at, first = launch_find_script ((char *const *) s->words->pdata, s->words->len, &at, &ret->script);
  ret->front = g_ptr_array_new_with_free_func (g_free);
  add_words (ret->front, (char *const *) s->words->pdata, first > 0 ? at : 0);
  ret->words = launch_words_new ();
  (reads_is (of, "pairs") ? launch_words_add_beside_pairs : launch_words_add) (
      ret->words, (char *const *) s->words->pdata + first, s->words->len - first);
  /* with pairs the program says how many, if that is what submits it */
  bool is_said = reads_text (of, "gpus") ? launch_words_first (ret->words, reads_text (of, "gpus")) != NULL
                                         : reads_is (of, "pairs") && reads_is (of, "submits");
  g_autoptr (GHashTable) seen = seen_of (s);
  const LaunchPlace place = { s->batch, seen, is_one_of_many (s, ret->words) };
  bool is_command = ret->script && strchr (ret->script, ' ');
  ret->gpus = is_said ? 0 : launch_count_gpus (&place, ret->front, is_command, import);
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
    launch_python (files, kind, s.words, ret_script->words, &(LaunchEnvironment) { s.variables, s.exported },
                   import);
    ret_script->variables = g_hash_table_ref (s.variables);
    launch_environment (reads_is (kind->of, "te"), s.variables, s.exported, import);
  }
  search_clear (&s);
  return ok;
}

static LaunchWords *
variables_of (const LsShell *shell)
{
  LaunchWords *words = launch_words_new ();
  const GPtrArray *names = ls_shell_names (shell);
  for (guint i = 0; i < names->len; i++) {
    g_autoptr (GPtrArray) values = ls_shell_words (shell, names->pdata[i]);
    launch_words_add_value (words, names->pdata[i], values && values->len > 0 ? values->pdata[0] : "");
  }
  return words;
}

LaunchWords *
launch_script_variables (const ImportFiles *files, LsImport *import, bool *ret_lacks, LsDiagList *diags)
{
  Search s;
  search_init (&s, files, NULL, import);
  LaunchWords *words = read_shell (&s, diags) ? variables_of (s.shell) : NULL;
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
