/* Configurations in Python, the names that a text sets or the value of one of them, shaped into members by
 * their paths; and those that rules make: of what a command says, of files behind it and of functions in
 * Python, each over the others. */
#include <string.h>

#include <lockstep/error.h>

#include "base/list.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/python/python.h"
#include "data/shell/shell.h"
#include "data/text/read_file.h"

#define MAX_BASES  4 /* files that import others */
#define MAX_NAMES  200
#define MAX_PASSED 5 /* places that are named */
#define JOB        "lockstep_job"
#define NAME_CHARS G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_"
#define MAX_FILES  16 /* of a configuration, that import from others */
#define MAX_JOINED 64

/* --- names at the start of lines ------------------------------------------------------------------------ */

/* The module of a line "from MODULE import *"; NULL: it is another line. */
static char *
imported (const char *line)
{
  line += strspn (line, " \t");
  if (!g_str_has_prefix (line, "from "))
    return NULL;
  line += strlen ("from ") + strspn (line + strlen ("from "), " ");
  gsize n = strspn (line, NAME_CHARS ".");
  const char *rest = line + n;
  return g_str_has_prefix (rest, " import *") ? g_strndup (line, n) : NULL;
}

/* What a text imports, each in front of it: "configs._base_.models.internlm2_7B" by its file, from the end of
 * its path. */
static void
add_text (GString *to, const char *text, const char *path, guint depth, const ImportFiles *files,
          LsImport *import)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++) {
    gsize n;
    g_autofree char *module = imported (*line), *base = NULL,
                    *front = module ? g_strdelimit (g_strdup (module), ".", '/') : NULL,
                    *file = front ? g_strconcat (front, ".py", NULL) : NULL;
    const char *at = depth > 0 ? file : NULL;
    while (at && !(base = launch_file_of (files, at, &n)))
      at = strchr (at, '/') ? strchr (at, '/') + 1 : NULL;
    if (base)
      add_text (to, base, at, depth - 1, files, import);
    else if (module)
      import_unknown (import, "what %s sets: it is imported, and not here", module);
  }
  g_string_append_printf (to, LS_PYTHON_FILE "%s\n%s\n", path, text);
}

/* --- functions --------------------------------------------------------------------------------------- */

/* Of the functions that can be called without an argument the one that is asked for, or, NULL, the only one,
 * borrowed; NULL: a diagnostic. of: the file of a map, one of `reads`. */
static const char *
pick_function (const LsPython *python, const cJSON *of, const char *asked, const char *path,
               LsDiagList *diags)
{
  const GPtrArray *functions = ls_python_found (python)->functions;
  const char *noun = reads_text (of, "noun");
  for (guint i = 0; i < functions->len; i++)
    if (g_strcmp0 (asked, functions->pdata[i]) == 0 || (!asked && functions->len == 1))
      return functions->pdata[i];
  g_autofree char *names = ls_joined (functions, 0, ", "),
                  *hint = asked
      ? NULL
      : g_strdup_printf ("say which after its name: %s:%s=NAME", path, reads_text (of, "returns"));
  ls_file_diag (diags, LS_ERROR_INPUT, path, hint,
                asked ? "it has no %s %s; it has %s" : "it has several %ss%s: %s",
                noun ? noun : "configuration", asked ? asked : "", names);
  return NULL;
}

/* --- what is told ------------------------------------------------------------------------------------- */

/* Tells what a function of a configuration does that is not followed, of ls_python_value(): the first few
 * places, and how many more there are. */
static void
tell_passed (LsImport *import, const char *function, const GPtrArray *passed)
{
  g_autoptr (GString) places = g_string_new (NULL);
  for (guint i = 0; i < MIN (passed->len, MAX_PASSED); i++)
    g_string_append_printf (places, "%s%s", i > 0 ? ", " : "", (const char *) passed->pdata[i]);
  if (passed->len > MAX_PASSED)
    g_string_append_printf (places, ", and %u more", passed->len - MAX_PASSED);
  if (passed->len > 0)
    import_unknown (import, "what %s does besides is not followed: %s", function, places->str);
}

/* --- names --------------------------------------------------------------------------------------------- */

/* The names that a text sets, and those of files that it imports all names from,
 *
 *     with read_base():
 *         from configs._base_.models.internlm2_7B import *
 *
 * which hold where it sets none of its own (Config.from_file of mmengine, and of InternEvo's
 * internlm/core/context/parallel_context.py), as one object, as data/python/python.h has it: of a function
 * that returns all that is set, behind the text, by lines "model = dict (", of small letters, as capitals are
 * constants. What is not followed is told with its places. The caller frees it; NULL: a diagnostic. */
static cJSON *
names_of (const ImportFiles *files, const char *own, gsize n_own, const char *path, LsImport *import,
          LsDiagList *diags)
{
  g_autofree char *whole = g_strndup (own, n_own);
  g_autoptr (GString) text = g_string_new (NULL);
  add_text (text, whole, path, MAX_BASES, files, import);
  g_auto (GStrv) lines = g_strsplit (text->str, "\n", -1);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_string_append (text, "\ndef " JOB " ():\n    return dict (");
  for (char **line = lines; *line && g_hash_table_size (seen) < MAX_NAMES; line++) {
    const gsize n = g_ascii_islower (**line) ? strspn (*line, NAME_CHARS) : 0;
    const char *mark = *line + n + strspn (*line + n, " ");
    g_autofree char *name = g_strndup (*line, n);
    bool sets = n > 0 && *mark == '=' && mark[1] != '=';
    if (sets && g_hash_table_add (seen, g_strdup (name)))
      g_string_append_printf (text, "%s=%s, ", name, name);
  }
  g_string_append (text, ")\n");
  g_autoptr (LsPython) python = ls_python_new (text->str, text->len, path, diags);
  if (!python)
    return NULL;
  cJSON *tree = ls_python_value (python, JOB, NULL, diags);
  tell_passed (import, path, ls_python_found (python)->file_passed);
  launch_python_environment (python, false, import);
  return tree;
}

/* Whether an object is what a function gives of which no member is known: not an instance of a class, which
 * has a capital letter. */
static bool
is_open_call (const cJSON *item)
{
  const cJSON *made = cJSON_GetObjectItemCaseSensitive (item, "()");
  const char *name = cJSON_IsString (made) ? made->valuestring : NULL,
             *dot = name ? strrchr (name, '.') : NULL;
  for (const cJSON *part = item->child; part; part = part->next)
    if (strcmp (part->string, "()") != 0 && !g_ascii_isdigit (*part->string))
      return false;
  return name && strcmp (name, "dict") != 0 && !g_ascii_isupper (dot ? dot[1] : *name);
}

/* Drops which functions make objects, and their arguments without a name, in place. What a function gives of
 * which no member is known, "max(...)", becomes a hole. */
static void
forget_calls (cJSON *tree)
{
  for (cJSON *item = tree->child, *next; item; item = next) {
    next = item->next;
    if (item->string && (strcmp (item->string, "()") == 0 || g_ascii_isdigit (*item->string)))
      cJSON_Delete (cJSON_DetachItemViaPointer (tree, item));
    else if (cJSON_IsObject (item) && is_open_call (item)) {
      const char *made = cJSON_GetObjectItemCaseSensitive (item, "()")->valuestring;
      g_autofree char *text = ls_shell_has_hole (made)
          ? g_strdup (made)
          : g_strdup_printf ("%c%s(...)%c", LS_SHELL_HOLE, made, LS_SHELL_HOLE_END);
      cJSON *hole = cJSON_CreateString (text);
      hole->string = g_strdup (item->string);
      cJSON_ReplaceItemViaPointer (tree, item, hole);
    } else if (cJSON_IsObject (item))
      forget_calls (item);
  }
}

/* --- files that import from each other ------------------------------------------------------------------ */

/* Where it lies as in the program: beside the folders of the file that names it. parts: text. */
static char *
find_joined (const char *module, const char *from, gsize *ret_n, char **ret_path, gpointer parts)
{
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  *ret_path = launch_has_part (module, ".", parts) ? python_find_module (from, module) : NULL;
  return *ret_path ? ls_read_file (*ret_path, LAUNCH_MAX_BESIDE, ret_n, none) : NULL;
}

/* What functions of the program do that are not here. */
static bool
add_known (LsPython *python, const cJSON *known, GPtrArray *texts, LsDiagList *diags)
{
  const cJSON *one, *line;
  bool ok = true;
  cJSON_ArrayForEach (one, known) {
    GString *text = g_string_new (NULL);
    cJSON_ArrayForEach (line, one)
      g_string_append_printf (text, "%s\n", cJSON_IsString (line) ? line->valuestring : "");

    gsize n = text->len;
    char *whole = g_string_free (text, FALSE);
    g_ptr_array_add (texts, whole);
    ok = ok && ls_python_add (python, whole, n, one->string, diags);
  }
  return ok;
}

/* Files of a job from the one with the text of `first` on, and those that they import from, of modules that
 * have one of the words of `joins` as a part, with what functions of the program do that are not here; each
 * well formed, NULL: a diagnostic. texts, to which what is read is added, outlive it. */
static LsPython *
join_files (const cJSON *of, const ImportFiles *files, const ImportFile *first, GPtrArray *texts,
            LsImport *import, LsDiagList *diags)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (LsPython) python = NULL;
  const ImportFile *file = files->files;
  bool ok = true;
  while (file + 1 < files->files + files->n && file->text != first->text)
    file++;
  for (; file < files->files + files->n && ok; file++) {
    import_use_file (file);
    ok = python ? ls_python_add (python, file->text, file->n, file->path, diags)
                : (python = ls_python_new (file->text, file->n, file->path, diags)) != NULL;
    g_ptr_array_add (paths, g_strdup (file->path));
  }
  guint n_given = paths->len;
  ok = ok
      && python_add_imported (python, paths, texts, MAX_JOINED, find_joined,
                              (gpointer) reads_text (of, "joins"), diags)
      && add_known (python, reads_node (of, "functions"), texts, diags);
  for (guint i = n_given; i < paths->len; i++)
    g_ptr_array_add (import->made.files, g_strdup (paths->pdata[i]));
  return ok ? g_steal_pointer (&python) : NULL;
}

/* --- members of trees -------------------------------------------------------------------------------- */

void
program_add_said (ProgramRun *run, cJSON *tree, bool is_on_top)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, reads_node (run->file, "says")) {
    g_auto (ProgramValue) v = program_value_of (run, one);
    if (v.text && is_on_top)
      cJSON_Delete (yaml_config_detach (tree, one->string));
    if (v.text && !yaml_config_find (tree, one->string))
      cJSON_AddStringToObject (tree, one->string, v.text);
  }
}

/* --- a value ------------------------------------------------------------------------------------------- */

/* Which stands behind it or beside it; those of the program itself, whose names begin as its own do, are not
 * asked for. data: ProgramRun. */
static char *
find_imported (const char *module, const char *from, gsize *ret_n, char **ret_path, gpointer data)
{
  const ProgramRun *run = data;
  const char *own = reads_text (run->file, "own");
  g_autofree char *name = g_strdelimit (g_strdup (module), ".", '/');
  *ret_path = g_strconcat (name, ".py", NULL);
  return *module == '.' || (own && g_str_has_prefix (module, own))
      ? NULL
      : launch_file_of (run->files, *ret_path, ret_n);
}

/* What a text sets a name to; NULL: a diagnostic. */
static cJSON *
value_of (const ProgramRun *run, const char *text, gsize n, const char *path, const char *name)
{
  LsImport *import = run->job->import;
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free),
                        paths = g_ptr_array_new_with_free_func (g_free),
                        passed = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (LsPython) python = ls_python_new (text, n, path, run->diags);
  g_ptr_array_add (paths, g_strdup (path));
  if (!python
      || !python_add_imported (python, paths, texts, MAX_FILES, find_imported, (gpointer) run, run->diags))
    return NULL;
  cJSON *value = ls_python_name (python, name, passed, run->diags);
  if (!value)
    return NULL;
  tell_passed (import, path, passed);
  launch_python_environment (python, false, import);
  return value;
}

/* --- its shape ----------------------------------------------------------------------------------------- */

/* { "lift": path }: members of an inner object lie on top of those of the one around it. */
void
program_lift (ProgramRun *run, ProgramAct *a)
{
  const char *path = a->what->valuestring, *dot = strrchr (path, '.'), *name = dot ? dot + 1 : path;
  g_autofree char *above = dot ? g_strndup (path, (gsize) (dot - path)) : NULL;
  cJSON *outer = above ? yaml_config_find (run->tree, above) : (cJSON *) run->tree,
        *inner = cJSON_IsObject (outer) ? cJSON_DetachItemFromObjectCaseSensitive (outer, name) : NULL;
  for (cJSON *item, *next = cJSON_IsObject (inner) ? inner->child : NULL; (item = next);) {
    next = item->next;
    g_autofree char *key = g_strdup (item->string);
    cJSON_DeleteItemFromObjectCaseSensitive (outer, key);
    cJSON_AddItemToObject (outer, key, cJSON_DetachItemViaPointer (inner, item));
  }
  cJSON_Delete (inner);
}

static void
drop_nulls (cJSON *tree)
{
  for (cJSON *item = tree->child, *next; item; item = next) {
    next = item->next;
    if (cJSON_IsNull (item))
      cJSON_Delete (cJSON_DetachItemViaPointer (tree, item));
    else if (cJSON_IsObject (item))
      drop_nulls (item);
  }
}

/* Names that are of the file alone, and members that are no options, or none where an expression holds. */
static void
drop_rest (const ProgramRun *run, cJSON *tree)
{
  const cJSON *of = run->file;
  g_auto (GStrv) kept = program_words (reads_text (of, "keeps"), " ");
  for (cJSON *item = reads_text (of, "keeps") ? tree->child : NULL, *next; item; item = next) {
    next = item->next;
    if (!g_strv_contains ((const char *const *) kept, item->string))
      cJSON_Delete (cJSON_DetachItemViaPointer (tree, item));
  }
  const cJSON *one;
  cJSON_ArrayForEach (one, reads_node (of, "without"))
    if (!cJSON_IsString (one)
        || program_fits ((ProgramRun) { .map = run->map, .tree = tree }, one->valuestring))
      cJSON_Delete (yaml_config_detach (tree, one->string));

  if (reads_is (of, "without_none"))
    drop_nulls (tree);
}

/* { "put": { path: value } }: of the configuration, "@name" is the path that a value of ours says; a value
 * that is none is none of it. { "put_text": { path: value } }: the same as a text, whatever it looks like. */
void
program_put (ProgramRun *run, ProgramAct *a)
{
  const char *text = program_act_text (run, a);
  bool is_text = strcmp (a->action, "put_text") == 0;
  g_auto (ProgramValue) path = *a->name == '@' ? program_eval (run, a->name + 1) : program_text (a->name);
  if (!run->tree || program_value_is_none (&a->value) || (is_text && !a->value.text))
    return;
  if (is_text)
    yaml_config_set_node ((cJSON *) run->tree, path.text, cJSON_CreateString (text));
  else
    yaml_config_set ((cJSON *) run->tree, path.text, text);
}

/* { "move": { FROM: TO } }, of a YAML before its options are read: a mapping becomes part of another, whose
 * own members stay. */
void
program_move (ProgramRun *run, ProgramAct *a)
{
  const char *to = a->what->valuestring;
  if (!run->shaped || !cJSON_IsObject (yaml_config_find (run->shaped, a->name)))
    return;
  cJSON *moved = yaml_config_detach (run->shaped, a->name);
  g_autoptr (cJSON) before = yaml_config_detach (run->shaped, to);
  if (cJSON_IsObject (before))
    yaml_config_merge (moved, before);
  yaml_config_set_node (run->shaped, to, moved);
}

/* { "drop": "a b.c" }: members of the configuration. */
void
program_drop_members (ProgramRun *run, ProgramAct *a)
{
  g_auto (GStrv) paths = g_strsplit (a->what->valuestring, " ", -1);
  for (char **path = paths; run->tree && *path; path++)
    cJSON_Delete (yaml_config_detach ((cJSON *) run->tree, *path));
}

static bool
run_on (ProgramRun *run, cJSON *tree, const cJSON *rules)
{
  const cJSON *before = run->tree;
  run->tree = tree;
  bool ok = program_doors->run_rules (run, rules);
  run->tree = before;
  return ok;
}

bool
program_shape (ProgramRun *run, cJSON *tree)
{
  const char *option = run->script ? reads_text (run->file, "changes") : NULL;
  const LaunchOption *pairs = option ? launch_words_find (run->script->words, option) : NULL;
  if (!run_on (run, tree, reads_node (run->file, "shapes")))
    return false;
  forget_calls (tree);
  for (guint i = 0; pairs && i < pairs->values->len; i++) /* the command changes "a.b=c" */
    yaml_config_set_pair (tree, pairs->values->pdata[i]);
  drop_rest (run, tree);
  return true;
}

/* --- one of several ------------------------------------------------------------------------------------ */

/* { "take": path }: rules behind see what is there, and options are of it. */
void
program_take_part (ProgramRun *run, ProgramAct *a)
{
  const cJSON *part = program_node (run, program_act_text (run, a));
  run->tree = part ? part : run->tree;
}

/* All names that a text sets, or options of what rules take of them, with what the file says of these. NULL:
 * a diagnostic. */
static cJSON *
all_or_picked (ProgramRun *run, const char *text, gsize n, const char *path)
{
  const char *under = reads_text (run->file, "under");
  g_autoptr (cJSON) all = names_of (run->files, text, n, path, run->job->import, run->diags);
  g_autoptr (LaunchWords) none = launch_words_new ();
  cJSON *options = NULL;
  if (!all || !reads_is (run->file, "picks"))
    return g_steal_pointer (&all);
  run->job->words = none;
  run->tree = all;
  if (program_doors->run_rules (run, reads_node (run->file, "rules"))) {
    const cJSON *part = under ? yaml_config_find (run->tree, under) : run->tree;
    options = cJSON_IsObject (part) ? cJSON_Duplicate (part, true) : cJSON_CreateObject ();
    program_add_said (run, options, true);
  }
  run->tree = NULL;
  run->job->words = NULL;
  return options;
}

/* --- which name ---------------------------------------------------------------------------------------- */

/* The value lies at a path of the tree; "": it is the tree. */
static cJSON *
value_at (ProgramRun *run, const char *text, gsize n, const char *path, const char *name, const char *at)
{
  g_autoptr (cJSON) value = value_of (run, text, n, path, name);
  const char *made_by = *at ? NULL : reads_text (run->file, "made_by");
  const char *made = ls_json_text (value, "()"), *last = made ? made : "something that is not followed";
  last = strrchr (last, '.') ? strrchr (last, '.') + 1 : last;
  g_auto (GStrv) classes = program_words (made_by, " ");
  if (value && made_by && !g_strv_contains ((const char *const *) classes, last)) {
    import_refuse_task (run->path, run->diags, "%s %s", name, last);
    return NULL;
  }
  cJSON *tree = value && *at ? cJSON_CreateObject () : g_steal_pointer (&value);
  if (value)
    cJSON_AddItemToObject (tree, at, g_steal_pointer (&value));
  if (tree)
    program_shape (run, tree);
  return tree;
}

cJSON *
program_python_tree (ProgramRun *run, const char *text, gsize n, const char *path)
{
  const cJSON *sets = reads_node (run->file, "sets") ? reads_node (run->file, "sets")->child : NULL;
  if (!sets) {
    cJSON *tree = all_or_picked (run, text, n, path);
    if (tree)
      program_shape (run, tree);
    return tree;
  }
  while (sets->next && !launch_has_line (text, sets->string))
    sets = sets->next;
  run->name = sets->string;
  return value_at (run, text, n, path, sets->string, sets->valuestring);
}

bool
program_take (ProgramRun *run, cJSON *tree)
{
  return run_on (run, tree, reads_node (run->file, "rules")) && program_shape (run, tree);
}

const cJSON *
program_returned (const ProgramMap *map)
{
  const cJSON *of = cJSON_GetArrayItem (program_section (map, "reads"), 0);
  while (of && !reads_text (of, "returns"))
    of = of->next;
  return of;
}

/* What a function of that name returns, by rules: what is not followed is told behind those about it, before
 * others shape it. With what it imports, if that is read: file is one of the job's then. Where it or one that
 * it calls is a program, that is run, not read, by what prints the configuration, or by capturing it. */
static cJSON *
made_by_function (ProgramRun *run, const char *function, const ImportFile *file)
{
  const char *path = run->path;
  g_autoptr (GPtrArray) passed = g_ptr_array_new_with_free_func (g_free),
                        texts = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (LsPython) python = reads_text (run->file, "joins")
      ? join_files (run->file, run->files, file, texts, run->job->import, run->diags)
      : ls_python_new (file->text, file->n, file->path, run->diags);
  g_autoptr (cJSON) tree = python ? ls_python_value (python, function, passed, run->diags) : NULL;
  const char *program = python ? ls_python_found (python)->program : NULL;
  g_autofree char *hint
      = g_strdup_printf ("run it, by \"python -m lockstep.dump %s MODULE:FUNCTION > job.json\", and import "
                         "that, or by \"lockstep capture -- COMMAND\"",
                         run->map->name);
  if (program)
    ls_file_diag (run->diags, LS_ERROR_UNSUPPORTED, file->path, hint, "it computes its configuration: %s",
                  program);
  else if (tree)
    launch_python_environment (python, reads_is (run->file, "te"), run->job->import);
  run->name = function;
  run->path = file->path;
  bool ok = tree && !program && run_on (run, tree, reads_node (run->file, "rules"));
  if (ok)
    tell_passed (run->job->import, function, passed);
  ok = ok && program_shape (run, tree);
  run->name = NULL;
  run->path = path;
  return ok ? g_steal_pointer (&tree) : NULL;
}

cJSON *
program_python_returned (ProgramRun *run, const char *asked, const ImportFile *file)
{
  g_autoptr (LsPython) python = ls_python_new (file->text, file->n, file->path, run->diags);
  const char *function = python ? pick_function (python, run->file, asked, file->path, run->diags) : NULL;
  return function ? made_by_function (run, function, file) : NULL;
}

/* { "python": name of a file, "name": what it sets, "to": where its value lies among what is said in options
 * of a configuration } */
void
program_python (ProgramRun *run, ProgramAct *a)
{
  const char *path = program_act_value (run, a)->text;
  gsize n = 0;
  g_autofree char *text = path ? launch_file_of (run->files, path, &n) : NULL;
  g_autoptr (cJSON) tree = text
      ? value_at (run, text, n, path, ls_json_text (a->rule, "name"), ls_json_text (a->rule, "to"))
      : NULL;
  if (!text)
    launch_refuse_config (path, run->job->import, run->diags);
  if (tree)
    launch_words_add_tree (run->says, tree);
  run->is_refused |= !tree;
}

/* --- what rules make ----------------------------------------------------------------------------------- */

/* { "put_said": true, "switches": true }: what is said in options of another program, each with the first of
 * its values; switches too, which have none, and what is off. */
void
program_put_said (ProgramRun *run, ProgramAct *a)
{
  const GPtrArray *options = run->says ? run->says->options : NULL;
  bool has_switches = cJSON_HasObjectItem (a->rule, "switches");
  for (guint i = 0; options && run->tree && i < options->len; i++) {
    const LaunchOption *o = options->pdata[i];
    if (o->values->len > 0 || has_switches)
      yaml_config_set ((cJSON *) run->tree, o->name, o->values->len > 0 ? o->values->pdata[0] : "True");
  }
  if (!has_switches || !run->says || !run->tree)
    return;
  GHashTableIter iter;
  gpointer name;
  for (g_hash_table_iter_init (&iter, run->says->off); g_hash_table_iter_next (&iter, &name, NULL);)
    yaml_config_set ((cJSON *) run->tree, name, "False");
}

/* "++a.b=c"; a launcher may have all of a job within a mapping. Another word that the script leaves open may
 * be many, which is told. */
static void
put_pair (const ProgramRun *run, const char *word, bool tells_rest)
{
  const char *within = reads_text (run->file, "within"), *name = word + strspn (word, "+");
  name += within && g_str_has_prefix (name, within) ? strlen (within) : 0;
  yaml_config_set_pair ((cJSON *) run->tree, name);
  if (tells_rest && !strchr (word, '='))
    option_tell_hole (run->job, word);
}

/* { "put_pairs": "a b" }: words "x.y=z" of the command, wherever they stand; these names have no dot where an
 * option is in front. Of a command that has pairs beside its options those alone are. */
void
program_put_pairs (ProgramRun *run, ProgramAct *a)
{
  const LaunchWords *words = run->script ? run->script->words : NULL;
  bool has_pairs = words && reads_is (run->file, "pairs");
  for (guint i = 0; words && run->tree && i < words->others->len; i++)
    put_pair (run, words->others->pdata[i], !has_pairs);
  for (guint i = 0; words && run->tree && !has_pairs && i < words->options->len; i++) {
    const GPtrArray *values = ((const LaunchOption *) words->options->pdata[i])->values;
    for (guint k = 0; k < values->len; k++) { /* the first may be its own */
      const char *word = values->pdata[k];
      g_autofree char *name = g_strndup (word, strcspn (word, "="));
      if (k > 0 || strchr (word, '.') || ls_is_one_of (name, a->what->valuestring))
        put_pair (run, word, k > 0);
    }
  }
}

/* { "lay_files": what is wrong without any, "hint": text }: files behind the script, each over the last. */
void
program_lay_files (ProgramRun *run, ProgramAct *a)
{
  const ImportFiles *files = run->files;
  guint n = files ? files->n : 0;
  for (guint i = 1; i < n && run->tree && !run->is_refused; i++)
    run->is_refused |= !yaml_config_add ((cJSON *) run->tree, &files->files[i], run->job->import, run->diags);
  if (n > 1)
    return;
  ls_file_diag (run->diags, LS_ERROR_INPUT, run->path, ls_json_text (a->rule, "hint"), "%s",
                program_act_text (run, a));
  run->is_refused = true;
}

/* { "lies_on": name of a function }: what it returns in the files behind the script from the first in Python
 * on, if there is one, lies below what was put. */
void
program_lie_on (ProgramRun *run, ProgramAct *a)
{
  const char *function = program_act_value (run, a)->text;
  const cJSON *script = run->file, *of = program_returned (run->map);
  const ImportFiles *files = run->files;
  guint i = 1, n = files ? files->n : 0;
  while (i < n && !g_str_has_suffix (files->files[i].path, ".py"))
    i++;
  if (function && of && run->tree && i < n) {
    run->file = of;
    g_autoptr (cJSON) below = made_by_function (run, function, &files->files[i]);
    run->file = script;
    run->is_refused |= !below;
    if (below) { /* it changes places with what lies on it */
      cJSON *tree = (cJSON *) run->tree, *above = tree->child;
      tree->child = below->child;
      below->child = above;
      yaml_config_merge (tree, below);
    }
  }
}

/* { "configures": program, "told": { name: value } }: what was made is a configuration of that program, whose
 * map reads it, and is told this of it. What rules made makes no other. */
void
program_configure (ProgramRun *run, ProgramAct *a)
{
  g_autoptr (cJSON) told = program_told_of (run, a->rule);
  g_autoptr (cJSON) tree = run->tree && !run->told ? cJSON_Duplicate (run->tree, true) : NULL;
  if (!tree)
    ls_file_diag (run->diags, LS_ERROR_INPUT, run->path, NULL,
                  "%s: \"configures\" without a configuration, or of one that rules made", run->map->program);
  run->is_refused |= !tree
      || !program_doors->read_tree (a->what->valuestring, tree, run->path, told, run->job->import,
                                    run->diags);
  run->is_read = true;
}
