#include "model/block.h"

#include <string.h>

#include "model/beside.h"
#include "model/streams.h"

static uint64_t
query_width (const LsModel *m)
{
  return (uint64_t) m->n_heads * m->head_dim;
}

static uint64_t
key_value_width (const LsModel *m)
{
  return (uint64_t) m->n_kv_heads * ls_model_kv_dim (m);
}

/* Columns of the way up, with a gate. */
static uint64_t
up_width (const LsModel *m)
{
  return (ls_mlp_is_gated (m->mlp) ? 2 : 1) * (uint64_t) m->ffn;
}

uint64_t
ls_block_shared_linear_params (const LsModel *m)
{
  uint64_t h = m->hidden, context = (uint64_t) m->n_heads * ls_model_v_dim (m);
  return 2 * h * (query_width (m) + key_value_width (m)) + context * h + h * (up_width (m) + m->ffn);
}

uint64_t
ls_block_shared_other_params (const LsModel *m)
{
  return 3 * ls_norm_n_vectors (m->norm) * (uint64_t) m->hidden;
}

uint64_t
ls_block_whole_params (const LsModel *m)
{
  return m->hidden
      * ((uint64_t) m->hidden + m->layers.block_mlp_rank + 6 * (uint64_t) m->layers.block_attention_rank);
}

uint64_t
ls_block_own_linear_params (const LsModel *m)
{
  return ls_block_whole_params (m) + m->layers.block_mlp_rank * up_width (m)
      + m->layers.block_attention_rank * (query_width (m) + key_value_width (m));
}

const char *
ls_model_check_blocks (const LsModel *m)
{
  bool has_layers = m->layers.pattern && strchr (m->layers.pattern, 'B');
  bool has_keys = m->layers.shared_blocks + m->layers.block_mlp_rank + m->layers.block_attention_rank > 0;
  if (!has_layers && !has_keys)
    return NULL;
  if (!has_layers || m->layers.shared_blocks == 0)
    return "expected \"shared_blocks\" with layers B, and layers B with it";
  bool is_plain = m->latent.kv_lora + m->latent.q_lora + m->compressed.out_groups + m->index.heads
              + m->moe.attention_experts
          == 0
      && m->sides.encoder_layers + m->predict.layers + m->layers.own == 0 && !ls_model_widths_differ (m)
      && !ls_model_has_beside (m) && ls_model_n_streams (m) == 1 && m->norms == LS_NORMS_PRE
      && !m->linear_bias && !m->attn.qkv_bias && !m->attn.qk_norm && !m->attn.gate;
  return is_plain
      ? NULL
      : "expected norms before each half, widths alike and neither latents, indexers, experts of "
        "attention, an encoder, layers that predict or come again, streams, biases, norms of heads nor "
        "gates with shared blocks";
}
