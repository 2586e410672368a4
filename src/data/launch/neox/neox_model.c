/* What configurations of gpt-neox say of the model. Names, defaults and rules as in megatron/model of
 * EleutherAI/gpt-neox (ea7aefd8, May 2026), and of releases since 2021 where they differ. */
#include <string.h>

#include "data/launch/neox/neox_rules.h"
#include "data/launch/yaml_config.h"

/* On unless it is said to be off. */
static bool
is_not_off (const LaunchJob *job, const char *name)
{
  return !option_is_off (job, name);
}

/* --- layers ----------------------------------------------------------------------------------------- */

static bool
is_gated (const char *activation)
{
  static const char *const gated[] = { "swiglu", "geglu", "reglu", "bilinear", "glu", NULL };
  return activation && g_strv_contains (gated, activation);
}

static guint64
round_up (guint64 n, guint64 to)
{
  return (n + to - 1) / to * to;
}

/* Until September 2024 mlp_type "llama" had a module of its own, with a gate; "gated" is that of Stability
 * AI's fork (Stability-AI/StableLM, configs), with the width of its mlp_multiple_of. */
static bool
has_module_of_llama (const LaunchJob *job)
{
  const char *type = option_text (job, "mlp_type");
  return type && (strcmp (type, "llama") == 0 || strcmp (type, "gated") == 0);
}

/* ParallelMLP of megatron/model/transformer.py: a gated one has its two matrices together in two thirds of
 * intermediate_size; of a module of its own, that is the width of each. */
static void
set_ffn (LaunchJob *job, bool gated)
{
  LsImport *import = job->import;
  const char *factor = option_text (job, "expansion_factor");
  guint64 hidden = import->model.hidden, size = option_number (job, "intermediate_size"), ffn;
  guint64 multiple = option_number (job, "mlp_multiple_of");
  bool is_llama = has_module_of_llama (job);
  if (hidden == 0)
    return;
  guint64 all = size ? size
      : factor       ? (guint64) (CLAMP (g_ascii_strtod (factor, NULL), 0, 1e4) * (double) hidden)
                     : 4 * hidden;
  if (is_llama)
    ffn = size ? size : round_up (2 * hidden * 4 / 3, multiple ? multiple : 256);
  else
    ffn = round_up (gated ? all * 2 / 3 / 2 : all, MAX (1, multiple));
  if (size > 0 && ffn != size)
    import_infer (
        import, "ffn %" G_GUINT64_FORMAT ": a gated MLP has two matrices in two thirds of intermediate_size",
        ffn);
  else if (size == 0)
    import_infer (import, "ffn %" G_GUINT64_FORMAT ": without intermediate_size, %s", ffn,
                  gated || is_llama ? "what a gated MLP makes of 4 times the hidden size"
                                    : "4 times the hidden size");
  if (ffn > 0)
    import_set_model_number (import, "ffn", ffn);
}

static void
set_mlp (LaunchJob *job)
{
  const char *activation = option_text (job, "activation");
  bool gated = is_gated (activation) || has_module_of_llama (job);
  bool is_geglu = activation && strcmp (activation, "geglu") == 0;
  bool is_swiglu = activation && (strcmp (activation, "swiglu") == 0 || strcmp (activation, "silu") == 0);
  option_tell_other (job, "mlp_type", "regular llama gated", "two matrices, without a gate");
  if (gated && activation && !is_swiglu && !is_geglu)
    import_infer (job->import, "mlp swiglu: %s has the same products", activation);
  else if (activation && !gated && strcmp (activation, "gelu") != 0)
    import_infer (job->import, "mlp gelu: %s has the same products", activation);
  option_set_model (job, "mlp", is_geglu ? "geglu" : gated ? "swiglu" : "gelu");
  set_ffn (job, gated);
}

static void
set_experts (LaunchJob *job)
{
  LsImport *import = job->import;
  guint64 n = option_number (job, "moe_num_experts"), every = option_number (job, "moe_expert_interval");
  if (n < 2)
    return;
  import_set_model_number (import, "experts", n);
  import_set_model_number (import, "top_k", config_number_or (job, "moe_top_k", "top_k", 1));
  if (import_has_model (import, "ffn"))
    import_set_model_number (import, "expert_ffn", import->model.ffn);
  if (every > 1)
    import_set_model_number (import, "moe_every", every);
  import_set_strategy (import, "ep", "1", "moe_num_experts");
}

static void
set_position (LaunchJob *job)
{
  const char *type = option_text (job, "pos_emb");
  if (!type)
    import_infer (job->import, "position learned: the default of pos_emb");
  bool is_rope = type && strcmp (type, "rotary") == 0, is_alibi = type && strcmp (type, "alibi") == 0;
  bool is_none = (type && strcmp (type, "none") == 0) || option_is_none (job, "pos_emb");
  if (type && !is_rope && !is_alibi && !is_none && strcmp (type, "learned") != 0)
    import_unknown (job->import, "pos_emb %s", type);
  const char *part = option_text (job, "rotary_pct");
  guint64 width
      = (guint64) (part ? CLAMP (g_ascii_strtod (part, NULL), 0, 1) * job->import->model.head_dim : 0);
  if (is_rope && width > 0 && width < job->import->model.head_dim)
    import_set_model_number (job->import, "rotary_dim", width);
  option_set_model (job, "position", is_rope ? "rope" : is_alibi ? "alibi" : is_none ? "none" : "learned");
}

static void
set_norm (LaunchJob *job)
{
  const char *norm = option_text (job, "norm");
  bool is_rms = norm && strstr (norm, "rmsnorm");
  if (norm && !is_rms && !strstr (norm, "layernorm"))
    import_unknown (job->import, "norm %s", norm);
  bool has_bias = is_not_off (job, "use_bias_in_norms");
  option_set_model (job, "norm", is_rms ? "rmsnorm" : has_bias ? "layernorm" : "layernorm_weight");
  if (!is_rms && option_is_on (job, "layernorm_fusion"))
    import_set_strategy (job->import, "apex_norm", "1", "layernorm_fusion");
}

static void
set_heads (LaunchJob *job)
{
  guint64 kv = option_number (job, "num_kv_heads");
  const LsModel *m = &job->import->model;
  if (m->n_heads > 0 && m->hidden % m->n_heads == 0 && m->hidden > 0)
    import_set_model_number (job->import, "head_dim", m->hidden / m->n_heads);
  if (kv > 0)
    import_set_model_number (job->import, "kv_heads", kv);
  else if (import_has_model (job->import, "heads"))
    import_set_model_number (job->import, "kv_heads", job->import->model.n_heads);
}

/* What is known of the size of a vocabulary without the file of it. */
static void
set_vocab (LaunchJob *job)
{
  const char *type = option_text (job, "tokenizer_type"), *file = option_text (job, "vocab_file");
  guint64 padded = option_number (job, "padded_vocab_size");
  bool is_gpt2 = type && strcmp (type, "GPT2BPETokenizer") == 0;
  if (padded > 0) {
    import_padded_vocab (job->import, padded);
  } else if (is_gpt2) {
    import_infer (job->import, "vocab 50257: the vocabulary of GPT-2, which GPT2BPETokenizer has");
    import_set_model_number (job->import, "vocab", 50257);
  } else if (type && file && strcmp (type, "HFTokenizer") == 0
             && g_str_has_suffix (file, "20B_tokenizer.json")) {
    import_infer (job->import, "vocab 50277: the tokenizer of GPT-NeoX-20B, by the name of its file");
    import_set_model_number (job->import, "vocab", 50277);
  }
}

static bool
is_dropped (const LaunchJob *job, const char *name)
{
  const char *text = option_text (job, name);
  return text && g_ascii_strtod (text, NULL) > 0;
}

static void
set_switches (LaunchJob *job)
{
  bool in_attention = is_not_off (job, "use_bias_in_attn_linear"),
       in_mlp = is_not_off (job, "use_bias_in_mlp");
  const char *type = option_text (job, "mlp_type");
  in_mlp = in_mlp && !(type && strcmp (type, "llama") == 0);
  bool has_experts = job->import->model.n_experts > 0;
  if (in_attention != in_mlp)
    import_infer (job->import, "linear_bias false: only %s has biases", in_mlp ? "the MLP" : "attention");
  else if (has_experts && in_mlp)
    import_infer (job->import, "linear_bias false: grouped matrix products of experts have none");
  option_set_model (job, "linear_bias", in_attention && in_mlp && !has_experts ? "1" : "0");
  option_set_model (job, "tied_embeddings", option_is_on (job, "no_weight_tying") ? "0" : "1");
  option_set_model (job, "dropout",
                    is_dropped (job, "attention_dropout") || is_dropped (job, "hidden_dropout") ? "1" : "0");
  if (option_is_on (job, "gpt_j_residual"))
    option_set_model (job, "norms", "shared");
  if (option_is_on (job, "gpt_j_residual") && !option_is_on (job, "gpt_j_tied"))
    import_infer (job->import,
                  "norms shared: of gpt_j_residual, whose MLP has a second norm beside that of attention");
}

/* ParallelMambaBlock (): its channels are intermediate_size, or twice the hidden size, with 16 states and a
 * convolution of 4. */
static void
set_mamba (LaunchJob *job, const char *pattern)
{
  const char *factor = option_text (job, "expansion_factor");
  double expand = factor ? CLAMP (g_ascii_strtod (factor, NULL), 0, 1e3) : 2;
  guint64 size = option_number (job, "intermediate_size");
  if (pattern && strchr (pattern, 'm'))
    import_mamba (job->import, pattern, size ? size : (guint64) (expand * job->import->model.hidden), 16, 4,
                  "attention_config");
}

void
neox_model (LaunchJob *job, const char *pattern)
{
  set_heads (job);
  set_mamba (job, pattern);
  set_mlp (job);
  set_experts (job);
  if (!import_has_model (job->import, "position"))
    set_position (job);
  import_positions (job->import, option_number (job, "max_position_embeddings"));
  set_norm (job);
  set_vocab (job);
  set_switches (job);
  if (pattern && !strchr (pattern, 'A')) /* mamba_use_bias_in_linears is off */
    import_set_model (job->import, "linear_bias", "0", "attention_config");
}
