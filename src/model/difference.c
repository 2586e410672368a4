#include "model/difference.h"

uint64_t
ls_difference_params (const LsModel *m)
{
  return m->attn.difference ? (m->attn.difference_plain ? 4 : 6) * (uint64_t) m->head_dim : 0;
}

uint32_t
ls_difference_calls (const LsModel *m)
{
  return m->attn.difference ? 2 : 1;
}

uint64_t
ls_difference_noise_heads (const LsModel *m, uint64_t heads)
{
  return m->attn.noise_heads > 0 ? heads * m->attn.noise_heads / m->n_heads : heads / 2;
}

uint64_t
ls_difference_context (const LsModel *m, uint64_t heads)
{
  return 2 * (heads - ls_difference_noise_heads (m, heads)) * m->head_dim;
}

bool
ls_model_shares_keys_evenly (const LsModel *m)
{
  uint32_t half = m->n_kv_heads / 2, noise = m->attn.noise_heads;
  if (noise == 0 || noise >= m->n_heads || half == 0)
    return m->n_heads % m->n_kv_heads == 0;
  return (m->n_heads - noise) % half == 0 && noise % half == 0;
}

const char *
ls_model_check_difference (const LsModel *m)
{
  if (m->attn.noise_heads > 0
      && (!m->attn.difference || m->attn.noise_heads >= m->n_heads || m->n_heads % m->attn.noise_heads != 0))
    return "expected \"difference\", and a divisor of the heads, less than all, with \"noise_heads\"";
  if (!m->attn.difference)
    return m->attn.difference_plain ? "expected \"difference\" with \"difference_plain\"" : NULL;
  if (m->n_heads % 2 != 0 || m->n_kv_heads % 2 != 0)
    return "expected pairs of heads, of keys too, with differences of attention";
  bool is_plain = m->latent.kv_lora + m->latent.q_lora + m->compressed.out_groups + m->index.heads
              + m->sides.encoder_layers + m->moe.attention_experts + m->layers.shared_blocks + m->v_dim
          == 0
      && !ls_model_heads_differ (m);
  return is_plain ? NULL
                  : "expected neither latents, indexers, an encoder, experts of attention, shared blocks, "
                    "v_dim nor heads that differ with differences of attention";
}

uint64_t
ls_kv_conv_params (const LsModel *m)
{
  return 2 * (uint64_t) m->n_kv_heads * m->attn.kv_conv;
}

const char *
ls_model_check_kv_conv (const LsModel *m)
{
  bool is_plain = m->latent.kv_lora + m->compressed.out_groups + m->index.heads + m->sides.encoder_layers
              + m->halves.kv_shared_layers + m->moe.attention_experts + m->layers.shared_blocks
          == 0
      && !m->attn.full_k_is_v;
  return m->attn.kv_conv == 0 || is_plain
      ? NULL
      : "expected neither latents of keys, indexers, an encoder, shared keys or blocks, experts of attention "
        "nor keys that are values with a convolution of keys and values";
}
