/* Layers of a model: which parts each has, and how wide they are. */
#include "model/model.h"

#include <string.h>

/* Of the pattern. */
static char
letter_of (const LsModel *m, uint32_t layer)
{
  return m->layer_pattern ? m->layer_pattern[layer % strlen (m->layer_pattern)] : 'A';
}

bool
ls_model_has_experts (const LsModel *m, uint32_t layer)
{
  char letter = letter_of (m, layer);
  if (m->n_experts == 0 || layer < m->n_dense_layers || strchr ("amd", letter))
    return false;
  return letter == 'e' || (layer - m->n_dense_layers + 1) % MAX (1, m->moe_every) == 0;
}

static uint32_t
traits_of (char letter)
{
  switch (letter) {
  case 'M':
    return LS_LAYER_MIXER;
  case 'P':
    return LS_LAYER_MIXER | LS_LAYER_BOTH;
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
  return kind & LS_LAYER_BOTH || !(kind & (LS_LAYER_MIXER | LS_LAYER_NO_MIXING));
}

static bool
is_windowed (const LsModel *m, uint32_t layer)
{
  return m->window > 0 && (m->full_every == 0 || (layer + !m->full_first) % m->full_every != 0);
}

static bool
is_unrotated (const LsModel *m, uint32_t layer)
{
  return m->unrotated_every > 0 && (layer + 1) % m->unrotated_every == 0;
}

static bool
is_chosen_for (const LsModel *m, uint32_t layer)
{
  return m->index_every > 0 && layer >= m->index_first && (layer - m->index_first + 1) % m->index_every != 0;
}

/* Whether it is the encoder's, or the decoder's behind one. */
static uint32_t
side_of (const LsModel *m, uint32_t layer)
{
  if (m->encoder_layers == 0)
    return 0;
  return layer < m->encoder_layers ? LS_LAYER_ENCODER : LS_LAYER_CROSS;
}

/* Of a list; what all others have if there is none, or 0 in it. */
static uint32_t
width_at (const uint32_t *list, uint32_t n, uint32_t layer, uint32_t other)
{
  return n > 0 && list[layer % n] > 0 ? list[layer % n] : other;
}

static uint32_t
heads_at (const LsModel *m, uint32_t layer)
{
  return width_at (m->layer_heads, m->n_layer_heads, layer, m->n_heads);
}

static uint32_t
kv_heads_at (const LsModel *m, uint32_t layer)
{
  return width_at (m->layer_kv_heads, m->n_layer_kv_heads, layer, m->n_kv_heads);
}

static uint32_t
ffn_at (const LsModel *m, uint32_t layer)
{
  return width_at (m->layer_ffn, m->n_layer_ffn, layer, m->ffn);
}

bool
ls_model_has_lists (const LsModel *m)
{
  return m->n_layer_heads + m->n_layer_kv_heads + m->n_layer_ffn > 0;
}

static uint32_t
first_as_wide (const LsModel *m, uint32_t layer)
{
  uint32_t heads = heads_at (m, layer), kv_heads = kv_heads_at (m, layer), ffn = ffn_at (m, layer), i = 0;
  while (ls_model_has_lists (m)
         && (heads_at (m, i) != heads || kv_heads_at (m, i) != kv_heads || ffn_at (m, i) != ffn))
    i++;
  return i;
}

static uint32_t
traits_at (const LsModel *m, uint32_t layer)
{
  uint32_t kind = traits_of (letter_of (m, layer)) | (ls_model_has_experts (m, layer) ? LS_LAYER_EXPERTS : 0);
  if (!ls_layer_has_attention (kind))
    return kind;
  return kind | (is_windowed (m, layer) ? LS_LAYER_WINDOWED : 0)
      | (is_unrotated (m, layer) ? LS_LAYER_UNROTATED : 0) | (is_chosen_for (m, layer) ? LS_LAYER_CHOSEN : 0)
      | side_of (m, layer);
}

uint32_t
ls_model_layer_kind (const LsModel *m, uint32_t layer)
{
  return traits_at (m, layer) + LS_N_LAYER_TRAITS * first_as_wide (m, layer);
}

/* Of more than LS_MAX_MODEL_KINDS, so many and one. */
static uint32_t
find_kinds (const LsModel *m, uint32_t ret_first[LS_MAX_MODEL_KINDS])
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
ls_model_first_of_kinds (const LsModel *m, uint32_t ret_first[LS_MAX_MODEL_KINDS])
{
  uint32_t n = find_kinds (m, ret_first);
  g_assert (n <= LS_MAX_MODEL_KINDS);
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
  own.n_heads = heads_at (m, layer), own.n_kv_heads = kv_heads_at (m, layer), own.ffn = ffn_at (m, layer);
  own.layer_heads = own.layer_kv_heads = own.layer_ffn = NULL;
  own.n_layer_heads = own.n_layer_kv_heads = own.n_layer_ffn = 0;
  if (kind & LS_LAYER_CHOSEN || !(kind & LS_LAYER_WINDOWED))
    own.index_heads = own.index_dim = own.index_block = 0;
  if (!(kind & LS_LAYER_WINDOWED))
    return own;
  own.n_heads = m->window_heads ? m->window_heads : own.n_heads;
  own.n_kv_heads = m->window_kv_heads ? m->window_kv_heads : own.n_kv_heads;
  own.head_dim = m->window_head_dim ? m->window_head_dim : m->head_dim;
  own.rotary_dim = m->rotary_dim < own.head_dim ? m->rotary_dim : 0;
  own.full_k_is_v = false;
  return own;
}

bool
ls_model_heads_differ (const LsModel *m)
{
  return m->window_heads + m->window_kv_heads + m->window_head_dim > 0 || m->full_k_is_v
      || m->n_layer_heads + m->n_layer_kv_heads > 0;
}

bool
ls_model_widths_differ (const LsModel *m)
{
  return ls_model_heads_differ (m) || m->n_layer_ffn > 0;
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

/* Of plain attention, in layers with a window. */
static const char *
check_grouped_indexer (const LsModel *m)
{
  bool is_plain = m->q_lora == 0 && m->encoder_layers == 0 && m->mixer == LS_MIXER_NONE && !m->layer_pattern
      && !ls_model_has_lists (m) && m->window_kind == LS_WINDOW_SLIDING && m->norms == LS_NORMS_PRE;
  if (m->index_heads == 0 || m->index_dim == 0 || m->window == 0 || m->index_every + m->index_first > 0)
    return "expected \"index_heads\" and \"index_dim\" with a \"window\" of chosen keys, and neither "
           "\"index_every\" nor \"index_first\" without latent attention";
  if (m->index_block > 0 && m->window % m->index_block != 0)
    return "expected \"index_block\" that divides the \"window\" of chosen keys";
  return is_plain
      ? NULL
      : "expected norms before each half and neither patterns, lists of widths, mixers, chunks, an "
        "encoder nor q_lora with an indexer of plain attention";
}

const char *
ls_model_check_indexer (const LsModel *m)
{
  if (m->index_heads + m->index_dim + m->index_block + m->index_every + m->index_first == 0)
    return NULL;
  if (m->kv_lora == 0)
    return check_grouped_indexer (m);
  if ((m->index_heads > 0) != (m->index_dim > 0) || m->index_block > 0
      || (m->index_heads > 0 && (m->q_lora == 0 || m->window == 0 || m->full_every > 0)))
    return "expected \"index_heads\" and \"index_dim\", with \"q_lora\" and \"window\" keys in all layers, "
           "one by one";
  if (m->index_every + m->index_first > 0
      && (m->index_heads == 0 || m->index_every == 0 || m->layer_pattern || m->index_first > m->n_layers))
    return "expected \"index_heads\" with \"index_every\" and, of no more than all layers, "
           "\"index_first\", and no \"layer_pattern\"";
  return NULL;
}

const char *
ls_model_check_lists (const LsModel *m)
{
  uint32_t first[LS_MAX_MODEL_KINDS];
  if (!ls_model_has_lists (m))
    return NULL;
  if (m->kv_lora + m->out_groups + m->encoder_layers + m->predict_layers > 0)
    return "expected neither latents, an encoder nor predict_layers where widths are listed";
  if (m->window_heads + m->window_kv_heads + m->window_head_dim > 0 || m->full_k_is_v)
    return "expected no heads of windowed layers alone where widths are listed";
  for (uint32_t i = 0; i < m->n_layers; i++)
    if (heads_at (m, i) % kv_heads_at (m, i) != 0)
      return "expected heads of keys and values that divide the heads of each layer";
  return find_kinds (m, first) <= LS_MAX_MODEL_KINDS
      ? NULL
      : "expected layers of at most " G_STRINGIFY (LS_MAX_MODEL_KINDS) " kinds";
}
