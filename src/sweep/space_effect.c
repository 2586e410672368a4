/* sweep/space_effect.c — which configurations of a space are others over again, as a knob says nothing in
 * them. */
#include <string.h>

#include "strategy/chunks.h"
#include "strategy/dp_traits.h"
#include "sweep/space.h"

bool
ls_space_holds (const LsSpace *space, LsSpaceAxis axis, uint32_t value)
{
  for (guint i = 0; i < space->values[axis]->len; i++)
    if (g_array_index (space->values[axis], uint32_t, i) == value)
      return true;
  return false;
}

/* Flash attention keeps no scores to be computed again. */
static bool
recomputes_nothing (const LsStrategy *s)
{
  return s->recompute == LS_RECOMPUTE_SELECTIVE && s->recompute_parts == LS_RECOMPUTE_CORE
      && s->attention == LS_ATTENTION_FLASH;
}

void
ls_space_choose_parts (const LsStrategy *base, LsStrategy *s)
{
  if (base->recompute_parts == 0 && recomputes_nothing (s))
    s->recompute_parts = LS_RECOMPUTE_NORM | LS_RECOMPUTE_ACTIVATION;
}

/* Knobs that say nothing unless another is set. */
static bool
says_something (const char *key, const LsStrategy *s)
{
  const LsDpTraits *kind = ls_dp_traits (s->dp_kind);
  const struct {
    const char *key;
    bool does;
  } rules[] = {
    { "p2p", s->pp > 1 },
    { "p2p_warmup_flush", s->p2p == LS_P2P_OVERLAPPED },
    { "cp_kind", s->cp > 1 },
    { "cp_balance", s->cp > 1 && s->cp_kind != LS_CP_ULYSSES },
    { "tp_async", s->tp > 1 },
    { "tp_overlap_kind", s->tp_overlap },
    { "sp_save_gathered", s->sp },
    { "etp", s->ep > 1 },
    { "dp_overlap", kind->has_overlap },
    { "gather_overlap", kind->has_param_buckets && s->zero_stage == 1 },
    { "bucket_params", kind->has_param_buckets },
    { "bucket_bytes", kind->has_byte_buckets },
    { "recompute_parts", s->recompute == LS_RECOMPUTE_SELECTIVE },
    { "recompute_method", s->recompute == LS_RECOMPUTE_FULL },
    { "recompute_layers", s->recompute == LS_RECOMPUTE_FULL },
    { "recompute_stages", s->recompute == LS_RECOMPUTE_FULL },
    { "recompute_early_stop", s->recompute == LS_RECOMPUTE_FULL },
    { "partition_activations", s->recompute == LS_RECOMPUTE_FULL },
    { "fp8_recipe", s->dtype == LS_DTYPE_FP8 },
    { "fp8_params", s->dtype == LS_DTYPE_FP8 },
    { "bf16_first", ls_dtype_is_scaled ((LsDtype) s->dtype) },
    { "bf16_last", ls_dtype_is_scaled ((LsDtype) s->dtype) },
    { "attention_kernel", s->attention == LS_ATTENTION_FLASH },
    { "qkv_layout", s->attention == LS_ATTENTION_FLASH },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rules); i++)
    if (strcmp (rules[i].key, key) == 0)
      return rules[i].does;
  return true;
}

static bool
is_word (const LsSpace *space, LsSpaceAxis axis, uint32_t at)
{
  return g_ascii_isalpha (*(const char *) g_ptr_array_index (space->texts[axis], at));
}

/* Whether layers lie as they would without a list. */
static bool
is_even_layout (const LsStrategy *s, uint32_t n_layers)
{
  const LsModel m = { .n_layers = n_layers };
  const LsStrategy even = { .pp = s->pp, .vpp = s->vpp };
  g_autofree uint32_t *layers = g_new (uint32_t, s->n_layers_per_chunk);
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  return !ls_chunks_want_balance (&even, &m) && ls_chunk_layers (&even, &m, layers, none)
      && memcmp (layers, s->layers_per_chunk, s->n_layers_per_chunk * sizeof *layers) == 0;
}

/* "auto" and "balanced" mean the same where layers do not come out even, or there is but one chunk, or where
 * what comes out even is balanced. */
static bool
repeats_layers (const LsSpace *space, const LsPoint *p, const LsStrategy *s)
{
  LsSpaceAxis axis = ls_space_axis ("layers_per_chunk");
  uint32_t at = p->at[axis], n = s->pp * s->vpp, n_layers = 0;
  for (uint32_t i = 0; i < s->n_layers_per_chunk; i++)
    n_layers += s->layers_per_chunk[i];
  bool is_even = n > 1 && (!s->layers_per_chunk || ls_chunks_are_even (n_layers, n));
  bool differs = is_even && !(s->layers_per_chunk && is_even_layout (s, n_layers));
  if (at == 0 || differs || !is_word (space, axis, at))
    return false;
  while (at-- > 0)
    if (is_word (space, axis, at))
      return true;
  return false;
}

bool
ls_space_has_effect (const LsSpace *space, const LsPoint *p, const LsStrategy *s)
{
  for (guint a = LS_N_SPACE_AXES; a < ls_space_n_axes (); a++)
    if (p->at[a] > 0 && !says_something (ls_space_axis_name ((LsSpaceAxis) a), s))
      return false;
  if (repeats_layers (space, p, s))
    return false;
  return !recomputes_nothing (s) || !ls_space_holds (space, LS_SPACE_RECOMPUTE, LS_RECOMPUTE_NONE);
}
