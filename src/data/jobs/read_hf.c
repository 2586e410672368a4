#include "data/jobs/read_hf.h"

#include <string.h>

#include "data/jobs/hf_family.h"
#include "data/jobs/read_model.h"

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
check_complete (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsDiagList *diags)
{
  bool is_missing = missing (doc, diags, c->layers, "num_hidden_layers");
  is_missing = missing (doc, diags, c->hidden, "hidden_size") || is_missing;
  is_missing = missing (doc, diags, c->heads, "num_attention_heads") || is_missing;
  is_missing = missing (doc, diags, c->vocab, "vocab_size") || is_missing;
  is_missing = missing (doc, diags, c->seq, "max_position_embeddings") || is_missing;
  if (f->mlp == LS_MLP_SWIGLU) /* no rule gives it; the others have four times hidden */
    is_missing = missing (doc, diags, c->ffn, "intermediate_size") || is_missing;
  if (f->experts != HF_DENSE) {
    is_missing
        = missing (doc, diags, c->experts, f->experts == HF_DEEPSEEK ? "n_routed_experts" : "num_experts")
        || is_missing;
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
  const cJSON *node = hf_get (doc, key) ? hf_get (doc, key) : hf_get (doc, other);
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
    ls_json_doc_diag (doc, first_of (doc, "num_key_value_heads", "num_kv_heads"), LS_JSON_AT_VALUE, diags,
                      NULL, "%u heads do not share %u heads of keys and values evenly", m->n_heads,
                      m->n_kv_heads);
    return false;
  }
  if ((c->embedding_width > 0 && c->embedding_width != c->hidden) || !c->norm_before)
    return hf_refuse (doc, root, diags,
                      "an OPT with norms after the layers or a narrower embedding (opt-350m) cannot be "
                      "simulated");
  return true;
}

/* Falcon: one shared head, groups, or as many as there are queries. */
static uint32_t
kv_heads (const HfFamily *f, const HfConfig *c)
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
to_model (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c)
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
add_experts (const HfFamily *f, const HfConfig *c, LsModel *m)
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
  m->shared_ffn = f->experts == HF_QWEN ? c->shared_ffn
      : f->experts == HF_DEEPSEEK       ? c->n_shared * c->expert_ffn
      : f->experts == HF_LLAMA4         ? c->ffn
                                        : 0;
  m->n_dense_layers = f->experts == HF_DEEPSEEK ? c->dense_layers : 0;
}

static void
add_latents (const HfFamily *f, const HfConfig *c, LsModel *m)
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
check_layers (const LsJsonDoc *doc, const HfFamily *f, const HfConfig *c, LsDiagList *diags)
{
  const cJSON *only = hf_get (doc, "mlp_only_layers");
  if (cJSON_IsArray (only) && cJSON_GetArraySize (only) > 0)
    return hf_refuse (doc, only, diags,
                      "dense layers by number; only the first few, or all but each so-manieth, can be");
  if (f->experts == HF_DEEPSEEK && c->sparse_step > 1)
    return hf_refuse (doc, hf_get (doc, "moe_layer_freq"), diags,
                      "experts in each so-manieth layer from 0 on; expected 1");
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
note_assumptions (const HfFamily *f, const HfConfig *c, GPtrArray *notes)
{
  g_ptr_array_add (notes,
                   g_strdup_printf ("sequences of %u tokens, the longest position; " LENGTH_REMEDY, c->seq));
  bool slides = c->sliding_window > 0 && (c->use_sliding_window || strcmp (f->model_type, "qwen2") != 0);
  if (slides && c->sliding_window < c->seq)
    note (notes, "attention is taken over the whole sequence, not over the sliding window");
  if (c->activation && !is_known_activation (c->activation))
    note (notes, "the activation is taken to cost as much as GELU or SiLU");
  if (c->n_predictions > 0)
    note (notes, "layers that predict further tokens are left out");
  if (f->experts == HF_LLAMA4)
    note (notes,
          "norms of queries and keys are left out, and attention is taken over the whole sequence in all "
          "layers");
  if (f->experts == HF_QWEN && c->shared_ffn > 0)
    note (notes, "the gate of the shared expert is left out");
  if (strcmp (f->model_type, "gpt_neox") == 0 || strcmp (f->model_type, "falcon") == 0)
    note (notes, "attention and MLP are taken one after the other, not side by side");
}

static bool
read_config (const LsJsonDoc *doc, const HfFamily *f, HfConfig *c, LsModel *ret_model, GPtrArray *notes,
             LsDiagList *diags)
{
  if (!ls_fields_read (hf_fields, doc, ls_json_doc_root (doc), c, notes, diags)
      || !check_complete (doc, f, c, diags))
    return false;
  LsModel model = to_model (doc, f, c);
  add_experts (f, c, &model);
  add_latents (f, c, &model);
  bool ok = check_shape (doc, c, &model, diags) && check_layers (doc, f, c, diags)
      && ls_model_complete (doc, &model, diags);
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
  const HfFamily *f = NULL;
  if (hf_is_decoder (doc, diags))
    f = hf_find_family (doc, notes, diags);
  if (!f || !hf_is_dense (doc, f, diags))
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
  const cJSON *text = hf_get (doc, "text_config");
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
