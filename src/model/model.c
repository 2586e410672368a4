#include "model/model.h"

void
ls_model_clear (LsModel *model)
{
  if (!model)
    return;
  g_free (model->name);
  g_free (model->source);
  g_free (model->left_out);
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
  dest->left_out = g_strdup (source->left_out);
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

/* --- widths ------------------------------------------------------------------------------- */

uint32_t
ls_model_v_dim (const LsModel *m)
{
  return m->v_dim > 0 ? m->v_dim : m->head_dim;
}

uint32_t
ls_model_router_width (const LsModel *m)
{
  return m->moe.n_experts + m->moe.zero_experts;
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
ls_model_expert_width (const LsModel *m)
{
  return m->moe.latent > 0 ? m->moe.latent : m->hidden;
}

uint64_t
ls_model_expert_params (const LsModel *m)
{
  return (ls_mlp_is_gated (m->mlp) ? 3 : 2) * (uint64_t) ls_model_expert_width (m)
      * ((uint64_t) m->moe.expert_ffn + m->moe.adjugate_ffn);
}

uint64_t
ls_difference_noise_heads (const LsModel *m, uint64_t heads)
{
  return m->attn.noise_heads > 0 ? heads * m->attn.noise_heads / m->n_heads : heads / 2;
}

bool
ls_model_shares_keys_evenly (const LsModel *m)
{
  uint32_t half = m->n_kv_heads / 2, noise = m->attn.noise_heads;
  if (noise == 0 || noise >= m->n_heads || half == 0)
    return m->n_heads % m->n_kv_heads == 0;
  return (m->n_heads - noise) % half == 0 && noise % half == 0;
}

/* --- what attention meets ---------------------------------------------------------------- */

bool
ls_model_is_compressed (const LsModel *m)
{
  return m->compressed.out_groups > 0;
}

bool
ls_model_has_latents (const LsModel *m)
{
  return m->latent.kv_lora > 0 || m->latent.q_lora > 0 || ls_model_is_compressed (m);
}

uint32_t
ls_compressed_ratio (const LsModel *m, uint32_t kind)
{
  return kind & LS_LAYER_CSA ? m->compressed.csa_ratio : kind & LS_LAYER_HCA ? m->compressed.hca_ratio : 0;
}

/* Values and weights of a mean; where means overlap, of two. */
uint64_t
ls_compressed_columns (const LsModel *m, uint32_t kind)
{
  return (kind & LS_LAYER_CSA ? 4 : kind & LS_LAYER_HCA ? 2 : 0) * (uint64_t) m->head_dim;
}

uint64_t
ls_compressed_index_columns (const LsModel *m, uint32_t kind)
{
  return kind & LS_LAYER_CSA ? 4 * (uint64_t) m->index.dim : 0;
}

double
ls_compressed_pairs (const LsModel *m, uint32_t kind, uint32_t seq)
{
  uint32_t ratio = ls_compressed_ratio (m, kind);
  double s = seq, r = ratio;
  if (ratio == 0)
    return 0;
  double n = kind & LS_LAYER_CSA ? MIN (m->index.top, s / r) : s / r;
  return (n * s - r * n * n / 2) / (s * s);
}

/* Without those of compressed keys. */
static double
token_pairs (const LsModel *m, uint32_t kind, uint32_t seq)
{
  double s = seq, w = m->attn.window;
  if (kind & LS_LAYER_ENCODER)
    return 1;
  if (!(kind & LS_LAYER_WINDOWED))
    return 0.5;
  if (m->attn.window_kind == LS_WINDOW_CHUNK)
    return w < s ? w / (2 * s) : 0.5;
  return w < s ? (w - w * w / (2 * s)) / s : 0.5;
}

double
ls_model_attention_pairs (const LsModel *m, uint32_t kind, uint32_t seq)
{
  LsModel own = ls_model_of_kind (m, kind);
  return token_pairs (&own, kind, seq) + ls_compressed_pairs (m, kind, seq);
}

bool
ls_model_masks_window (const LsModel *m, uint32_t kind, uint32_t seq)
{
  const LsModel own = ls_model_of_kind (m, kind);
  bool is_plain = own.index.heads == 0 && !ls_model_is_compressed (&own) && !(kind & LS_LAYER_ENCODER);
  return is_plain && kind & LS_LAYER_WINDOWED && own.attn.window <= seq;
}

double
ls_model_index_flops (const LsModel *m, uint32_t kind, uint32_t seq)
{
  bool has_indexer = ls_layer_has_attention (kind) && !(kind & LS_LAYER_CHOSEN) && kind & LS_LAYER_WINDOWED
      && (!ls_model_is_compressed (m) || kind & LS_LAYER_CSA);
  uint32_t n_keys = seq / MAX (1, ls_compressed_ratio (m, kind));
  return has_indexer ? (double) seq * n_keys * m->index.heads * m->index.dim : 0;
}

double
ls_model_attention_width (const LsModel *m, uint32_t kind)
{
  LsModel own = ls_model_of_kind (m, kind);
  uint32_t calls = m->attn.difference ? 2 : 1; /* of attention for each head */
  return calls * own.n_heads * ((double) own.head_dim + ls_model_v_dim (&own)) / 2;
}
