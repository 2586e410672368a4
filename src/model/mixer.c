#include "model/mixer.h"

uint64_t
ls_mixer_inner (const LsModel *m)
{
  return (uint64_t) m->mixer.heads * m->mixer.head_dim;
}

static uint64_t
keys (const LsModel *m)
{
  return (uint64_t) m->mixer.groups * m->mixer.state;
}

bool
ls_mixer_selects (const LsModel *m)
{
  return m->mixer.kind == LS_MIXER_MAMBA1 || (m->mixer.kind == LS_MIXER_MAMBA2 && m->mixer.rank > 0);
}

uint64_t
ls_mixer_select_width (const LsModel *m)
{
  return m->mixer.rank + 2 * (m->mixer.kind == LS_MIXER_MAMBA2 ? keys (m) : m->mixer.state);
}

uint64_t
ls_mixer_n_steps (const LsModel *m)
{
  return m->mixer.kind == LS_MIXER_MAMBA2 ? m->mixer.heads : ls_mixer_inner (m);
}

bool
ls_mixer_gates_memory (const LsModel *m)
{
  return m->halves.kv_shared_layers > 0;
}

uint64_t
ls_mixer_in_width (const LsModel *m)
{
  uint64_t inner = ls_mixer_inner (m), heads = m->mixer.heads;
  if (ls_mixer_gates_memory (m))
    return inner;
  switch (m->mixer.kind) {
  case LS_MIXER_MAMBA2:
    return 2 * inner + (ls_mixer_selects (m) ? 0 : 2 * keys (m) + heads);
  case LS_MIXER_DELTA:
  case LS_MIXER_MLSTM:
    return (m->mixer.ungated ? 1 : 2) * inner + 2 * keys (m) + (m->mixer.undecayed ? 1 : 2) * heads;
  case LS_MIXER_LINEAR:
    return (m->mixer.ungated ? 1 : 2) * inner + 2 * keys (m);
  case LS_MIXER_CONV:
  case LS_MIXER_RWKV7:
    return 3 * inner;
  case LS_MIXER_KDA:
    return (m->mixer.full_gate ? 2 : 1) * inner + 2 * keys (m) + heads;
  case LS_MIXER_MAMBA1:
  case LS_MIXER_RGLRU:
    return 2 * inner;
  case LS_MIXER_PRODUCT:
  case LS_MIXER_NONE:
    break;
  }
  return 0;
}

uint64_t
ls_mixer_conv_width (const LsModel *m)
{
  bool has_keys = (m->mixer.kind == LS_MIXER_MAMBA2 && !ls_mixer_selects (m))
      || m->mixer.kind == LS_MIXER_DELTA || m->mixer.kind == LS_MIXER_KDA;
  bool has_none = m->mixer.kind == LS_MIXER_LINEAR || m->mixer.kind == LS_MIXER_MLSTM
      || m->mixer.kind == LS_MIXER_RWKV7 || m->mixer.kind == LS_MIXER_PRODUCT;
  return has_none ? 0 : ls_mixer_inner (m) + (has_keys ? 2 * keys (m) : 0);
}

/* What makes step sizes and keys of the inner activations; of rglru, two gates of each head. */
static uint64_t
selection_params (const LsModel *m)
{
  uint64_t inner = ls_mixer_inner (m);
  if (m->mixer.kind == LS_MIXER_RGLRU)
    return 2 * inner * m->mixer.head_dim;
  return ls_mixer_selects (m) ? inner * ls_mixer_select_width (m) + m->mixer.rank * ls_mixer_n_steps (m) : 0;
}

uint32_t
ls_mixer_n_low_rank (const LsModel *m)
{
  if (m->mixer.kind == LS_MIXER_LINEAR)
    return m->mixer.rank > 0 ? 1 : 0;
  return m->mixer.kind != LS_MIXER_KDA ? 0 : m->mixer.full_gate ? 1 : 2;
}

uint64_t
ls_mixer_pair_rank (const LsModel *m)
{
  return m->mixer.kind == LS_MIXER_LINEAR ? m->mixer.rank : m->mixer.head_dim;
}

uint64_t
ls_mixer_pair_width (const LsModel *m)
{
  return m->mixer.kind == LS_MIXER_LINEAR ? keys (m) : ls_mixer_inner (m);
}

uint64_t
ls_mixer_low_rank (const LsModel *m)
{
  return m->mixer.kind == LS_MIXER_RWKV7 ? m->mixer.rank : ls_mixer_n_low_rank (m) * ls_mixer_pair_rank (m);
}

uint64_t
ls_mixer_mlp_params (const LsModel *m)
{
  return m->mixer.kind == LS_MIXER_RWKV7 ? m->hidden : 0;
}

uint64_t
ls_mixer_linear_params (const LsModel *m)
{
  if (ls_mixer_gates_memory (m))
    return 2 * m->hidden * ls_mixer_inner (m);
  return m->hidden * (ls_mixer_in_width (m) + ls_mixer_inner (m)) + selection_params (m)
      + ls_mixer_low_rank (m) * (m->hidden + ls_mixer_pair_width (m));
}

uint64_t
ls_mixer_in_biases (const LsModel *m)
{
  return m->mixer.bias && !ls_mixer_gates_memory (m) ? ls_mixer_in_width (m) : 0;
}

uint64_t
ls_mixer_out_biases (const LsModel *m)
{
  return m->mixer.bias && !ls_mixer_gates_memory (m) ? m->hidden : 0;
}

static bool
has_groups (const LsModel *m)
{
  return m->mixer.kind == LS_MIXER_MAMBA2 || m->mixer.kind == LS_MIXER_DELTA || m->mixer.kind == LS_MIXER_KDA
      || m->mixer.kind == LS_MIXER_MLSTM;
}

static bool
has_rank (const LsModel *m)
{
  return m->mixer.kind == LS_MIXER_MAMBA1 || m->mixer.kind == LS_MIXER_MAMBA2
      || m->mixer.kind == LS_MIXER_RWKV7 || m->mixer.kind == LS_MIXER_LINEAR;
}

const char *
ls_mixer_check_keys (const LsModel *m, const char **ret_key)
{
  *ret_key = "mixer_rank";
  if (m->mixer.rank > 0 && !has_rank (m))
    return "expected \"mixer\" mamba1, mamba2, linear or rwkv7, of which something has a rank";
  bool is_linear = m->mixer.kind == LS_MIXER_LINEAR, is_delta = m->mixer.kind == LS_MIXER_DELTA;
  *ret_key = "mixer_ungated";
  if (m->mixer.ungated && !is_delta && !is_linear)
    return "expected \"mixer\" delta or linear, which may have no gate";
  *ret_key = "mixer_undecayed";
  if (m->mixer.undecayed && !is_delta)
    return "expected \"mixer\" delta, whose states may have no decay";
  *ret_key = "mixer_head_norm";
  if (m->mixer.head_norm && !is_linear)
    return "expected \"mixer\" linear, whose norm is else as wide as all heads";
  *ret_key = "mixer_gate_bias";
  if (m->mixer.gate_bias && m->mixer.kind != LS_MIXER_KDA)
    return "expected \"mixer\" kda, whose gate may have a bias";
  *ret_key = "mixer_conv";
  if (m->mixer.conv > 0 && ls_mixer_conv_width (m) == 0)
    return "expected a \"mixer\" that has a convolution: linear, mlstm, rwkv7 and product have none";
  *ret_key = "mixer_groups";
  if (m->mixer.groups > 0 && m->mixer.groups != m->mixer.heads && !has_groups (m))
    return "expected \"mixer\" mamba2, delta or kda, of which heads share keys";
  return NULL;
}

const char *
ls_mixer_check_biases (const LsModel *m)
{
  bool is_mamba = (m->mixer.kind == LS_MIXER_MAMBA1 || m->mixer.kind == LS_MIXER_MAMBA2)
      && m->halves.kv_shared_layers == 0;
  if (m->mixer.plain_conv && !is_mamba)
    return "expected \"mixer\" mamba1 or mamba2, whose convolution has a bias";
  if (m->mixer.plain_keys && m->mixer.kind != LS_MIXER_MAMBA1)
    return "expected \"mixer\" mamba1, whose keys and step sizes may have norms";
  if (m->mixer.bias && !is_mamba && m->mixer.kind != LS_MIXER_CONV)
    return "expected \"mixer\" mamba1, mamba2 or conv: of others no biases are known";
  return NULL;
}

/* Beside the ways into it and out of it. */
static uint64_t
inner_params (const LsModel *m)
{
  uint64_t inner = ls_mixer_inner (m), conv = ls_mixer_conv_width (m), taps = m->mixer.conv,
           bias = !m->mixer.plain_conv;
  uint64_t heads = m->mixer.heads, state = m->mixer.state;
  if (ls_mixer_gates_memory (m))
    return 0;
  switch (m->mixer.kind) {
  case LS_MIXER_MAMBA2:
    return ls_mixer_selects (m) ? conv * taps + 3 * heads + ls_mixer_select_width (m)
                                : conv * (taps + bias) + 3 * heads + inner;
  case LS_MIXER_DELTA:
    return conv * taps + (m->mixer.undecayed ? 0 : 2 * heads) + m->mixer.head_dim;
  case LS_MIXER_KDA:
    return conv * taps + heads + (m->mixer.gate_bias ? 2 : 1) * inner + m->mixer.head_dim;
  case LS_MIXER_LINEAR:
    return (m->mixer.head_norm ? m->mixer.head_dim : inner) + (m->mixer.rank > 0 ? keys (m) : 0);
  case LS_MIXER_MLSTM:
    return inner + 2 * heads;
  case LS_MIXER_CONV:
    return conv * (taps + m->mixer.bias);
  case LS_MIXER_RWKV7:
    return 6 * (uint64_t) m->hidden + 8 * inner;
  case LS_MIXER_MAMBA1:
    return conv * (taps + bias) + inner * (state + 2) + (m->mixer.plain_keys ? 0 : ls_mixer_select_width (m));
  case LS_MIXER_RGLRU:
    return conv * (taps + 1) + 5 * inner + m->hidden;
  case LS_MIXER_PRODUCT:
  case LS_MIXER_NONE:
    break;
  }
  return 0;
}

uint64_t
ls_mixer_other_params (const LsModel *m)
{
  return inner_params (m) + ls_mixer_in_biases (m) + ls_mixer_out_biases (m);
}

static uint64_t
chunk_of (const LsModel *m, uint32_t seq)
{
  return MIN (m->mixer.chunk, seq);
}

uint64_t
ls_mixer_n_chunks (const LsModel *m, uint32_t seq)
{
  uint64_t q = MAX (1, chunk_of (m, seq));
  return (seq + q - 1) / q;
}

uint32_t
ls_mixer_products (const LsModel *m, uint32_t n_ranks, uint32_t seq,
                   LsMixerProduct ret_products[LS_MIXER_MAX_PRODUCTS])
{
  uint64_t q = chunk_of (m, seq), p = m->mixer.head_dim, s = m->mixer.state;
  uint64_t heads = m->mixer.heads / n_ranks, groups = MAX (1, m->mixer.groups / n_ranks);
  bool is_delta = m->mixer.kind == LS_MIXER_DELTA || m->mixer.kind == LS_MIXER_KDA,
       is_linear = m->mixer.kind == LS_MIXER_LINEAR || m->mixer.kind == LS_MIXER_MLSTM;
  const LsMixerProduct mamba2[] = {
    { "ssd-scores", "ssd-scores-bwd", "ssd-scores-again", q, q, s, groups, 1, 0 },
    { "ssd-output", "ssd-output-bwd", "ssd-output-again", q, p, q, heads, 1, 0 },
    { "ssd-state", "ssd-state-bwd", "ssd-state-again", p, s, q, heads, 1, 0 },
    { "ssd-carried", "ssd-carried-bwd", "ssd-carried-again", q, p, s, heads, 0, 0 },
  };
  const LsMixerProduct linear[] = {
    { "linear-scores", "linear-scores-bwd", "linear-scores-again", q, q, s, heads, 1, 0 },
    { "linear-output", "linear-output-bwd", "linear-output-again", q, p, q, heads, 0, 0 },
    { "linear-carried", "linear-carried-bwd", "linear-carried-again", q, p, s, heads, 0, 0 },
    { "linear-state", "linear-state-bwd", "linear-state-again", s, p, q, heads, 1, 3 },
  };
  const LsMixerProduct rwkv7[] = {
    /* of a shape at once */
    { "rwkv-scores", "rwkv-scores-bwd", "rwkv-scores-again", q, q, s, 4 * heads, 1, 0 },
    { "rwkv-output", "rwkv-output-bwd", "rwkv-output-again", q, p, q, 4 * heads, 0, 0 },
    { "rwkv-carried", "rwkv-carried-bwd", "rwkv-carried-again", q, p, s, 2 * heads, 0, 0 },
    { "rwkv-state", "rwkv-state-bwd", "rwkv-state-again", s, p, q, 2 * heads, 1, 3 },
  };
  const LsMixerProduct delta[] = {
    { "delta-keys", "delta-keys-bwd", "delta-keys-again", q, q, s, heads, 1, 0 },
    { "delta-w", "delta-w-bwd", "delta-w-again", q, s, q, heads, 1, 0 },
    { "delta-u", "delta-u-bwd", "delta-u-again", q, p, q, heads, 1, 0 },
    { "delta-erase", "delta-erase-bwd", "delta-erase-again", q, p, s, heads, 1, 3 },
    { "delta-scores", "delta-scores-bwd", "delta-scores-again", q, q, s, heads, 2, 0 },
    { "delta-output", "delta-output-bwd", "delta-output-again", q, p, q, heads, 0, 0 },
    { "delta-carried", "delta-carried-bwd", "delta-carried-again", q, p, s, heads, 0, 0 },
    { "delta-state", "delta-state-bwd", "delta-state-again", s, p, q, heads, 1, 0 },
  };
  const LsMixerProduct *of_kind = m->mixer.kind == LS_MIXER_MAMBA2 ? mamba2
      : m->mixer.kind == LS_MIXER_RWKV7                            ? rwkv7
      : is_linear                                                  ? linear
      : is_delta                                                   ? delta
                                                                   : NULL;
  uint32_t n = !of_kind ? 0 : is_delta ? 8 : 4;
  for (uint32_t i = 0; i < n; i++)
    ret_products[i] = of_kind[i];
  return n;
}

double
ls_mixer_flops (const LsModel *m, uint32_t n_ranks, uint32_t seq)
{
  LsMixerProduct products[LS_MIXER_MAX_PRODUCTS];
  double flops = 0;
  for (uint32_t i = ls_mixer_products (m, n_ranks, seq, products); i-- > 0;)
    flops += 2.0 * (double) products[i].m * (double) products[i].n * (double) products[i].k
        * (double) products[i].batch;
  return flops * n_ranks * (double) ls_mixer_n_chunks (m, seq);
}

/* --- with context parallelism ------------------------------------------------------------- */

bool
ls_mixer_has_context_parallelism (const LsModel *m)
{
  return m->mixer.kind == LS_MIXER_NONE || m->mixer.kind == LS_MIXER_DELTA
      || (m->mixer.kind == LS_MIXER_MAMBA2 && !ls_mixer_selects (m));
}

const char *
ls_mixer_check_cut (const LsModel *m, uint32_t tp, uint32_t cp)
{
  uint32_t groups = m->mixer.groups / tp;
  if (m->mixer.kind == LS_MIXER_NONE || cp == 1)
    return NULL;
  if (m->mixer.heads / tp % cp != 0)
    return "a divisor of the heads of mixers on a rank of tp";
  if (m->mixer.kind == LS_MIXER_DELTA)
    return groups % cp == 0 ? NULL : "a divisor of the groups of mixers on a rank of tp";
  return groups % cp == 0 || (groups > 0 && cp % groups == 0)
      ? NULL
      : "a divisor or a multiple of the groups of mixers on a rank of tp";
}

uint32_t
ls_mixer_exchanges (const LsModel *m, uint32_t tp, uint32_t cp, uint64_t ret_columns[LS_MIXER_MAX_EXCHANGES])
{
  uint64_t inner = ls_mixer_inner (m) / tp, groups = MAX (m->mixer.groups / tp, cp);
  const uint64_t mamba2[]
      = { inner, inner, groups * m->mixer.state, groups * m->mixer.state, m->mixer.heads / tp };
  bool is_apart = m->mixer.kind == LS_MIXER_MAMBA2;
  for (uint32_t i = 0; is_apart && i < G_N_ELEMENTS (mamba2); i++)
    ret_columns[i] = mamba2[i];
  if (!is_apart)
    ret_columns[0] = ls_mixer_in_width (m) / tp;
  return is_apart ? G_N_ELEMENTS (mamba2) : 1;
}
