/* The model of a job of MaxText: what configs/base.yml makes of options together, and of those that are not
 * given. */
#include <string.h>

#include "data/launch/maxtext_rules.h"
#include "data/launch/yaml_config.h"

bool
maxtext_has (const LaunchJob *job, const char *name)
{
  return launch_words_find (job->words, name) || option_is_off (job, name);
}

double
maxtext_real (const LaunchJob *job, const char *name, double otherwise)
{
  const char *text = option_text (job, name);
  char *end = NULL;
  double value = text ? g_ascii_strtod (text, &end) : otherwise;
  return text && (end == text || *end) ? otherwise : value;
}

bool
maxtext_is_of_base (const LaunchJob *job, const char *option)
{
  const char *base = option_text (job, "base_config");
  return !launch_words_find (job->words, option) && base && g_str_has_suffix (base, "base.yml");
}

/* --- the model ------------------------------------------------------------------------------------ */

/* Exponents of two by which global_parameter_scale widens each dimension (get_individual_scales ()). */
typedef struct {
  guint hidden, heads, ffn, layers;
} Scales;

static Scales
scales_of (LaunchJob *job)
{
  guint64 scale = option_number (job, "global_parameter_scale");
  guint log2 = 0;
  while (scale > 1 && ((guint64) 1 << (log2 + 1)) <= scale)
    log2++;
  if (scale > 1 && ((guint64) 1 << log2) != scale)
    import_conflict (job->import, "global_parameter_scale %" G_GUINT64_FORMAT " is no power of two", scale);
  guint base = log2 / 3, rest = log2 % 3;
  return (Scales) { base + (rest > 1), base + (rest > 0), base + (rest > 0), base };
}

/* Without model_name dimensions that are not given are those of base.yml. */
static void
set_dimension (LaunchJob *job, const char *option, const char *key, guint64 otherwise, guint scale)
{
  guint64 value = option_number (job, option);
  if (maxtext_is_of_base (job, option) && otherwise > 0 && !import_has_model (job->import, key)) {
    value = otherwise;
    import_infer (job->import, "%s %" G_GUINT64_FORMAT ": %s of base.yml", key, value << scale, option);
  }
  if (value > 0 && value <= G_MAXUINT32)
    import_set_model_number (job->import, key, value << MIN (scale, 20));
}

static void
set_dimensions (LaunchJob *job, bool is_named)
{
  Scales s = scales_of (job);
  guint64 d = !is_named;
  set_dimension (job, "base_emb_dim", "hidden", 2048 * d, s.hidden);
  set_dimension (job, "base_num_query_heads", "heads", 16 * d, s.heads);
  set_dimension (job, "base_num_kv_heads", "kv_heads", 16 * d, s.heads);
  set_dimension (job, "base_mlp_dim", "ffn", 7168 * d, s.ffn);
  set_dimension (job, "base_num_decoder_layers", "layers", 16 * d, s.layers);
  set_dimension (job, "vocab_size", "vocab", 32000 * d, 0);
  set_dimension (job, "head_dim", "head_dim", import_has_model (job->import, "heads") ? 128 : 0, 0);
  const char *block = option_text (job, "decoder_block");
  if (block && strcmp (block, "gemma2") == 0 && import_has_model (job->import, "layers")) {
    import_infer (job->import, "layers: two of gemma2 are one of base_num_decoder_layers");
    import_set_model_number (job->import, "layers", 2 * (guint64) job->import->model.n_layers);
  }
}

static void
set_latent (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *type = option_text (job, "attention_type");
  if (!type || strcmp (type, "mla") != 0)
    return;
  guint64 q = option_number (job, "q_lora_rank"),
          rope = config_number_or (job, "qk_rope_head_dim", "rope_dim", 64);
  import_set_model_number (import, "kv_lora", config_number_or (job, "kv_lora_rank", "kv_lora", 512));
  if (q > 0)
    import_set_model_number (import, "q_lora", q);
  import_set_model_number (import, "rope_dim", rope);
  import_set_model_number (import, "head_dim",
                           config_number_or (job, "qk_nope_head_dim", "head_dim", 128) + rope);
  import_set_model_number (import, "v_dim", config_number_or (job, "v_head_dim", "v_dim", 128));
}

static void
set_experts (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 n = option_number (job, "num_experts"), ffn = option_number (job, "base_moe_mlp_dim"),
          dense = option_number (job, "first_num_dense_layers"),
          shared = option_number (job, "shared_experts"),
          every = option_number (job, "interleave_moe_layer_step");
  double capacity = maxtext_real (job, "capacity_factor", -1);
  if (n < 2)
    return;
  ffn = ffn ? ffn << MIN (scales_of (job).ffn, 20) : import->model.ffn;
  import_set_model_number (import, "experts", n);
  import_set_model_number (import, "top_k", config_number_or (job, "num_experts_per_tok", "top_k", 1));
  if (ffn > 0)
    import_set_model_number (import, "expert_ffn", ffn);
  if (shared > 0 && ffn > 0)
    import_set_model_number (import, "shared_ffn", shared * ffn);
  if (dense > 0)
    import_set_model_number (import, "dense_layers", dense);
  if (every > 1)
    import_set_model_number (import, "moe_every", every);
  if (capacity > 0)
    import_set_strategy (import, "expert_capacity", option_text (job, "capacity_factor"), "capacity_factor");
}

/* ["silu", "linear"]: one half is the gate of the other. */
static void
set_mlp (LaunchJob *job)
{
  const LaunchOption *o = launch_words_find (job->words, "mlp_activations");
  if (!o && (import_has_model (job->import, "mlp") || !import_has_model (job->import, "hidden")))
    return;
  bool is_gated = !o || o->values->len > 1;
  if (!o)
    import_infer (job->import, "mlp swiglu: mlp_activations of base.yml");
  bool is_gelu = o && o->values->len > 0 && strcmp (o->values->pdata[0], "gelu") == 0;
  option_set_model (job, "mlp", is_gated && is_gelu ? "geglu" : is_gated ? "swiglu" : "gelu");
}

/* Of a block of GPT-3 as of none other: MaxText's layers/gpt3.py. */
static void
set_layer (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *block = option_text (job, "decoder_block"), *named = option_text (job, "model_name");
  bool is_gpt3
      = (block && strcmp (block, "gpt3") == 0) || (!block && named && g_str_has_prefix (named, "gpt3"));
  set_mlp (job);
  if (import_has_model (import, "hidden") && (!import_has_model (import, "norm") || block)) {
    option_set_model (job, "norm", is_gpt3 ? "layernorm" : "rmsnorm");
    option_set_model (job, "position", is_gpt3 ? "learned" : "rope");
    option_set_model (job, "linear_bias", is_gpt3 ? "1" : "0");
  }
  if (option_is_on (job, "attention_bias"))
    option_set_model (job, "qkv_bias", "1");
  if (maxtext_real (job, "final_logits_soft_cap", 0) > 0)
    option_set_model (job, "logit_cap", "1");
  if (option_is_on (job, "use_qk_norm"))
    option_set_model (job, "qk_norm", "1");
  bool is_known = import_has_model (import, "tied_embeddings") || !import_has_model (import, "hidden");
  if (maxtext_has (job, "logits_via_embedding") || !is_known)
    option_set_model (job, "tied_embeddings", option_is_on (job, "logits_via_embedding") ? "1" : "0");
  bool is_dropped = maxtext_real (job, "dropout_rate", 0) > 0 && !option_is_off (job, "enable_dropout");
  option_set_model (job, "dropout", is_dropped ? "1" : "0");
  if (option_number (job, "sliding_window_size") > 0)
    import_unknown (import,
                    "sliding_window_size: which layers have it stands in the code of its decoder_block");
}

void
maxtext_model (LaunchJob *job)
{
  const char *named = option_text (job, "model_name");
  bool is_named = launch_words_find (job->words, "model_name") && !(named && strcmp (named, "default") == 0);
  bool has_own = maxtext_has (job, "base_emb_dim");
  if (is_named && named && !has_own) {
    g_autofree char *name = g_strconcat ("maxtext/", named, NULL);
    import_model_of_name (job->import, name);
    if (!import_has_model (job->import, "hidden"))
      import_unknown (job->import, "the model: give MaxText's configs/models/%s.yml too, behind this file",
                      named);
  }
  set_dimensions (job, is_named);
  set_latent (job);
  set_layer (job);
  set_experts (job);
  set_dimension (job, "max_target_length", "seq", 2048, 0);
}
