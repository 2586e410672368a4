/* A configuration of a recipe of torchtune, in YAML. It shards as torchtitan does, by fully_shard of PyTorch,
 * in whose options its degrees are said. Keys, defaults and rules are those of recipes/ and of
 * torchtune/training in pytorch/torchtune (bd2a0fc7, April 2026; release 0.7). Which recipe runs, and on how
 * many GPUs, is said to `tune run`; on one GPU nothing is sharded.
 *
 * A model is made in the format that it computes in, so what is sharded, its gradients as they are reduced
 * and both moments have that format too, adapters among them (training.set_default_dtype). */
#include <string.h>

#include "data/launch/adapters.h"
#include "data/launch/hf_rules.h"
#include "data/launch/torchtitan/torchtitan_rules.h"
#include "data/launch/torchtune/torchtune_options.h"
#include "data/launch/yaml_config.h"

typedef struct {
  LaunchJob own, torch; /* by its options; by those of torchtitan, the words of which it fills */
  LaunchWords *words;   /* of torch */
} Torchtune;

static const char *
text_of (const Torchtune *t, const char *name)
{
  return option_text (&t->own, name);
}

static bool
is_on (const Torchtune *t, const char *name)
{
  return option_is_on (&t->own, name);
}

/* Behind the last dot: "torch.optim.AdamW". NULL: not given. */
static const char *
last_of (const Torchtune *t, const char *name)
{
  const char *path = text_of (t, name), *dot = path ? strrchr (path, '.') : NULL;
  return dot ? dot + 1 : path;
}

/* --- in options of torchtitan ---------------------------------------------------------------------- */

static void
say (Torchtune *t, const char *name, const char *value)
{
  launch_words_add_value (t->words, name, value);
}

/* ac_mode is heeded where the switch is off, and then alone. */
static void
say_recompute (Torchtune *t)
{
  const char *mode = text_of (t, "ac_mode"), *option = text_of (t, "ac_option");
  bool is_full = is_on (t, "enable_activation_checkpointing");
  launch_words_add_by (t->words,
                       mode || is_full || option_is_off (&t->own, "enable_activation_checkpointing"),
                       "activation_checkpoint.mode",
                       mode          ? (is_full ? "none" : mode)
                           : is_full ? "full"
                                     : "none");
  if (mode && is_full)
    import_infer (t->own.import,
                  "recompute none: ac_mode beside enable_activation_checkpointing, which "
                  "turns either off");
  if (option)
    say (t, "activation_checkpoint.selective_ac_option", option);
}

static void
say_rest (Torchtune *t)
{
  const char *seq = text_of (t, "tokenizer.max_seq_len"), *old = text_of (t, "fsdp_sharding_strategy");
  bool is_kept
      = option_is_off (&t->own, "fsdp_reshard_after_forward") || g_strcmp0 (old, "SHARD_GRAD_OP") == 0;
  seq = seq ? seq : text_of (t, "dataset.max_seq_len");
  if (seq)
    say (t, "training.seq_len", seq);
  launch_words_add_by (t->words, is_kept || old || is_on (t, "fsdp_reshard_after_forward"),
                       "parallelism.fsdp_reshard_after_forward", is_kept ? "never" : "always");
  if (old && strcmp (old, "FULL_SHARD") != 0 && strcmp (old, "SHARD_GRAD_OP") != 0)
    import_unknown (t->own.import, "fsdp_sharding_strategy %s: taken for FULL_SHARD", old);
  say_recompute (t);
}

/* --- the model -------------------------------------------------------------------------------------- */

static const char *
without_prefix (const char *name, const char *prefix)
{
  return g_str_has_prefix (name, prefix) ? name + strlen (prefix) : name;
}

/* "qlora_qwen2_5_7b_instruct": the model qwen2_5_7b. */
static char *
model_of (const char *function)
{
  static const char *const ends[] = { "_instruct", "_base" };
  char *name = g_strdup (without_prefix (without_prefix (function, "q"), "lora_"));
  if (!strstr (function, "lora_")) {
    g_free (name);
    name = g_strdup (function);
  }
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++)
    if (g_str_has_suffix (name, ends[i]))
      name[strlen (name) - strlen (ends[i])] = '\0';
  return name;
}

/* A function that is given all dimensions. Those of Llama 2 without a width of the MLP round it
 * (torchtune/modules/common_utils.py, scale_hidden_dim_for_mlp); all but Gemma's have SwiGLU. */
static void
set_dimensions (Torchtune *t)
{
  static const char *const keys[][2] = {
    { "model.vocab_size", "vocab" },      { "model.num_layers", "layers" }, { "model.num_heads", "heads" },
    { "model.num_kv_heads", "kv_heads" }, { "model.embed_dim", "hidden" },  { "model.head_dim", "head_dim" },
    { "model.intermediate_dim", "ffn" },
  };
  static const char *const kinds[][2]
      = { { "mlp", "swiglu" }, { "norm", "rmsnorm" }, { "position", "rope" } };
  LsImport *import = t->own.import;
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (text_of (t, keys[i][0]))
      import_set_model (import, keys[i][1], text_of (t, keys[i][0]), keys[i][0]);
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    import_set_model (import, kinds[i][0], kinds[i][1], "model._component_");
  guint64 wide = option_number (&t->own, "model.embed_dim"), inner = 4 * (2 * wide / 3);
  if (!text_of (t, "model.intermediate_dim") && wide > 0 && wide < G_MAXUINT32) {
    import_set_model_number (import, "ffn", (inner + 255) / 256 * 256);
    import_infer (import,
                  "ffn: 8/3 of model.embed_dim, up to a multiple of 256, as Llama 2's function has it");
  }
  import_infer (import, "a decoder with swiglu, rmsnorm and rope: what %s makes of these dimensions",
                text_of (t, "model._component_"));
}

static void
set_model (Torchtune *t)
{
  const char *function = last_of (t, "model._component_");
  if (import_has_model (t->own.import, "layers"))
    return;
  g_autofree char *model = function ? model_of (function) : NULL,
                  *name = model ? g_strconcat ("torchtune/", model, NULL) : NULL;
  if (text_of (t, "model.num_layers"))
    set_dimensions (t);
  else if (name)
    import_model_of_name (t->own.import, name);
  else
    import_unknown (t->own.import, "the model: no function that makes one is given");
}

/* Batches are padded to their longest sequence, unless they are packed. */
static void
set_sequence (Torchtune *t)
{
  LsImport *import = t->own.import;
  bool is_packed = is_on (t, "dataset.packed") || is_on (t, "dataset.0.packed");
  if (!import_has_model (import, "seq"))
    import_open (import, "seq",
                 "how long a sequence is: tokenizer.max_seq_len does not say, and batches are "
                 "padded to their longest");
  else if (!is_packed)
    import_infer (import, "seq %u: the most that there may be; a batch is as long as its longest sequence",
                  import->model.seq);
  if (is_packed) {
    import_open (import, "lengths",
                 "dataset.packed: attention is inside documents, whose lengths are not in the file: taken to "
                 "be over whole sequences (lengths)");
    import_infer (import, "dataset.packed: FlexAttention is taken to be as fast as FlashAttention");
  }
}

/* --- how it is run ---------------------------------------------------------------------------------- */

static guint64
degree_of (const Torchtune *t, const char *name)
{
  const char *text = text_of (t, name);
  return text && *text != '-' ? option_number (&t->own, name) : 0;
}

/* As many copies as GPUs are given, or degrees make; batch_size is what each takes at once. */
static void
set_batch (Torchtune *t)
{
  LsImport *import = t->own.import;
  const LsStrategy *s = &import->strategy;
  guint64 shards = degree_of (t, "data_parallel_shard_dim"),
          copies = shards * MAX (1, degree_of (t, "data_parallel_replicate_dim")),
          n = MAX (1, option_number (&t->own, "gradient_accumulation_steps"));
  guint64 each = (guint64) s->tp * s->cp,
          gpus = import_has_strategy (import, "gpus") ? s->gpus : t->torch.gpus;
  if (gpus > 0) /* which is told where they are no multiple */
    copies = gpus / each;
  if (text_of (t, "batch_size"))
    import_set_strategy (import, "micro_batch", text_of (t, "batch_size"), "batch_size");
  if (copies > 0 && (gpus == 0 || gpus % each == 0))
    config_set_batch (&t->own, copies, n);
  if (copies > 0 || gpus > 0)
    return;
  import_open (import, "gpus", "how many GPUs: tune run is told, and the file does not say");
  import_open (import, "global_batch",
               "the global batch: batch_size x %" G_GUINT64_FORMAT
               " (gradient_accumulation_steps) of each copy, and how many GPUs there are is not known",
               n);
}

/* Without shards weights are stepped on as they are (recipes/full_finetune_single_device.py). */
static void
set_formats (Torchtune *t)
{
  LsImport *import = t->own.import;
  const char *format = text_of (t, "dtype"), *recipe = text_of (t, "fp8_recipe_name");
  bool is_fp32 = format && strcmp (format, "fp32") == 0, is_fp8 = is_on (t, "enable_fp8_training"),
       is_fsdp = import->strategy.dp_kind == LS_DP_FSDP2;
  option_tell_other (&t->own, "dtype", "bf16 fp32", "bf16");
  option_tell_other (&t->own, "fp8_recipe_name", "tensorwise", "tensorwise");
  import_set_strategy (import, "dtype", is_fp8 ? "fp8" : is_fp32 ? "fp32" : "bf16", "dtype");
  import_set_strategy (import, "grad_dtype", is_fp32 ? "fp32" : "bf16", "--");
  if (is_fsdp)
    import_set_strategy (import, "narrow_shards", is_fp32 ? "0" : "1", "--");
  else if (!is_fp32)
    import_set_strategy (import, "master", "none", "--");
  if (!is_fp32)
    import_infer (import, "weights, gradients and moments bf16: a model is made in dtype");
  if (is_fp8 && is_fsdp && !recipe) /* of its own configuration, without a name (training/quantization.py) */
    import_set_strategy (import, "fp8_params", "1", "enable_fp8_training");
}

/* A reduction for each micro-batch; no norm unless it is asked for. */
static void
set_sharding (Torchtune *t)
{
  LsImport *import = t->own.import;
  if (import->strategy.dp_kind == LS_DP_FSDP2)
    import_set_strategy (import, "grad_sync", "each", "--");
  if (import->strategy.dp_kind == LS_DP_DDP) /* shard_model is called where there are shards */
    import_unknown (import,
                    "data_parallel_replicate_dim without shards: torchtune reduces no gradients then; "
                    "they are taken to be, by DDP");
  import_set_strategy (import, "grad_norm", text_of (t, "clip_grad_norm") ? "1" : "0", "clip_grad_norm");
  if (import->strategy.tp > 1 && !text_of (t, "tensor_parallel_plan._component_"))
    import_conflict (import, "tensor_parallel_dim %u without a tensor_parallel_plan: torchtune refuses it",
                     import->strategy.tp);
  if (is_on (t, "enable_activation_offloading")) {
    import_set_strategy (import, "offload_activations", "1", "enable_activation_offloading");
    if (!is_on (t, "enable_activation_checkpointing"))
      import_conflict (import,
                       "enable_activation_offloading without enable_activation_checkpointing: torchtune "
                       "refuses it");
  }
}

static void
set_software (Torchtune *t)
{
  bool is_compiled = is_on (t, "compile") || is_on (t, "compile.model");
  import_set_software (t->own.import, is_compiled ? "torchtune-2025-compile" : "torchtune-2025");
  import_infer (t->own.import, "software %s: the release of torchtune that is known",
                is_compiled ? "torchtune-2025-compile" : "torchtune-2025");
}

static void
set_optimizer (Torchtune *t)
{
  const char *class = last_of (t, "optimizer._component_");
  import_set_optimizer (t->own.import, class, 0, "optimizer._component_");
  if (g_strcmp0 (class, "AdamW") == 0 && !is_on (t, "optimizer.fused"))
    import_unknown (t->own.import,
                    "optimizer.fused is not on: its kernels are taken to be those of the fused one");
  if (!is_on (t, "optimizer_in_bwd"))
    return;
  import_unknown (t->own.import,
                  "optimizer_in_bwd: the optimizer is taken to step behind the backward, so "
                  "all gradients are held");
  if (option_number (&t->own, "gradient_accumulation_steps") > 1 || text_of (t, "clip_grad_norm"))
    import_conflict (t->own.import,
                     "optimizer_in_bwd with gradient_accumulation_steps or clip_grad_norm: "
                     "torchtune refuses it");
}

/* Its recipes of adapters are given functions that make a model with them: lora_llama3_8b. */
static void
set_adapters (Torchtune *t)
{
  static const char *const of_mlp[] = { "gate_proj", "up_proj", "down_proj" };
  const char *function = last_of (t, "model._component_");
  const LaunchOption *own = launch_words_find (t->own.words, "model.lora_attn_modules");
  g_autoptr (GPtrArray) on = g_ptr_array_new ();
  if (!function || !strstr (function, "lora_"))
    return;
  for (guint i = 0; own && i < own->values->len; i++)
    g_ptr_array_add (on, own->values->pdata[i]);
  for (guint i = 0; is_on (t, "model.apply_lora_to_mlp") && i < G_N_ELEMENTS (of_mlp); i++)
    g_ptr_array_add (on, (gpointer) of_mlp[i]);
  launch_set_adapters (t->own.import,
                       &(LaunchAdapters) { .option = "model.lora_attn_modules",
                                           .rank = option_number (&t->own, "model.lora_rank"),
                                           .usual_rank = 8,
                                           .on = on,
                                           .dropout = text_of (t, "model.lora_dropout"),
                                           .is_nf4 = g_str_has_prefix (function, "qlora_")
                                               || is_on (t, "model.quantize_base") });
  if (is_on (t, "model.apply_lora_to_output"))
    import_unknown (t->own.import, "model.apply_lora_to_output: the head is taken to have no adapter");
  if (is_on (t, "model.use_dora"))
    import_unknown (t->own.import, "model.use_dora: taken for LoRA, without magnitudes of columns");
}

/* --- what is left out ------------------------------------------------------------------------------- */

/* Switches, and what is taken where they are on. */
static void
tell_switches (Torchtune *t)
{
  static const struct {
    const char *option, *taken;
  } switches[] = {
    { "fsdp_cpu_offload", "weights and the optimizer are taken to stay on the GPU" },
    { "fsdp.cpu_offload", "weights and the optimizer are taken to stay on the GPU" },
    { "compile.optimizer_step", "the optimizer is taken to be PyTorch's fused one" },
    { "memory_efficient_fsdp_wrap", "embedding and head are taken to be gathered with what is in no layer" },
    { "resize_token_embeddings", "the words are taken to be those of the model" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (switches); i++)
    if (is_on (t, switches[i].option))
      import_unknown (t->own.import, "%s: %s", switches[i].option, switches[i].taken);
}

static void
tell_rest (Torchtune *t)
{
  static const char *const beside[]
      = { "quantizer._component_", "early_exit_loss._component_", "layer_dropout.prob" };
  LsImport *import = t->own.import;
  const char *loss = last_of (t, "loss._component_"), *dropout = text_of (t, "model.attn_dropout");
  tell_switches (t);
  if (text_of (t, "model.encoder_trainable"))
    import_unknown (import, "model.encoder_trainable %s: what sees is left out",
                    text_of (t, "model.encoder_trainable"));
  for (guint i = 0; i < G_N_ELEMENTS (beside); i++)
    if (text_of (t, beside[i]))
      import_unknown (import, "%s %s: left out", beside[i], text_of (t, beside[i]));
  if (is_on (t, "compile.model") && option_is_off (&t->own, "compile.loss"))
    import_unknown (import, "compile.loss: the loss is taken to be compiled, as layers are");
  option_tell_other (&t->own, "device", "cuda", "cuda");
  if (launch_words_find (t->own.words, "custom_sharded_layers"))
    import_unknown (import,
                    "custom_sharded_layers: embedding and head are taken to be gathered with what is "
                    "in no layer, and to stay");
  if (option_is_off (&t->own, "activation_offloading_use_streams"))
    import_unknown (import, "activation_offloading_use_streams: copies are taken to run beside kernels");
  if (dropout && g_ascii_strtod (dropout, NULL) > 0)
    import_unknown (import, "model.attn_dropout %s: left out", dropout);
  option_tell_other (&t->own, "loss.num_output_chunks", "8", "8");
  if (loss && !strstr (loss, "LinearCrossEntropy") && !strstr (loss, "ChunkedOutput"))
    import_unknown (import, "loss._component_ %s: taken for LinearCrossEntropyLoss, in 8 pieces", loss);
  else if (loss && strstr (loss, "LinearCrossEntropy") && !is_on (t, "dataset.train_on_input"))
    import_infer (import,
                  "loss of all tokens: how many a dataset masks, which have no logits, is not in the file");
}

/* --- files ------------------------------------------------------------------------------------------ */

static void
read_options (Torchtune *t)
{
  LsImport *import = t->own.import;
  option_translate (&t->own, t->words);
  say_rest (t);
  t->torch.words = t->words;
  t->torch.table = &torchtitan_options;
  set_software (t);
  option_read_all (&t->torch);
  set_model (t);
  set_sequence (t);
  set_batch (t);
  torchtitan_strategy (&t->torch);
  set_sharding (t);
  set_formats (t);
  set_optimizer (t);
  set_adapters (t);
  tell_rest (t);
  if (import->strategy.dp_kind != LS_DP_FSDP2)
    option_forget (&t->own, "zero");
  g_hash_table_unref (t->torch.open);
}

/* The first of these whose value has the word, or which is there at all; NULL: none. A recipe without an
 * optimizer evaluates, generates or quantizes. */
static const char *
other_task (const cJSON *tree)
{
  static const struct {
    const char *key, *word;
  } others[] = {
    { "teacher_model", NULL },
    { "policy_model", NULL },
    { "reward_and_value_model", NULL },
    { "loss._component_", ".rlhf." },
    { "loss._component_", ".grpo." },
    { "model._component_", "vision" },
    { "model._component_", "classifier" },
    { "model._component_", ".clip." },
    { "model._component_", ".flux." },
    { "model._component_", ".t5." },
  };
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    const cJSON *value = yaml_config_find (tree, others[i].key);
    if (value && (!others[i].word || (cJSON_IsString (value) && strstr (value->valuestring, others[i].word))))
      return cJSON_IsString (value) ? value->valuestring : others[i].key;
  }
  return yaml_config_find (tree, "optimizer") ? NULL : "no optimizer";
}

bool
torchtune_read (cJSON *tree, guint64 gpus, const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const char *other = other_task (tree);
  import->program = "torchtune";
  bool ok
      = other ? import_refuse_task (import->path, diags, "%s", other) : hf_read_model (files, import, diags);
  if (!ok) {
    cJSON_Delete (tree);
    return false;
  }
  g_autoptr (LaunchWords) words = yaml_config_words (tree), torch = launch_words_new ();
  read_options (&(Torchtune) { .own = { .import = import, .words = words, .table = &torchtune_options },
                               .torch = { .import = import, .gpus = gpus },
                               .words = torch });
  return true;
}

/* A file says not which recipe runs it, but its name does: "9B_qlora_single_device.yaml". */
static guint64
gpus_of_name (const char *path, LsImport *import)
{
  g_autofree char *name = g_path_get_basename (path);
  if (!strstr (name, "single_device"))
    return 0;
  import_infer (import, "gpus 1: by the name of the file, %s", name);
  return 1;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  cJSON *tree = cJSON_CreateObject ();
  if (yaml_config_add (tree, &files->files[0], import, diags))
    return torchtune_read (tree, gpus_of_name (import->path, import), files, import, diags);
  cJSON_Delete (tree);
  return false;
}

static bool
fits (const cJSON *tree)
{
  static const char *const sections[] = { "model", "tokenizer", "policy_model" };
  for (guint i = 0; i < G_N_ELEMENTS (sections); i++) {
    g_autofree char *path = g_strconcat (sections[i], "._component_", NULL);
    const cJSON *component = yaml_config_find (tree, path);
    if (cJSON_IsString (component) && g_str_has_prefix (component->valuestring, "torchtune."))
      return true;
  }
  return false;
}

static bool
is_its (const ImportFile *file)
{
  return yaml_config_is (file, "torchtune.", fits);
}

const ImportReader import_torchtune = { "a configuration or a script of torchtune", is_its, read };
