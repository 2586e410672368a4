/* Mixers of config.json: state-space models, linear attention, short convolutions. */
#include <string.h>

#include "data/jobs/hf_family.h"

bool
hf_read_auto_sizes (const LsJsonDoc *doc, HfConfig *c, LsDiagList *diags)
{
  const struct {
    const char *key;
    uint32_t *target;
  } sizes[] = {
    { "time_step_rank", &c->mixer_rank },
    { "mamba_dt_rank", &c->mixer_rank },
    { "dt_rank", &c->mixer_rank },
    { "mamba_d_head", &c->mixer_head_dim },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++) {
    const cJSON *node = hf_get (doc, sizes[i].key);
    bool is_auto = cJSON_IsString (node) && strcmp (node->valuestring, "auto") == 0;
    if (!node || cJSON_IsNull (node) || is_auto)
      continue;
    if (!cJSON_IsNumber (node) || node->valuedouble < 1 || node->valuedouble > 1 << 20
        || node->valuedouble != (uint32_t) node->valuedouble)
      return hf_refuse (doc, node, diags, "expected \"auto\" or a whole number from 1 to 1048576");
    *sizes[i].target = (uint32_t) node->valuedouble;
  }
  return true;
}

/* configuration_olmo_hybrid.py of Transformers; modeling_phi4flash.py. */
void
hf_share_out (const HfFamily *f, HfConfig *c)
{
  if (f->own_behind_half > 0)
    c->kv_shared
        = c->layers > c->layers / 2 + f->own_behind_half ? c->layers - c->layers / 2 - f->own_behind_half : 0;
  if (f->mixer_key_share <= 0)
    return;
  c->mixer_heads = c->mixer_heads ? c->mixer_heads : c->heads;
  c->mixer_groups = c->mixer_groups ? c->mixer_groups : c->heads;
  if (c->mixer_state == 0)
    c->mixer_state = (uint32_t) (f->mixer_key_share * c->hidden / c->mixer_groups);
  c->mixer_head_dim = c->mixer_head_dim ? c->mixer_head_dim : 2 * c->mixer_state;
}

/* configuration_mamba.py of Transformers: a sixteenth of hidden, rounded up; modeling_plamo2.py. */
static uint32_t
rank (const HfFamily *f, const HfConfig *c, const LsModel *m)
{
  if (m->mixer.kind == LS_MIXER_RWKV7)
    return c->decay_rank + c->rate_rank + c->value_rank + c->gate_rank;
  if (m->mixer.kind == LS_MIXER_LINEAR)
    return c->decay_rank;
  if (f->least_rank > 0)
    return MAX (f->least_rank, m->hidden / 16);
  return m->mixer.kind != LS_MIXER_MAMBA1 ? 0 : c->mixer_rank > 0 ? c->mixer_rank : (m->hidden + 15) / 16;
}

/* Widths that are shares of others (fla/layers of flash-linear-attention, xlstm): keys and values of all
 * heads of hidden; where keys of a head are said, a value of a key. A width of a head may say how many there
 * are. */
static void
set_shares (const HfConfig *c, LsModel *m)
{
  if (c->value_share <= 0)
    return;
  if (c->key_share <= 0) {
    m->mixer.heads = c->mixer_heads ? c->mixer_heads : c->mixer_groups;
    m->mixer.head_dim = (uint32_t) (c->value_share * c->mixer_state);
    return;
  }
  m->mixer.heads = m->mixer.kind == LS_MIXER_MLSTM ? m->n_heads
      : c->mixer_head_dim > 0                      ? c->hidden / c->mixer_head_dim
                                                   : c->mixer_heads;
  m->mixer.head_dim = (uint32_t) (c->value_share * c->hidden) / MAX (1, m->mixer.heads);
  m->mixer.state = (uint32_t) (c->key_share * c->hidden) / MAX (1, m->mixer.heads);
}

void
hf_add_mixer (const HfFamily *f, const HfConfig *c, LsModel *m)
{
  bool is_conv = m->mixer.kind == LS_MIXER_CONV; /* as wide as all unless conv_dim says otherwise */
  uint64_t own = (uint64_t) (c->mixer_expand == 0 && is_conv ? 1 : c->mixer_expand) * c->hidden,
           inner = c->mixer_width > 0 ? c->mixer_width : own;
  if (m->mixer.kind == LS_MIXER_NONE)
    return;
  bool is_linear = m->mixer.kind == LS_MIXER_LINEAR, is_recurrent = m->mixer.kind == LS_MIXER_RGLRU;
  uint32_t width = c->mixer_width ? c->mixer_width : c->hidden;
  uint64_t own_dim = c->mixer_head_dim || c->mixer_heads == 0 ? c->mixer_head_dim : inner / c->mixer_heads;
  m->mixer.head_dim = is_linear ? m->head_dim : is_recurrent ? width / m->n_heads : (uint32_t) own_dim;
  m->mixer.heads = is_linear || is_recurrent ? m->n_heads
      : c->mixer_heads                       ? c->mixer_heads
                                             : (uint32_t) (inner / MAX (1, c->mixer_head_dim));
  m->mixer.groups = c->mixer_groups;
  m->mixer.state = m->mixer.kind != LS_MIXER_KDA ? c->mixer_state : 0; /* else as wide as values */
  m->mixer.conv = c->mixer_conv;
  m->mixer.chunk = c->mixer_chunk;
  m->mixer.rank = rank (f, c, m);
  m->mixer.bias = c->mixer_bias;
  m->mixer.plain_conv
      = !c->mixer_conv_bias && (m->mixer.kind == LS_MIXER_MAMBA1 || m->mixer.kind == LS_MIXER_MAMBA2);
  m->mixer.full_gate = c->mixer_full_gate;
  if (m->mixer.kind == LS_MIXER_RWKV7) { /* heads as wide as the file says divide hidden */
    m->mixer.head_dim = m->mixer.state = m->head_dim;
    m->mixer.heads = m->hidden / MAX (1, m->head_dim);
    m->mixer.groups = m->mixer.heads;
  }
  set_shares (c, m);
  m->mixer.ungated = !c->mixer_gate;
  if (m->mixer.ungated && m->mixer.products > 0)
    m->mixer.products--;
}
