/* Configurations of Meta's lingua (apps/main), and scripts that start one:
 *
 *     torchrun --nproc-per-node 8 -m apps.main.train config=llama.yaml model.dim=64
 *     python -m lingua.stool script=apps.main.train config=llama.yaml nodes=4
 *
 * Names, defaults and rules as in apps/main/train.py, lingua/distributed.py, lingua/transformer.py and
 * lingua/stool.py of facebookresearch/lingua (437d680e, June 2025). */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/yaml_config.h"

#define MODEL(option, key) OPTION_MODEL_ROW (option, key)
#define RULE(option)       OPTION_RULE_ROW (option)

static const OptionRow rows[] = {
  MODEL ("model.dim", "hidden"),
  MODEL ("model.n_layers", "layers"),
  RULE ("model.n_heads"),
  RULE ("model.n_kv_heads"),
  RULE ("model.head_dim"),
  RULE ("model.ffn_dim_multiplier"),
  RULE ("model.multiple_of"),
  RULE ("model.vocab_size"),
  RULE ("model.weight_tying"),
  RULE ("model.sliding_window"),
  RULE ("data.seq_len"),
  RULE ("data.batch_size"),
  RULE ("data.tokenizer.name"),
  RULE ("data.tokenizer.path"),
  RULE ("grad_acc_steps"),
  RULE ("probe_freq"),
  RULE ("distributed.fsdp_type"),
  RULE ("distributed.dp_shard"),
  RULE ("distributed.dp_replicate"),
  RULE ("distributed.tp_size"),
  RULE ("distributed.selective_activation_checkpointing"),
  RULE ("distributed.compile"),
  RULE ("distributed.model_dtype"),
  RULE ("distributed.float8_recipe"),
  RULE ("distributed.float8_filter"),
  RULE ("distributed.detect_anomaly"),
};

/* The norm of gradients is computed whatever optim.clip says; tf32 is of products in fp32 alone. */
static const char ignored[]
    = "name dump_dir seed steps gc_collect_freq optim.* data.* checkpoint.* profiling.* logging logging.* "
      "async_eval_gpus eval eval.* env.* model.norm_eps model.rope_theta model.init_base_std "
      "model.init_std_factor model.max_seqlen model.seed distributed.matmul_allow_tf32 "
      "distributed.allow_bf16_reduced_precision_reduction distributed.compile_cache_size_limit "
      "distributed.spawn_method";

static const OptionTable table = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };

/* --- the model -------------------------------------------------------------------------------------- */

/* Its words; the file need not say how many, and what it says is that of the tokenizer. */
static void
set_vocab (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *name = option_text (job, "data.tokenizer.name"),
             *path = option_text (job, "data.tokenizer.path");
  guint64 words = option_number (job, "model.vocab_size");
  if (words > 0)
    import_set_model_number (import, "vocab", words);
  else if (!name || strcmp (name, "bytes") == 0) {
    import_set_model_number (import, "vocab", 258);
    import_infer (import, "vocab 258: the tokenizer of bytes, with a begin and an end");
  } else
    import_open (import, "vocab", "vocab: that of the tokenizer %s%s%s", name, path ? " " : "",
                 path ? path : "");
}

static void
set_heads (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 wide = option_number (job, "model.head_dim"), heads = option_number (job, "model.n_heads"),
          kv = option_number (job, "model.n_kv_heads");
  if (heads == 0 && wide > 0 && import_has_model (import, "hidden"))
    heads = import->model.hidden / wide;
  if (heads == 0) {
    import_conflict (import, "neither model.n_heads nor model.head_dim: lingua refuses it");
    return;
  }
  import_set_model_number (import, "heads", heads);
  import_set_model_number (import, "kv_heads", kv > 0 ? kv : heads);
  if (wide > 0)
    import_set_model_number (import, "head_dim", wide);
}

/* FeedForward: 8/3 of the width, times a factor, up to a multiple. */
static void
set_ffn (LaunchJob *job)
{
  const char *times = option_text (job, "model.ffn_dim_multiplier");
  guint64 of = config_number_or (job, "model.multiple_of", "multiple_of", 256);
  of = CLAMP (of, 1, G_MAXUINT32);
  if (!import_has_model (job->import, "hidden"))
    return;
  guint64 inner = 8 * (guint64) job->import->model.hidden / 3;
  if (times)
    inner = (guint64) (CLAMP (g_ascii_strtod (times, NULL), 0, 1e4) * (double) inner);
  import_set_model_number (job->import, "ffn", MAX (1, (inner + of - 1) / of) * of);
}

static void
set_model (LaunchJob *job)
{
  static const char *const kinds[][2] = { { "mlp", "swiglu" },
                                          { "norm", "rmsnorm" },
                                          { "position", "rope" },
                                          { "linear_bias", "0" },
                                          { "dropout", "0" } };
  static const ConfigSize sizes[] = { { "model.dim", "hidden", 512 },
                                      { "model.n_layers", "layers", 8 },
                                      { "data.seq_len", "seq", 2048 } };
  config_set_sizes (job, sizes, G_N_ELEMENTS (sizes));
  set_heads (job);
  set_ffn (job);
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    import_set_model (job->import, kinds[i][0], kinds[i][1], "--");
  option_set_model (job, "tied_embeddings", option_is_on (job, "model.weight_tying") ? "1" : "0");
  set_vocab (job);
  if (option_number (job, "model.sliding_window") > 0) /* apps/main/transformer.py, create_causal_mask */
    import_infer (job->import,
                  "no window: model.sliding_window is of another attention than apps.main.train "
                  "asks for");
}

/* --- the strategy ----------------------------------------------------------------------------------- */

/* As many as a job may have at most. */
static guint64
degree_of (const LaunchJob *job, const char *name)
{
  return CLAMP (option_number (job, name), 1, 1 << 20);
}

/* Ranks that degrees do not make up are replicas (validate_train_args). Without dp_shard weights are cut over
 * all replicas: FSDP2 is given their mesh alone. */
static void
set_degrees (LaunchJob *job)
{
  LsImport *import = job->import;
  bool is_full = g_strcmp0 (option_text (job, "distributed.fsdp_type"), "full_shard") == 0;
  guint64 shards = degree_of (job, "distributed.dp_shard"),
          copies = degree_of (job, "distributed.dp_replicate"), tp = degree_of (job, "distributed.tp_size");
  option_tell_other (job, "distributed.fsdp_type", "full_shard no_shard", "no_shard");
  import_set_strategy_count (import, "tp", tp, "distributed.tp_size");
  import_set_strategy (import, "sp", tp > 1 ? "1" : "0", "--");
  import_set_strategy (import, "pp", "1", "--");
  import_set_strategy (import, "cp", "1", "--");
  guint64 gpus = import_has_strategy (import, "gpus") ? import->strategy.gpus : job->gpus;
  if (gpus == 0 && shards * copies > 1)
    gpus = shards * copies * tp;
  if (gpus == 0)
    import_open (import, "gpus", "how many GPUs: torchrun or stool is told, and the file does not say");
  else if (gpus % (shards * tp) != 0)
    import_conflict (import,
                     "%" G_GUINT64_FORMAT " GPUs are no multiple of dp_shard x tp_size: lingua "
                     "refuses it",
                     gpus);
  job->gpus = gpus;
  g_autofree char *zero = !is_full || (shards > 1 && gpus != shards * tp)
      ? g_strdup_printf ("2@%" G_GUINT64_FORMAT, shards)
      : g_strdup ("2");
  import_set_strategy (import, "dp_kind", "fsdp2", "--");
  import_set_strategy (import, "zero", zero, "distributed.fsdp_type distributed.dp_shard");
  if (is_full)
    import_infer (import,
                  "zero 2: layers and the embedding stay gathered until the backward, as "
                  "build_fsdp_grouping_plan has it");
}

static void
set_batch (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 each = config_number_or (job, "data.batch_size", "micro_batch", 2),
          steps = MAX (1, option_number (job, "grad_acc_steps")), of_model = MAX (1, import->strategy.tp);
  if (each > 0)
    import_set_strategy_count (import, "micro_batch", each, "data.batch_size");
  if (job->gpus > 0 && job->gpus % of_model == 0)
    config_set_batch (job, job->gpus / of_model, steps);
  else
    import_open (import, "global_batch",
                 "the global batch: batch_size x %" G_GUINT64_FORMAT
                 " (grad_acc_steps) of each copy, and how "
                 "many GPUs there are is not known",
                 steps);
}

/* Rows of fp8 have a scale each, which are not simulated. */
static void
set_formats (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *format = option_text (job, "distributed.model_dtype"),
             *recipe = option_text (job, "distributed.float8_recipe");
  bool is_wide = g_strcmp0 (format, "fp32") == 0, is_half = g_strcmp0 (format, "fp16") == 0;
  option_tell_other (job, "distributed.model_dtype", "bf16 fp16 fp32", "bf16");
  import_set_strategy (import, "dtype",
                       recipe        ? "fp8"
                           : is_wide ? "fp32"
                           : is_half ? "fp16"
                                     : "bf16",
                       "distributed.model_dtype distributed.float8_recipe");
  import_set_strategy (import, "grad_dtype", "fp32", "--");
  if (!recipe)
    return;
  import_set_strategy (import, "fp8_recipe", "current", "distributed.float8_recipe");
  import_set_strategy (import, "fp8_linear", "torchao", "--");
  import_unknown (import,
                  "distributed.float8_recipe %s: lingua's own products, with a scale for each row and "
                  "weight gradients in bf16, are taken for torchao's with one scale for each tensor",
                  recipe);
}

/* The whole model is under one checkpoint that keeps matrix products and attention (parallelize_model). */
static void
set_recompute (LaunchJob *job)
{
  bool is_on = option_is_on (job, "distributed.selective_activation_checkpointing");
  import_set_strategy (job->import, "recompute", is_on ? "selective" : "none",
                       "distributed.selective_activation_checkpointing");
  if (!is_on)
    return;
  import_set_strategy (job->import, "recompute_parts", "dots-flash",
                       "distributed.selective_activation_checkpointing");
  import_unknown (job->import,
                  "distributed.selective_activation_checkpointing: one checkpoint around the whole "
                  "model is taken for one around each layer, which holds less at once");
}

static void
tell_rest (LaunchJob *job, bool is_compiled)
{
  LsImport *import = job->import;
  bool has_tp = import->strategy.tp > 1,
       is_full = g_strcmp0 (option_text (job, "distributed.fsdp_type"), "full_shard") == 0;
  if (has_tp && (is_compiled || !is_full))
    import_conflict (import, "distributed.tp_size %u with compile or without full_shard: lingua refuses it",
                     import->strategy.tp);
  if (has_tp)
    import_unknown (import, "distributed.tp_size: logits are gathered before the loss, which is left out");
  if (!is_full && option_number (job, "distributed.dp_shard") > 1)
    import_conflict (import, "distributed.dp_shard without full_shard: lingua refuses it");
  if (option_number (job, "probe_freq") > 0)
    import_infer (import, "steps without a probe (every %" G_GUINT64_FORMAT " have one, probe_freq)",
                  option_number (job, "probe_freq"));
  if (option_is_on (job, "distributed.detect_anomaly"))
    import_unknown (import, "distributed.detect_anomaly: its checks are left out");
}

static void
set_strategy (LaunchJob *job)
{
  bool is_compiled = option_is_on (job, "distributed.compile");
  const char *software = is_compiled ? "lingua-2025-compile" : "lingua-2025";
  set_degrees (job);
  set_batch (job);
  set_formats (job);
  set_recompute (job);
  import_set_strategy (job->import, "attention", "flash", "--");
  import_set_strategy (job->import, "grad_sync", "last", "--");
  import_set_optimizer (job->import, "adamw", 0, "--");
  import_set_software (job->import, software);
  import_infer (job->import, "software %s: the release of lingua that is known", software);
  tell_rest (job, is_compiled);
}

/* --- the file --------------------------------------------------------------------------------------- */

/* Other programs of the repository: apps/mamba, apps/fastRNN, apps/mtp, apps/aunet. */
static bool
check_model (const cJSON *tree, const char *path, LsDiagList *diags)
{
  static const char *const others[]
      = { "conv_size", "state_dim", "lru_dim_multiplier", "n_future_head", "dimensions", "init_args" };
  const cJSON *model = yaml_config_find (tree, "model");
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    if (yaml_config_find (model, others[i])) {
      ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, IMPORT_ELSE,
                   "model.%s: a model of another program than apps/main of lingua, which alone is read",
                   others[i]);
      return false;
    }
  return true;
}

/* Takes the tree. */
static bool
read_tree (cJSON *tree, guint64 gpus, LsImport *import, LsDiagList *diags)
{
  if (!check_model (tree, import->path, diags)) {
    cJSON_Delete (tree);
    return false;
  }
  g_autoptr (LaunchWords) words = yaml_config_words (tree);
  LaunchJob job = { .import = import, .words = words, .table = &table, .gpus = gpus };
  option_read_all (&job);
  set_model (&job);
  set_strategy (&job);
  g_hash_table_unref (job.open);
  return true;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  import->program = "lingua";
  cJSON *tree = yaml_config_load (files, import, diags);
  return tree && read_tree (tree, 0, import, diags);
}

static bool
fits (const cJSON *tree)
{
  return cJSON_IsObject (yaml_config_find (tree, "model")) && yaml_config_find (tree, "distributed.fsdp_type")
      && (yaml_config_find (tree, "distributed.model_dtype") || yaml_config_find (tree, "data.sources"))
      && cJSON_IsObject (yaml_config_find (tree, "data")) && yaml_config_find (tree, "optim");
}

static bool
is_its (const ImportFile *file)
{
  return yaml_config_is (file, "distributed:", fits);
}

const ImportReader import_lingua = { "a configuration or a script of lingua", is_its, read };

/* --- scripts ---------------------------------------------------------------------------------------- */

#define TRAINER "apps.main.train"
#define STOOL   "lingua.stool"

static bool
is_known (const char *name)
{
  return strcmp (name, "config") == 0 || option_find (&table, name) != NULL;
}

static bool
starts (char *const *words, guint n)
{
  for (guint i = 0; i < n; i++)
    if (strcmp (words[i], TRAINER) == 0 || strcmp (words[i], STOOL) == 0)
      return true;
  return false;
}

/* "nodes=4"; NULL: there is none. */
static const char *
value_of (const LaunchScript *script, const char *name)
{
  const GPtrArray *pairs = script->words->others;
  gsize n = strlen (name);
  for (guint i = 0; i < pairs->len; i++)
    if (strncmp (pairs->pdata[i], name, n) == 0 && ((const char *) pairs->pdata[i])[n] == '=')
      return (const char *) pairs->pdata[i] + n + 1;
  return NULL;
}

/* stool submits a job of so many nodes, of 8 GPUs unless it is told. */
static guint64
gpus_of (const LaunchScript *script)
{
  const char *nodes = value_of (script, "nodes"), *each = value_of (script, "ngpu");
  if (g_strcmp0 (script->script, STOOL) != 0)
    return script->gpus;
  return nodes ? g_ascii_strtoull (nodes, NULL, 10) * (each ? g_ascii_strtoull (each, NULL, 10) : 8) : 0;
}

/* What lies on top of the configuration; stool's own words do not. */
static void
add_pairs (cJSON *tree, const LaunchScript *script)
{
  bool is_stool = g_strcmp0 (script->script, STOOL) == 0;
  for (guint i = 0; i < script->words->others->len && !is_stool; i++)
    if (!g_str_has_prefix (script->words->others->pdata[i], "config="))
      yaml_config_set_pair (tree, script->words->others->pdata[i]);
}

static bool
read_started (const ImportFiles *files, const LaunchScript *script, LsImport *import, LsDiagList *diags)
{
  const char *config = value_of (script, "config"), *started = value_of (script, "script");
  g_autoptr (LaunchWords) named = launch_words_new ();
  if (started && strcmp (started, TRAINER) != 0) {
    ls_diag_add (diags, LS_ERROR_UNSUPPORTED, import->path, 0, 0, NULL, NULL, IMPORT_ELSE,
                 "script=%s: of lingua " TRAINER " alone is read", started);
    return false;
  }
  if (!config)
    return launch_refuse_config (NULL, import, diags);
  launch_words_add_value (named, "config", config);
  cJSON *tree = yaml_config_of_option (files, named, "config", import, diags);
  if (!tree)
    return false;
  add_pairs (tree, script);
  return read_tree (tree, gpus_of (script), import, diags);
}

/* stool says how many GPUs by its words. */
static bool
read_script (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kinds[] = {
    { .program = "lingua",
      .is_known = is_known,
      .n_needed = 1,
      .has_pairs = true,
      .gpus = "",
      .starts = starts },
    { .program = "lingua", .is_known = is_known, .n_needed = 1, .has_pairs = true, .starts = starts },
  };
  LaunchScript script;
  import->program = "lingua";
  bool ok = launch_script_read (files, &kinds[strstr (files->files[0].text, STOOL) != NULL], &script, import,
                                diags)
      && read_started (files, &script, import, diags);
  launch_script_clear (&script);
  return ok;
}

static bool
is_its_script (const ImportFile *file)
{
  return strstr (file->text, "config=") && (strstr (file->text, TRAINER) || strstr (file->text, STOOL));
}

const ImportReader import_lingua_script = { NULL, is_its_script, read_script };
