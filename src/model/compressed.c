#include "model/compressed.h"

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
static uint64_t
columns_of (uint32_t kind, uint32_t width)
{
  return (kind & LS_LAYER_CSA ? 4 : kind & LS_LAYER_HCA ? 2 : 0) * (uint64_t) width;
}

uint64_t
ls_compressed_columns (const LsModel *m, uint32_t kind)
{
  return columns_of (kind, m->head_dim);
}

uint64_t
ls_compressed_index_columns (const LsModel *m, uint32_t kind)
{
  return kind & LS_LAYER_CSA ? columns_of (kind, m->index.dim) : 0;
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

uint64_t
ls_compressed_whole_params (const LsModel *m, uint32_t kind)
{
  uint64_t h = m->hidden, width = (uint64_t) m->index.heads * m->index.dim;
  uint64_t n = h * ((uint64_t) m->latent.q_lora + m->head_dim + ls_compressed_columns (m, kind));
  return kind & LS_LAYER_CSA
      ? n + h * (ls_compressed_index_columns (m, kind) + m->index.heads) + m->latent.q_lora * width
      : n;
}

uint64_t
ls_compressed_linear_params (const LsModel *m, uint32_t kind)
{
  uint64_t queries = (uint64_t) m->n_heads * m->head_dim;
  return ls_compressed_whole_params (m, kind) + m->latent.q_lora * queries + queries * m->compressed.out_lora
      + (uint64_t) m->compressed.out_groups * m->compressed.out_lora * m->hidden;
}

/* Norm of a mean, and a weight of each of its tokens beside what the token makes. */
static uint64_t
pool_params (const LsModel *m, uint32_t kind, uint32_t width)
{
  return ls_compressed_ratio (m, kind) * columns_of (kind, width) / 2 + width;
}

uint64_t
ls_compressed_other_params (const LsModel *m, uint32_t kind)
{
  uint64_t n = (uint64_t) m->latent.q_lora + m->head_dim + m->n_heads;
  n += ls_compressed_ratio (m, kind) > 0 ? pool_params (m, kind, m->head_dim) : 0;
  return n + (kind & LS_LAYER_CSA ? pool_params (m, kind, m->index.dim) : 0);
}
