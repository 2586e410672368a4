#include <string.h>

#include "data/launch/olmo/olmo_rules.h"
#include "data/launch/yaml_config.h"

static bool
is_text (const LaunchJob *job, const char *name, const char *value)
{
  return g_strcmp0 (option_text (job, name), value) == 0;
}

/* --- sizes ---------------------------------------------------------------------------------------- */

/* The head's rows are those of the embedding; null: as many as there are words. */
static void
set_vocab (LaunchJob *job)
{
  guint64 rows = option_number (job, "model.embedding_size"), words = option_number (job, "model.vocab_size");
  bool is_open
      = launch_words_find (job->words, "model.embedding_size") && !option_text (job, "model.embedding_size");
  if (option_is_none (job, "model.embedding_size"))
    rows = words ? words : 50257;
  else if (rows == 0 && !is_open) {
    rows = 50304;
    import_infer (job->import, "vocab 50304: the default of embedding_size");
  }
  if (rows > 0 && rows < words)
    import_conflict (job->import,
                     "model.embedding_size %" G_GUINT64_FORMAT " below vocab_size: OLMo refuses it", rows);
  if (rows > 0)
    import_set_model_number (job->import, "vocab", rows);
}

/* Of SwiGLU the width is that of gate and up together (olmo/model.py, output_multiplier). */
static void
set_ffn (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *type = option_text (job, "model.activation_type");
  bool is_gated = !type || strcmp (type, "swiglu") == 0;
  guint64 wide = option_number (job, "model.mlp_hidden_size");
  if (wide == 0 && import_has_model (import, "hidden")) {
    guint64 times = config_number_or (job, "model.mlp_ratio", "mlp_ratio", 4);
    wide = MIN (times, G_MAXUINT16) * import->model.hidden;
  }
  option_tell_other (job, "model.activation_type", "swiglu gelu relu", "gelu");
  if (is_text (job, "model.activation_type", "relu"))
    import_infer (import, "mlp gelu: a ReLU has the same products");
  import_set_model (import, "mlp", is_gated ? "swiglu" : "gelu", "model.activation_type");
  if (wide > 0)
    import_set_model_number (import, "ffn", is_gated ? wide / 2 : wide);
  if (is_gated && wide % 2 == 1)
    import_conflict (import, "model.mlp_hidden_size %" G_GUINT64_FORMAT " is odd: OLMo refuses it", wide);
}

static void
set_heads (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 kv = option_number (job, "model.n_kv_heads"), heads = import->model.n_heads;
  bool is_one = option_is_on (job, "model.multi_query_attention"),
       is_all = option_is_off (job, "model.multi_query_attention")
      && !option_is_none (job, "model.multi_query_attention");
  if (!import_has_model (import, "heads"))
    return;
  if (kv > 0 && ((is_one && kv != 1) || (is_all && kv != heads)))
    import_conflict (
        import, "model.multi_query_attention beside n_kv_heads %" G_GUINT64_FORMAT ": OLMo refuses it", kv);
  import_set_model_number (import, "kv_heads", kv > 0 ? kv : is_one ? 1 : heads);
}

static void
set_sizes (LaunchJob *job)
{
  static const ConfigSize sizes[] = { { "model.d_model", "hidden", 768 },
                                      { "model.n_heads", "heads", 12 },
                                      { "model.n_layers", "layers", 12 },
                                      { "model.max_sequence_length", "seq", 1024 } };
  config_set_sizes (job, sizes, G_N_ELEMENTS (sizes));
  set_heads (job);
  set_ffn (job);
  set_vocab (job);
}

/* --- kinds ---------------------------------------------------------------------------------------- */

/* Weights, unless layer_norm_with_affine is off; biases as those of products, where nothing else is said. */
static void
set_norm (LaunchJob *job)
{
  LsImport *import = job->import;
  bool is_rms = is_text (job, "model.layer_norm_type", "rms"),
       is_plain = option_is_off (job, "model.layer_norm_with_affine"),
       is_said = launch_words_find (job->words, "model.bias_for_layer_norm")
      || (option_is_off (job, "model.bias_for_layer_norm")
          && !option_is_none (job, "model.bias_for_layer_norm")),
       has_bias = is_said ? option_is_on (job, "model.bias_for_layer_norm")
                          : !option_is_off (job, "model.include_bias");
  option_tell_other (job, "model.layer_norm_type", "rms default low_precision", "default");
  if (is_text (job, "model.layer_norm_type", "low_precision"))
    import_unknown (import, "model.layer_norm_type low_precision: taken for default, which runs in fp32");
  if (is_rms && (is_plain || has_bias))
    import_unknown (import,
                    "model.layer_norm_with_affine, bias_for_layer_norm: RMS norms are taken to have "
                    "weights and no biases");
  import_set_model (import, "norm",
                    is_rms         ? "rmsnorm"
                        : is_plain ? "layernorm_plain"
                        : has_bias ? "layernorm"
                                   : "layernorm_weight",
                    "model.layer_norm_type model.layer_norm_with_affine");
}

/* Blocks of the kind "llama" do not heed norm_after. */
static void
set_norms (LaunchJob *job)
{
  bool is_after = option_is_on (job, "model.norm_after") && !is_text (job, "model.block_type", "llama"),
       is_normed = option_is_on (job, "model.attention_layer_norm");
  option_set_model (job, "norms", is_after ? "post" : "pre");
  option_set_model (job, "qk_norm", is_normed ? "1" : "0");
  if (!is_normed)
    return;
  option_set_model (job, "qk_norm_over", "all");
  if (job->import->model.norm != LS_NORM_RMSNORM)
    import_unknown (job->import,
                    "model.attention_layer_norm: norms of queries and keys are taken for RMS "
                    "norms");
}

/* Each of the three is 0.1 where the file says nothing. */
static void
set_dropout (LaunchJob *job)
{
  bool is_off = option_is_off (job, "model.residual_dropout")
      && option_is_off (job, "model.embedding_dropout") && option_is_off (job, "model.attention_dropout");
  if (!is_off)
    import_infer (job->import, "dropout: it is 0.1 where model.*_dropout does not say 0");
  option_set_model (job, "dropout", is_off ? "0" : "1");
}

static void
set_kinds (LaunchJob *job)
{
  bool is_rope = option_is_on (job, "model.rope"), is_alibi = option_is_on (job, "model.alibi");
  if (is_rope && is_alibi)
    import_conflict (job->import, "model.rope with model.alibi: OLMo refuses it");
  option_set_model (job, "position", is_rope ? "rope" : is_alibi ? "alibi" : "learned");
  option_set_model (job, "linear_bias", option_is_off (job, "model.include_bias") ? "0" : "1");
  option_set_model (job, "tied_embeddings", option_is_off (job, "model.weight_tying") ? "0" : "1");
  set_norm (job);
  set_norms (job);
  set_dropout (job);
}

/* --- what is left out ------------------------------------------------------------------------------- */

void
olmo_set_model (LaunchJob *job)
{
  static const struct {
    const char *option, *left_out;
  } parts[] = { { "model.clip_qkv", "queries, keys and values are taken not to be clipped" },
                { "model.embedding_layer_norm", "the norm of the embedding is left out" },
                { "model.scale_logits", "the product with all logits is left out" } };
  set_sizes (job);
  set_kinds (job);
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (option_is_there (job, parts[i].option))
      import_unknown (job->import, "%s: %s", parts[i].option, parts[i].left_out);
  if (option_is_off (job, "model.rope_full_precision"))
    import_unknown (job->import, "model.rope_full_precision false: rope is taken to run in fp32");
}
