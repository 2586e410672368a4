/* Configurations of Levanter's train_lm. Names, defaults and rules as in src/levanter/models/llama.py,
 * models/gpt2.py and trainer.py of stanford-crfm/levanter (02be56f6, 2025): FSDP by XLA, like MaxText. */
#include <string.h>

#include "data/launch/yaml_config.h"

#define MODEL(option, key)    OPTION_MODEL_ROW (option, key)
#define STRATEGY(option, key) OPTION_STRATEGY_ROW (option, key)
#define RULE(option)          OPTION_RULE_ROW (option)

static const OptionRow rows[] = {
  MODEL ("model.num_layers", "layers"),
  MODEL ("model.hidden_dim", "hidden"),
  MODEL ("model.num_heads", "heads"),
  MODEL ("model.num_kv_heads", "kv_heads"),
  MODEL ("model.intermediate_dim", "ffn"),
  MODEL ("model.seq_len", "seq"),
  RULE ("model.type"),
  RULE ("model.activation_function"),
  RULE ("model.gradient_checkpointing"),
  RULE ("model.tie_word_embeddings"),
  RULE ("model.use_bias"),
  RULE ("model.use_flash_attention"),
  RULE ("use_hf_model_config"),
  RULE ("initialize_from_hf"),
  RULE ("data.tokenizer"),
  STRATEGY ("trainer.train_batch_size", "global_batch"),
  RULE ("trainer.per_device_parallelism"),
  RULE ("trainer.mp"),
  RULE ("trainer.model_axis_size"),
  RULE ("trainer.tensor_parallel_axes"),
  RULE ("trainer.fsdp_axis"),
  RULE ("trainer.replica_*_axis_size"),
  RULE ("trainer.quantization*"),
  RULE ("optimizer.type"),
};

static const char ignored[]
    = "data data.* optimizer.* trainer.* model.initializer_range model.layer_norm_epsilon model.rope* "
      "model.scan_layers model.gradient_checkpointing_block_size model.flash_attention_block_size "
      "model.reference_checkpoint model.tokenizer model.scale_attn_by_inverse_layer_idx "
      "model.use_layer_norm_weight model.resid_pdrop model.embed_pdrop model.attn_pdrop z_loss_weight "
      "hf_* eval_* log_*";

static const OptionTable table = { rows, G_N_ELEMENTS (rows), ignored, NULL, NULL };

/* --- the model -------------------------------------------------------------------------------------- */

static void
set_otherwise (LaunchJob *job, const char *const pairs[][2], guint n)
{
  for (guint i = 0; i < n; i++)
    if (!import_has_model (job->import, pairs[i][0])) {
      import_set_model (job->import, pairs[i][0], pairs[i][1], "--");
      import_infer (job->import, "%s %s: the default of Levanter", pairs[i][0], pairs[i][1]);
    }
}

static void
set_llama (LaunchJob *job)
{
  static const char *const otherwise[][2] = { { "layers", "32" },   { "hidden", "4096" }, { "heads", "32" },
                                              { "kv_heads", "32" }, { "ffn", "11008" },   { "seq", "2048" } };
  const char *activation = option_text (job, "model.activation_function");
  set_otherwise (job, otherwise, G_N_ELEMENTS (otherwise));
  import_set_model (job->import, "mlp", activation && strstr (activation, "gelu") ? "geglu" : "swiglu", "--");
  import_set_model (job->import, "norm", "rmsnorm", "--");
  import_set_model (job->import, "position", "rope", "--");
  import_set_model (job->import, "linear_bias", option_is_on (job, "model.use_bias") ? "1" : "0", "--");
  import_set_model (job->import, "tied_embeddings",
                    option_is_on (job, "model.tie_word_embeddings") ? "1" : "0", "--");
}

static void
set_gpt2 (LaunchJob *job)
{
  static const char *const otherwise[][2]
      = { { "layers", "12" }, { "hidden", "768" }, { "heads", "12" }, { "seq", "1024" } };
  set_otherwise (job, otherwise, G_N_ELEMENTS (otherwise));
  import_set_model_number (job->import, "kv_heads", job->import->model.n_heads);
  import_set_model_number (job->import, "ffn", 4 * (guint64) job->import->model.hidden);
  import_set_model (job->import, "mlp", "gelu", "--");
  import_set_model (job->import, "norm", "layernorm", "--");
  import_set_model (job->import, "position", "learned", "--");
  import_set_model (job->import, "linear_bias", option_is_off (job, "model.use_bias") ? "0" : "1", "--");
  import_set_model (job->import, "tied_embeddings", "1", "--");
}

static void
set_model (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *type = option_text (job, "model.type"), *from = option_text (job, "initialize_from_hf"),
             *tokenizer = option_text (job, "data.tokenizer");
  import_set_model (import, "dropout", "0", "--");
  if (from && option_is_on (job, "use_hf_model_config")) {
    import_model_of_name (import, from);
    return;
  }
  if (!type || strcmp (type, "llama") == 0)
    set_llama (job);
  else if (strcmp (type, "gpt2") == 0)
    set_gpt2 (job);
  else
    import_unknown (import, "model.type %s: what it is where the file says nothing is not known here", type);
  guint64 words = import_vocab_of_tokenizer (import, tokenizer);
  if (words > 0)
    import_set_model_number (import, "vocab", words);
  else
    import_open (import, "vocab", "vocab: that of the tokenizer%s%s", tokenizer ? " " : "",
                 tokenizer ? tokenizer : "");
}

/* --- the strategy ----------------------------------------------------------------------------------- */

/* jmp.get_policy (): "p=f32,c=bfloat16", "compute=bfloat16,params=float32", or one format for all. */
static void
set_precision (LaunchJob *job)
{
  const char *policy = option_text (job, "trainer.mp");
  bool is_16 = policy
      && (strstr (policy, "c=bf") || strstr (policy, "compute=bf") || g_str_has_prefix (policy, "bf"));
  import_set_strategy (job->import, "dtype", is_16 ? "bf16" : "fp32", "trainer.mp");
  import_set_strategy (job->import, "grad_dtype", "fp32", "--");
  if (policy && (strstr (policy, "p=bf") || strstr (policy, "params=bf") || g_str_has_prefix (policy, "bf")))
    import_unknown (job->import, "trainer.mp %s: weights are taken to be kept in fp32", policy);
  for (guint i = 0; i < job->words->options->len; i++) {
    const LaunchOption *o = job->words->options->pdata[i];
    if (g_str_has_prefix (o->name, "trainer.quantization"))
      import_unknown (job->import, "%s: products are taken to be of trainer.mp", o->name);
  }
}

/* per_device_parallelism -1: each copy does its share of the batch at once. */
static void
set_batch (LaunchJob *job)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  guint64 each = option_number (job, "trainer.per_device_parallelism");
  if (!import_has_strategy (import, "global_batch")) {
    import_set_strategy_number (import, "global_batch", 512);
    import_infer (import, "global_batch 512: the default of Levanter");
  }
  guint64 copies = import_is_given (import, "gpus") ? s->gpus / MAX (1, s->tp) : 0;
  if (each == 0 && copies > 0 && s->global_batch % copies == 0)
    each = s->global_batch / copies;
  if (each > 0)
    import_set_strategy_number (import, "micro_batch", each);
  else
    import_open (
        import, "micro_batch",
        "micro_batch: train_batch_size over copies of the model, and how many GPUs there are is not said");
  if (copies == 0)
    import_open (import, "gpus", "how many GPUs: the machines that it is started on say");
}

static void
set_strategy (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 tp = MAX (1, option_number (job, "trainer.model_axis_size"));
  bool is_whole = option_is_none (job, "trainer.fsdp_axis");
  import_set_strategy_number (import, "tp", tp);
  import_set_strategy_number (import, "pp", 1);
  import_set_strategy_number (import, "cp", 1);
  import_set_strategy (import, "sp", "0", "--");
  import_set_strategy (import, "dp_kind", "xla-fsdp", "--");
  import_set_strategy (import, "zero", is_whole ? "0" : "3", "trainer.fsdp_axis");
  if (option_number (job, "trainer.replica_ici_axis_size") > 1
      || option_number (job, "trainer.replica_dcn_axis_size") > 1)
    import_unknown (import, "trainer.replica_*_axis_size: weights are taken to be sharded over all devices");
  import_set_strategy (import, "recompute",
                       option_is_off (job, "model.gradient_checkpointing") ? "none" : "full",
                       "model.gradient_checkpointing");
  import_set_strategy (import, "attention",
                       option_is_off (job, "model.use_flash_attention") ? "unfused" : "flash",
                       "model.use_flash_attention");
  set_precision (job);
  set_batch (job);
  import_set_software (import, "maxtext-2024");
  import_infer (import,
                "software maxtext-2024: of those that are known the nearest to Levanter, FSDP by XLA too");
}

/* --- the file --------------------------------------------------------------------------------------- */

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  import->program = "Levanter";
  cJSON *tree = yaml_config_load (files, import, diags);
  if (!tree)
    return false;
  g_autoptr (LaunchWords) words = yaml_config_words (tree);
  LaunchJob job = { .import = import, .words = words, .table = &table };
  const char *optimizer;
  option_read_all (&job);
  set_model (&job);
  set_strategy (&job);
  optimizer = option_text (&job, "optimizer.type");
  import_set_optimizer (import, optimizer ? optimizer : "adam", 0, "optimizer.type");
  g_hash_table_unref (job.open);
  return true;
}

static bool
fits (const cJSON *tree)
{
  static const char *const own[] = { "trainer.mp", "trainer.tracker", "trainer.num_train_steps" };
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    n += yaml_config_find (tree, own[i]) != NULL;
  return n >= 2 && yaml_config_find (tree, "model") && yaml_config_find (tree, "data");
}

static bool
is_its (const ImportFile *file)
{
  return yaml_config_is (file, "trainer:", fits);
}

const ImportReader import_levanter = { "a configuration of Levanter", is_its, read };
