/* Layers of a model: which parts each has, and how wide they are. */
#include "model/model.h"

#include <string.h>

/* Of the pattern; of an empty one, which rules forbid, as if there were none. */
static char
letter_of (const LsModel *m, uint32_t layer)
{
  bool has_letters = m->layers.pattern && *m->layers.pattern;
  return has_letters ? m->layers.pattern[layer % strlen (m->layers.pattern)] : 'A';
}

/* Whose weights it has: of this layer all that is said by place is said. */
static uint32_t
own_layer (const LsModel *m, uint32_t layer)
{
  return m->layers.own > 0 ? layer % m->layers.own : layer;
}

bool
ls_model_has_experts (const LsModel *m, uint32_t again)
{
  uint32_t layer = own_layer (m, again);
  char letter = letter_of (m, layer);
  if (m->moe.n_experts == 0 || layer < m->moe.n_dense_layers || strchr ("BDamd", letter))
    return false;
  return letter == 'e' || (layer - m->moe.n_dense_layers + 1) % MAX (1, m->moe.every) == 0;
}

static uint32_t
traits_of (char letter)
{
  switch (letter) {
  case 'M':
    return LS_LAYER_MIXER;
  case 'P':
    return LS_LAYER_MIXER | LS_LAYER_BOTH;
  case 'B':
    return LS_LAYER_MIXER | LS_LAYER_NO_MLP | LS_LAYER_BLOCK;
  case 'm':
    return LS_LAYER_MIXER | LS_LAYER_NO_MLP;
  case 'a':
    return LS_LAYER_NO_MLP;
  case 'd':
  case 'e':
    return LS_LAYER_NO_MIXING;
  case 'S':
    return LS_LAYER_CSA;
  case 'H':
    return LS_LAYER_HCA;
  default:
    return 0;
  }
}

bool
ls_layer_has_attention (uint32_t kind)
{
  return kind & (LS_LAYER_BOTH | LS_LAYER_BLOCK) || !(kind & (LS_LAYER_MIXER | LS_LAYER_NO_MIXING));
}

static bool
is_windowed (const LsModel *m, uint32_t layer)
{
  if (m->layers.n_window > 0)
    return m->layers.window[layer % m->layers.n_window] > 0;
  return m->attn.window > 0
      && (m->attn.full_every == 0 || (layer + !m->attn.full_first) % m->attn.full_every != 0);
}

static bool
is_unrotated (const LsModel *m, uint32_t layer)
{
  return m->attn.unrotated_every > 0 && (layer + 1) % m->attn.unrotated_every == 0;
}

#define MODEL_LIST(field_, name_)                                                                            \
  {                                                                                                          \
    offsetof (LsModel, layers.name_), offsetof (LsModel, layers.n_##name_), offsetof (LsModel, field_)       \
  }

const LsModelList ls_model_lists[LS_N_MODEL_LISTS] = {
  MODEL_LIST (n_heads, heads),
  MODEL_LIST (n_kv_heads, kv_heads),
  MODEL_LIST (ffn, ffn),
  MODEL_LIST (attn.window, window),
  MODEL_LIST (moe.n_experts, experts),
  MODEL_LIST (moe.top_k, top_k),
  MODEL_LIST (moe.expert_ffn, expert_ffn),
};

/* Of a list; what all others have if there is none, or 0 in it, which of windows is a value. */
static uint32_t
value_at (const LsModel *m, const LsModelList *l, uint32_t layer)
{
  uint32_t n = G_STRUCT_MEMBER (uint32_t, m, l->n), other = G_STRUCT_MEMBER (uint32_t, m, l->field);
  uint32_t own = n > 0 ? G_STRUCT_MEMBER (uint32_t *, m, l->list)[layer % n] : 0;
  bool is_said = n > 0 && (own > 0 || l->field == offsetof (LsModel, attn.window));
  return is_said ? own : other;
}

bool
ls_model_has_lists (const LsModel *m)
{
  uint32_t n = 0;
  for (guint i = 0; i < LS_N_MODEL_LISTS; i++)
    n |= G_STRUCT_MEMBER (uint32_t, m, ls_model_lists[i].n);
  return n > 0;
}

bool
ls_model_experts_differ (const LsModel *m)
{
  return m->layers.n_experts + m->layers.n_top_k + m->layers.n_expert_ffn > 0;
}

static bool
are_alike (const LsModel *m, uint32_t layer, uint32_t other)
{
  for (guint i = 0; i < LS_N_MODEL_LISTS; i++)
    if (value_at (m, &ls_model_lists[i], layer) != value_at (m, &ls_model_lists[i], other))
      return false;
  return true;
}

static uint32_t
first_as_wide (const LsModel *m, uint32_t layer)
{
  uint32_t i = 0;
  if (!ls_model_has_lists (m))
    return 0;
  while (!are_alike (m, layer, i))
    i++;
  return i;
}

/* Of layers B, how many come before. */
static uint32_t
n_blocks_before (const LsModel *m, uint32_t layer)
{
  uint32_t length = (uint32_t) strlen (m->layers.pattern), n = 0;
  for (uint32_t i = 0; i < length; i++)
    if (m->layers.pattern[i] == 'B')
      n += layer / length + (i < layer % length);
  return n;
}

static uint32_t
traits_at (const LsModel *m, uint32_t layer)
{
  uint32_t kind = traits_of (letter_of (m, layer)) | (ls_model_has_experts (m, layer) ? LS_LAYER_EXPERTS : 0)
      | (layer < m->halves.sparse_layers ? LS_LAYER_SPARSE : 0);
  bool shares = layer + m->halves.kv_shared_layers >= m->n_layers;
  if (!ls_layer_has_attention (kind))
    return kind | (shares && kind & LS_LAYER_MIXER ? LS_LAYER_KV_SHARED : 0);
  kind |= kind & LS_LAYER_BLOCK && n_blocks_before (m, layer) >= m->layers.shared_blocks ? LS_LAYER_AGAIN : 0;
  kind |= shares ? LS_LAYER_KV_SHARED : 0;
  bool is_chosen_for
      = m->index.every > 0 && layer >= m->index.first && (layer - m->index.first + 1) % m->index.every != 0;
  if (layer < m->sides.encoder_layers)
    kind |= LS_LAYER_ENCODER;
  else if (m->sides.encoder_layers > 0) /* the decoder's behind one */
    kind |= LS_LAYER_CROSS | (m->sides.merged_cross ? LS_LAYER_MERGED : 0);
  return kind | (is_windowed (m, layer) ? LS_LAYER_WINDOWED : 0)
      | (is_unrotated (m, layer) ? LS_LAYER_UNROTATED : 0) | (is_chosen_for ? LS_LAYER_CHOSEN : 0);
}

/* Of a layer of a block: by its letter; what layers differ in by place is as in the last of the model. */
static uint32_t
traits_of_predicting (const LsModel *m, char letter)
{
  uint32_t last = m->n_layers - 1, kind = traits_of (letter);
  kind |= m->moe.n_experts > 0 && !strchr ("Damd", letter) ? LS_LAYER_EXPERTS : 0;
  if (!ls_layer_has_attention (kind))
    return kind;
  return kind | (is_windowed (m, last) ? LS_LAYER_WINDOWED : 0)
      | (is_unrotated (m, last) ? LS_LAYER_UNROTATED : 0);
}

static uint32_t
predicting_kind (const LsModel *m, uint32_t layer)
{
  uint32_t place = layer - m->n_layers, n = ls_model_block_layers (m);
  uint32_t kind = m->predict.pattern ? traits_of_predicting (m, m->predict.pattern[place % n])
                                     : ls_model_layer_kind (m, m->n_layers - 1);
  kind |= m->predict.windowed && ls_layer_has_attention (kind) ? LS_LAYER_WINDOWED : 0;
  return kind | (ls_model_block_is_again (m, place / n) ? LS_LAYER_AGAIN : 0);
}

uint32_t
ls_model_layer_kind (const LsModel *m, uint32_t layer)
{
  if (m->predict.layers > 0 && layer >= m->n_layers)
    return predicting_kind (m, layer);
  uint32_t own = own_layer (m, layer);
  return traits_at (m, own) + (layer != own ? LS_LAYER_AGAIN : 0)
      + LS_N_LAYER_TRAITS * first_as_wide (m, own);
}

uint32_t
ls_model_first_of_kinds (const LsModel *m, uint32_t ret_first[LS_MAX_MODEL_KINDS])
{
  uint32_t kinds[LS_MAX_MODEL_KINDS], n = 0;
  for (uint32_t i = 0; i < m->n_layers; i++) {
    uint32_t kind = ls_model_layer_kind (m, i), k = 0;
    while (k < n && kinds[k] != kind)
      k++;
    if (k < n)
      continue;
    if (n == LS_MAX_MODEL_KINDS)
      return n + 1;
    kinds[n] = kind;
    ret_first[n++] = i;
  }
  return n;
}

uint32_t
ls_model_kind_place (const LsModel *m, const uint32_t *first, uint32_t n_kinds, uint32_t layer)
{
  uint32_t kind = ls_model_layer_kind (m, layer), k = 0;
  while (k + 1 < n_kinds && ls_model_layer_kind (m, first[k]) != kind)
    k++;
  return k;
}

uint32_t
ls_model_n_layer_kinds (const LsModel *m)
{
  uint32_t first[LS_MAX_MODEL_KINDS];
  return ls_model_first_of_kinds (m, first);
}

uint32_t
ls_model_n_attention_layers (const LsModel *m)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->n_layers; i++)
    n += ls_layer_has_attention (ls_model_layer_kind (m, i));
  return n;
}

uint32_t
ls_model_n_moe_layers (const LsModel *m)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->n_layers; i++)
    n += ls_model_has_experts (m, i);
  return n;
}

LsModel
ls_model_of_kind (const LsModel *m, uint32_t kind)
{
  LsModel own = *m;
  uint32_t layer = kind / LS_N_LAYER_TRAITS;
  for (guint i = 0; i < LS_N_MODEL_LISTS; i++) {
    const LsModelList *l = &ls_model_lists[i];
    G_STRUCT_MEMBER (uint32_t, &own, l->field) = value_at (m, l, layer);
    G_STRUCT_MEMBER (uint32_t *, &own, l->list) = NULL;
    G_STRUCT_MEMBER (uint32_t, &own, l->n) = 0;
  }
  own.halves.kv_shared_layers = (kind & LS_LAYER_KV_SHARED) != 0;
  own.attn.gate = m->attn.gate && (!m->attn.gate_windowed || kind & LS_LAYER_WINDOWED);
  own.attn.gate_own = m->attn.gate_own && own.attn.gate;
  if (kind & LS_LAYER_CHOSEN || !(kind & LS_LAYER_WINDOWED))
    own.index.heads = own.index.dim = own.index.block = 0;
  if (!(kind & LS_LAYER_WINDOWED))
    return own;
  own.n_heads = m->attn.window_heads ? m->attn.window_heads : own.n_heads;
  own.n_kv_heads = m->attn.window_kv_heads ? m->attn.window_kv_heads : own.n_kv_heads;
  own.head_dim = m->attn.window_head_dim ? m->attn.window_head_dim : m->head_dim;
  own.attn.rotary_dim = m->attn.rotary_dim < own.head_dim ? m->attn.rotary_dim : 0;
  own.attn.full_k_is_v = false;
  return own;
}

bool
ls_model_heads_differ (const LsModel *m)
{
  return m->attn.window_heads + m->attn.window_kv_heads + m->attn.window_head_dim > 0 || m->attn.full_k_is_v
      || m->layers.n_heads + m->layers.n_kv_heads > 0;
}

bool
ls_model_widths_differ (const LsModel *m)
{
  return ls_model_heads_differ (m) || m->layers.n_ffn > 0;
}

bool
ls_model_is_cut_evenly (const LsModel *m, uint32_t tp)
{
  bool is_even = m->n_heads % tp == 0 && m->ffn % tp == 0;
  if (!is_even || !ls_model_widths_differ (m))
    return is_even;
  uint32_t first[LS_MAX_MODEL_KINDS], n = ls_model_first_of_kinds (m, first);
  for (uint32_t i = 0; i < n && is_even; i++) {
    LsModel own = ls_model_of_kind (m, ls_model_layer_kind (m, first[i]));
    is_even = own.n_heads % tp == 0 && own.ffn % tp == 0;
  }
  return is_even;
}

/* --- multi-token prediction --- */

/* Multi-token prediction: blocks behind the last layer that predict tokens further ahead
 * (DeepSeek-AI 2024, DeepSeek-V3, arXiv 2412.19437, section 2.2).
 *
 * Block k of D takes what block k - 1 made of a token, or the model, and the embedding of the token that is k
 * further: a norm of each, both through one projection of 2h x h, the layers of the block, a norm, and the
 * head of the model again. Its loss is added to that of the model.
 *
 *     parameters    2 h^2 + 3 norms + layers    of each block; of the first alone where they share weights
 *     per token     6 (2 h^2 + layers + V h)    FLOPs of each block, shared or not
 *
 * A block has one layer as the last of the model has it (DeepSeek-V3; Megatron-Core's GPT models), or a
 * pattern of its own: "ae" is attention and experts as one block (Nemotron 3; Megatron-Core,
 * mtp_hybrid_override_pattern). Blocks may share their weights (Megatron-Core, mtp_use_repeated_layer): there
 * is one, which each token goes through D times. Its activations are kept D times; its weights, gradients and
 * optimizer states are there once, and each pass adds to the same gradient, which is reduced when the last
 * has.
 *
 * In a pipeline all blocks are on the last stage (Megatron-Core, multi_token_prediction.py: on the last
 * virtual stage). */

uint32_t
ls_model_block_layers (const LsModel *m)
{
  return m->predict.pattern ? (uint32_t) strlen (m->predict.pattern) : 1;
}

uint32_t
ls_model_n_all_layers (const LsModel *m)
{
  return m->n_layers + m->predict.layers * ls_model_block_layers (m);
}

bool
ls_model_block_is_again (const LsModel *m, uint32_t block)
{
  return m->predict.shared && block > 0;
}
