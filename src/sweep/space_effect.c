/* sweep/space_effect.c — which configurations of a space are others over again, as a knob says nothing in
 * them. */
#include <string.h>

#include "schedules/sched.h"
#include "strategy/shard.h"
#include "strategy/dp_traits.h"
#include "strategy/strategy.h"
#include "sweep/space.h"

bool
ls_space_holds (const LsSpace *space, LsSpaceAxis axis, uint32_t value)
{
  for (guint i = 0; i < space->values[axis]->len; i++)
    if (g_array_index (space->values[axis], uint32_t, i) == value)
      return true;
  return false;
}

bool
ls_space_has_layers (const LsSpace *space, const LsStrategy *base, const LsPoint *p)
{
  const GPtrArray *layers = space->texts[space->layers_axis];
  if (layers->len == 0)
    return base->layers_per_chunk != NULL;
  return strcmp (g_ptr_array_index (layers, p->at[space->layers_axis]), "auto") != 0;
}

bool
ls_space_is_distinct (const LsSpace *space, const LsModel *m, const LsStrategy *base, const LsPoint *p)
{
  uint64_t tp = ls_space_value (space, p, LS_SPACE_TP), pp = ls_space_value (space, p, LS_SPACE_PP);
  bool is_alone = tp * pp >= ls_space_value (space, p, LS_SPACE_GPUS);
  if (tp == 1 && (p->at[LS_SPACE_SP] > 0 || p->at[LS_SPACE_TP_OVERLAP] > 0))
    return false;
  if (pp == 1 && p->at[LS_SPACE_SCHEDULE] > 0)
    return false;
  if (is_alone && (p->at[LS_SPACE_ZERO] > 0 || p->at[LS_SPACE_DP_KIND] > 0))
    return false;
  bool has_reshard = ls_dp_traits ((int) ls_space_value (space, p, LS_SPACE_DP_KIND))->has_reshard;
  if (pp > 1 && !is_alone && has_reshard && base->reshard_after_forward == LS_RESHARD_AUTO
      && ls_space_value (space, p, LS_SPACE_ZERO) == 2 && ls_space_holds (space, LS_SPACE_ZERO, 3))
    return false;
  if (pp > 1 && p->at[LS_SPACE_VPP] > 0 && ls_sched_fixes_chunks (ls_space_sched (space, p)))
    return false;
  return !space->has_usual_vpp || ls_space_has_layers (space, base, p)
      || ls_space_is_usual (m->n_layers, (uint32_t) pp, ls_space_value (space, p, LS_SPACE_VPP));
}

const char *
ls_space_text (const LsSpace *space, LsSpaceAxis axis, uint32_t at)
{
  return space->texts[axis]->len > 0 ? g_ptr_array_index (space->texts[axis], at) : NULL;
}

void
ls_space_choose_parts (const LsStrategy *base, LsStrategy *s)
{
  if (base->recompute_parts == 0 && ls_strategy_recompute_frees_nothing (s))
    s->recompute_parts = LS_RECOMPUTE_NORM | LS_RECOMPUTE_ACTIVATION;
}

static bool
is_word (const LsSpace *space, LsSpaceAxis axis, uint32_t at)
{
  return g_ascii_isalpha (*(const char *) g_ptr_array_index (space->texts[axis], at));
}

/* By weights or modules. */
static bool
is_by_rule (const LsSpace *space, LsSpaceAxis axis, uint32_t at)
{
  const char *text = g_ptr_array_index (space->texts[axis], at);
  return strcmp (text, "weights") == 0 || strcmp (text, "modules") == 0;
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
 * what comes out even is balanced. The other words are
 * layouts of their own with more than one chunk. */
static bool
repeats_layers (const LsSpace *space, const LsPoint *p, const LsStrategy *s)
{
  LsSpaceAxis axis = space->layers_axis;
  uint32_t at = p->at[axis], n = s->pp * s->vpp, n_layers = 0;
  for (uint32_t i = 0; i < s->n_layers_per_chunk; i++)
    n_layers += s->layers_per_chunk[i];
  bool is_even = n > 1 && (!s->layers_per_chunk || ls_chunks_are_even (n_layers, n));
  bool differs = is_even && !(s->layers_per_chunk && is_even_layout (s, n_layers));
  if (at == 0 || differs || !is_word (space, axis, at) || (n > 1 && is_by_rule (space, axis, at)))
    return false;
  while (at-- > 0)
    if (is_word (space, axis, at) && (n == 1 || !is_by_rule (space, axis, at)))
      return true;
  return false;
}

/* Two orders are the same where all that they tell apart are degrees of 1. */
static bool
repeats_order (const LsSpace *space, const LsPoint *p, const LsStrategy *s)
{
  LsSpaceAxis axis = space->order_axis;
  const LsMesh own = ls_strategy_mesh (s);
  for (uint32_t at = 0; at < p->at[axis]; at++) {
    LsMesh other = own;
    uint32_t named;
    if (ls_rank_order_parse (ls_space_text (space, axis, at), &other.order, &named)
        && ls_mesh_is_alike (&own, &other))
      return true;
  }
  return false;
}

bool
ls_space_has_effect (const LsSpace *space, const LsPoint *p, const LsStrategy *s, const LsModel *m)
{
  for (guint a = LS_N_SPACE_AXES; a < ls_space_n_axes (); a++)
    if (p->at[a] > 0 && ls_strategy_idle (s, m, ls_space_axis_name ((LsSpaceAxis) a)))
      return false;
  if (repeats_layers (space, p, s) || repeats_order (space, p, s))
    return false;
  return !ls_strategy_recomputes_nothing (s)
      || !ls_space_holds (space, LS_SPACE_RECOMPUTE, LS_RECOMPUTE_NONE);
}
