#include "model/model.h"

#include <string.h>

#include "model/beside.h"
#include "model/block.h"
#include "model/compressed.h"
#include "model/convolved.h"
#include "model/difference.h"
#include "model/mixer.h"
#include "model/ngram.h"
#include "model/predict.h"
#include "model/streams.h"

void
ls_model_clear (LsModel *model)
{
  if (!model)
    return;
  g_free (model->name);
  g_free (model->source);
  g_free (model->layers.pattern);
  g_free (model->predict.pattern);
  for (guint i = 0; i < LS_N_MODEL_LISTS; i++)
    g_free (G_STRUCT_MEMBER (uint32_t *, model, ls_model_lists[i].list));
  *model = (LsModel) { 0 };
}

void
ls_model_copy (LsModel *dest, const LsModel *source)
{
  *dest = *source;
  dest->name = g_strdup (source->name);
  dest->source = g_strdup (source->source);
  dest->layers.pattern = g_strdup (source->layers.pattern);
  dest->predict.pattern = g_strdup (source->predict.pattern);
  for (guint i = 0; i < LS_N_MODEL_LISTS; i++) {
    const LsModelList *l = &ls_model_lists[i];
    G_STRUCT_MEMBER (uint32_t *, dest, l->list)
        = g_memdup2 (G_STRUCT_MEMBER (uint32_t *, source, l->list),
                     G_STRUCT_MEMBER (uint32_t, source, l->n) * sizeof (uint32_t));
  }
}

uint64_t
ls_model_padded_vocab (const LsModel *m, uint32_t multiple, uint32_t tp)
{
  uint64_t whole = (uint64_t) (multiple ? multiple : LS_VOCAB_MULTIPLE) * tp;
  return (m->vocab + whole - 1) / whole * whole;
}

uint32_t
ls_model_decoder_seq (const LsModel *m, uint32_t seq)
{
  return m->sides.decoder_seq > 0 ? m->sides.decoder_seq : seq;
}

/* --- parameters --------------------------------------------------------------------- */

uint32_t
ls_model_v_dim (const LsModel *m)
{
  return m->v_dim > 0 ? m->v_dim : m->head_dim;
}

/* Half of both together is the width of an attention kernel. */
const char *
ls_model_check_values (const LsModel *m)
{
  uint32_t windowed = m->attn.window_head_dim > 0 ? m->attn.window_head_dim : m->head_dim;
  if (m->v_dim == 0)
    return NULL;
  if ((m->head_dim + m->v_dim) % 2 != 0 || (windowed + m->v_dim) % 2 != 0)
    return "expected widths of keys and values whose sum is even";
  if (m->latent.kv_lora == 0 && (m->sides.encoder_layers > 0 || m->attn.full_k_is_v))
    return "expected values as wide as keys with an encoder, and where keys are values";
  return NULL;
}

uint32_t
ls_model_kv_dim (const LsModel *m)
{
  return m->halves.kv_shared_layers > 0 ? 0 : m->head_dim + (m->attn.full_k_is_v ? 0 : ls_model_v_dim (m));
}

uint32_t
ls_model_router_width (const LsModel *m)
{
  return m->moe.n_experts + m->moe.zero_experts;
}

static uint64_t
query_width (const LsModel *m)
{
  return (uint64_t) m->n_heads * m->head_dim;
}

static uint64_t
qkv_width (const LsModel *m)
{
  return query_width (m) + (uint64_t) m->n_kv_heads * ls_model_kv_dim (m);
}

/* What attention makes of all heads. */
static uint64_t
context_width (const LsModel *m)
{
  return m->attn.difference ? ls_difference_context (m, m->n_heads)
                            : (uint64_t) m->n_heads * ls_model_v_dim (m);
}

bool
ls_model_has_qkv_bias (const LsModel *m)
{
  return m->attn.qkv_bias || (m->linear_bias && !m->attn.unbiased_qkv);
}

bool
ls_mlp_is_gated (LsMlp mlp)
{
  return mlp == LS_MLP_SWIGLU || mlp == LS_MLP_GEGLU || mlp == LS_MLP_QUICK_GEGLU;
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

/* Matrices of an MLP: with a gate, that and up side by side, and down. */
static uint64_t
mlp_params (const LsModel *m, uint64_t width, uint64_t ffn)
{
  return (ls_mlp_is_gated (m->mlp) ? 3 : 2) * width * ffn;
}

uint32_t
ls_model_expert_width (const LsModel *m)
{
  return m->moe.latent > 0 ? m->moe.latent : m->hidden;
}

static uint64_t
norm_params (const LsModel *m)
{
  return ls_norm_n_vectors (m->norm) * (uint64_t) m->hidden;
}

/* Of a layer's experts. */
typedef enum { EXPERTS_ALL, EXPERTS_MET } Experts;

/* Queries, the way out and a router, of all experts or those of a token, whose heads are all that count. */
static uint64_t
attention_expert_params (const LsModel *m, Experts which)
{
  uint64_t met = m->hidden * (query_width (m) + context_width (m));
  return (which == EXPERTS_MET ? met : m->moe.attention_experts * (met / m->moe.attention_top_k))
      + (uint64_t) m->hidden * m->moe.attention_experts;
}

/* Queries from their latent, one key and a weight for each head; of plain attention no weights. */
static uint64_t
indexer_params (const LsModel *m)
{
  uint64_t width = (uint64_t) m->index.heads * m->index.dim,
           weights = m->latent.kv_lora > 0 ? m->index.heads : 0;
  return (m->latent.kv_lora > 0 ? m->latent.q_lora : m->hidden) * width
      + m->hidden * (m->index.dim + weights);
}

static uint64_t
attention_params (const LsModel *m, uint32_t kind, Experts which)
{
  uint64_t h = m->hidden, a = m->n_heads;
  if (ls_model_is_compressed (m))
    return ls_compressed_linear_params (m, kind);
  if (m->moe.attention_experts > 0)
    return attention_expert_params (m, which) + h * m->n_kv_heads * ls_model_kv_dim (m);
  uint64_t q_up = m->latent.gate ? 2 * (query_width (m) + a * m->v_dim) : query_width (m);
  uint64_t q = m->latent.q_lora > 0 ? m->latent.q_lora * (h + q_up) : h * query_width (m);
  if (m->latent.kv_lora == 0)
    return q
        + h * ((uint64_t) m->n_kv_heads * ls_model_kv_dim (m) + (m->attn.gate ? 2 : 1) * context_width (m))
        + indexer_params (m) + ls_convolved_linear_params (m);
  uint64_t kv = h * (m->latent.kv_lora + m->latent.rope_dim)
      + m->latent.kv_lora * a * (m->head_dim - m->latent.rope_dim + m->v_dim);
  uint64_t gate = m->attn.gate ? h * a * m->v_dim : 0;
  return q + kv + gate + a * m->v_dim * h + indexer_params (m);
}

/* Norms inside of attention. */
static uint64_t
attention_norm_params (const LsModel *m, uint32_t kind)
{
  if (ls_model_is_compressed (m))
    return ls_compressed_other_params (m, kind);
  bool is_all = m->attn.qk_norm_over == LS_QK_NORM_ALL;
  uint64_t heads = (is_all ? m->n_heads : 1)
      + (m->halves.kv_shared_layers > 0 ? 0
             : is_all                   ? m->n_kv_heads
                                        : 1);
  return m->latent.kv_lora + m->latent.q_lora + 2 * (uint64_t) m->index.dim
      + (m->attn.qk_norm ? heads * m->head_dim : 0) + ls_difference_params (m) + ls_kv_conv_params (m)
      + ls_convolved_other_params (m);
}

uint64_t
ls_model_expert_params (const LsModel *m)
{
  return mlp_params (m, ls_model_expert_width (m), (uint64_t) m->moe.expert_ffn + m->moe.adjugate_ffn);
}

static uint64_t
expert_params (const LsModel *m, Experts which)
{
  uint64_t own = ls_model_expert_params (m),
           shared = mlp_params (m, ls_model_expert_width (m), m->moe.adjugate_ffn);
  if (which == EXPERTS_MET)
    return m->moe.top_k * own;
  return m->moe.n_experts * own
      - (m->moe.adjugate_of > 0 ? m->moe.n_experts - m->moe.n_experts / m->moe.adjugate_of : 0) * shared;
}

/* Of attention, or of what stands for it. */
static uint64_t
mixing_linear_params (const LsModel *m, uint32_t kind, Experts which)
{
  uint64_t n = kind & LS_LAYER_BLOCK  ? ls_block_shared_linear_params (m) + ls_block_own_linear_params (m)
      : ls_layer_has_attention (kind) ? attention_params (m, kind, which)
                                      : 0;
  n += kind & LS_LAYER_MIXER ? ls_mixer_linear_params (m) : 0;
  return kind & LS_LAYER_CROSS && !(kind & LS_LAYER_MERGED) ? 2 * n : n;
}

/* The matrices of a layer, with these of its experts. */
static uint64_t
layer_linear_params (const LsModel *all, uint32_t kind, Experts which)
{
  LsModel own = ls_model_of_kind (all, kind), *m = &own;
  uint64_t n = mixing_linear_params (&own, kind, which)
      + ls_streams_linear_params (m, ls_layer_n_halves (kind)) + ls_beside_linear_params (m)
      + ls_norm_gate_params (m, kind);
  if (kind & LS_LAYER_NO_MLP)
    return n;
  if (!(kind & LS_LAYER_EXPERTS))
    return n + mlp_params (m, m->hidden, own.ffn);
  return n + ls_router_linear_params (m) + 2 * (uint64_t) m->hidden * m->moe.latent + expert_params (m, which)
      + mlp_params (m, m->hidden, m->moe.shared_ffn);
}

/* Of an MLP, or of experts and their router. */
static uint64_t
mlp_biases (const LsModel *m, uint32_t kind, Experts which)
{
  uint32_t n_inputs = ls_mlp_is_gated (m->mlp) ? 2 : 1;
  if (kind & LS_LAYER_NO_MLP)
    return 0;
  if (!(kind & LS_LAYER_EXPERTS))
    return n_inputs * (uint64_t) m->ffn + m->hidden;
  return ls_model_router_width (m)
      + (which == EXPERTS_MET ? m->moe.top_k : m->moe.n_experts)
      * (n_inputs * (uint64_t) m->moe.expert_ffn + m->hidden);
}

/* Neither latents nor mixers have biases. */
static uint64_t
layer_biases (const LsModel *m, uint32_t kind, Experts which)
{
  uint64_t n = 0;
  if (ls_model_has_qkv_bias (m) && m->latent.kv_lora == 0 && ls_layer_has_attention (kind))
    n += qkv_width (m);
  if (m->linear_bias)
    n += (ls_layer_has_attention (kind) ? m->hidden : 0) + mlp_biases (m, kind, which);
  return n;
}

uint32_t
ls_layer_n_halves (uint32_t kind)
{
  bool is_apart = kind & LS_LAYER_CROSS && !(kind & LS_LAYER_MERGED);
  return !(kind & LS_LAYER_NO_MIXING) + !(kind & LS_LAYER_NO_MLP) + is_apart;
}

/* Over the hidden dimension. */
static uint32_t
norms_of (const LsModel *m, uint32_t kind)
{
  return m->norms == LS_NORMS_SHARED ? 1 : ls_layer_n_halves (kind) * (m->norms == LS_NORMS_BOTH ? 2 : 1);
}

static uint64_t
layer_params (const LsModel *m, uint32_t kind, Experts which)
{
  bool is_block = kind & LS_LAYER_BLOCK, is_again = kind & LS_LAYER_AGAIN;
  if (is_again && !is_block)
    return 0;
  LsModel own = ls_model_of_kind (m, kind);
  uint64_t others = ls_block_shared_other_params (m), shared = ls_block_shared_linear_params (m) + others;
  return (is_block ? others : 0) - (is_again ? shared : 0) + layer_linear_params (m, kind, which)
      + layer_biases (&own, kind, which) + norms_of (m, kind) * norm_params (m)
      + (kind & LS_LAYER_EXPERTS ? ls_router_other_params (m) : 0)
      + ls_layer_n_halves (kind) * ls_residual_params (m)
      + (ls_layer_has_attention (kind) ? attention_norm_params (&own, kind) : 0)
      + ls_streams_other_params (m, ls_layer_n_halves (kind)) + ls_beside_other_params (m)
      + (kind & LS_LAYER_MIXER ? ls_mixer_other_params (&own) : 0)
      + (kind & LS_LAYER_MIXER && !(kind & LS_LAYER_NO_MLP) ? ls_mixer_mlp_params (&own) : 0);
}

uint64_t
ls_model_layer_params (const LsModel *m, uint32_t layer)
{
  return layer_params (m, ls_model_layer_kind (m, layer), EXPERTS_ALL);
}

/* What a token multiplies, some of it twice. */
static uint64_t
met_linear_params (const LsModel *m, uint32_t kind)
{
  return layer_linear_params (m, kind, EXPERTS_MET) + ls_streams_again_params (m);
}

uint64_t
ls_model_layer_linear_params (const LsModel *m, uint32_t layer)
{
  return met_linear_params (m, ls_model_layer_kind (m, layer));
}

/* Of a block of multi-token prediction without its layers and the head: a projection of two inputs; the same
 * with norms of both, and one before the head. */
static uint64_t
predict_linear_params (const LsModel *m)
{
  return 2 * (uint64_t) m->hidden * m->hidden + ls_streams_end_linear_params (m);
}

static uint64_t
predict_params (const LsModel *m)
{
  return predict_linear_params (m) + ls_streams_end_other_params (m) + 3 * norm_params (m);
}

uint64_t
ls_model_linear_params (const LsModel *m, uint64_t vocab)
{
  uint64_t n = vocab * m->hidden + ls_streams_end_linear_params (m) + ls_beside_end_linear_params (m)
      + ls_ngram_linear_params (m);
  n += m->predict.layers * (predict_linear_params (m) + vocab * m->hidden);
  for (uint32_t i = 0; i < ls_model_n_all_layers (m); i++)
    n += met_linear_params (m, ls_model_layer_kind (m, i));
  return n;
}

static uint64_t
params_with (const LsModel *m, uint64_t vocab, Experts which)
{
  uint64_t table = vocab * m->hidden, layers = 0;
  uint64_t positions = m->position == LS_POSITION_LEARNED ? (uint64_t) m->seq * m->hidden : 0;
  uint64_t head = m->tied_embeddings ? 0 : table;
  for (uint32_t i = 0; i < ls_model_n_all_layers (m); i++)
    layers += layer_params (m, ls_model_layer_kind (m, i), which);
  layers += ls_model_n_own_blocks (m) * predict_params (m);
  layers += ls_streams_end_linear_params (m) + ls_streams_end_other_params (m);
  layers += ls_beside_table_params (m) + ls_beside_end_linear_params (m) + ls_beside_end_other_params (m);
  layers += ls_ngram_linear_params (m);
  layers += which == EXPERTS_ALL ? ls_ngram_table_params (m) : m->halves.ngram_tables * ls_ngram_width (m);
  return table + positions + layers + (m->sides.encoder_layers > 0 ? 2 : 1) * norm_params (m) + head;
}

uint64_t
ls_model_params (const LsModel *m, uint64_t vocab)
{
  return params_with (m, vocab, EXPERTS_ALL);
}

uint64_t
ls_model_active_params (const LsModel *m, uint64_t vocab)
{
  return params_with (m, vocab, EXPERTS_MET);
}
