#include "model/model.h"

#define VOCAB_MULTIPLE 128 /* Megatron-LM, --make-vocab-size-divisible-by */

void
ls_model_clear (LsModel *model)
{
  if (!model)
    return;
  g_free (model->name);
  g_free (model->source);
  *model = (LsModel) { 0 };
}

void
ls_model_copy (LsModel *dest, const LsModel *source)
{
  *dest = *source;
  dest->name = g_strdup (source->name);
  dest->source = g_strdup (source->source);
}

uint64_t
ls_model_padded_vocab (const LsModel *m, uint32_t tp)
{
  uint64_t multiple = (uint64_t) VOCAB_MULTIPLE * tp;
  return (m->vocab + multiple - 1) / multiple * multiple;
}

/* --- which layers have experts ---------------------------------------------------- */

bool
ls_model_has_experts (const LsModel *m, uint32_t layer)
{
  if (m->n_experts == 0 || layer < m->n_dense_layers)
    return false;
  return (layer - m->n_dense_layers + 1) % MAX (1, m->moe_every) == 0;
}

static bool
is_windowed (const LsModel *m, uint32_t layer)
{
  return m->window > 0 && (m->full_every == 0 || (layer + 1) % m->full_every != 0);
}

static bool
is_unrotated (const LsModel *m, uint32_t layer)
{
  return m->unrotated_every > 0 && (layer + 1) % m->unrotated_every == 0;
}

uint32_t
ls_model_layer_kind (const LsModel *m, uint32_t layer)
{
  return (ls_model_has_experts (m, layer) ? LS_LAYER_EXPERTS : 0)
      | (is_windowed (m, layer) ? LS_LAYER_WINDOWED : 0) | (is_unrotated (m, layer) ? LS_LAYER_UNROTATED : 0);
}

uint32_t
ls_model_n_layer_kinds (const LsModel *m)
{
  uint32_t n = 0;
  for (uint32_t i = 0, seen = 0; i < m->n_layers; i++) {
    uint32_t bit = 1u << ls_model_layer_kind (m, i);
    n += (seen & bit) == 0;
    seen |= bit;
  }
  return n;
}

uint32_t
ls_model_n_moe_layers (const LsModel *m)
{
  if (m->n_experts == 0 || m->n_layers < m->n_dense_layers)
    return 0;
  return (m->n_layers - m->n_dense_layers) / MAX (1, m->moe_every);
}

/* --- attention ---------------------------------------------------------------------- */

double
ls_model_attention_pairs (const LsModel *m, uint32_t kind, uint32_t seq)
{
  double s = seq, w = m->window;
  if (!(kind & LS_LAYER_WINDOWED))
    return 0.5;
  if (m->window_kind == LS_WINDOW_CHUNK)
    return w < s ? w / (2 * s) : 0.5;
  return w < s ? (w - w * w / (2 * s)) / s : 0.5;
}

/* --- parameters --------------------------------------------------------------------- */

uint32_t
ls_model_v_dim (const LsModel *m)
{
  return m->kv_lora > 0 ? m->v_dim : m->head_dim;
}

static uint64_t
query_width (const LsModel *m)
{
  return (uint64_t) m->n_heads * m->head_dim;
}

static uint64_t
qkv_width (const LsModel *m)
{
  return query_width (m) + 2 * (uint64_t) m->n_kv_heads * m->head_dim;
}

bool
ls_mlp_is_gated (LsMlp mlp)
{
  return mlp == LS_MLP_SWIGLU || mlp == LS_MLP_GEGLU;
}

bool
ls_norm_is_layernorm (LsNorm norm)
{
  return norm != LS_NORM_RMSNORM;
}

uint32_t
ls_norm_n_vectors (LsNorm norm)
{
  return norm == LS_NORM_LAYERNORM ? 2 : norm == LS_NORM_LAYERNORM_PLAIN ? 0 : 1;
}

uint32_t
ls_model_norms_per_layer (const LsModel *m)
{
  return m->norms == LS_NORMS_SHARED ? 1 : m->norms == LS_NORMS_BOTH ? 4 : 2;
}

/* Matrices of an MLP: with a gate, that and up side by side, and down. */
static uint64_t
mlp_params (const LsModel *m, uint64_t ffn)
{
  return (ls_mlp_is_gated (m->mlp) ? 3 : 2) * m->hidden * ffn;
}

static uint64_t
norm_params (const LsModel *m)
{
  return ls_norm_n_vectors (m->norm) * (uint64_t) m->hidden;
}

static uint64_t
attention_params (const LsModel *m)
{
  uint64_t h = m->hidden, a = m->n_heads;
  if (m->kv_lora == 0)
    return h * qkv_width (m) + query_width (m) * h;
  uint64_t q = m->q_lora > 0 ? m->q_lora * (h + query_width (m)) : h * query_width (m);
  uint64_t kv = h * (m->kv_lora + m->rope_dim) + m->kv_lora * a * (m->head_dim - m->rope_dim + m->v_dim);
  return q + kv + a * m->v_dim * h;
}

/* Norms inside of attention. */
static uint64_t
attention_norm_params (const LsModel *m)
{
  uint64_t heads = m->qk_norm_over == LS_QK_NORM_ALL ? (uint64_t) m->n_heads + m->n_kv_heads : 2;
  return m->kv_lora + m->q_lora + (m->qk_norm ? heads * m->head_dim : 0);
}

uint64_t
ls_model_expert_params (const LsModel *m)
{
  return mlp_params (m, m->expert_ffn);
}

/* The matrices of a layer, with so many of its experts. */
static uint64_t
layer_linear_params (const LsModel *m, bool has_experts, uint32_t n_experts)
{
  uint64_t n = attention_params (m);
  if (!has_experts)
    return n + mlp_params (m, m->ffn);
  return n + (uint64_t) m->hidden * m->n_experts + n_experts * ls_model_expert_params (m)
      + mlp_params (m, m->shared_ffn);
}

/* Neither experts nor latents have biases. */
static uint64_t
layer_biases (const LsModel *m, bool has_experts)
{
  uint64_t n = 0, fc1 = (ls_mlp_is_gated (m->mlp) ? 2 : 1) * (uint64_t) m->ffn;
  if ((m->linear_bias || m->qkv_bias) && m->kv_lora == 0)
    n += qkv_width (m);
  if (m->linear_bias)
    n += m->hidden + (has_experts ? 0 : fc1 + m->hidden);
  return n;
}

static uint64_t
layer_params (const LsModel *m, bool has_experts, uint32_t n_experts)
{
  return layer_linear_params (m, has_experts, n_experts) + layer_biases (m, has_experts)
      + ls_model_norms_per_layer (m) * norm_params (m) + attention_norm_params (m);
}

uint64_t
ls_model_layer_params (const LsModel *m, uint32_t layer)
{
  return layer_params (m, ls_model_has_experts (m, layer), m->n_experts);
}

uint64_t
ls_model_linear_params (const LsModel *m, uint64_t vocab)
{
  uint64_t n_moe = ls_model_n_moe_layers (m);
  return n_moe * layer_linear_params (m, true, m->top_k)
      + (m->n_layers - n_moe) * layer_linear_params (m, false, 0) + vocab * m->hidden;
}

static uint64_t
params_with (const LsModel *m, uint64_t vocab, uint32_t n_experts)
{
  uint64_t table = vocab * m->hidden, n_moe = ls_model_n_moe_layers (m);
  uint64_t positions = m->position == LS_POSITION_LEARNED ? (uint64_t) m->seq * m->hidden : 0;
  uint64_t head = m->tied_embeddings ? 0 : table;
  uint64_t layers
      = n_moe * layer_params (m, true, n_experts) + (m->n_layers - n_moe) * layer_params (m, false, 0);
  return table + positions + layers + norm_params (m) + head;
}

uint64_t
ls_model_params (const LsModel *m, uint64_t vocab)
{
  return params_with (m, vocab, m->n_experts);
}

uint64_t
ls_model_active_params (const LsModel *m, uint64_t vocab)
{
  return params_with (m, vocab, m->top_k);
}
