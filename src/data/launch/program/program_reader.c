/* data/launch/program/program_reader.c — whose file it is by the maps of programs, and reading it by its
 * map. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/text/toml.h"
#include "data/text/yaml.h"

/* --- its part of a file -------------------------------------------------------------------------------- */

/* Borrowed; NULL: it has none. */
static cJSON *
part_of (const cJSON *of, const cJSON *tree)
{
  g_auto (GStrv) paths = reads_text (of, "under") ? g_strsplit (reads_text (of, "under"), " ", -1) : NULL;
  cJSON *part = paths ? NULL : (cJSON *) tree;
  for (char **path = paths; path && *path && !part; path++)
    part = yaml_config_find (tree, *path);
  return part;
}

/* "${PRIMUS_MODEL:llama3_8B}.yaml" as it is where nobody sets the variable. */
static void
fill_variables (cJSON *node, LsImport *import)
{
  cJSON *member;
  if (cJSON_IsString (node) && strstr (node->valuestring, "${")) {
    g_autoptr (GRegex) regex = g_regex_new ("\\$\\{[^}:]*:([^}]*)\\}", G_REGEX_RAW, 0, NULL);
    g_autofree char *text = g_regex_replace (regex, node->valuestring, -1, 0, "\\1", 0, NULL);
    import_infer (import, "%s: %s, as where nobody sets the variable", node->valuestring, text);
    cJSON_SetValuestring (node, text);
  }
  cJSON_ArrayForEach (member, node)
    fill_variables (member, import);
}

/* --- whose file it is ---------------------------------------------------------------------------------- */

/* A text that files of that kind have. */
static const char *
sign_of (const cJSON *of)
{
  return reads_text (of, "prints") ? reads_text (of, "prints")
      : reads_text (of, "yaml")    ? reads_text (of, "yaml")
      : reads_text (of, "toml")    ? reads_text (of, "toml")
      : reads_text (of, "json")    ? reads_text (of, "json")
                                   : reads_text (of, "python");
}

static const char *
marks_of (const cJSON *of)
{
  return reads_text (of, "marks") ? reads_text (of, "marks") : reads_text (of, "starts");
}

static bool
is_of (const ProgramMap *map, const cJSON *of, const ImportFile *file)
{
  const char *marks = marks_of (of);
  const ProgramRun look = { .map = map, .text = file->text, .looked = file, .path = file->path };
  if (reads_is (of, "log") && !reads_text (of, "ends") && !reads_is (of, "open"))
    return import_is_log_of (file, map->name)
        || (reads_text (of, "when") && program_fits (look, reads_text (of, "when")));
  bool is_marked
      = marks ? program_has_marks (file->text, file->n, marks) : strstr (file->text, sign_of (of)) != NULL;
  if (!is_marked || !program_fits (look, reads_text (of, "when")))
    return false;
  if (marks || !reads_text (of, "yaml") || reads_is (of, "around"))
    return marks || reads_is (of, "around")
        || program_fits ((ProgramRun) { .map = map, .text = file->text }, reads_text (of, "fits"));
  const cJSON *tree = yaml_config_tree (file), *part = cJSON_IsObject (tree) ? part_of (of, tree) : NULL;
  return cJSON_IsObject (part)
      && program_fits ((ProgramRun) { .map = map, .tree = part }, reads_text (of, "fits"));
}

/* --- reading it ---------------------------------------------------------------------------------------- */

/* Whether a rule, or one of a part that is run by it, says when its options are read. */
static bool
has_rules_before (const ProgramMap *map, const cJSON *rules)
{
  const cJSON *rule;
  cJSON_ArrayForEach (rule, rules) {
    const char *part = ls_json_text (rule, "of_map") ? NULL : ls_json_text (rule, "part");
    if (cJSON_GetObjectItemCaseSensitive (rule, "read")
        || (part && has_rules_before (map, program_entry (map, "parts", part))))
      return true;
  }
  return false;
}

/* What rules see from now on; tree NULL: there is none. */
static void
set_words (ProgramRun *run, LaunchWords *words, const cJSON *tree)
{
  LaunchJob *job = run->job;
  run->tree = tree;
  run->words = words;
  job->words = words;
  job->table = &run->map->table;
  g_clear_pointer (&job->open, g_hash_table_unref);
  job->open = g_hash_table_new (g_str_hash, g_str_equal);
  if (run->map->is_dialect && !run->says)
    run->says = launch_words_new ();
  run->other = (LaunchJob) { .import = job->import,
                             .words = run->says,
                             .table = job->table,
                             .gpus = job->gpus,
                             .variables = job->variables,
                             .open = job->open };
}

/* The options of a job by the rules. tree: as it stands in the file; NULL: there is none. */
static bool
read_job (ProgramRun *run, LaunchWords *words, const cJSON *tree)
{
  set_words (run, words, tree);
  if (!run->map->is_dialect && !has_rules_before (run->map, program_section (run->map, "rules"))) {
    g_hash_table_unref (run->job->open);
    option_read_all (run->job);
  }
  return program_doors->run_rules (run, program_section (run->map, "rules"));
}

/* --- a configuration ----------------------------------------------------------------------------------- */

/* The files behind the first that fit become that member, the last of them holds. */
static void
add_files (const ProgramRun *run, cJSON *tree, const char *name, const char *holds)
{
  for (guint i = 1; i < run->files->n; i++) {
    const cJSON *own = yaml_config_tree (&run->files->files[i]);
    if (!cJSON_IsObject (own) || !program_fits ((ProgramRun) { .map = run->map, .tree = own }, holds))
      continue;
    import_use_file (&run->files->files[i]);
    cJSON_DeleteItemFromObjectCaseSensitive (tree, name);
    cJSON_AddItemToObject (tree, name, cJSON_Duplicate (own, true));
  }
}

/* As they are, or with what OmegaConf fills in. */
static LaunchWords *
words_of (const cJSON *of, const cJSON *tree)
{
  if (!reads_is (of, "plain"))
    return yaml_config_words (cJSON_Duplicate (tree, true));
  LaunchWords *words = launch_words_new ();
  launch_words_add_tree (words,
                         reads_text (of, "at") ? yaml_config_find (tree, reads_text (of, "at")) : tree);
  return words;
}

/* A mapping of variables that processes see, which is taken out of the tree; NULL allowed: none. */
static void
take_environment (ProgramRun *run, cJSON *tree)
{
  cJSON *env = reads_text (run->file, "environment")
      ? cJSON_DetachItemFromObjectCaseSensitive (tree, reads_text (run->file, "environment"))
      : NULL,
        *one;
  if (!run->seen)
    run->seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  cJSON_ArrayForEach (one, env) {
    char *text = launch_scalar_text (one);
    if (text)
      g_hash_table_replace (run->seen, g_strdup (one->string), text);
  }
  if (env)
    launch_environment (true, run->seen, run->seen, run->job->import);
  if (!run->script)
    run->job->variables = run->seen;
  cJSON_Delete (env);
}

/* Of its part of a tree, which is changed; what rules see is as it stands in the file. */
static bool
read_tree (ProgramRun *run, cJSON *whole)
{
  const cJSON *of = run->file;
  const cJSON *one;
  g_autoptr (cJSON) none = cJSON_CreateObject ();
  if (reads_text (of, "fills"))
    fill_variables (yaml_config_find (whole, reads_text (of, "fills")), run->job->import);
  cJSON *part = part_of (of, whole), *tree = cJSON_IsObject (part) ? part : none;
  if (reads_text (of, "lifts"))
    yaml_config_lift (tree, reads_text (of, "lifts"));
  g_auto (GStrv) drops = program_words (reads_text (of, "drops"), " ");
  for (char **path = drops; *path; path++) {
    g_autoptr (cJSON) dropped = yaml_config_detach (tree, *path);
    if (dropped)
      import_ignore (run->job->import, "%s", *path);
  }
  cJSON_ArrayForEach (one, reads_node (of, "beside"))
    add_files (run, tree, one->string, cJSON_GetStringValue (one));

  if (reads_text (of, "environment"))
    take_environment (run, tree);
  if (reads_node (of, "rules") && !marks_of (of)) { /* which have no options yet */
    g_autoptr (LaunchWords) no_words = launch_words_new ();
    set_words (run, no_words, tree);
    run->shaped = tree;
    bool ok = program_doors->run_rules (run, reads_node (of, "rules"));
    run->shaped = NULL;
    if (!ok)
      return false;
  }
  g_autoptr (LaunchWords) words = words_of (of, tree);
  return read_job (run, words, tree);
}

static char *
folded (const char *key)
{
  return g_strdelimit (g_strdup (key), "-", '_');
}

/* Keys that a file has otherwise than those before it, which it replaces. */
static void
tell_replaced (const cJSON *before, const cJSON *after, const char *path, const char *file, LsImport *import)
{
  const cJSON *item;
  cJSON_ArrayForEach (item, after) {
    const cJSON *old = cJSON_GetObjectItemCaseSensitive (before, item->string);
    g_autofree char *key = g_strconcat (path, *path ? "." : "", item->string, NULL);
    if (cJSON_IsObject (old) && cJSON_IsObject (item))
      tell_replaced (old, item, key, file, import);
    else if (old && !cJSON_Compare (old, item, true))
      import_infer (import, "%s: as %s has it, on top of the files before it", key, file);
  }
}

/* Its files, each on top of those before it; what two have may be told. */
static bool
read_yaml (ProgramRun *run)
{
  LsImport *import = run->job->import;
  g_autoptr (GHashTable) keys = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (cJSON) tree = cJSON_CreateObject ();
  bool ok = true, is_apart = reads_is (run->file, "apart");
  for (guint i = 0; i < (reads_is (run->file, "alone") ? 1 : run->files->n) && ok; i++) {
    const ImportFile *file = &run->files->files[i];
    const cJSON *own = i > 0 || is_apart ? yaml_config_tree (file) : NULL, *item;
    if (!is_apart && cJSON_IsObject (own))
      tell_replaced (tree, own, "", file->path, import);
    for (item = is_apart && cJSON_IsObject (own) ? own->child : NULL; item; item = item->next) {
      g_autofree char *key = folded (item->string);
      if (g_hash_table_contains (keys, key))
        import_conflict (import, "%s: %s has it too", key, file->path);
    }
    ok = yaml_config_add (tree, file, import, run->diags);
    for (item = tree->child; is_apart && item; item = item->next)
      g_hash_table_add (keys, folded (item->string));
  }
  return ok && read_tree (run, tree);
}

/* An option without a value is true; of several values the first is its own; '-' in its name is '_'. */
static void
add_options (const ProgramRun *run, cJSON *tree)
{
  const GPtrArray *options = run->script->words->options;
  for (guint i = 0; i < options->len; i++) {
    const LaunchOption *o = options->pdata[i];
    g_autofree char *name = folded (o->name);
    if (strcmp (name, reads_text (run->file, "config")) != 0)
      yaml_config_set (tree, name, o->values->len > 0 ? o->values->pdata[0] : "true");
  }
}

/* Members that are options: of a configuration in Python, what it made as JSON, or of TOML. Options of a
 * command that overrides it lie on top. */
static bool
read_members (ProgramRun *run, const ImportFile *file)
{
  const char *returns = reads_text (run->file, "returns");
  bool is_python = reads_text (run->file, "python"), is_toml = !is_python && reads_text (run->file, "toml");
  g_autoptr (LsJsonDoc) doc
      = is_python || is_toml ? NULL : ls_json_doc_parse (file->text, file->n, file->path, run->diags);
  g_autoptr (cJSON) tree = returns ? program_python_returned (run, import_given (run->files, returns), file)
      : is_python                  ? program_python_tree (run, file->text, file->n, file->path)
      : is_toml                    ? ls_toml_parse (file->text, file->n, file->path, run->diags)
      : doc                        ? cJSON_Duplicate (ls_json_doc_root (doc), true)
                                   : NULL;
  g_autoptr (LaunchWords) words = launch_words_new ();
  if (!tree || (doc && !program_take (run, tree)))
    return false;
  if (run->script && reads_is (run->file, "overrides"))
    add_options (run, tree);
  launch_words_add_tree (words, tree);
  return read_job (run, words, tree);
}

/* JSON by hand, or what a log prints of it. */
static bool
read_open (ProgramRun *run, const ImportFile *file)
{
  LsImport *import = run->job->import;
  const char *prints = reads_text (run->file, "prints"),
             *text = prints ? strstr (file->text, prints) : file->text,
             *object = text && prints ? strchr (text, '{') : text,
             *end = !prints ? file->text + file->n
      : object              ? log_object_end (object)
                            : NULL;
  g_autoptr (LaunchWords) words = launch_words_new ();
  if (!end)
    ls_file_diag (run->diags, LS_ERROR_INPUT, file->path, NULL,
                  "this log ends within the configuration that %s prints", run->map->program);
  if (!end || !launch_words_add_json (words, object, (gsize) (end - object), file->path, run->diags))
    return false;
  set_words (run, words, NULL);
  if (!program_doors->run_rules (run, reads_node (run->file, "rules")) || !read_job (run, words, NULL))
    return false;
  if (prints)
    import_measure_log (file->text, import);
  return true;
}

/* --- what a command puts on top of a configuration ------------------------------------------------------ */

/* Pairs of the command, but that which names the configuration. */
static void
add_pairs (const ProgramRun *run, cJSON *tree)
{
  const GPtrArray *pairs = run->script->words->others;
  const char *config = reads_text (run->file, "config");
  for (guint i = 0; i < pairs->len; i++)
    if (!config || !program_pair_value (pairs->pdata[i], config))
      yaml_config_set_pair (tree, pairs->pdata[i]);
}

/* "loss=a.b.CrossEntropy" sets the member of the mapping that says what it is; "~lr_scheduler" drops one. */
static void
add_behind (const ProgramRun *run, cJSON *tree, const char *word)
{
  const char *equals = strchr (word, '=');
  if (*word == '~') {
    cJSON_Delete (yaml_config_detach (tree, word + 1));
    return;
  }
  if (!equals) {
    import_unknown (run->job->import, "%s: after the name of a configuration", word);
    return;
  }
  g_autofree char *path = g_strndup (word, (gsize) (equals - word)),
                  *within = g_strconcat (path, ".", reads_text (run->file, "behind"), NULL);
  yaml_config_set (tree, cJSON_IsObject (yaml_config_find (tree, path)) ? within : path, equals + 1);
}

static void
add_words (ProgramRun *run, cJSON *tree)
{
  const cJSON *of = run->file;
  const LaunchWords *words = run->script->words;
  const LaunchOption *config = launch_words_find (words, reads_text (of, "config"));
  const char *word = reads_text (of, "word") ? launch_words_alone (words, NULL) : NULL;
  run->tree = tree;
  if (cJSON_IsString (reads_node (of, "overrides"))
          ? program_holds (run, reads_node (of, "overrides")->valuestring)
          : cJSON_IsTrue (reads_node (of, "overrides")))
    (reads_is (of, "pairs") ? add_pairs : add_options) (run, tree);
  if (word) {
    g_auto (ProgramValue) option = program_eval (run, reads_text (of, "word"));
    yaml_config_set (tree, option.text ? option.text : "", word);
  }
  for (guint i = 1; reads_text (of, "behind") && config && i < config->values->len; i++)
    add_behind (run, tree, config->values->pdata[i]);
}

/* --- scripts with a configuration ----------------------------------------------------------------------- */

static bool
is_no_pair (const char *word)
{
  return !strchr (word, '=');
}

/* What a command names that is started with another program's configuration. */
static bool
refuse_config (const ProgramRun *run, const char *name)
{
  const cJSON *of = run->file;
  bool is_by_option = *reads_text (of, "config") || !reads_text (of, "starts");
  g_autofree char *words = is_by_option ? g_strdup ("is started so")
                                        : g_strdup_printf ("%s is started with", reads_text (of, "starts"));
  g_strdelimit (words, "~", ' ');
  return ls_file_diag (run->diags, LS_ERROR_UNSUPPORTED, run->path, NULL,
                       "%s%s%s%s: it is no configuration of %s, and what else %s is not known",
                       *reads_text (of, "config") ? "--" : "", reads_text (of, "config"),
                       *reads_text (of, "config") ? " " : "", name ? name : "", run->map->program, words);
}

/* The configuration of that name; where it is what the script is given, the file behind the script. */
static bool
read_yaml_of_script (ProgramRun *run, const char *name)
{
  const ImportFiles *files = run->files;
  const char *config = reads_text (run->file, "config");
  bool may_lack = *config && !reads_is (run->file, "pairs") && reads_node (run->file, "overrides")
      && !launch_words_find (run->script->words, config),
       is_behind = !*config && name && ls_shell_has_hole (name) && files->n >= 2;
  g_autoptr (cJSON) tree = may_lack || is_behind
      ? cJSON_CreateObject ()
      : yaml_config_of_name (files, name, run->job->import, run->diags);
  if (is_behind)
    import_infer (run->job->import, "%s: what the script is given as a configuration", files->files[1].path);
  if (!tree || (is_behind && !yaml_config_add (tree, &files->files[1], run->job->import, run->diags)))
    return false;
  if (!program_fits ((ProgramRun) { .map = run->map, .tree = part_of (run->file, tree) },
                     reads_text (run->file, "fits")))
    return refuse_config (run, name);
  add_words (run, tree);
  return read_tree (run, tree);
}

/* Arguments of the command, in options of a configuration, which it names none of. "--fsdp-config.no-compile"
 * is compile off, where "no-" negates. */
static bool
read_arguments (ProgramRun *run)
{
  const ProgramMap *map = run->map;
  LaunchWords *words = run->script->words;
  const char *front = cJSON_GetStringValue (program_section (map->arguments, "negates"));
  g_clear_pointer (&run->says, launch_words_free);
  run->map = map->arguments;
  for (guint i = 0, n = words->options->len; front && i < n; i++) {
    const LaunchOption *o = words->options->pdata[i];
    const char *dot = strrchr (o->name, '.'), *last = dot ? dot + 1 : o->name;
    gsize n_front = MIN (strlen (front), strlen (last));
    g_autofree char *part = g_strndup (last, n_front),
                    *name = g_strdup_printf ("%.*s%s", (int) (last - o->name), o->name, last + n_front);
    if (option_fits (front, part) && option_find (&run->map->table, name))
      launch_words_add_value (words, name, "False");
  }
  bool ok = read_job (run, words, NULL);
  g_autoptr (LaunchWords) said = g_steal_pointer (&run->says);
  run->map = map;
  return ok && read_job (run, said ? said : words, NULL);
}

static bool
read_python_of_script (ProgramRun *run, const char *name)
{
  gsize n = 0;
  g_autofree char *text = name ? launch_file_of (run->files, name, &n) : NULL;
  if (!name && run->map->arguments)
    return read_arguments (run);
  if (!name && reads_is (run->file, "overrides")) /* all else is said by default */
    return read_members (run, &(ImportFile) { .path = run->path, .text = "" });
  if (!text)
    return launch_refuse_config (name, run->job->import, run->diags);
  if (!strstr (text, reads_text (run->file, "python"))
      || !program_fits ((ProgramRun) { .map = run->map, .text = text }, reads_text (run->file, "fits")))
    return refuse_config (run, name);
  return read_members (run, &(ImportFile) { .path = name, .text = text, .n = n });
}

/* --- scripts whose options lie on top of a TOML, or of what a function in Python returns --------------- */

static void
refuse_lack (const ProgramRun *run, const char *name)
{
  ls_file_diag (run->diags, LS_ERROR_INPUT, run->path, "give the configuration after the script",
                "it launches %s, which is not here", name);
}

/* The one that a script names, or the only other file that was given. The caller frees it; NULL: a
 * diagnostic. */
static char *
find_config (const ProgramRun *run, const char *name, gsize *ret_n)
{
  const ImportFiles *files = run->files;
  char *text = launch_file_of (files, name, ret_n);
  if (!text && files->n == 2) {
    import_use_file (&files->files[1]);
    *ret_n = files->files[1].n;
    text = g_strndup (files->files[1].text, files->files[1].n);
  }
  if (!text)
    refuse_lack (run, name);
  return text;
}

/* "llama3", or "my.models.llama3" where that is a package: the file is of several places the first that is
 * there. *ret_path: the caller frees it. */
static char *
find_module (const ProgramRun *run, const char *module, gsize *ret_n, char **ret_path)
{
  const ImportFiles *files = run->files;
  g_autofree char *folders = g_strdelimit (g_strdup (module), ".", '/'),
                  *said = g_strdup_printf ("a configuration in Python of the module %s", module);
  g_auto (GStrv) places = g_strsplit (reads_text (program_returned (run->map), "places"), " ", -1);
  for (char **place = places; *place; place++) {
    g_auto (GStrv) around = g_strsplit (*place, "%s", 2);
    g_autofree char *path = g_strjoinv (folders, around);
    char *text = launch_file_of (files, path, ret_n);
    if (text) {
      *ret_path = g_steal_pointer (&path);
      return text;
    }
  }
  *ret_path = g_strdup (files->n == 2 ? files->files[1].path : module);
  return find_config (run, said, ret_n);
}

/* --module llama3 --config llama3_8b */
static cJSON *
tree_of_module (ProgramRun *run, const char *module, const char *asked)
{
  const cJSON *script = run->file;
  if (!module || !asked || ls_shell_has_hole (module) || ls_shell_has_hole (asked)) {
    refuse_lack (run, "a configuration that it does not name");
    return NULL;
  }
  gsize n;
  g_autofree char *path = NULL, *text = find_module (run, module, &n, &path);
  const ImportFile file = { .path = path, .text = text, .n = n };
  run->file = program_returned (run->map);
  cJSON *tree = text ? program_python_returned (run, asked, &file) : NULL;
  run->file = script;
  return tree;
}

/* Words of the command that stand for options, be they of one in front of them or not: "a:b". */
static void
add_chosen (const cJSON *of, LaunchWords *words, const GPtrArray *list)
{
  const cJSON *one, *option;
  for (guint i = 0; i < list->len; i++)
    cJSON_ArrayForEach (one, reads_node (of, "chooses"))
      if (option_fits (one->string, list->pdata[i]))
        cJSON_ArrayForEach (option, one)
          launch_words_add_value (words, option->string, cJSON_GetStringValue (option));
}

static bool
read_on_top (ProgramRun *run)
{
  const cJSON *of = run->file;
  LaunchWords *own = run->script->words;
  const char *name = launch_words_text (own, reads_text (of, "config"));
  bool is_of_module = !name && reads_text (of, "asks") && launch_words_find (own, reads_text (of, "asks"));
  gsize n;
  g_autofree char *text
      = name ? find_config (run, ls_shell_has_hole (name) ? "a configuration" : name, &n) : NULL;
  g_autoptr (cJSON) tree = text ? ls_toml_parse (text, n, name, run->diags)
      : is_of_module            ? tree_of_module (run, launch_words_text (own, reads_text (of, "module")),
                                                  launch_words_text (own, reads_text (of, "asks")))
                                : NULL;
  if ((name || is_of_module) && !tree)
    return false;
  g_autoptr (LaunchWords) words = launch_words_new ();
  launch_words_add_tree (words, tree);
  launch_words_add_words (words, own);
  add_chosen (of, words, own->others);
  for (guint i = 0; i < own->options->len; i++)
    add_chosen (of, words, ((const LaunchOption *) own->options->pdata[i])->values);
  return read_job (run, words, tree);
}

/* With a configuration that its command names, by an option, a pair, or a word of none. */
static bool
read_configured (ProgramRun *run)
{
  const cJSON *of = run->file;
  const char *config = reads_text (of, "config"), *ends = reads_text (of, "ends");
  set_words (run, run->script->words, NULL);
  if (!program_doors->run_rules (run, reads_node (run->file, "rules")))
    return false;
  if (reads_text (run->file, "toml"))
    return read_on_top (run);
  const char *word = reads_is (of, "pairs") ? program_pair (run->script, config)
      : *config                             ? launch_words_text (run->script->words, config)
                                            : launch_words_alone (run->script->words, is_no_pair);
  bool has_end = reads_is (of, "pairs") || *config || !word || !ends || g_str_has_suffix (word, ends);
  g_autofree char *name = word ? g_strconcat (word, has_end ? "" : ends, NULL) : NULL;
  return (reads_text (run->file, "python") ? read_python_of_script : read_yaml_of_script) (run, name);
}

/* --- scripts ------------------------------------------------------------------------------------------- */

/* Of a command that changes a configuration, which the file's rules make of it, and hand on. */
static bool
read_made (ProgramRun *run)
{
  const cJSON *begins = reads_node (run->file, "begins");
  g_autoptr (cJSON) tree = begins ? cJSON_Duplicate (begins, true) : cJSON_CreateObject ();
  set_words (run, run->script->words, tree);
  return program_doors->run_rules (run, reads_node (run->file, "rules"));
}

/* Options of the file that lies under those of the command; false: with a diagnostic. */
static bool
add_below (ProgramRun *run, LaunchWords *to)
{
  const LaunchWords *own = run->script->words;
  const LaunchOption *config = launch_words_find (own, reads_text (run->file, "below"));
  const GPtrArray *names = config ? config->values : own->others;
  const char *name = names->len > 0 ? names->pdata[0] : NULL;
  gsize n;
  if (!name || !(launch_is_yaml (name) || g_str_has_suffix (name, ".json")))
    return true;
  g_autofree char *text = launch_file_of (run->files, name, &n);
  g_autoptr (cJSON) tree = text ? ls_yaml_parse (text, n, name, NULL, run->diags) : NULL;
  if (!text)
    return launch_refuse_config (name, run->job->import, run->diags);
  take_environment (run, tree);
  launch_words_add_tree (to, tree);
  return tree != NULL;
}

/* "--packing true" as a switch that is on. */
static void
add_switches (LaunchWords *to, const LaunchWords *said)
{
  for (guint i = 0; i < said->options->len; i++) {
    const LaunchOption *o = said->options->pdata[i];
    const char *value = o->values->len == 1 ? o->values->pdata[0] : NULL;
    bool is_on = value && g_ascii_strcasecmp (value, "true") == 0;
    if (is_on || (value && g_ascii_strcasecmp (value, "false") == 0))
      launch_words_add_value (to, o->name, is_on ? "true" : "False");
    else
      launch_words_add_renamed (to, o->name, o);
  }
}

/* Of a command whose options are its own, with switches on top of those of a file: words "a.b=c" among them
 * are members of a tree. What other words leave open is told behind all; an option tells its value, unless it
 * is ignored. */
static bool
read_command (ProgramRun *run)
{
  LaunchWords *own = run->script->words;
  cJSON *tree = cJSON_CreateObject ();
  if (reads_is (run->file, "pairs"))
    add_pairs (run, tree);
  g_autoptr (LaunchWords) words = yaml_config_words (tree);
  if (reads_is (run->file, "switches")) {
    if (reads_text (run->file, "below") && !add_below (run, words))
      return false;
    add_switches (words, own);
    return read_job (run, words, NULL);
  }
  if (!reads_is (run->file, "pairs"))
    return read_job (run, own, NULL);
  launch_words_add_words (words, own);
  bool ok = read_job (run, words, NULL);
  for (guint i = 0; i < own->others->len && ok; i++)
    if (is_no_pair (own->others->pdata[i]))
      option_tell_hole (run->job, own->others->pdata[i]);
  return ok;
}

/* The configuration of that name, of the files that were given; one that comes with the program is known. */
static bool
add_named (ProgramRun *run, cJSON *tree, const char *word)
{
  LsImport *import = run->job->import;
  g_autofree char *name = g_path_get_basename (word);
  for (guint i = 1; i < run->files->n; i++)
    if (g_str_has_suffix (run->files->files[i].path, name))
      return yaml_config_add (tree, &run->files->files[i], import, run->diags);
  const char *option = ls_json_text (reads_node (run->file, "ships"), name);
  if (option)
    yaml_config_set (tree, option, name);
  else
    import_unknown (import, "what %s says: it is not here; give it too, after the script", name);
  return true;
}

/* Of a command whose words name configurations, and change them. */
static bool
read_stacked (ProgramRun *run)
{
  const GPtrArray *words = run->script->words->others;
  const ImportFiles *files = run->files;
  g_autoptr (cJSON) tree = cJSON_CreateObject ();
  bool ok = true;
  for (guint i = 0; i < words->len && ok; i++)
    if (is_no_pair (words->pdata[i]) && g_str_has_suffix (words->pdata[i], reads_text (run->file, "stacks")))
      ok = add_named (run, tree, words->pdata[i]);
  for (guint i = 1; i < files->n && ok; i++)
    if (reads_text (run->file, "adds")
        && program_fits ((ProgramRun) { .map = run->map, .text = files->files[i].text },
                         reads_text (run->file, "adds")))
      ok = yaml_config_add (tree, &files->files[i], run->job->import, run->diags);
  run->tree = tree;
  program_add_said (run, tree, false);
  add_pairs (run, tree);
  return ok && read_tree (run, tree);
}

/* "litgpt~pretrain": whether the script is the first of them, or both, and the words behind it begin with the
 * second, which is then none of them. */
static bool
is_started_by (const char *start, const LaunchScript *script)
{
  const char *second = strchr (start, '~') + 1, *blank = strchr (script->script ? script->script : "", ' ');
  GPtrArray *others = script->words->others;
  if (blank)
    return strcmp (blank + 1, second) == 0;
  if (others->len == 0 || strcmp (others->pdata[0], second) != 0)
    return false;
  g_ptr_array_remove_index (others, 0);
  return true;
}

/* What starts the program, of starts that which does; false: none does, with a diagnostic. */
static bool
take_command (ProgramRun *run)
{
  const char *words = reads_text (run->file, "starts"), *first = NULL, *script = run->script->script;
  bool is_whole = false;
  g_auto (GStrv) starts = g_strsplit (words ? words : "", " ", -1);
  for (char **start = starts; *start && !run->command; start++) {
    is_whole = is_whole || (script && !strchr (*start, '~') && g_str_has_suffix (*start, script));
    if (!strchr (*start, '~'))
      continue;
    first = *start;
    if (is_started_by (*start, run->script))
      run->command = g_strdelimit (g_strdup (*start), "~", ' ');
  }
  if (first && !run->command && !is_whole)
    return ls_file_diag (run->diags, LS_ERROR_UNSUPPORTED, run->path, NULL,
                         "how %.*s is started here is not known", (int) strcspn (first, "~"), first);
  if (!run->command)
    run->command = g_strdup (script);
  return true;
}

/* Of one whose variables are the options. */
static bool
read_variables (ProgramRun *run)
{
  g_autoptr (cJSON) tree = cJSON_CreateObject ();
  g_autoptr (LaunchWords) words
      = launch_script_variables (run->files, run->job->import, &run->has_lacks, run->diags);
  return words && read_job (run, words, tree);
}

/* What a log says of its job, or else its steps alone. */
static bool
read_log (ProgramRun *run)
{
  g_autoptr (LaunchWords) words = launch_words_new ();
  program_log_options (run, words);
  if (words->options->len == 0)
    return import_log_alone (run->files, run->job->import, run->diags);
  run->job->is_dump = true;
  set_words (run, words, NULL);
  bool ok = program_doors->run_rules (run, reads_node (run->file, "rules")) && read_job (run, words, NULL);
  import_measure_log (run->text, run->job->import);
  return ok;
}

/* Words that a script's command is known by: those of the file's option, or the program's own. One whose
 * script trains nothing is refused. */
static bool
read_script (ProgramRun *run)
{
  const cJSON *of = run->file;
  const LaunchKind kind = { run->map, of };
  LaunchScript script;
  bool ok = launch_script_read (run->files, &kind, &script, run->job->import, run->diags);
  run->script = &script;
  run->job->gpus = script.gpus;
  run->job->variables = script.variables;
  const char *other = ok && script.script ? launch_other (&kind, script.script) : NULL;
  if (other)
    ls_file_diag (run->diags, LS_ERROR_UNSUPPORTED, run->path, NULL,
                  "%s %s; a job of Lockstep trains a decoder on the next token", script.script, other);
  ok = ok && !other && take_command (run)
      && (reads_text (of, "stacks")       ? read_stacked
              : reads_text (of, "config") ? read_configured
              : reads_node (of, "rules")  ? read_made
                                          : read_command) (run);
  launch_script_clear (&script);
  run->script = NULL;
  return ok;
}

/* --- the reader of a file of a map --------------------------------------------------------------- */

bool
program_read (const ProgramReader *r, const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *first = &files->files[0];
  LaunchJob job = { .import = import };
  ProgramRun run = { .map = r->map,
                     .job = &job,
                     .path = import->made.path,
                     .text = first->text,
                     .files = files,
                     .file = r->file,
                     .diags = diags };
  import->made.program = r->map->program;
  if (r->is_own)
    import_infer (import, IMPORT_READ_AS, r->map->program, ls_json_doc_name (r->map->doc));
  if (reads_is (r->file, "around") && marks_of (r->file))
    return hf_read_script (&(LaunchKind) { r->map, r->file }, files, import, diags);
  if (reads_is (r->file, "around"))
    return hf_read_configuration (files, program_section (r->map, "around"), import, diags);
  bool ok = reads_is (r->file, "open")  ? read_open (&run, first)
      : reads_is (r->file, "log")       ? read_log (&run)
      : reads_is (r->file, "variables") ? read_variables (&run)
      : marks_of (r->file)              ? read_script (&run)
      : reads_text (r->file, "yaml")    ? read_yaml (&run)
                                        : read_members (&run, first);
  program_run_clear (&run);
  return ok;
}

bool
program_read_tree (const char *name, cJSON *tree, const char *path, const cJSON *told, LsImport *import,
                   LsDiagList *diags)
{
  const ProgramMap *map = program_doors->map_get (name);
  LaunchJob job = { .import = import };
  ProgramRun run = { .map = map, .job = &job, .path = path, .told = told, .diags = diags };
  if (!map) {
    program_map_free (program_map_load (name, diags)); /* it says what is wrong */
    return false;
  }
  run.file = cJSON_GetArrayItem (program_section (map, "reads"), 0);
  bool ok = read_tree (&run, tree);
  program_run_clear (&run);
  return ok;
}

bool
program_reader_of (const char *name, bool is_own, bool is_last, const ImportFile *file,
                   ProgramReader *ret_reader)
{
  const ProgramMap *map = program_doors->map_get (name);
  for (const cJSON *of = cJSON_GetArrayItem (program_section (map, "reads"), 0); of; of = of->next) {
    if ((reads_is (of, "last") == is_last || is_own) && is_of (map, of, file)) {
      *ret_reader = (ProgramReader) { map, of, is_own, is_last };
      return true;
    }
  }
  return false;
}
