/* A log of torchtitan: what it says of its job when it starts, in options that its map reads
 * (strategies/programs/torchtitan.json), and the lines of its steps. */
#include <lockstep/error.h>
#include <string.h>

#include "data/launch/log_steps.h"
#include "data/launch/program/program_map.h"
#include "data/text/json_scan.h"

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
  const ProgramMap *map = program_map_get ("torchtitan");
  ProgramRun run = { .map = map, .file = program_returned (map), .path = path, .diags = none };
  if (cJSON_GetObjectItemCaseSensitive (tree, "model_spec"))
    program_shape (&run, tree);
  launch_words_add_tree (words, tree);
  program_run_clear (&run);
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
  if (!program_run_map ("torchtitan", NULL, &job, files, diags))
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
