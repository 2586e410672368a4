#include "data/jobs/hf_family.h"

#include <string.h>

#include "data/jobs/read_hf.h"

static const HfFamily families[] = {
  { "llama", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE },
  { "mistral", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE },
  { "qwen2", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .qkv_bias = true },
  { "qwen3", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .qk_norm = true },
  { "mixtral", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .experts = HF_MIXTRAL },
  { "qwen2_moe", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .qkv_bias = true, .experts = HF_QWEN },
  { "qwen3_moe", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .qk_norm = true, .experts = HF_QWEN },
  { "deepseek_v2", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .experts = HF_DEEPSEEK,
    .is_latent = true },
  { "deepseek_v3", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .experts = HF_DEEPSEEK,
    .is_latent = true },
  { "llama4_text", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .experts = HF_LLAMA4 },
  { "gpt2", LS_MLP_GELU, LS_NORM_LAYERNORM, LS_POSITION_LEARNED, .tied = true, .linear_bias = true,
    .dropout = 0.1 },
  { "gpt_neox", LS_MLP_GELU, LS_NORM_LAYERNORM, LS_POSITION_ROPE, .linear_bias = true },
  { "opt", LS_MLP_GELU, LS_NORM_LAYERNORM, LS_POSITION_LEARNED, .tied = true, .linear_bias = true,
    .dropout = 0.1 },
  { "falcon", LS_MLP_GELU, LS_NORM_LAYERNORM, LS_POSITION_ROPE, .seq = 2048, .tied = true },
};

#define UINT(key_, member, max_)                                                                             \
  {                                                                                                          \
    key_, LS_FIELD_UINT, offsetof (HfConfig, member), .min = 1, .max = (max_)                                \
  }
#define COUNT(key_, member)                                                                                  \
  {                                                                                                          \
    key_, LS_FIELD_UINT, offsetof (HfConfig, member), .max = 65536                                           \
  }
#define BOOL(key_, member)                                                                                   \
  {                                                                                                          \
    key_, LS_FIELD_BOOL, offsetof (HfConfig, member)                                                         \
  }
#define SKIP(key_)                                                                                           \
  {                                                                                                          \
    key_, LS_FIELD_IGNORED                                                                                   \
  }
#define DROPOUT(key_)                                                                                        \
  {                                                                                                          \
    key_, LS_FIELD_DOUBLE, offsetof (HfConfig, dropout), .max = 1                                            \
  }

const LsField hf_fields[] = {
  UINT ("num_hidden_layers", layers, 65536),
  UINT ("n_layer", layers, 65536),
  UINT ("hidden_size", hidden, 1 << 20),
  UINT ("n_embd", hidden, 1 << 20),
  UINT ("n_embed", hidden, 1 << 20),
  UINT ("d_model", hidden, 1 << 20),
  UINT ("num_attention_heads", heads, 65536),
  UINT ("n_head", heads, 65536),
  UINT ("num_key_value_heads", kv_heads, 65536),
  UINT ("num_kv_heads", kv_heads, 65536),
  UINT ("n_head_kv", kv_heads, 65536),
  UINT ("head_dim", head_dim, 1 << 20),
  UINT ("intermediate_size", ffn, 1 << 22),
  UINT ("n_inner", ffn, 1 << 22),
  UINT ("ffn_dim", ffn, 1 << 22),
  UINT ("ffn_hidden_size", ffn, 1 << 22),
  UINT ("vocab_size", vocab, 1 << 24),
  UINT ("max_position_embeddings", seq, 1 << 27),
  UINT ("n_positions", seq, 1 << 27),
  UINT ("word_embed_proj_dim", embedding_width, 1 << 20),
  UINT ("sliding_window", sliding_window, 1 << 27),
  UINT ("num_local_experts", experts, 65536),
  UINT ("num_experts", experts, 65536),
  UINT ("n_routed_experts", experts, 65536),
  UINT ("num_experts_per_tok", top_k, 65536),
  UINT ("moe_intermediate_size", expert_ffn, 1 << 22),
  UINT ("shared_expert_intermediate_size", shared_ffn, 1 << 22),
  UINT ("intermediate_size_mlp", dense_ffn, 1 << 22),
  UINT ("n_shared_experts", n_shared, 65536),
  COUNT ("first_k_dense_replace", dense_layers),
  UINT ("moe_layer_freq", sparse_step, 65536),
  UINT ("decoder_sparse_step", sparse_step, 65536),
  UINT ("interleave_moe_layer_step", interleave, 65536),
  UINT ("q_lora_rank", q_lora, 1 << 20),
  UINT ("kv_lora_rank", kv_lora, 1 << 20),
  UINT ("qk_rope_head_dim", rope_dim, 1 << 20),
  UINT ("qk_nope_head_dim", nope_dim, 1 << 20),
  UINT ("v_head_dim", v_dim, 1 << 20),
  COUNT ("num_nextn_predict_layers", n_predictions),
  BOOL ("use_sliding_window", use_sliding_window),
  BOOL ("tie_word_embeddings", tied),
  BOOL ("attention_bias", attention_bias),
  BOOL ("mlp_bias", mlp_bias),
  BOOL ("bias", bias),
  BOOL ("enable_bias", bias),
  BOOL ("multi_query", multi_query),
  BOOL ("new_decoder_architecture", grouped_query),
  BOOL ("alibi", alibi),
  BOOL ("do_layer_norm_before", norm_before),
  DROPOUT ("dropout"),
  DROPOUT ("resid_pdrop"),
  DROPOUT ("hidden_dropout"),
  { "hidden_act", LS_FIELD_STRING, offsetof (HfConfig, activation) },
  { "activation_function", LS_FIELD_STRING, offsetof (HfConfig, activation) },
  SKIP ("model_type"),
  SKIP ("architectures"),
  SKIP ("_name_or_path"),
  SKIP ("transformers_version"),
  SKIP ("torch_dtype"),
  SKIP ("dtype"),
  SKIP ("use_cache"),
  SKIP ("bos_token_id"),
  SKIP ("eos_token_id"),
  SKIP ("pad_token_id"),
  SKIP ("initializer_range"),
  SKIP ("init_std"),
  SKIP ("rms_norm_eps"),
  SKIP ("layer_norm_eps"),
  SKIP ("layer_norm_epsilon"),
  SKIP ("rope_theta"),
  SKIP ("rope_scaling"),
  SKIP ("rope_parameters"),
  SKIP ("rotary_emb_base"),
  SKIP ("pretraining_tp"),
  SKIP ("attention_dropout"),
  SKIP ("attn_pdrop"),
  SKIP ("embd_pdrop"),
  SKIP ("activation_dropout"),
  SKIP ("max_window_layers"),
  SKIP ("router_aux_loss_coef"),
  SKIP ("output_router_logits"),
  SKIP ("router_jitter_noise"),
  SKIP ("norm_topk_prob"),
  SKIP ("mlp_only_layers"),
  SKIP ("moe_layers"),
  SKIP ("n_group"),
  SKIP ("topk_group"),
  SKIP ("topk_method"),
  SKIP ("scoring_func"),
  SKIP ("routed_scaling_factor"),
  SKIP ("aux_loss_alpha"),
  SKIP ("seq_aux"),
  SKIP ("ep_size"),
  SKIP ("quantization_config"),
  SKIP ("auto_map"),
  SKIP ("no_rope_layers"),
  SKIP ("attention_chunk_size"),
  SKIP ("use_qk_norm"),
  SKIP ("attn_scale"),
  SKIP ("floor_scale"),
  SKIP ("attn_temperature_tuning"),
  SKIP ("for_llm_compression"),
  SKIP ("no_rope_layer_interval"),
  SKIP ("n_ctx"),
  SKIP ("is_encoder_decoder"),
  SKIP ("task_specific_params"),
  SKIP ("prefix"),
  { NULL },
};

const cJSON *
hf_get (const LsJsonDoc *doc, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), key);
}

bool
ls_is_hf_config (const LsJsonDoc *doc)
{
  return !hf_get (doc, "schema") && (hf_get (doc, "model_type") || hf_get (doc, "architectures"));
}

bool
hf_refuse (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *reason)
{
  ls_json_doc_diag_code (doc, LS_ERROR_UNSUPPORTED, node, LS_JSON_AT_VALUE, diags, NULL, "%s", reason);
  return false;
}

/* Experts where the family has none that we know. */
bool
hf_is_dense (const LsJsonDoc *doc, const HfFamily *f, LsDiagList *diags)
{
  static const char *const counts[]
      = { "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts" };
  if (f->experts != HF_DENSE)
    return true;
  for (size_t i = 0; i < G_N_ELEMENTS (counts); i++) {
    const cJSON *n = hf_get (doc, counts[i]);
    if (cJSON_IsNumber (n) && n->valuedouble > 1)
      return hf_refuse (doc, n, diags, "experts in a model_type that has none");
  }
  return true;
}

bool
hf_is_decoder (const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *both = hf_get (doc, "is_encoder_decoder"), *name;
  if (cJSON_IsTrue (both))
    return hf_refuse (doc, both, diags, "a model with an encoder; only decoders can be simulated");
  cJSON_ArrayForEach (name, hf_get (doc, "architectures"))
  {
    bool is_known = cJSON_IsString (name)
        && (strstr (name->valuestring, "CausalLM") || strstr (name->valuestring, "LMHeadModel"));
    if (!is_known)
      return hf_refuse (doc, name, diags,
                        "not a decoder with a language-model head, which is all that can be simulated");
  }
  return true;
}

/* Of a class of transformers, such as DeepseekV3ForCausalLM: what stands before "ForCausalLM" without
 * its capitals is the model_type without its underscores. */
static const HfFamily *
family_of_class (const char *class_name)
{
  if (!g_str_has_suffix (class_name, "ForCausalLM"))
    return NULL;
  for (size_t i = 0; i < G_N_ELEMENTS (families); i++) {
    g_auto (GStrv) words = g_strsplit (families[i].model_type, "_", -1);
    g_autofree char *joined = g_strjoinv ("", words), *expected = g_strconcat (joined, "ForCausalLM", NULL);
    if (g_ascii_strcasecmp (class_name, expected) == 0)
      return &families[i];
  }
  return NULL;
}

/* A model_type of somebody's own over an architecture that is known: Kimi K2 is kimi_k2, and
 * DeepseekV3ForCausalLM. NULL: it has no such class. */
static const HfFamily *
family_of_classes (const LsJsonDoc *doc, const cJSON *type, GPtrArray *notes)
{
  const cJSON *name;
  cJSON_ArrayForEach (name, hf_get (doc, "architectures"))
  {
    const HfFamily *f = cJSON_IsString (name) ? family_of_class (name->valuestring) : NULL;
    if (!f)
      continue;
    if (notes)
      g_ptr_array_add (notes,
                       g_strdup_printf ("model_type %s is not known; read as %s, which its architecture %s "
                                        "is",
                                        cJSON_IsString (type) ? type->valuestring : "(none)", f->model_type,
                                        name->valuestring));
    return f;
  }
  return NULL;
}

const HfFamily *
hf_find_family (const LsJsonDoc *doc, GPtrArray *notes, LsDiagList *diags)
{
  const cJSON *type = hf_get (doc, "model_type");
  g_autoptr (GString) known = g_string_new (NULL);
  for (size_t i = 0; i < G_N_ELEMENTS (families); i++) {
    if (cJSON_IsString (type) && strcmp (type->valuestring, families[i].model_type) == 0)
      return &families[i];
    g_string_append_printf (known, "%s\"%s\"", i > 0 ? ", " : "", families[i].model_type);
  }
  const HfFamily *by_class = !type || cJSON_IsString (type) ? family_of_classes (doc, type, notes) : NULL;
  if (by_class)
    return by_class;
  g_autofree char *got = type ? ls_json_describe (type) : g_strdup ("no key \"model_type\"");
  g_autofree char *reason = g_strdup_printf ("expected one of the decoders %s; got %s", known->str, got);
  hf_refuse (doc, type ? type : ls_json_doc_root (doc), diags, reason);
  return NULL;
}
