/* Options of Megatron-LM: a list of them, or the shell script that launches it. */
#include "data/launch/megatron/megatron_rules.h"

#include <lockstep/error.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "data/launch/launch_script.h"
#include "data/launch/log_steps.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/text/yaml.h"

const OptionTable *
megatron_options (void)
{
  return &program_map_get ("megatron")->table;
}

/* In the namespace of arguments, which a log prints and other programs fill, by the options that turn off
 * what is on by itself. */
void
megatron_namespace (LaunchWords *words)
{
  static const char *const members[][2]
      = { { "gradient_accumulation_fusion", "no-gradient-accumulation-fusion" },
          { "async_tensor_model_parallel_allreduce", "no-async-tensor-model-parallel-allreduce" } };
  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    if (g_hash_table_contains (words->off, members[i][0]))
      launch_words_add_value (words, members[i][1], "true");
}

/* Without what Megatron-LM asks for, some other file has more of the job: of a program around it, as Primus
 * has its configuration. */
static void
tell_lack (LaunchJob *job)
{
  if (launch_words_find (job->words, "hidden-size") || import_names_model (job->import))
    return;
  job->is_part = job->import->may_have_more = true;
  import_unknown (
      job->import,
      "the rest of the job: no --hidden-size is here, so another file says more of the model, and may "
      "of the rest; of that, what is not given is as Megatron-LM has it by default");
}

/* Reads all options: job->table is set by it. deepspeed: the file of --deepspeed-config; NULL: none. */
static void
megatron_read (LaunchJob *job, const LaunchWords *deepspeed)
{
  if (launch_words_find (job->words, "language-model-type"))
    import_unknown (job->import, "what turns images into tokens for the decoder: it is left out");
  job->table = megatron_options ();
  if (option_is_there (job, "deepspeed")) {
    import_set_software (job->import, "megatron-deepspeed-2022");
    import_infer (job->import,
                  "software megatron-deepspeed-2022: --deepspeed is an option of Megatron-DeepSpeed");
  } else
    option_release (job, "megatron");
  option_read_all (job);
  tell_lack (job);
  program_run_map ("megatron", "model", job, NULL, NULL);
  program_run_map ("megatron", "strategy", job, NULL, NULL);
  if (job->import->strategy.dp_kind == LS_DP_DEEPSPEED)
    megatron_deepspeed (job, deepspeed);
  program_run_map ("megatron", "gathers", job, NULL, NULL);
  program_run_map ("megatron", "kernels", job, NULL, NULL);
  g_hash_table_unref (job->open);
}

/* --- reading ---------------------------------------------------------------------------------------- */

static bool
is_known (const char *name)
{
  const OptionRow *row = option_find (megatron_options (), name);
  return row && row->kind <= OPTION_STRATEGY && !row->on;
}

/* Options that only variables hold, of which one has the name of one of Megatron-LM's by chance. */
static bool
is_by_chance (const LaunchScript *script)
{
  guint n_known = 0, n = script->words->options->len;
  for (guint i = 0; i < n; i++) {
    const LaunchOption *o = script->words->options->pdata[i];
    n_known += is_known (o->name);
  }
  return !script->script && n_known < 3 && n > 2 * n_known;
}

/* A program with a model of its own, most of whose options are not Megatron-LM's. */
static bool
is_mostly_other (const LaunchScript *script)
{
  guint n_other = 0, n = script->words->options->len;
  for (guint i = 0; i < n; i++) {
    const LaunchOption *o = script->words->options->pdata[i];
    n_other += !option_find (megatron_options (), o->name);
  }
  return script->script && n_other > n - n_other && !launch_words_find (script->words, "hidden-size");
}

/* Encoders have layers as decoders have, and other tasks. */
static bool
check_script (const LaunchScript *script, LsImport *import, const char *path, LsDiagList *diags)
{
  if (!megatron_trains_decoder (script->words, script->script, path, diags))
    return false;
  if (is_by_chance (script)) {
    ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, IMPORT_ELSE,
                 "nothing here launches Megatron-LM, nor another program that is read");
    return false;
  }
  static const char *const known[] = { "pretrain_gpt", "pretrain_mamba", "pretrain_hybrid", "pretrain_t5" };
  for (guint i = 0; i < G_N_ELEMENTS (known); i++)
    if (script->script && g_str_has_prefix (script->script, known[i]))
      return true;
  if (is_mostly_other (script)) {
    ls_diag_add (
        diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, IMPORT_ELSE,
        "%s: most of its options are not those of Megatron-LM, and none is --hidden-size: another program, "
        "which is not read",
        script->script);
    return false;
  }
  if (script->script)
    import_unknown (import, "%s: its model is taken for a decoder of these layers, as pretrain_gpt.py has",
                    script->script);
  return true;
}

/* What slime sets itself, whatever its command says (slime/backends/megatron_utils/arguments.py, August
 * 2026). */
static void
add_of_slime (LaunchWords *words, LsImport *import)
{
  if (!launch_words_find (words, "actor-num-nodes") && !launch_words_find (words, "actor-num-gpus-per-node"))
    return;
  launch_words_add_value (words, "use-distributed-optimizer", NULL);
  if (!launch_words_find (words, "fp16"))
    launch_words_add_value (words, "bf16", NULL);
  import_infer (import, "--use-distributed-optimizer, and --bf16 without --fp16: slime sets them");
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind = { "Megatron-LM",
                                   is_known,
                                   3,
                                   true,
                                   .gpus = "actor-num-gpus-per-node",
                                   .is_last = true,
                                   .does_other = megatron_does_other,
                                   .marks = "language_model:",
                                   .has_te = true };
  LaunchScript script;
  g_autoptr (LaunchWords) yaml = NULL;
  bool ok = launch_script_read (files, &kind, &script, import, diags)
      && check_script (&script, import, files->files[0].path, diags);
  if (ok && launch_words_find (script.words, "yaml-cfg"))
    ok = (yaml = megatron_yaml_words (files, script.words, import, diags)) != NULL;
  if (ok) {
    LaunchJob job = { .import = import,
                      .words = yaml ? yaml : script.words,
                      .is_dump = yaml != NULL,
                      .script = script.script,
                      .gpus = script.gpus,
                      .variables = script.variables };
    megatron_read_formats (files, script.words);
    add_of_slime (script.words, import);
    g_autoptr (LaunchWords) deepspeed = megatron_deepspeed_file (files, script.words);
    megatron_read (&job, deepspeed);
  }
  launch_script_clear (&script);
  return ok;
}

/* Any text that has an option of it, but for a mapping of YAML: a page with a command in it is no script. */
static bool
is_its (const ImportFile *file)
{
  static const char *const marks[] = { "--num-layers",       "--tensor-model-parallel-size", "--hidden-size",
                                       "--micro-batch-size", "--tensor_model_parallel_size", "pretrain_gpt" };
  const char *p = file->text;
  while (g_ascii_isspace (*p))
    p++;
  bool is_its = false;
  for (guint i = 0; i < G_N_ELEMENTS (marks) && *p != '{'; i++)
    is_its = is_its || strstr (file->text, marks[i]);
  if (is_its)
    return !cJSON_IsObject (yaml_config_tree (file));
  return g_str_has_prefix (file->text, "#!");
}

const ImportReader import_megatron = { "options or a launch script of Megatron-LM", is_its, read };

/* --- a log of Megatron-LM: the arguments that it prints, and the lines of its iterations --------- */

/* ------------------------ arguments ------------------------
 *       num_layers ...................................... 64
 *     -------------------- end of arguments ---------------------
 *      iteration  20/ 1000 | ... | elapsed time per iteration (ms): 2711.1 | ... | global batch size: 4 | ...
 *     [Rank 51] (after 20 iterations) memory (MB) | allocated: 19494.4 | max allocated: 22106.0 | ... */

/* --- arguments ------------------------------------------------------------------------------------- */

/* Behind what launchers put in front of a line: "0: ", "[default0]:". */
static const char *
skip_prefix (const char *line, const char *end)
{
  while (line < end && g_ascii_isspace (*line))
    line++;
  const char *p = line;
  while (p < end && !g_ascii_isspace (*p) && *p != ':')
    p++;
  if (p >= end || *p != ':')
    return line;
  for (p++; p < end && g_ascii_isspace (*p); p++)
    ;
  return p;
}

/* "  num_layers ....... 64", "  long_name_without_dots  False". */
static void
read_argument (LaunchWords *words, const char *line, const char *end)
{
  const char *name = skip_prefix (line, end), *p = name;
  while (p < end && (g_ascii_isalnum (*p) || *p == '_'))
    p++;
  const char *value = p;
  while (value < end && strchr (" .", *value))
    value++;
  if (p == name || value == p)
    return;
  g_autofree char *key = g_strndup (name, (gsize) (p - name)),
                  *text = g_strstrip (g_strndup (value, (gsize) (end - value)));
  launch_words_add_value (words, key, text);
}

/* Where the dump begins, behind its headline; NULL: there is none. */
static const char *
find_dump (const char *text)
{
  const char *head = strstr (text, "--- arguments ---");
  return head ? log_line_end (head) : NULL;
}

static void
read_dump (const char *text, LaunchWords *words)
{
  for (const char *p = find_dump (text); p && *p == '\n';) {
    const char *end = log_line_end (++p);
    if (g_strstr_len (p, end - p, "end of arguments"))
      return;
    read_argument (words, p, end);
    p = end;
  }
}

/* --- the whole ------------------------------------------------------------------------------------- */

/* " > padded vocab (size: 50257) with 431 dummy tokens (new size: 50688)" */
static void
read_vocab (const char *text, LsImport *import)
{
  const char *line = strstr (text, "padded vocab (size:");
  double size = line ? log_number_behind (line, (gsize) (log_line_end (line) - line), "(size:") : NAN;
  if (size >= 1 && size <= 1 << 24)
    import_set_model_number (import, "vocab", (guint64) size);
}

static bool
read_log (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  g_autoptr (LaunchWords) words = launch_words_new ();
  import->program = "Megatron-LM";
  read_dump (file->text, words);
  if (words->options->len == 0) {
    return import_log_alone (files, import, diags);
  }
  megatron_namespace (words);
  LaunchJob job = { .import = import, .words = words, .is_dump = true };
  megatron_read (&job, NULL);
  read_vocab (file->text, import);
  import_measure_log (file->text, import);
  return true;
}

static bool
is_its_log (const ImportFile *file)
{
  const char *dump = find_dump (file->text);
  return dump && strstr (dump, "end of arguments");
}

const ImportReader import_megatron_log = { "a log of Megatron-LM", is_its_log, read_log };

/* --- a test of Megatron-LM: its arguments in YAML, and what it measured -------------------------- */

/* MODEL_ARGS:
 *       --num-layers: 32
 *       --use-distributed-optimizer: true
 *
 * A second file of it has golden values, JSON: { "iteration-time": { "values": { "5": 3.80, ... } }, ... },
 * seconds by the number of the iteration, and bytes by that of "mem-max-allocated-bytes"; "nan" where nothing
 * was logged. */

#define ARGS       "MODEL_ARGS"
#define MAX_VALUES 1000000

/* --- arguments ------------------------------------------------------------------------------------- */

/* "MODE: inference", "MODE: rl"; a test without it trains. */
static bool
check_mode (const cJSON *tree, const char *path, LsDiagList *diags)
{
  const cJSON *mode = cJSON_GetObjectItemCaseSensitive (tree, "MODE");
  bool is_other = cJSON_IsString (mode) && strcmp (mode->valuestring, "pretraining") != 0;
  if (is_other)
    ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
                 "MODE: %s: a job of Lockstep trains a decoder on the next token", mode->valuestring);
  return !is_other;
}

/* What ENV_VARS sets for its processes: name -> text, the caller frees it. */
static GHashTable *
variables_of (const cJSON *tree)
{
  GHashTable *variables = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  const cJSON *one;
  cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive (tree, "ENV_VARS"))
  {
    char *text = yaml_config_text (one);
    if (text)
      g_hash_table_insert (variables, g_strdup (one->string), text);
  }
  return variables;
}

static bool
read_args (const ImportFile *file, LaunchWords *words, GHashTable **ret_variables, LsDiagList *diags)
{
  cJSON *tree = ls_yaml_parse (file->text, file->n, file->path, NULL, diags);
  const cJSON *args = tree ? cJSON_GetObjectItemCaseSensitive (tree, ARGS) : NULL;
  bool is_read = args && check_mode (tree, file->path, diags);
  if (is_read) {
    launch_words_add_tree (words, args);
    *ret_variables = variables_of (tree);
  } else if (tree && !args)
    ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL, NULL, "it has no " ARGS);
  cJSON_Delete (tree);
  return is_read;
}

/* --- golden values --------------------------------------------------------------------------------- */

/* The numbers of a metric, in order; text "nan" is none. */
static GArray *
values_of (const cJSON *root, const char *metric)
{
  GArray *values = g_array_new (FALSE, FALSE, sizeof (double));
  const cJSON *all
      = cJSON_GetObjectItemCaseSensitive (cJSON_GetObjectItemCaseSensitive (root, metric), "values"),
      *one;
  cJSON_ArrayForEach (one, all)
  {
    double value
        = cJSON_IsString (one) ? g_ascii_strtod (one->valuestring, NULL) : cJSON_GetNumberValue (one);
    if (isfinite (value) && value > 0 && values->len < MAX_VALUES)
      g_array_append_val (values, value);
  }
  return values;
}

/* The median of the later half. */
static void
measure (const cJSON *root, LsImport *import)
{
  LsImportMeasured *m = &import->measured;
  g_autoptr (GArray) times = values_of (root, "iteration-time"),
                     bytes = values_of (root, "mem-max-allocated-bytes");
  m->n_lines = times->len;
  if (times->len > 1)
    g_array_remove_range (times, 0, times->len / 2);
  m->n_steady = times->len;
  g_array_sort (times, ls_compare_doubles);
  if (times->len > 0) {
    m->step_s = g_array_index (times, double, times->len / 2);
    import_infer (import, "measured.iteration_s: the median of the last %u of %u golden values", m->n_steady,
                  m->n_lines);
  }
  for (guint i = 0; i < bytes->len; i++)
    m->allocated_bytes = MAX (m->allocated_bytes, g_array_index (bytes, double, i));
}

static bool
read_golden (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  for (guint i = 1; i < files->n; i++) {
    cJSON *root = cJSON_ParseWithLength (files->files[i].text, files->files[i].n);
    bool is_golden = root && cJSON_HasObjectItem (root, "iteration-time");
    import_use_file (&files->files[i]);
    if (is_golden)
      measure (root, import);
    else
      ls_diag_add (diags, LS_ERROR_INPUT, files->files[i].path, 0, 0, NULL, NULL, NULL,
                   "these are no golden values of such a test");
    cJSON_Delete (root);
    if (!is_golden)
      return false;
  }
  return true;
}

/* --- the whole ------------------------------------------------------------------------------------- */

static bool
read_test (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  g_autoptr (LaunchWords) words = launch_words_new ();
  g_autoptr (GHashTable) variables = NULL;
  import->program = "Megatron-LM";
  if (!read_args (&files->files[0], words, &variables, diags))
    return false;
  if (!megatron_trains_decoder (words, NULL, files->files[0].path, diags))
    return false;
  LaunchJob job = { .import = import, .words = words, .variables = variables };
  launch_environment (true, variables, variables, import);
  megatron_read (&job, NULL);
  return read_golden (files, import, diags);
}

/* A mapping of options below that key. */
static bool
is_its_test (const ImportFile *file)
{
  const char *at = g_str_has_prefix (file->text, ARGS ":") ? file->text : strstr (file->text, "\n" ARGS ":");
  return at && strstr (at, "\n  --");
}

const ImportReader import_megatron_test = { "a test of Megatron-LM", is_its_test, read_test };
