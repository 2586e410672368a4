#include "model/convolved.h"

static uint64_t
columns (const LsModel *m)
{
  return ((uint64_t) m->n_heads + m->n_kv_heads) * m->head_dim;
}

uint64_t
ls_convolved_linear_params (const LsModel *m)
{
  return columns (m) * m->head_dim * m->attn.qk_mix;
}

uint64_t
ls_convolved_other_params (const LsModel *m)
{
  return m->attn.qk_conv > 0 ? columns (m) * (m->attn.qk_conv + 2) + m->n_kv_heads : 0;
}

uint64_t
ls_router_linear_params (const LsModel *m)
{
  uint64_t r = m->moe.router_hidden, n = ls_model_router_width (m);
  return r > 0 ? r * (m->hidden + 2 * r + n) : m->hidden * n;
}

uint64_t
ls_router_other_params (const LsModel *m)
{
  return 5 * (uint64_t) m->moe.router_hidden;
}

uint64_t
ls_residual_params (const LsModel *m)
{
  return m->halves.residual_scale ? 4 * (uint64_t) m->hidden : 0;
}

const char *
ls_model_check_convolved (const LsModel *m)
{
  if ((m->attn.qk_conv > 0) != (m->attn.qk_mix > 0))
    return "expected \"qk_conv\" with \"qk_mix\"";
  if (m->moe.router_hidden > 0 && m->moe.n_experts == 0)
    return "missing key \"experts\", which \"router_hidden\" goes with";
  bool is_plain = m->latent.kv_lora + m->latent.q_lora + m->compressed.out_groups + m->index.heads
              + m->sides.encoder_layers + m->predict.layers + m->halves.kv_shared_layers
              + m->moe.attention_experts + m->layers.shared_blocks + m->attn.kv_conv
          == 0
      && !m->attn.full_k_is_v && !m->attn.difference && !ls_model_heads_differ (m);
  if (m->attn.qk_conv > 0 && !is_plain)
    return "expected plain attention, of the same heads in all layers of a decoder, with convolutions of "
           "queries and keys";
  if (m->moe.router_hidden > 0 && m->predict.layers + m->moe.shared_ffn > 0)
    return "expected neither \"predict_layers\" nor \"shared_ffn\" with \"router_hidden\"";
  return m->halves.residual_scale
          && (m->halves.streams > 1 || m->linear_bias || m->norms != LS_NORMS_PRE
              || m->sides.encoder_layers > 0)
      ? "expected norms before each half, one residual stream and neither biases nor an encoder with "
        "scales of residuals"
      : NULL;
}
