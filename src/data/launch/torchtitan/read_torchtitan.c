/* A configuration of torchtitan, in TOML or in Python, or the script that launches it, with the configuration
 * beside. */
#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "data/launch/launch_script.h"
#include "data/launch/log_steps.h"
#include "data/launch/torchtitan/torchtitan_rules.h"
#include "data/text/json_scan.h"
#include "data/text/toml.h"

static bool
add_toml (LaunchWords *words, const char *text, gsize n, const char *path, LsDiagList *diags)
{
  cJSON *tree = ls_toml_parse (text, n, path, diags);
  if (!tree)
    return false;
  launch_words_add_tree (words, tree);
  cJSON_Delete (tree);
  return true;
}

static bool
read_config (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  g_autoptr (LaunchWords) words = launch_words_new ();
  import->program = "torchtitan";
  if (!add_toml (words, file->text, file->n, file->path, diags))
    return false;
  LaunchJob job = { .import = import, .words = words };
  return torchtitan_read (&job, diags);
}

/* Sections that every release has one of. */
static bool
is_config (const ImportFile *file)
{
  static const char *const marks[] = { "[training]", "[parallelism]", "[activation_checkpoint]" };
  const char *p = file->text + strspn (file->text, " \t\r\n");
  if (*p == '{' || g_str_has_prefix (p, "#!"))
    return false;
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (launch_has_line (file->text, marks[i]))
      return true;
  return false;
}

const ImportReader import_torchtitan
    = { "a log, a configuration or a script of torchtitan", is_config, read_config };

/* --- scripts --------------------------------------------------------------------------------------- */

static bool
is_known (const char *name)
{
  const OptionRow *row = option_find (&torchtitan_options, name);
  return strcmp (name, "job.config_file") == 0 || strcmp (name, "job.config-file") == 0
      || strcmp (name, "module") == 0 || strcmp (name, "config") == 0 || (row && row->kind != OPTION_IGNORED);
}

static void
refuse_lack (const ImportFiles *files, const char *name, LsDiagList *diags)
{
  ls_diag_add (diags, LS_ERROR_INPUT, files->files[0].path, 0, 0, NULL, NULL,
               "give the configuration behind the script", "it launches %s, which is not here", name);
}

/* The one that a script names, or the only other file that was given. The caller frees it; NULL: a
 * diagnostic. */
static char *
find_config (const ImportFiles *files, const char *name, gsize *ret_n, LsDiagList *diags)
{
  char *text = launch_file_of (files, name, ret_n);
  if (!text && files->n == 2) {
    import_use_file (&files->files[1]);
    *ret_n = files->files[1].n;
    text = g_strndup (files->files[1].text, files->files[1].n);
  }
  if (!text)
    refuse_lack (files, name, diags);
  return text;
}

/* "llama3", or "my.models.llama3" where that is a package. *ret_path: the caller frees it. */
static char *
find_module (const ImportFiles *files, const char *module, gsize *ret_n, char **ret_path, LsDiagList *diags)
{
  static const char *const places[]
      = { "torchtitan/models/%s/config_registry.py", "torchtitan/experiments/%s/config_registry.py",
          "%s/config_registry.py", "%s.py" };
  g_autofree char *folders = g_strdelimit (g_strdup (module), ".", '/'),
                  *said = g_strdup_printf ("a configuration in Python of the module %s", module);
  for (guint i = 0; i < G_N_ELEMENTS (places); i++) {
    g_auto (GStrv) around = g_strsplit (places[i], "%s", 2);
    g_autofree char *path = g_strjoinv (folders, around);
    char *text = launch_file_of (files, path, ret_n);
    if (text) {
      *ret_path = g_steal_pointer (&path);
      return text;
    }
  }
  *ret_path = g_strdup (files->n == 2 ? files->files[1].path : module);
  return find_config (files, said, ret_n, diags);
}

/* --module llama3 --config llama3_8b */
static bool
read_module (const ImportFiles *files, const LaunchScript *script, LaunchWords *words, LsImport *import,
             LsDiagList *diags)
{
  const char *module = launch_words_text (script->words, "module"),
             *config = launch_words_text (script->words, "config");
  if (!module || !config || ls_shell_has_hole (module) || ls_shell_has_hole (config)) {
    refuse_lack (files, "a configuration that it does not name", diags);
    return false;
  }
  gsize n;
  g_autofree char *path = NULL, *text = find_module (files, module, &n, &path, diags),
                  *last = g_strdup (module);
  const char *name = strrchr (last, '.');
  ImportFile file = { .path = path, .text = text, .n = n };
  return text && torchtitan_add_python (words, &file, config, name ? name + 1 : last, import, diags);
}

/* The configuration, and what the command changes of it. */
static bool
read_launch (const ImportFiles *files, const LaunchScript *script, LaunchWords *words, LsImport *import,
             LsDiagList *diags)
{
  const char *name = launch_words_text (script->words, "job.config_file");
  bool is_open = name && ls_shell_has_hole (name),
       has_module = !name && launch_words_find (script->words, "config");
  gsize n;
  g_autofree char *text = name ? find_config (files, is_open ? "a configuration" : name, &n, diags) : NULL;
  if (name && (!text || !add_toml (words, text, n, name, diags)))
    return false;
  if (has_module && !read_module (files, script, words, import, diags))
    return false;
  launch_words_add_words (words, script->words);
  torchtitan_add_policies (words, script->words);
  return true;
}

static bool
read_script (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind = { "torchtitan", is_known, 1, false };
  g_autoptr (LaunchWords) words = launch_words_new ();
  LaunchScript script;
  bool ok = launch_script_read (files, &kind, &script, import, diags)
      && read_launch (files, &script, words, import, diags);
  if (ok) {
    LaunchJob job = { .import = import, .words = words, .script = script.script, .gpus = script.gpus };
    ok = torchtitan_read (&job, diags);
  }
  launch_script_clear (&script);
  return ok;
}

static bool
is_script (const ImportFile *file)
{
  static const char *const marks[] = { "--job.config_file", "--job.config-file", "torchtitan" };
  const char *p = file->text + strspn (file->text, " \t\r\n");
  for (guint i = 0; i < G_N_ELEMENTS (marks) && *p != '{'; i++)
    if (strstr (file->text, marks[i]) && strstr (file->text, "train"))
      return !strstr (file->text, "--num-layers");
  return false;
}

const ImportReader import_torchtitan_script = { NULL, is_script, read_script };

/* --- a log of torchtitan: what it says of its job when it starts, and the lines of its steps ----- */

/* [titan] 2025-10-15 19:24:04,123 - root - INFO - Running with configs: { "job": ... }
 *     ... - Building llama3 8B with TransformerModelArgs(...)
 *     ... - Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=1, ep=1, etp=1
 *     ... - Trainer is initialized with local batch size 1, global batch size 8, ..., sequence length 8192
 *     ... - step: 10  loss:  7.1  grad_norm:  1.2  memory: 46.46GiB(48.9%)  tps: 6,180  tflops: ...  mfu: ...
 *
 * tps are tokens of a step over its time and the GPUs (wps until 2025): the time of a step follows. */

/* --- the job --------------------------------------------------------------------------------------- */

/* As JSON what Python prints of a dictionary; what it has as JSON stays so. */
static char *
as_json (const char *text, gsize n)
{
  GString *out = g_string_new_len (text, (gssize) n);
  if (out->len > 1 && strchr (out->str, '\'') && !strchr (out->str, '"'))
    g_strdelimit (out->str, "'", '"');
  g_string_replace (out, ": True", ": true", 0);
  g_string_replace (out, ": False", ": false", 0);
  g_string_replace (out, ": None", ": null", 0);
  return g_string_free (out, FALSE);
}

/* The whole configuration, if it is printed. */
static void
add_configuration (const char *text, const char *path, LaunchWords *words)
{
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  const char *head = strstr (text, "Running with args: {");
  head = head ? head : strstr (text, "Running with configs: {");
  const char *start = head ? strchr (head, '{') : NULL, *end = start ? log_object_end (start) : NULL;
  if (!end)
    return;
  g_autofree char *json = as_json (start, (gsize) (end - start));
  g_autoptr (LsJsonDoc) doc = relaxed_json_parse (json, strlen (json), path, none);
  if (!doc)
    return;
  cJSON *tree = cJSON_Duplicate (ls_json_doc_root (doc), true);
  if (cJSON_GetObjectItemCaseSensitive (tree, "model_spec"))
    torchtitan_add_config (words, tree, NULL);
  else
    launch_words_add_tree (words, tree);
  cJSON_Delete (tree);
}

static void
add_number (LaunchWords *words, const char *option, double value)
{
  g_autofree char *text = g_strdup_printf ("%.0f", value);
  if (value >= 1 && value < 1e9)
    launch_words_add_value (words, option, text);
}

/* What lines say of numbers: the words in front, and the option. */
static const struct {
  const char *line, *words, *option;
} numbers[] = {
  { "device mesh with parallelism", "pp=", "parallelism.pipeline_parallel_degree" },
  { "device mesh with parallelism", "dp_replicate=", "parallelism.data_parallel_replicate_degree" },
  { "device mesh with parallelism", "dp_shard=", "parallelism.data_parallel_shard_degree" },
  { "device mesh with parallelism", "cp=", "parallelism.context_parallel_degree" },
  { "device mesh with parallelism", " tp=", "parallelism.tensor_parallel_degree" },
  { "device mesh with parallelism", " ep=", "parallelism.expert_parallel_degree" },
  { "device mesh with parallelism", "etp=", "parallelism.expert_tensor_parallel_degree" },
  { "local batch size", "local batch size", "training.local_batch_size" },
  { "local batch size", "global batch size", "training.global_batch_size" },
  { "local batch size", "sequence length", "training.seq_len" },
};

/* What lines say by being there. */
static const struct {
  const char *line, *option, *value;
} marks[] = {
  { "Applied full activation checkpointing", "activation_checkpoint.mode", "full" },
  { "Applied selective activation checkpointing", "activation_checkpoint.mode", "selective" },
  { "Compiling each TransformerBlock with torch.compile", "compile.enable", "true" },
  { "Float8 training active", "model.converters", "float8" },
  { "Float8 tensorwise scaled training active", "model.converters", "float8" },
  { "Async TP is enabled", "parallelism.enable_async_tensor_parallel", "true" },
};

/* "Building llama3 8B with": until October 2025 without a blank behind the flavor. */
static void
add_model (LaunchWords *words, const char *line, gsize n)
{
  const char *p = g_strstr_len (line, (gssize) n, " Building ");
  g_autofree char *text
      = p ? g_strndup (p + strlen (" Building "), (gsize) (line + n - p) - strlen (" Building ")) : NULL;
  char *with = text ? strstr (text, "with ") : NULL;
  if (!with || strstr (text, "device mesh"))
    return;
  *with = '\0';
  g_auto (GStrv) names = g_strsplit (g_strstrip (text), " ", 3);
  if (g_strv_length (names) == 2) {
    launch_words_add_value (words, "model.name", names[0]);
    launch_words_add_value (words, "model.flavor", names[1]);
  }
}

/* "Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]": as releases until 2025 say it. */
static void
add_mesh (LaunchWords *words, const char *line, gsize n)
{
  static const char *const names[][2] = {
    { "pp", "parallelism.pipeline_parallel_degree" },
    { "dp", "parallelism.data_parallel_shard_degree" },
    { "dp_replicate", "parallelism.data_parallel_replicate_degree" },
    { "dp_shard", "parallelism.data_parallel_shard_degree" },
    { "cp", "parallelism.context_parallel_degree" },
    { "tp", "parallelism.tensor_parallel_degree" },
  };
  const char *p = g_strstr_len (line, (gssize) n, "-D device mesh with [");
  g_autofree char *text = p ? g_strndup (p, (gsize) (line + n - p)) : NULL;
  g_auto (GStrv) parts = g_strsplit_set (text ? text : "", "[]", -1);
  if (g_strv_length (parts) < 4)
    return;
  g_auto (GStrv) axes = g_strsplit (parts[1], ", ", -1), sizes = g_strsplit (parts[3], ", ", -1);
  for (guint i = 0; axes[i] && i < g_strv_length (sizes); i++)
    for (guint k = 0; k < G_N_ELEMENTS (names); k++) {
      g_autofree char *quoted = g_strdup_printf ("'%s'", names[k][0]);
      if (strcmp (axes[i], quoted) == 0)
        add_number (words, names[k][1], g_ascii_strtod (sizes[i], NULL));
    }
}

static void
add_line (LaunchWords *words, const char *line, gsize n)
{
  add_model (words, line, n);
  add_mesh (words, line, n);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (g_strstr_len (line, (gssize) n, numbers[i].line))
      add_number (words, numbers[i].option, log_number_behind (line, n, numbers[i].words));
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (g_strstr_len (line, (gssize) n, marks[i].line))
      launch_words_add_value (words, marks[i].option, marks[i].value);
}

/* A log without its configuration says of recomputation only whether it is selective. */
static void
complete (LaunchWords *words, LsImport *import)
{
  const LaunchOption *mode = launch_words_find (words, "activation_checkpoint.mode");
  if (!mode)
    launch_words_add_by (words, false, "activation_checkpoint.mode", "none");
  if (launch_words_find (words, "activation_checkpoint.selective_ac_option") || !mode
      || strcmp (mode->values->pdata[0], "selective") != 0)
    return;
  launch_words_add_by (words, false, "activation_checkpoint.selective_ac_option", "op");
  import_unknown (import, "what is recomputed selectively: the log does not say; taken for \"op\"");
}

/* --- steps ----------------------------------------------------------------------------------------- */

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  g_autofree char *text = log_without_colours (file->text);
  g_autoptr (LaunchWords) words = launch_words_new ();
  import->program = "torchtitan";
  add_configuration (text, file->path, words);
  for (const char *p = text, *end; *p; p = *end ? end + 1 : end) {
    end = log_line_end (p);
    add_line (words, p, (gsize) (end - p));
  }
  if (words->options->len == 0) {
    return import_log_alone (files, import, diags);
  }
  complete (words, import);
  LaunchJob job = { .import = import, .words = words, .is_dump = true };
  if (!torchtitan_read (&job, diags))
    return false;
  import_measure_log (text, import);
  return true;
}

static bool
is_its (const ImportFile *file)
{
  return import_is_log_of (file, "torchtitan");
}

const ImportReader import_torchtitan_log = { NULL, is_its, read };
