#include "data/launch/nemo/nemo_rules.h"

#include <string.h>

void
nemo_say (Nemo *n, const char *megatron, const char *value)
{
  launch_words_add_value (n->megatron, megatron, value);
}

static void
say_if (Nemo *n, bool is_on, const char *megatron)
{
  if (is_on)
    nemo_say (n, megatron, NULL);
}

const char *
nemo_text (const Nemo *n, const char *name)
{
  return option_text (&n->job, name);
}

bool
nemo_is_on (const Nemo *n, const char *name)
{
  return option_is_on (&n->job, name);
}

bool
nemo_is_off (const Nemo *n, const char *name)
{
  return option_is_off (&n->job, name);
}

/* --- the model ------------------------------------------------------------------------------------ */

/* Names of NeMo 1; and of a function of PyTorch, beside gated_linear_unit. */
static void
say_activation (Nemo *n)
{
  const char *name = nemo_text (n, "model.activation"),
             *func = nemo_text (n, "model.activation_func._target_");
  func = func ? func : nemo_text (n, "model.activation_func");
  bool is_gated = nemo_is_on (n, "model.gated_linear_unit") || (name && g_str_has_suffix (name, "glu"));
  bool is_gelu = (name && strstr (name, "geglu")) || (func && strstr (func, "gelu"));
  bool is_squared = (name && strcmp (name, "squared-relu") == 0) || (func && strstr (func, "squared_relu"));
  say_if (n, is_gated && !is_gelu, "swiglu");
  say_if (n, is_gated && is_gelu, "geglu");
  say_if (n, !is_gated && is_squared, "squared-relu");
  if (name && !is_gated && !is_squared && strcmp (name, "gelu") != 0)
    import_unknown (n->job.import, "model.activation %s", name);
}

/* Without it 4 times the hidden size, gated or not. */
static void
say_ffn (Nemo *n)
{
  guint64 hidden = option_number (&n->job, "model.hidden_size");
  const LaunchOption *o = launch_words_find (n->job.words, "model.ffn_hidden_size");
  if (o)
    launch_words_add_renamed (n->megatron, "ffn-hidden-size", o);
  else if (hidden > 0) {
    g_autofree char *ffn = g_strdup_printf ("%" G_GUINT64_FORMAT, 4 * hidden);
    import_infer (n->job.import, "ffn %s: 4 times the hidden size, without ffn_hidden_size", ffn);
    nemo_say (n, "ffn-hidden-size", ffn);
  }
}

static void
say_heads (Nemo *n)
{
  const LaunchOption *groups = launch_words_find (n->job.words, "model.num_query_groups");
  if (!groups)
    return;
  nemo_say (n, "group-query-attention", NULL);
  launch_words_add_renamed (n->megatron, "num-query-groups", groups);
}

/* "alibi" is written in several ways. */
static void
say_position (Nemo *n)
{
  const char *type = nemo_text (n, "model.position_embedding_type");
  g_autofree char *low = type ? g_ascii_strdown (type, -1) : NULL;
  if (low)
    nemo_say (n, "position-embedding-type", low);
}

static void
say_norm (Nemo *n)
{
  const char *norm = nemo_text (n, "model.normalization");
  bool is_rms = norm && g_ascii_strcasecmp (norm, "rmsnorm") == 0,
       is_layer = norm && g_ascii_strncasecmp (norm, "layernorm", strlen ("layernorm")) == 0;
  if (norm)
    nemo_say (n, "normalization", is_rms ? "RMSNorm" : is_layer ? "LayerNorm" : norm);
}

/* A number, or a list of a 0 or a 1 for each layer, which Megatron-LM writes as an expression. */
static void
say_moe_layers (Nemo *n)
{
  const LaunchOption *o = launch_words_find (n->job.words, "model.moe_layer_freq");
  if (!o || o->values->len == 0)
    return;
  GString *list = g_string_new (NULL);
  for (guint i = 0; o->values->len > 1 && i < o->values->len; i++)
    g_string_append_printf (list, "%s[%s]", i > 0 ? "+" : "", (const char *) o->values->pdata[i]);
  nemo_say (n, "moe-layer-freq", list->len > 0 ? list->str : o->values->pdata[0]);
  g_string_free (list, TRUE);
}

/* NeMo 2 and Megatron-Bridge pad to the multiple only where should_pad_vocab is on
 * (NVIDIA-NeMo/Megatron-Bridge: models/gpt_provider.py); NeMo 1 does without that key. */
static void
say_vocab (Nemo *n)
{
  const char *multiple = nemo_text (n, "model.make_vocab_size_divisible_by");
  if (nemo_is_off (n, "model.should_pad_vocab"))
    nemo_say (n, "make-vocab-size-divisible-by", "1");
  else if (multiple)
    nemo_say (n, "make-vocab-size-divisible-by", multiple);
}

void
nemo_say_model (Nemo *n)
{
  say_vocab (n);
  say_activation (n);
  say_ffn (n);
  say_heads (n);
  say_position (n);
  say_norm (n);
  say_moe_layers (n);
  say_if (n, nemo_is_off (n, "model.gradient_accumulation_fusion"), "no-gradient-accumulation-fusion");
  say_if (n, nemo_is_off (n, "model.bias") || nemo_is_off (n, "model.add_bias_linear"),
          "disable-bias-linear");
  say_if (n,
          nemo_is_off (n, "model.share_embeddings_and_output_weights")
              || nemo_is_off (n, "model.share_decoder_tokens_head_embeddings"),
          "untie-embeddings-and-output-weights");
  say_if (n, nemo_text (n, "model.mamba_ssm_ngroups") != NULL, "is-hybrid-model");
}

/* --- the strategy --------------------------------------------------------------------------------- */

/* "bf16", "bf16-mixed", "16-mixed", 32, or one of Megatron-Bridge: "bf16_with_fp8_current_scaling_mixed". */
static void
say_precision_name (Nemo *n, const char *name)
{
  static const char *const recipes[][2] = { { "fp8_delayed", "delayed" },
                                            { "fp8_current", "tensorwise" },
                                            { "fp8_subchannel", "blockwise" },
                                            { "mxfp8", "mxfp8" } };
  bool is_bf16 = strstr (name, "bf16") != NULL;
  say_if (n, is_bf16, "bf16");
  say_if (n, !is_bf16 && strstr (name, "16"), "fp16");
  if (strstr (name, "nvfp4"))
    nemo_say (n, "fp4-format", "e2m1");
  for (guint i = 0; i < G_N_ELEMENTS (recipes); i++)
    if (strstr (name, recipes[i][0])) {
      nemo_say (n, "fp8-format", "hybrid");
      nemo_say (n, "fp8-recipe", recipes[i][1]);
    }
}

/* Precisions of Megatron-Bridge by name, with what each sets beside (training/mixed_precision.py): formats,
 * weights that are gathered in fp8, of mxfp8 where gradients lie, and layers at either end in bf16. */
static const struct {
  const char *name, *format, *recipe;
  bool gathers;
  const char *first, *last; /* layers; NULL: none */
} bridge_precisions[] = {
  { "fp8_delayed_scaling_mixed", "hybrid", "delayed", true, NULL, NULL },
  { "with_mxfp8_mixed", "e4m3", "mxfp8", true, NULL, NULL },
  { "nemotron_h_bf16_with_fp8_current_scaling_mixed", "hybrid", "tensorwise", true, "2", "2" },
  { "nanov2_bf16_with_fp8_current_scaling_mixed", "hybrid", "blockwise", true, "2", "2" },
  { "fp8_current_scaling_mixed", "hybrid", "tensorwise", true, "1", "1" },
  { "fp8_subchannel_scaling_mixed", "hybrid", "blockwise", false, NULL, NULL },
  { "nemotron_3_super_bf16_with_nvfp4_mixed", NULL, NULL, false, "0", "14" },
};

const char *
bridge_precision_of (const char *name)
{
  static const char *const names[][2] = { { "bf16", "bf16_mixed" },
                                          { "fp8_cs", "bf16_with_fp8_current_scaling_mixed" },
                                          { "fp8_ds", "bf16_with_fp8_delayed_scaling_mixed" },
                                          { "fp8_mx", "bf16_with_mxfp8_mixed" },
                                          { "fp8_sc", "bf16_with_fp8_subchannel_scaling_mixed" },
                                          { "nvfp4", "bf16_with_nvfp4_mixed" } };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (name, names[i][0]) == 0)
      return names[i][1];
  return NULL;
}

/* Layers at either end, where the configuration does not say otherwise. */
static void
say_ends (Nemo *n, const char *first, const char *last)
{
  const char *own_first = nemo_text (n, "mixed_precision.num_layers_at_start_in_bf16"),
             *own_last = nemo_text (n, "mixed_precision.num_layers_at_end_in_bf16");
  if (nemo_is_off (n, "mixed_precision.first_last_layers_bf16"))
    return;
  if (!first && !nemo_is_on (n, "mixed_precision.first_last_layers_bf16"))
    return;
  nemo_say (n, "first-last-layers-bf16", NULL);
  nemo_say (n, "num-layers-at-start-in-bf16", own_first ? own_first : first ? first : "0");
  nemo_say (n, "num-layers-at-end-in-bf16", own_last ? own_last : last ? last : "0");
}

static void
say_bridge_precision (Nemo *n, const char *name)
{
  guint i = 0;
  while (i < G_N_ELEMENTS (bridge_precisions) && !strstr (name, bridge_precisions[i].name))
    i++;
  bool is_known = i < G_N_ELEMENTS (bridge_precisions);
  say_if (n, strstr (name, "bf16") != NULL, "bf16");
  say_if (n, g_str_has_prefix (name, "fp16"), "fp16");
  if (strstr (name, "nvfp4"))
    nemo_say (n, "fp4-format", "e2m1");
  if (is_known && bridge_precisions[i].format) {
    nemo_say (n, "fp8-format", bridge_precisions[i].format);
    nemo_say (n, "fp8-recipe", bridge_precisions[i].recipe);
  }
  if (is_known && bridge_precisions[i].gathers && !nemo_is_off (n, "mixed_precision.fp8_param_gather")) {
    nemo_say (n, "fp8-param-gather", NULL);
    say_if (n, strstr (name, "mxfp8") != NULL, "reuse-grad-buf-for-mxfp8-param-ag");
  }
  say_ends (n, is_known ? bridge_precisions[i].first : NULL, is_known ? bridge_precisions[i].last : NULL);
}

static void
say_name (Nemo *n, const char *name)
{
  if (n->is_bridge)
    say_bridge_precision (n, name);
  else
    say_precision_name (n, name);
}

/* Where the configuration of a precision stands, in NeMo 2 and Megatron-Bridge. */
static void
say_precision_config (Nemo *n, const char *prefix)
{
  static const char *const flags[] = { "bf16", "fp16" };
  static const char *const values[][2]
      = { { "fp8", "fp8-format" }, { "fp8_recipe", "fp8-recipe" }, { "fp4", "fp4-format" } };
  for (guint i = 0; i < G_N_ELEMENTS (flags); i++) {
    g_autofree char *name = g_strconcat (prefix, flags[i], NULL);
    say_if (n, nemo_is_on (n, name), flags[i]);
  }
  for (guint i = 0; i < G_N_ELEMENTS (values); i++) {
    g_autofree char *name = g_strconcat (prefix, values[i][0], NULL);
    if (nemo_text (n, name))
      nemo_say (n, values[i][1], nemo_text (n, name));
  }
  g_autofree char *gather = g_strconcat (prefix, "fp8_param_gather", NULL),
                  *attention = g_strconcat (prefix, "fp8_dot_product_attention", NULL),
                  *precision = g_strconcat (prefix, "precision", NULL);
  say_if (n, nemo_is_on (n, gather), "fp8-param-gather");
  say_if (n, nemo_is_on (n, attention), "fp8-dot-product-attention");
  if (nemo_text (n, precision))
    say_name (n, nemo_text (n, precision));
}

/* In Megatron-Bridge what mixed_precision says goes over what ddp says; of its recipes by name those of fp16
 * alone reduce in 16 bits (src/megatron/bridge/training/mixed_precision.py). */
static bool
reduces_in_16 (Nemo *n)
{
  const char *recipe = n->is_bridge ? nemo_text (n, "mixed_precision") : NULL,
             *const own = "mixed_precision.grad_reduce_in_fp32", *const ddp = "ddp.grad_reduce_in_fp32";
  bool is_off = nemo_is_off (n, ddp), is_on = nemo_is_on (n, ddp);
  if (recipe && is_off && !g_str_has_prefix (recipe, "fp16"))
    import_infer (n->job.import, "%s: mixed_precision %s goes over it, and reduces in fp32", ddp, recipe);
  if (recipe)
    return g_str_has_prefix (recipe, "fp16");
  bool is_mapping = nemo_is_on (n, "mixed_precision.bf16") || nemo_is_on (n, own) || nemo_is_off (n, own);
  if (n->is_bridge && is_mapping)
    return nemo_is_off (n, own);
  return !is_on && (is_off || nemo_is_off (n, own) || nemo_is_off (n, "trainer.plugins.grad_reduce_in_fp32"));
}

/* In NeMo 1 fp8 is a flag beside its formats; in Megatron-Core it names the format. */
void
nemo_say_precision (Nemo *n)
{
  static const char *const names[] = { "trainer.precision", "mixed_precision", "model.precision" };
  guint i = 0;
  while (i < G_N_ELEMENTS (names) && !nemo_text (n, names[i]))
    i++;
  if (i < G_N_ELEMENTS (names))
    say_name (n, nemo_text (n, names[i]));
  else if (n->is_bridge && !nemo_text (n, "mixed_precision.precision"))
    say_ends (n, NULL, NULL);
  say_precision_config (n, "model.");
  say_precision_config (n, "mixed_precision.");
  say_precision_config (n, "trainer.plugins.");
  if (n->is_nemo1 && !nemo_text (n, "model.fp8") && nemo_is_on (n, "model.fp8"))
    nemo_say (n, "fp8-format", nemo_is_on (n, "model.fp8_e4m3") ? "e4m3" : "hybrid");
  const char *sync = nemo_text (n, "model.optim.grad_sync_dtype");
  if ((sync && strcmp (sync, "fp32") != 0) || reduces_in_16 (n))
    nemo_say (n, "grad-reduce-in-bf16", NULL);
  else
    launch_words_add_by (n->megatron, sync, "accumulate-allreduce-grads-in-fp32", NULL);
}

/* NeMo 1: method and number stand there also where nothing is recomputed. */
static void
say_recompute (Nemo *n)
{
  static const char *const names[][2]
      = { { "model.activations_checkpoint_method", "recompute-method" },
          { "model.activations_checkpoint_num_layers", "recompute-num-layers" } };
  bool is_full = nemo_text (n, "model.activations_checkpoint_granularity")
      && strcmp (nemo_text (n, "model.activations_checkpoint_granularity"), "full") == 0;
  for (guint i = 0; i < G_N_ELEMENTS (names) && is_full; i++)
    if (nemo_text (n, names[i][0]))
      nemo_say (n, names[i][1], nemo_text (n, names[i][0]));
  if (is_full && option_is_there (&n->job, "model.num_micro_batches_with_partial_activation_checkpoints"))
    import_unknown (n->job.import, "model.num_micro_batches_with_partial_activation_checkpoints");
  if (is_full && option_is_there (&n->job, "model.activations_checkpoint_layers_per_pipeline"))
    import_unknown (n->job.import, "model.activations_checkpoint_layers_per_pipeline");
}

/* NeMo 1: the optimizer's name says whether it is sharded (nemo/core/optim). */
static void
say_data_parallel (Nemo *n)
{
  const char *name = nemo_text (n, "model.optim.name");
  bool is_sharded
      = name && (strcmp (name, "distributed_fused_adam") == 0 || strstr (name, "mcore_distributed"));
  say_if (n, is_sharded, "use-distributed-optimizer");
  if (name && !is_sharded)
    nemo_say (n, "optimizer", name);
  if (!n->is_nemo1 && !launch_words_find (n->megatron, "use-distributed-optimizer")
      && !g_hash_table_contains (n->megatron->off, "use-distributed-optimizer")) {
    import_infer (n->job.import, "zero 1: use_distributed_optimizer is on in recipes of %s",
                  n->job.import->program);
    launch_words_add_by (n->megatron, false, "use-distributed-optimizer", NULL);
  }
}

/* A model in a checkpoint, whose configuration says this too. */
static bool
engine_is_elsewhere (const Nemo *n)
{
  static const char *const said[]
      = { "model.num_layers", "model.transformer_engine", "model.use_flash_attention" };
  bool is_said = !n->is_nemo1 || !launch_words_find (n->job.words, "model.restore_from_path");
  for (guint i = 0; i < G_N_ELEMENTS (said); i++)
    is_said = is_said || launch_words_find (n->job.words, said[i]) || nemo_is_off (n, said[i]);
  return !is_said;
}

static void
say_kernels (Nemo *n)
{
  const char *backend = nemo_text (n, "model.attention_backend");
  bool is_elsewhere = !backend && engine_is_elsewhere (n);
  bool has_engine = !n->is_nemo1 || nemo_is_on (n, "model.transformer_engine") || is_elsewhere;
  if (is_elsewhere)
    import_unknown (n->job.import,
                    "model.transformer_engine: the checkpoint says it; attention is taken to be fused");
  bool is_on = nemo_is_on (n, "model.use_flash_attention"),
       is_flash = backend ? !strstr (backend, "unfused") && !strstr (backend, "local") : has_engine || is_on,
       is_package = backend ? strstr (backend, "flash") != NULL : !has_engine;
  if (!backend && has_engine && !is_elsewhere)
    import_infer (n->job.import, "attention flash: Transformer Engine takes a fused kernel");
  launch_words_add_by (n->megatron, backend || is_on, "attention-backend",
                       !is_flash                                  ? "unfused"
                           : is_package                           ? "flash"
                           : backend && strstr (backend, "fused") ? "fused"
                                                                  : "auto");
}

/* What a Trainer of Lightning takes for devices by itself, or for "auto" and -1: all GPUs of a node. */
static void
tell_devices (Nemo *n, guint64 nodes)
{
  const char *devices = nemo_text (n, "trainer.devices");
  if (nodes > 0 && (!devices || strcmp (devices, "auto") == 0 || strcmp (devices, "-1") == 0))
    import_open (n->job.import, "gpus",
                 "how many GPUs: all of %" G_GUINT64_FORMAT
                 " node%s (trainer.devices %s); how many each has is not said",
                 nodes, nodes == 1 ? "" : "s", devices ? devices : "is left out");
}

static void
say_gpus (Nemo *n)
{
  guint64 nodes = option_number (&n->job, "trainer.num_nodes"),
          each = option_number (&n->job, "trainer.devices");
  guint64 ranks = import_times (MAX (1, option_number (&n->job, "model.tensor_model_parallel_size"))
                                    * MAX (1, option_number (&n->job, "model.pipeline_model_parallel_size")),
                                MAX (1, option_number (&n->job, "model.context_parallel_size")));
  bool has_trainer = n->is_nemo1 && each == 0,
       is_default = nodes == 0 && (has_trainer || (each > 0 && each % ranks == 0))
      && !launch_words_find (n->job.words, "trainer.num_nodes");
  if (is_default) {
    import_infer (n->job.import, "1 node: the default of trainer.num_nodes");
    nodes = 1;
  }
  if (each == 0)
    tell_devices (n, nodes);
  n->job.gpus = nodes * each;
}

void
nemo_say_strategy (Nemo *n)
{
  say_gpus (n);
  nemo_say_precision (n);
  say_recompute (n);
  say_data_parallel (n);
  say_kernels (n);
  bool is_overlapped = nemo_is_on (n, "model.overlap_p2p_comm");
  say_if (n, !is_overlapped && (n->is_nemo1 || nemo_is_off (n, "model.overlap_p2p_comm")),
          "no-overlap-p2p-communication");
}

/* Whether the products of an overlap leave SMs to what stays whole (lower/layers/lower_tp_overlap.c). */
void
nemo_set_margin (Nemo *n)
{
  static const char *const products[] = { "qkv_dgrad", "qkv_wgrad", "fc1_dgrad", "fc1_wgrad" };
  guint n_on = 0, n_off = 0;
  for (guint i = 0; i < G_N_ELEMENTS (products); i++) {
    g_autofree char *of = g_strconcat ("model.ub_tp_comm_overlap_cfg.", products[i], NULL);
    g_autofree char *method = g_strconcat (of, ".method", NULL),
                    *margin = g_strconcat (of, ".set_sm_margin", NULL);
    bool is_bulk = g_strcmp0 (nemo_text (n, method), "bulk") == 0;
    n_on += is_bulk && nemo_is_on (n, margin);
    n_off += is_bulk && nemo_is_off (n, margin);
  }
  if (n_on + n_off > 0)
    import_set_strategy (n->job.import, "tp_overlap_margin", n_on > 0 ? "1" : "0",
                         "model.ub_tp_comm_overlap_cfg.*.set_sm_margin");
  if (n_on > 0 && n_off > 0)
    import_unknown (n->job.import,
                    "model.ub_tp_comm_overlap_cfg: set_sm_margin of some products only; taken to be of all");
}

/* NeMo 1. */
void
nemo_set_amax_reduction (Nemo *n)
{
  if (n->job.import->strategy.dtype == LS_DTYPE_FP8 && nemo_is_off (n, "model.reduce_amax"))
    import_set_strategy (n->job.import, "fp8_amax_reduction", "none", "model.reduce_amax");
}

/* Of megatron/core/model_parallel_config.py: activations of the first layers of a stage, by Transformer
 * Engine. */
void
nemo_set_offload (Nemo *n)
{
  const char *layers = nemo_text (n, "model.cpu_offloading_num_layers");
  if (!nemo_is_on (n, "model.cpu_offloading"))
    return;
  if (nemo_is_on (n, "model.cpu_offloading_weights"))
    import_unknown (n->job.import, "model.cpu_offloading_weights: weights are taken to stay");
  if (nemo_is_off (n, "model.cpu_offloading_activations"))
    return;
  import_set_strategy (n->job.import, "offload_activations", "1", "model.cpu_offloading");
  if (layers)
    import_set_strategy (n->job.import, "offload_layers", layers, "model.cpu_offloading_num_layers");
}
