#include "model/beside.h"

#include <string.h>

#include "model/streams.h"

bool
ls_model_has_beside (const LsModel *m)
{
  return m->halves.layer_input + m->halves.laurel_rank + m->halves.kv_shared_layers + m->halves.sparse_layers
      > 0
      || ls_streams_alternate (m);
}

uint64_t
ls_beside_linear_params (const LsModel *m)
{
  return 2 * (uint64_t) m->hidden * ((uint64_t) m->halves.layer_input + m->halves.laurel_rank);
}

/* A norm each. */
uint64_t
ls_beside_other_params (const LsModel *m)
{
  return (uint64_t) m->hidden * ((m->halves.layer_input > 0) + (m->halves.laurel_rank > 0));
}

static uint64_t
width_of_all (const LsModel *m)
{
  return (uint64_t) m->n_layers * m->halves.layer_input;
}

uint64_t
ls_beside_end_linear_params (const LsModel *m)
{
  return m->hidden * width_of_all (m);
}

uint64_t
ls_beside_end_other_params (const LsModel *m)
{
  return m->halves.layer_input;
}

uint64_t
ls_beside_table_params (const LsModel *m)
{
  return m->halves.layer_vocab * width_of_all (m);
}

static bool
gates_experts (uint32_t kind)
{
  return kind & LS_LAYER_EXPERTS && !(kind & LS_LAYER_NO_MLP);
}

uint64_t
ls_norm_gate_params (const LsModel *m, uint32_t kind)
{
  return 2 * (uint64_t) m->hidden * m->halves.norm_gate_rank
      * (!(kind & LS_LAYER_NO_MIXING) + gates_experts (kind));
}

const char *
ls_model_check_norm_gate (const LsModel *m)
{
  if (m->latent.gate && (m->latent.kv_lora == 0 || m->latent.q_lora == 0 || m->attn.gate))
    return "expected \"latent_gate\" with \"kv_lora\" and \"q_lora\", and without \"attention_gate\"";
  bool is_plain = m->norms == LS_NORMS_PRE && m->norm == LS_NORM_RMSNORM && m->halves.streams <= 1
      && m->sides.encoder_layers + m->predict.layers == 0 && !m->linear_bias;
  return m->halves.norm_gate_rank + m->latent.gate == 0 || is_plain
      ? NULL
      : "expected RMS norms before each half, one stream, and neither an encoder, \"predict_layers\" nor "
        "biases with \"norm_gate_rank\" or \"latent_gate\"";
}

/* What it shares: keys and values as far as all see, or as a window goes; a memory. */
static uint32_t
shared_bit (uint32_t kind)
{
  return !ls_layer_has_attention (kind) ? 4 : kind & LS_LAYER_WINDOWED ? 2 : 1;
}

/* Layers that share have one of their kind before them that does not. Of listed windows none is known to be
 * that of another layer. */
static bool
has_sources (const LsModel *m)
{
  uint32_t own = 0, first = m->n_layers - m->halves.kv_shared_layers;
  for (uint32_t i = 0; i < m->n_layers; i++) {
    uint32_t bit = shared_bit (ls_model_layer_kind (m, i));
    if (i >= first && bit == 2 && m->layers.n_window > 0)
      return false;
    if (i < first)
      own |= bit;
    else if (!(own & bit))
      return false;
  }
  return true;
}

static const char *
check_shared (const LsModel *m)
{
  if (m->halves.kv_shared_layers == 0)
    return NULL;
  if (m->latent.kv_lora + m->compressed.out_groups + m->index.heads + m->layers.n_heads + m->layers.n_kv_heads
      > 0)
    return "expected neither latents, indexers, nor lists of heads where layers share keys and values";
  return m->halves.kv_shared_layers >= m->n_layers || !has_sources (m)
      ? "expected before layers that share keys and values one with its own that is windowed as they are"
      : NULL;
}

/* With layers that share, and nothing else of this. */
static const char *
check_plain (const LsModel *m)
{
  const char *pattern = m->layers.pattern;
  if (m->sides.encoder_layers + m->predict.layers + m->layers.own > 0 || m->linear_bias
      || (pattern && (pattern[strspn (pattern, "AM")] || m->mixer.kind != LS_MIXER_MAMBA1)))
    return "expected no biases on all layers, an encoder, \"predict_layers\" or \"own_layers\", and a "
           "pattern of A and M with mamba1 alone, where layers share keys and values";
  return check_shared (m);
}

const char *
ls_model_check_beside (const LsModel *m)
{
  if ((m->halves.layer_input > 0) != (m->halves.layer_vocab > 0))
    return "expected \"layer_input\" with \"layer_vocab\"";
  if (m->halves.stream_kind != LS_STREAMS_MIXED && m->halves.streams <= 1)
    return "expected \"streams\" of several where they alternate";
  if (!ls_model_has_beside (m))
    return NULL;
  if (m->halves.layer_input + m->halves.laurel_rank + m->halves.sparse_layers == 0
      && !ls_streams_alternate (m))
    return check_plain (m);
  if (m->layers.pattern || m->sides.encoder_layers + m->predict.layers + m->layers.own > 0 || m->linear_bias
      || m->norm != LS_NORM_RMSNORM)
    return "expected RMS norms, no biases, and neither a pattern, an encoder, \"predict_layers\" nor "
           "\"own_layers\" with inputs of layers, LAuReL, shared keys, sparse MLPs or alternating streams";
  if (m->halves.sparse_layers > m->n_layers || (m->halves.sparse_layers > 0 && !ls_mlp_is_gated (m->mlp)))
    return "expected \"sparse_layers\" of at most all, whose MLP has a gate";
  if (m->halves.sparse_layers > 0 && m->moe.n_experts > 0)
    return "expected no experts with \"sparse_layers\"";
  if ((m->halves.laurel_rank > 0 || m->halves.layer_input > 0) && m->norms == LS_NORMS_SHARED)
    return "expected norms of both halves with LAuReL or inputs of layers";
  return check_shared (m);
}
