/* The model of a configuration of LitGPT: fields of Config in litgpt/config.py, with their defaults, and what
 * litgpt/model.py makes of them (Lightning-AI/litgpt@26857050). */
#include <string.h>

#include "data/launch/litgpt/litgpt_rules.h"

#define CONFIG "model_config."

static guint64
number_or (const LaunchJob *job, const char *name, guint64 otherwise)
{
  guint64 value = option_number (job, name);
  return value > 0 ? value : otherwise;
}

/* A field that is a switch, true where it is not said. */
static bool
is_on_by_default (const LaunchJob *job, const char *name)
{
  return option_is_on (job, name) || !(option_is_there (job, name) || option_is_none (job, name));
}

static void
set_sizes (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 wide = number_or (job, CONFIG "n_embd", 4096), heads = number_or (job, CONFIG "n_head", 32),
          words = number_or (job, CONFIG "vocab_size", 50254),
          multiple = number_or (job, CONFIG "padding_multiple", 512),
          padded = option_number (job, CONFIG "padded_vocab_size"),
          own = option_number (job, CONFIG "head_size"), dim = own ? own : wide / heads;
  const char *rotated = option_text (job, CONFIG "rotary_percentage");
  double part = rotated ? g_ascii_strtod (rotated, NULL) : 0.25;
  import_set_model_number (import, "layers", number_or (job, CONFIG "n_layer", 16));
  import_set_model_number (import, "hidden", wide);
  import_set_model_number (import, "heads", heads);
  import_set_model_number (import, "kv_heads", number_or (job, CONFIG "n_query_groups", heads));
  if (dim * heads != wide)
    import_set_model_number (import, "head_dim", dim);
  import_set_model_number (import, "ffn", number_or (job, CONFIG "intermediate_size", 4 * wide));
  import_set_model_number (import, "vocab",
                           padded ? padded : (words / multiple + (words % multiple > 0)) * multiple);
  import_set_model (import, "position", "rope", CONFIG "rotary_percentage");
  if (part < 1 && part >= 0)
    import_set_model_number (import, "rotary_dim", (guint64) (part * (double) MIN (dim, G_MAXUINT32)));
}

/* OLMo's LayerNorm learns nothing (norm_class). */
static void
set_norms (LaunchJob *job)
{
  LsImport *import = job->import;
  const char *class = option_text (job, CONFIG "norm_class_name"), *name = option_text (job, CONFIG "name"),
             *kind = option_text (job, CONFIG "norm_qk_type");
  bool is_rms = g_strcmp0 (class, "RMSNorm") == 0, is_plain = name && strstr (name, "OLMo");
  import_set_model (import, "norm",
                    is_rms         ? "rmsnorm"
                        : is_plain ? "layernorm_plain"
                                   : "layernorm",
                    CONFIG "norm_class_name");
  if (option_is_on (job, CONFIG "shared_attention_norm"))
    import_set_model (import, "norms", "shared", CONFIG "shared_attention_norm");
  else if (option_is_off (job, CONFIG "norm_1"))
    import_set_model (import, "norms", "post", CONFIG "norm_1");
  else if (option_is_on (job, CONFIG "post_attention_norm"))
    import_set_model (import, "norms", "both", CONFIG "post_attention_norm");
  if (option_is_on (job, CONFIG "norm_qk"))
    import_set_model (import, "qk_norm", "1", CONFIG "norm_qk");
  if (option_is_on (job, CONFIG "norm_qk") && g_strcmp0 (kind, "olmo2") == 0)
    import_set_model (import, "qk_norm_over", "all", CONFIG "norm_qk_type");
  if (is_on_by_default (job, CONFIG "parallel_residual")
      && !option_is_on (job, CONFIG "shared_attention_norm"))
    import_unknown (import,
                    "model_config.parallel_residual: attention and MLP are taken one after the other, "
                    "not side by side");
}

static void
set_layer (LaunchJob *job)
{
  static const char *const kinds[][2] = {
    { "GptNeoxMLP", "gelu" }, { "LLaMAMLP", "swiglu" }, { "GemmaMLP", "geglu" }, { "LLaMAMoE", "swiglu" }
  };
  LsImport *import = job->import;
  const char *class = option_text (job, CONFIG "mlp_class_name"), *mlp = class ? NULL : "gelu";
  for (guint i = 0; class && i < G_N_ELEMENTS (kinds); i++)
    mlp = strcmp (class, kinds[i][0]) == 0 ? kinds[i][1] : mlp;
  if (!mlp)
    import_unknown (import, "model_config.mlp_class_name %s: taken for LLaMAMLP", class);
  import_set_model (import, "mlp", mlp ? mlp : "swiglu", CONFIG "mlp_class_name");
  if (is_on_by_default (job, CONFIG "bias"))
    import_set_model (import, "linear_bias", "1", CONFIG "bias");
  else if (option_is_on (job, CONFIG "attn_bias"))
    import_set_model (import, "qkv_bias", "1", CONFIG "attn_bias");
  if (option_number (job, CONFIG "n_expert") == 0)
    return;
  import_set_model_number (import, "experts", option_number (job, CONFIG "n_expert"));
  import_set_model_number (import, "top_k", option_number (job, CONFIG "n_expert_per_token"));
  import_set_model_number (
      import, "expert_ffn",
      number_or (job, CONFIG "moe_intermediate_size", option_number (job, CONFIG "intermediate_size")));
}

/* Layers with a window are told one by one: those of a period of which the last has none. */
static void
set_windows (LaunchJob *job)
{
  const LaunchOption *own = launch_words_find (job->words, CONFIG "sliding_window_indices");
  guint64 window = option_number (job, CONFIG "sliding_window_size");
  guint period = 0, n_layers = job->import->model.n_layers;
  if (window == 0)
    return;
  import_set_model_number (job->import, "window", window);
  for (guint i = 0; own && i < own->values->len && i < n_layers && period == 0; i++)
    period = strcmp (own->values->pdata[i], "0") == 0 ? i + 1 : 0;
  for (guint i = 0; period > 0 && i < MIN (own->values->len, n_layers); i++)
    if ((strcmp (own->values->pdata[i], "0") == 0) != ((i + 1) % period == 0)) {
      import_unknown (job->import,
                      "model_config.sliding_window_indices: not of every %u layers the last; taken "
                      "to be",
                      period);
      break;
    }
  if (period > 0)
    import_set_model_number (job->import, "full_every", period);
}

/* What is no part of a model here, and what is taken. */
static void
tell_rest (LaunchJob *job)
{
  static const char *const left_out[] = { "n_shared_expert", "first_k_dense_replace", "n_expert_groups",
                                          "latent_attention.kv_lora_rank", "lm_head_bias" };
  for (guint i = 0; i < G_N_ELEMENTS (left_out); i++) {
    g_autofree char *name = g_strconcat (CONFIG, left_out[i], NULL);
    if (option_is_there (job, name))
      import_unknown (job->import, "%s: left out", name);
  }
  if (option_text (job, CONFIG "final_logit_softcapping"))
    import_set_model (job->import, "logit_cap", "1", CONFIG "final_logit_softcapping");
}

void
litgpt_set_dimensions (LaunchJob *job)
{
  set_sizes (job);
  set_norms (job);
  set_layer (job);
  set_windows (job);
  tell_rest (job);
}
