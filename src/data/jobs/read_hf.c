#include "data/jobs/read_hf.h"

#include <string.h>

#include "data/jobs/read_model.h"

/* What the families have in common; keys have several spellings. */
typedef struct {
  char *activation;
  uint32_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, seq;
  uint32_t embedding_width; /* opt */
  uint32_t sliding_window;
  uint32_t experts, top_k, expert_ffn, shared_ffn, n_shared, dense_layers, dense_ffn, sparse_step, interleave;
  uint32_t q_lora, kv_lora, rope_dim, nope_dim, v_dim;
  uint32_t n_predictions; /* multi-token prediction */
  bool use_sliding_window; /* qwen2 */
  bool tied;
  bool attention_bias, mlp_bias, bias;
  bool multi_query, grouped_query, alibi; /* falcon */
  bool norm_before;                       /* opt */
  double dropout;                         /* of the residual stream */
} HfConfig;

/* How a family says which experts there are. */
typedef enum {
  HF_DENSE,
  HF_MIXTRAL,  /* every layer; intermediate_size is an expert's                        */
  HF_QWEN,     /* each decoder_sparse_step-th, mlp_only_layers apart; shared as wide as said */
  HF_DEEPSEEK, /* from first_k_dense_replace on, each moe_layer_freq-th; n_shared_experts     */
  HF_LLAMA4,   /* each interleave_moe_layer_step-th; one shared expert                  */
} HfExperts;

/* Defaults of a family and what its files do not say. seq 0: must be given. */
typedef struct {
  const char *model_type;
  LsMlp mlp;
  LsNorm norm;
  LsPosition position;
  uint32_t seq;
  bool tied;
  bool linear_bias;
  bool qkv_bias;
  double dropout;
  HfExperts experts;
  bool qk_norm, is_latent;
} Family;

static const Family families[] = {
  { "llama", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE },
  { "mistral", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE },
  { "qwen2", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .qkv_bias = true },
  { "qwen3", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .qk_norm = true },
  { "mixtral", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .experts = HF_MIXTRAL },
  { "qwen2_moe", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .qkv_bias = true, .experts = HF_QWEN },
  { "qwen3_moe", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .qk_norm = true, .experts = HF_QWEN },
  { "deepseek_v2", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .experts = HF_DEEPSEEK, .is_latent = true },
  { "deepseek_v3", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .experts = HF_DEEPSEEK, .is_latent = true },
  { "llama4_text", LS_MLP_SWIGLU, LS_NORM_RMSNORM, LS_POSITION_ROPE, .experts = HF_LLAMA4 },
  { "gpt2", LS_MLP_GELU, LS_NORM_LAYERNORM, LS_POSITION_LEARNED, .tied = true, .linear_bias = true, .dropout = 0.1 },
  { "gpt_neox", LS_MLP_GELU, LS_NORM_LAYERNORM, LS_POSITION_ROPE, .linear_bias = true },
  { "opt", LS_MLP_GELU, LS_NORM_LAYERNORM, LS_POSITION_LEARNED, .tied = true, .linear_bias = true, .dropout = 0.1 },
  { "falcon", LS_MLP_GELU, LS_NORM_LAYERNORM, LS_POSITION_ROPE, .seq = 2048, .tied = true },
};

#define UINT(key_, member, max_) { key_, LS_FIELD_UINT, offsetof (HfConfig, member), .min = 1, .max = (max_) }
#define COUNT(key_, member) { key_, LS_FIELD_UINT, offsetof (HfConfig, member), .max = 65536 }
#define BOOL(key_, member) { key_, LS_FIELD_BOOL, offsetof (HfConfig, member) }
#define SKIP(key_) { key_, LS_FIELD_IGNORED }
#define DROPOUT(key_) { key_, LS_FIELD_DOUBLE, offsetof (HfConfig, dropout), .max = 1 }

static const LsField hf_fields[] = {
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
  SKIP ("model_type"), SKIP ("architectures"), SKIP ("_name_or_path"), SKIP ("transformers_version"),
  SKIP ("torch_dtype"), SKIP ("dtype"), SKIP ("use_cache"), SKIP ("bos_token_id"), SKIP ("eos_token_id"),
  SKIP ("pad_token_id"), SKIP ("initializer_range"), SKIP ("init_std"), SKIP ("rms_norm_eps"),
  SKIP ("layer_norm_eps"), SKIP ("layer_norm_epsilon"), SKIP ("rope_theta"), SKIP ("rope_scaling"),
  SKIP ("rope_parameters"), SKIP ("rotary_emb_base"), SKIP ("pretraining_tp"), SKIP ("attention_dropout"),
  SKIP ("attn_pdrop"), SKIP ("embd_pdrop"), SKIP ("activation_dropout"), SKIP ("max_window_layers"),
  SKIP ("router_aux_loss_coef"), SKIP ("output_router_logits"), SKIP ("router_jitter_noise"), SKIP ("norm_topk_prob"),
  SKIP ("mlp_only_layers"), SKIP ("moe_layers"), SKIP ("n_group"), SKIP ("topk_group"), SKIP ("topk_method"), SKIP ("scoring_func"),
  SKIP ("routed_scaling_factor"), SKIP ("aux_loss_alpha"), SKIP ("seq_aux"), SKIP ("ep_size"), SKIP ("quantization_config"),
  SKIP ("auto_map"), SKIP ("no_rope_layers"), SKIP ("attention_chunk_size"), SKIP ("use_qk_norm"), SKIP ("attn_scale"),
  SKIP ("floor_scale"), SKIP ("attn_temperature_tuning"), SKIP ("for_llm_compression"), SKIP ("no_rope_layer_interval"),
  SKIP ("n_ctx"), SKIP ("is_encoder_decoder"), SKIP ("task_specific_params"), SKIP ("prefix"),
  { NULL },
};

/* --- what is refused ---------------------------------------------------------- */

static const cJSON *
get (const LsJsonDoc *doc, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), key);
}

bool
ls_is_hf_config (const LsJsonDoc *doc)
{
  return !get (doc, "schema") && (get (doc, "model_type") || get (doc, "architectures"));
}

static bool
refuse (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *reason)
{
  ls_json_doc_diag_code (doc, LS_ERROR_UNSUPPORTED, node, LS_JSON_AT_VALUE, diags, NULL, "%s", reason);
  return false;
}

/* Experts where the family has none that we know. */
static bool
is_dense (const LsJsonDoc *doc, const Family *f, LsDiagList *diags)
{
  static const char *const counts[] = { "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts" };
  if (f->experts != HF_DENSE)
    return true;
  for (size_t i = 0; i < G_N_ELEMENTS (counts); i++) {
    const cJSON *n = get (doc, counts[i]);
    if (cJSON_IsNumber (n) && n->valuedouble > 1)
      return refuse (doc, n, diags, "experts in a model_type that has none");
  }
  return true;
}

static bool
is_decoder (const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *both = get (doc, "is_encoder_decoder"), *name;
  if (cJSON_IsTrue (both))
    return refuse (doc, both, diags, "a model with an encoder; only decoders can be simulated");
  cJSON_ArrayForEach (name, get (doc, "architectures"))
    if (!cJSON_IsString (name)
        || !(strstr (name->valuestring, "CausalLM") || strstr (name->valuestring, "LMHeadModel")))
      return refuse (doc, name, diags,
                     "not a decoder with a language-model head, which is all that can be simulated");
  return true;
}

/* Of a class of transformers, such as DeepseekV3ForCausalLM: what stands before "ForCausalLM" without
 * its capitals is the model_type without its underscores. */
static const Family *
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
static const Family *
family_of_classes (const LsJsonDoc *doc, const cJSON *type, GPtrArray *notes)
{
  const cJSON *name;
  cJSON_ArrayForEach (name, get (doc, "architectures")) {
    const Family *f = cJSON_IsString (name) ? family_of_class (name->valuestring) : NULL;
    if (!f)
      continue;
    if (notes)
      g_ptr_array_add (notes, g_strdup_printf ("model_type %s is not known; read as %s, which its architecture %s is",
                                               cJSON_IsString (type) ? type->valuestring : "(none)", f->model_type, name->valuestring));
    return f;
  }
  return NULL;
}

static const Family *
find_family (const LsJsonDoc *doc, GPtrArray *notes, LsDiagList *diags)
{
  const cJSON *type = get (doc, "model_type");
  g_autoptr (GString) known = g_string_new (NULL);
  for (size_t i = 0; i < G_N_ELEMENTS (families); i++) {
    if (cJSON_IsString (type) && strcmp (type->valuestring, families[i].model_type) == 0)
      return &families[i];
    g_string_append_printf (known, "%s\"%s\"", i > 0 ? ", " : "", families[i].model_type);
  }
  const Family *by_class = !type || cJSON_IsString (type) ? family_of_classes (doc, type, notes) : NULL;
  if (by_class)
    return by_class;
  g_autofree char *got = type ? ls_json_describe (type) : g_strdup ("no key \"model_type\"");
  g_autofree char *reason = g_strdup_printf ("expected one of the decoders %s; got %s", known->str, got);
  refuse (doc, type ? type : ls_json_doc_root (doc), diags, reason);
  return NULL;
}

/* --- from the file to the model ----------------------------------------------- */

static void
note (GPtrArray *notes, const char *text)
{
  g_ptr_array_add (notes, g_strdup (text));
}

static bool
missing (const LsJsonDoc *doc, LsDiagList *diags, uint32_t value, const char *key)
{
  if (value > 0)
    return false;
  ls_json_doc_diag (doc, ls_json_doc_root (doc), LS_JSON_AT_VALUE, diags, NULL, "missing key \"%s\"", key);
  return true;
}

static bool
check_complete (const LsJsonDoc *doc, const Family *f, const HfConfig *c, LsDiagList *diags)
{
  bool is_missing = missing (doc, diags, c->layers, "num_hidden_layers");
  is_missing = missing (doc, diags, c->hidden, "hidden_size") || is_missing;
  is_missing = missing (doc, diags, c->heads, "num_attention_heads") || is_missing;
  is_missing = missing (doc, diags, c->vocab, "vocab_size") || is_missing;
  is_missing = missing (doc, diags, c->seq, "max_position_embeddings") || is_missing;
  if (f->mlp == LS_MLP_SWIGLU) /* no rule gives it; the others have four times hidden */
    is_missing = missing (doc, diags, c->ffn, "intermediate_size") || is_missing;
  if (f->experts != HF_DENSE) {
    is_missing = missing (doc, diags, c->experts, f->experts == HF_DEEPSEEK ? "n_routed_experts" : "num_experts") || is_missing;
    is_missing = missing (doc, diags, c->top_k, "num_experts_per_tok") || is_missing;
  }
  if (f->experts == HF_QWEN || f->experts == HF_DEEPSEEK)
    is_missing = missing (doc, diags, c->expert_ffn, "moe_intermediate_size") || is_missing;
  if (f->is_latent) {
    is_missing = missing (doc, diags, c->kv_lora, "kv_lora_rank") || is_missing;
    is_missing = missing (doc, diags, c->rope_dim, "qk_rope_head_dim") || is_missing;
    is_missing = missing (doc, diags, c->nope_dim, "qk_nope_head_dim") || is_missing;
    is_missing = missing (doc, diags, c->v_dim, "v_head_dim") || is_missing;
  }
  return !is_missing;
}

/* The node of a key that has two spellings; the root if it is neither. */
static const cJSON *
first_of (const LsJsonDoc *doc, const char *key, const char *other)
{
  const cJSON *node = get (doc, key) ? get (doc, key) : get (doc, other);
  return node ? node : ls_json_doc_root (doc);
}

static bool
check_shape (const LsJsonDoc *doc, const HfConfig *c, const LsModel *m, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc);
  if (c->head_dim == 0 && c->hidden % c->heads != 0) {
    ls_json_doc_diag (doc, first_of (doc, "num_attention_heads", "n_head"), LS_JSON_AT_VALUE, diags, NULL,
                      "%u heads do not divide a hidden size of %u", c->heads, c->hidden);
    return false;
  }
  if (m->n_heads % m->n_kv_heads != 0) {
    ls_json_doc_diag (doc, first_of (doc, "num_key_value_heads", "num_kv_heads"), LS_JSON_AT_VALUE, diags, NULL,
                      "%u heads do not share %u heads of keys and values evenly", m->n_heads, m->n_kv_heads);
    return false;
  }
  if ((c->embedding_width > 0 && c->embedding_width != c->hidden) || !c->norm_before)
    return refuse (doc, root, diags,
                   "an OPT with norms after the layers or a narrower embedding (opt-350m) cannot be simulated");
  return true;
}

/* Falcon: one shared head, groups, or as many as there are queries. */
static uint32_t
kv_heads (const Family *f, const HfConfig *c)
{
  if (strcmp (f->model_type, "falcon") == 0 && !c->grouped_query)
    return c->multi_query ? 1 : c->heads;
  return c->kv_heads ? c->kv_heads : c->heads;
}

/* A config.json is named after its folder. */
static char *
model_name (const LsJsonDoc *doc)
{
  g_autofree char *stem = ls_json_doc_stem (doc);
  if (strcmp (stem, "config") != 0)
    return g_steal_pointer (&stem);
  g_autofree char *folder = g_path_get_dirname (ls_json_doc_name (doc));
  return strcmp (folder, ".") == 0 ? g_steal_pointer (&stem) : g_path_get_basename (folder);
}

static LsModel
to_model (const LsJsonDoc *doc, const Family *f, const HfConfig *c)
{
  return (LsModel) {
    .name = model_name (doc),
    .source = g_strdup_printf ("Hugging Face configuration, model_type %s", f->model_type),
    .n_layers = c->layers,
    .hidden = c->hidden,
    .n_heads = c->heads,
    .n_kv_heads = kv_heads (f, c),
    .head_dim = c->head_dim ? c->head_dim : c->hidden / c->heads,
    .ffn = c->ffn ? c->ffn : 4 * c->hidden,
    .vocab = c->vocab,
    .seq = c->seq,
    .mlp = f->mlp,
    .norm = f->norm,
    .position = c->alibi ? LS_POSITION_ALIBI : f->position,
    .attention = LS_ATTENTION_FLASH,
    .linear_bias = c->bias || (c->attention_bias && c->mlp_bias),
    .qkv_bias = f->qkv_bias || (c->attention_bias && !c->mlp_bias),
    .qk_norm = f->qk_norm,
    .tied_embeddings = c->tied,
    .dropout = c->dropout > 0,
  };
}

static void
add_experts (const Family *f, const HfConfig *c, LsModel *m)
{
  if (f->experts == HF_DENSE)
    return;
  m->n_experts = c->experts;
  m->top_k = c->top_k;
  m->expert_ffn = c->expert_ffn;
  m->moe_every = MAX (1, f->experts == HF_LLAMA4 ? c->interleave : c->sparse_step);
  if (f->experts == HF_MIXTRAL || f->experts == HF_LLAMA4)
    m->expert_ffn = c->ffn;
  if (f->experts == HF_LLAMA4 && c->dense_ffn > 0)
    m->ffn = c->dense_ffn;
  m->shared_ffn = f->experts == HF_QWEN ? c->shared_ffn : f->experts == HF_DEEPSEEK ? c->n_shared * c->expert_ffn
                  : f->experts == HF_LLAMA4 ? c->ffn : 0;
  m->n_dense_layers = f->experts == HF_DEEPSEEK ? c->dense_layers : 0;
}

static void
add_latents (const Family *f, const HfConfig *c, LsModel *m)
{
  if (!f->is_latent)
    return;
  m->kv_lora = c->kv_lora;
  m->q_lora = c->q_lora;
  m->rope_dim = c->rope_dim;
  m->v_dim = c->v_dim;
  m->head_dim = c->nope_dim + c->rope_dim;
  m->n_kv_heads = m->n_heads;
}

/* Layers that are dense one by one, and experts of which not every so-manieth layer has. */
static bool
check_layers (const LsJsonDoc *doc, const Family *f, const HfConfig *c, LsDiagList *diags)
{
  const cJSON *only = get (doc, "mlp_only_layers");
  if (cJSON_IsArray (only) && cJSON_GetArraySize (only) > 0)
    return refuse (doc, only, diags, "dense layers by number; only the first few, or all but each so-manieth, can be");
  if (f->experts == HF_DEEPSEEK && c->sparse_step > 1)
    return refuse (doc, get (doc, "moe_layer_freq"), diags, "experts in each so-manieth layer from 0 on; expected 1");
  return true;
}

#define LENGTH_REMEDY "set the training length with --seq"

static bool
is_known_activation (const char *name)
{
  static const char *const known[]
    = { "gelu", "gelu_fast", "gelu_new", "gelu_pytorch_tanh", "quick_gelu", "silu", "swish", NULL };
  return g_strv_contains (known, name);
}

static void
note_assumptions (const Family *f, const HfConfig *c, GPtrArray *notes)
{
  g_ptr_array_add (notes, g_strdup_printf ("sequences of %u tokens, the longest position; " LENGTH_REMEDY, c->seq));
  bool slides = c->sliding_window > 0 && (c->use_sliding_window || strcmp (f->model_type, "qwen2") != 0);
  if (slides && c->sliding_window < c->seq)
    note (notes, "attention is taken over the whole sequence, not over the sliding window");
  if (c->activation && !is_known_activation (c->activation))
    note (notes, "the activation is taken to cost as much as GELU or SiLU");
  if (c->n_predictions > 0)
    note (notes, "layers that predict further tokens are left out");
  if (f->experts == HF_LLAMA4)
    note (notes, "norms of queries and keys are left out, and attention is taken over the whole sequence in all layers");
  if (f->experts == HF_QWEN && c->shared_ffn > 0)
    note (notes, "the gate of the shared expert is left out");
  if (strcmp (f->model_type, "gpt_neox") == 0 || strcmp (f->model_type, "falcon") == 0)
    note (notes, "attention and MLP are taken one after the other, not side by side");
}

static bool
read_config (const LsJsonDoc *doc, const Family *f, HfConfig *c, LsModel *ret_model, GPtrArray *notes,
             LsDiagList *diags)
{
  if (!ls_fields_read (hf_fields, doc, ls_json_doc_root (doc), c, notes, diags)
      || !check_complete (doc, f, c, diags))
    return false;
  LsModel model = to_model (doc, f, c);
  add_experts (f, c, &model);
  add_latents (f, c, &model);
  bool ok = check_shape (doc, c, &model, diags) && check_layers (doc, f, c, diags) && ls_model_complete (doc, &model, diags);
  if (ok)
    *ret_model = model;
  else
    ls_model_clear (&model);
  note_assumptions (f, c, notes);
  return ok;
}

static bool
read_text_model (const LsJsonDoc *doc, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags)
{
  const Family *f = NULL;
  if (is_decoder (doc, diags))
    f = find_family (doc, notes, diags);
  if (!f || !is_dense (doc, f, diags))
    return false;
  g_autoptr (GPtrArray) unread = notes ? g_ptr_array_ref (notes) : g_ptr_array_new_with_free_func (g_free);
  HfConfig c = {
    .tied = f->tied,
    .bias = f->linear_bias,
    .dropout = f->dropout,
    .seq = f->seq,
    .multi_query = true,
    .norm_before = true,
  };
  bool ok = read_config (doc, f, &c, ret_model, unread, diags);
  g_free (c.activation);
  return ok;
}

/* Of a multimodal model, what is trained on text. */
bool
ls_model_read_hf (const LsJsonDoc *doc, LsModel *ret_model, GPtrArray *notes, LsDiagList *diags)
{
  const cJSON *text = get (doc, "text_config");
  if (!cJSON_IsObject (text))
    return read_text_model (doc, ret_model, notes, diags);
  g_autoptr (LsJsonDoc) inner = ls_json_doc_part (doc, text, diags);
  if (!inner || !read_text_model (inner, ret_model, notes, diags))
    return false;
  if (notes)
    note (notes, "a multimodal model: its text_config is simulated, without what sees or hears");
  return true;
}

void
ls_model_notes_drop_length (GPtrArray *notes)
{
  for (guint i = notes->len; i-- > 0;)
    if (g_str_has_suffix (g_ptr_array_index (notes, i), LENGTH_REMEDY))
      g_ptr_array_remove_index (notes, i);
}
