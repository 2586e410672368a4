/* Configurations of gpt-neox. Names, defaults and rules as in megatron/neox_arguments and megatron/model of
 * EleutherAI/gpt-neox (ea7aefd8, May 2026), and of releases since 2021 where they differ. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/deepspeed_rules.h"
#include "data/launch/megatron/megatron_rules.h"
#include "data/launch/neox/neox_rules.h"
#include "data/launch/yaml_config.h"
#include "data/text/yaml.h"

/* --- the strategy --------------------------------------------------------------------------------- */

static void
set_degrees (LaunchJob *job)
{
  guint64 pp = option_number (job, "pipe_parallel_size");
  option_default (job, "tp", "1");
  option_default (job, "sp", "0");
  import_set_strategy_number (job->import, "pp", MAX (1, pp));
  if (pp > 1)
    import_set_strategy (job->import, "schedule", "1f1b", "--");
}

/* NeoXArgs.calculate_derived (): a batch, or what makes one. */
static void
set_ranks (LaunchJob *job)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  guint64 gpus = option_number (job, "global_num_gpus"), each = option_number (job, "num_gpus"),
          nodes = option_number (job, "num_nodes"), of_model = (guint64) s->tp * s->pp;
  guint64 n = MAX (1, option_number (job, "gradient_accumulation_steps"));
  gpus = import_is_given (import, "gpus") ? s->gpus : gpus ? gpus : each * nodes;
  guint64 at_once = s->micro_batch * n;
  if (gpus == 0 && import_has_strategy (import, "global_batch") && at_once > 0
      && s->global_batch % at_once == 0) {
    gpus = s->global_batch / at_once * of_model;
    import_infer (import,
                  "gpus %" G_GUINT64_FORMAT ": as many copies as train_batch_size is of what one does", gpus);
  }
  if (gpus > 0 && gpus % of_model != 0)
    import_conflict (import, "%" G_GUINT64_FORMAT " GPUs do not hold %u x %u ranks", gpus, s->tp, s->pp);
  else if (gpus > 0)
    config_set_batch (job, gpus / of_model, n);
  else if (n > 1 || import_has_strategy (import, "micro_batch"))
    import_open (import, "gpus",
                 "how many GPUs: the host file says; a copy does %" G_GUINT64_FORMAT " micro-batches a step",
                 n);
}

static const char *
precision_of (const LaunchJob *job)
{
  const char *precision = option_text (job, "precision");
  if (precision)
    return strcmp (precision, "bfloat16") == 0 ? "bf16" : precision;
  if (option_is_on (job, "fp16.enabled"))
    return "fp16";
  return option_is_on (job, "bf16.enabled") ? "bf16" : NULL;
}

static void
set_precision (LaunchJob *job)
{
  const char *precision = precision_of (job), *grads = option_text (job, "data_types.grad_accum_dtype");
  if (!precision && import_has_strategy (job->import, "micro_batch")) {
    import_infer (job->import, "dtype fp32: neither fp16 nor bf16 is on");
    precision = "fp32";
  }
  if (precision)
    import_set_strategy (job->import, "dtype", precision, "precision fp16* bf16*");
  if (grads || option_is_on (job, "fp32_allreduce"))
    import_set_strategy (job->import, "grad_dtype", grads ? grads : "fp32", "fp32_allreduce data_types*");
}

static void
set_offload (LaunchJob *job)
{
  const char *optimizer = option_text (job, "zero_optimization.offload_optimizer.device"),
             *param = option_text (job, "zero_optimization.offload_param.device");
  bool is_param = param && strcmp (param, "none") != 0;
  const char *to = is_param ? param : optimizer;
  if (!to && option_is_on (job, "zero_optimization.cpu_offload"))
    to = "cpu";
  if (!to || strcmp (to, "none") == 0)
    return;
  import_set_strategy (job->import, "offload", is_param ? "parameters" : "optimizer", "*offload*");
  import_set_strategy (job->import, "offload_to", to, "*offload*");
}

static void
set_zero (LaunchJob *job)
{
  guint64 stage = option_number (job, "zero_optimization.stage");
  stage = stage ? stage : option_number (job, "zero_stage");
  import_set_strategy (job->import, "dp_kind", "deepspeed", "--");
  import_set_strategy_count (job->import, "zero", stage, "zero*stage");
  bool is_said = launch_words_find (job->words, "zero_optimization.overlap_comm")
      || option_is_off (job, "zero_optimization.overlap_comm");
  if (is_said)
    import_set_strategy (job->import, "dp_overlap",
                         option_is_on (job, "zero_optimization.overlap_comm") ? "1" : "0",
                         "zero_optimization.overlap_comm");
  else
    import_set_strategy (job->import, "dp_overlap", stage == 3 ? "1" : "0", "--");
  set_offload (job);
}

static void
set_recompute (LaunchJob *job)
{
  bool is_on = option_is_on (job, "checkpoint_activations");
  guint64 layers = option_number (job, "checkpoint_num_layers");
  import_set_strategy (job->import, "recompute", is_on ? "full" : "none", "checkpoint_activations");
  if (!is_on)
    return;
  import_set_strategy (job->import, "recompute_method", "uniform", "checkpoint_activations");
  import_set_strategy_count (job->import, "recompute_layers", MAX (1, layers), "checkpoint*");
  bool is_cut = option_is_on (job, "partition_activations");
  if (is_cut && job->import->strategy.tp > 1)
    import_set_strategy (job->import, "partition_activations", "1", "partition_activations");
  else if (is_cut)
    import_ignore (job->import, "partition_activations: one rank holds them");
  if (option_is_on (job, "checkpoint_in_cpu"))
    import_set_strategy (job->import, "offload_activations", "1", "checkpoint_in_cpu");
}

/* --- attention ------------------------------------------------------------------------------------ */

/* The first kind of attention that is none of names; NULL: all are. */
static const char *
find_other (const cJSON *node, const char *const *names)
{
  if (cJSON_IsString (node))
    return g_strv_contains (names, node->valuestring) ? NULL : node->valuestring;
  for (const cJSON *child = node ? node->child : NULL; child; child = child->next) {
    const char *other = find_other (child, names);
    if (other)
      return other;
  }
  return NULL;
}

/* A letter of a model's pattern; 0: no layer of ours. */
static char
letter_of (const char *kind)
{
  static const char *const attention[] = { "flash", "global", "local", NULL };
  return strcmp (kind, "mamba") == 0 ? 'm' : g_strv_contains (attention, kind) ? 'A' : 0;
}

/* [[["flash", "mamba"], 12], ...]: the kinds of each part, so many times, or "all". The caller frees it;
 * NULL: it is written otherwise, or has other kinds. */
static char *
pattern_of (const cJSON *config)
{
  GString *pattern = g_string_new (NULL);
  bool is_read = cJSON_IsArray (config) && config->child;
  for (const cJSON *part = is_read ? config->child : NULL; part && is_read; part = part->next) {
    const cJSON *kinds = cJSON_GetArrayItem (part, 0), *times = cJSON_GetArrayItem (part, 1), *kind;
    double n = cJSON_IsNumber (times) ? CLAMP (times->valuedouble, 0, 4096) : 1;
    for (guint i = 0; i < (guint) n && is_read && pattern->len < 65536; i++)
      cJSON_ArrayForEach (kind, kinds)
      {
        char letter = cJSON_IsString (kind) ? letter_of (kind->valuestring) : 0;
        is_read = is_read && letter;
        g_string_append_c (pattern, letter ? letter : ' ');
      }
  }
  if (is_read && pattern->len > 0 && strspn (pattern->str, "m") == pattern->len)
    g_string_assign (pattern, "m");
  return g_string_free (pattern, !is_read || pattern->len == 0);
}

/* False: layers of another kind, or preferences that are learnt. */
static bool
set_attention (const cJSON *tree, LsImport *import, const char *path, LsDiagList *diags)
{
  const cJSON *config = yaml_config_find (tree, "attention_config"),
              *task = yaml_config_find (tree, "train_impl");
  const char *other
      = find_other (config, (const char *const[]) { "flash", "global", "local", "mamba", NULL });
  if (other && (strcmp (other, "rwkv") == 0 || g_str_has_suffix (other, "mlp"))) {
    ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
                 "attention_config has %s, of which a model of Lockstep has no layers", other);
    return false;
  }
  if (cJSON_IsString (task) && strcmp (task->valuestring, "normal") != 0)
    return import_refuse_task (path, diags, "train_impl %s", task->valuestring);
  bool is_flash = config && !find_other (config, (const char *const[]) { "flash", "mamba", NULL });
  if (other
      || (config && !is_flash && find_other (config, (const char *const[]) { "global", "mamba", NULL })))
    import_unknown (import, "attention_config: layers with %s attention", other ? other : "several kinds of");
  import_set_strategy (import, "attention", is_flash ? "flash" : "unfused", "attention_config*");
  if (!config)
    import_infer (import, "attention unfused: attention_config is \"global\" by default");
  return true;
}

/* --- files ---------------------------------------------------------------------------------------- */

static char *
folded (const char *key)
{
  return g_strdelimit (g_strdup (key), "-", '_');
}

/* A key that two files have is refused by gpt-neox too (NeoXArgs.from_ymls). */
static void
check_apart (const cJSON *tree, const ImportFile *file, LsImport *import)
{
  g_autoptr (GHashTable) keys = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  const cJSON *other = yaml_config_tree (file), *item;
  for (item = tree->child; item; item = item->next)
    g_hash_table_add (keys, folded (item->string));
  for (item = cJSON_IsObject (other) ? other->child : NULL; item; item = item->next) {
    g_autofree char *key = folded (item->string);
    if (g_hash_table_contains (keys, key))
      import_conflict (import, "%s: %s has it too", key, file->path);
  }
}

static cJSON *
load (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  cJSON *tree = cJSON_CreateObject ();
  for (guint i = 0; i < files->n; i++) {
    check_apart (tree, &files->files[i], import);
    if (!yaml_config_add (tree, &files->files[i], import, diags)) {
      cJSON_Delete (tree);
      return NULL;
    }
  }
  return tree;
}

static void
read_options (LaunchJob *job, const char *pattern)
{
  import_set_software (job->import, "gpt-neox");
  import_infer (
      job->import,
      "software gpt-neox: but for copies around attention, its kernels beside the products have no list of "
      "their own");
  option_read_all (job);
  neox_model (job, pattern);
  set_degrees (job);
  set_ranks (job);
  set_precision (job);
  set_zero (job);
  if (option_number (job, "pipe_parallel_size") > 0)
    deepspeed_pipeline_shards (job);
  import_set_optimizer (job->import, option_text (job, "optimizer.type"), 0, "optimizer.type");
  set_recompute (job);
  g_hash_table_unref (job->open);
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  import->program = "gpt-neox";
  cJSON *tree = load (files, import, diags);
  bool ok = tree && set_attention (tree, import, files->files[0].path, diags);
  if (!ok) {
    cJSON_Delete (tree);
    return false;
  }
  g_autofree char *pattern = pattern_of (yaml_config_find (tree, "attention_config"));
  g_autoptr (LaunchWords) words = launch_words_new ();
  launch_words_add_tree (words, tree);
  cJSON_Delete (tree);
  read_options (&(LaunchJob) { .import = import, .words = words, .table = &neox_options }, pattern);
  return true;
}

/* Arguments of Megatron-LM in YAML: two parts of them, or names of which gpt-neox has others. */
static bool
is_megatron (const cJSON *tree)
{
  return cJSON_IsObject (yaml_config_find (tree, "language_model"))
      || cJSON_IsObject (yaml_config_find (tree, "model_parallel"))
      || yaml_config_is_rather (tree, &megatron_options, &neox_options);
}

static bool
fits (const cJSON *tree)
{
  static const char *const own[]
      = { "pipe_parallel_size", "model_parallel_size", "gpt_j_residual", "no_weight_tying",
          "checkpoint_factor",  "attention_config",    "hostfile",       "text_gen_type",
          "num_layers",         "train_iters" },
      *const words[] = { "tokenizer_type", "vocab_file" }; /* of what prepares data too */
  guint n = 0, n_words = 0;
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    n += yaml_config_find (tree, own[i]) != NULL;
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    n_words += yaml_config_find (tree, words[i]) != NULL;
  return n > 0 && n + n_words >= 2 && !is_megatron (tree);
}

static bool
is_its (const ImportFile *file)
{
  return yaml_config_is (file, ":", fits);
}

const ImportReader import_neox = { "a configuration of gpt-neox", is_its, read };
