/* plan/bind.c — communicators and neighbours by the rules of a mesh. */
#include "plan/bind.h"

#include <string.h>

#define KNOWN (1u << 31) /* of a group: its communicator is there */

/* Only the tied embedding leaves stages out: all but the first and the last. */
static bool
has_stage (const LsMesh *m, LsSlot slot, uint32_t pp)
{
  return slot != LS_SLOT_EMBEDDING || pp == 0 || pp == m->pp - 1;
}

/* With f pipes each way, p/f ranks apart, rank r has the stages s = r and s = -1 - r modulo
 * p/f: the ranks that agree in them have all their stages in common. */
static uint32_t
stages_class (const LsMesh *m, uint32_t pp)
{
  uint32_t period = m->pp / (m->pipes / 2), at = pp % period;
  return MIN (at, period - 1 - at);
}

/* The lowest of the experts' ranks that share a communicator. */
static uint32_t
first_of_experts (const LsMesh *m, LsSlot slot, uint32_t rank)
{
  LsExpertCoord at = ls_mesh_expert_coord (m, rank);
  if (slot == LS_SLOT_ETP)
    at.etp = 0;
  else if (slot == LS_SLOT_EP)
    at.ep = 0;
  else
    at.edp = 0;
  return ls_mesh_expert_rank (m, at);
}

/* A mesh, and how far ranks are apart that differ by 1 in a dimension. */
typedef struct {
  const LsMesh *m;
  uint32_t stride[LS_N_DIMS];
} Strides;

/* Of a degree of 1 any does. */
static Strides
strides_of (const LsMesh *m)
{
  Strides s = { .m = m };
  s.stride[LS_DIM_TP] = m->tp > 1 ? ls_mesh_rank (m, (LsCoord) { .tp = 1 }) : 1;
  s.stride[LS_DIM_CP] = m->cp > 1 ? ls_mesh_rank (m, (LsCoord) { .cp = 1 }) : 1;
  s.stride[LS_DIM_DP] = m->dp > 1 ? ls_mesh_rank (m, (LsCoord) { .dp = 1 }) : 1;
  s.stride[LS_DIM_PP] = m->pp > 1 ? ls_mesh_rank (m, (LsCoord) { .pp = 1 }) : 1;
  return s;
}

/* Ranks of one slot that share a communicator have the same number here, that of the one whose indices are 0
 * in what the slot spans; of pipes it is any. at: of the rank. */
static uint32_t
group_of (const Strides *s, LsSlot slot, uint32_t rank, LsCoord at)
{
  uint32_t of_tp = at.tp * s->stride[LS_DIM_TP], of_cp = at.cp * s->stride[LS_DIM_CP],
           of_dp = at.dp * s->stride[LS_DIM_DP], of_pp = at.pp * s->stride[LS_DIM_PP];
  uint32_t copy; /* among the ranks with the same parameters */
  switch (slot) {
  case LS_SLOT_TP:
    return rank - of_tp;
  case LS_SLOT_CP:
    return rank - of_cp;
  case LS_SLOT_DP:
    return rank - of_cp - of_dp;
  case LS_SLOT_SHARD:
    copy = ls_mesh_copy (s->m, at);
    return ls_mesh_rank (s->m, ls_mesh_at_copy (s->m, at, copy / s->m->shard * s->m->shard));
  case LS_SLOT_REPLICA:
    copy = ls_mesh_copy (s->m, at);
    return ls_mesh_rank (s->m, ls_mesh_at_copy (s->m, at, copy % s->m->shard));
  case LS_SLOT_ETP:
  case LS_SLOT_EP:
  case LS_SLOT_EDP:
    return first_of_experts (s->m, slot, rank);
  case LS_SLOT_EMBEDDING:
    return rank - of_pp;
  case LS_SLOT_PIPES:
    return rank - of_pp + stages_class (s->m, at.pp) * s->stride[LS_DIM_PP];
  case LS_SLOT_MODEL:
    return rank - of_tp - of_pp;
  default: /* world */
    return 0;
  }
}

static LsAxis
axis_of (const LsMesh *m, LsSlot slot)
{
  switch (slot) {
  case LS_SLOT_TP:
  case LS_SLOT_ETP:
    return LS_AXIS_TP;
  case LS_SLOT_CP:
    return LS_AXIS_CP;
  case LS_SLOT_EP:
    return LS_AXIS_EP;
  case LS_SLOT_DP:
  case LS_SLOT_SHARD:
  case LS_SLOT_REPLICA:
  case LS_SLOT_EDP:
  case LS_SLOT_PIPES:
    return LS_AXIS_DP;
  default:
    if (m->pp > 1)
      return LS_AXIS_PP;
    return slot == LS_SLOT_WORLD ? LS_AXIS_DP : LS_AXIS_TP;
  }
}

static LsCommunicator
communicator_of (const LsMesh *m, LsSlot slot)
{
  return (LsCommunicator) {
    .axis = axis_of (m, slot),
    .spans_stages = m->pp > 1
        && (slot == LS_SLOT_EMBEDDING || slot == LS_SLOT_PIPES || slot == LS_SLOT_MODEL
            || slot == LS_SLOT_WORLD),
  };
}

/* Those of a slot, numbered by their lowest rank. group: [n_ranks] of each, UINT32_MAX: none; size: [n_ranks]
 * by group, which are communicators + 1 afterwards. */
static void
add_communicators (LsPlan *plan, const LsMesh *m, LsSlot slot, const uint32_t *group, uint32_t *size,
                   GArray *comms)
{
  for (uint32_t r = 0; r < plan->n_ranks; r++) {
    if (group[r] == UINT32_MAX || size[group[r]] < 2)
      continue;
    LsBinding *b = &plan->bindings[r];
    uint32_t *known = &size[group[r]];
    if (!(*known & KNOWN)) {
      LsCommunicator c = communicator_of (m, slot);
      c.ranks = ls_arena_new_array (plan->arena, uint32_t, *known);
      g_array_append_val (comms, c);
      *known = KNOWN | (comms->len - 1);
    }
    LsCommunicator *c = &g_array_index (comms, LsCommunicator, *known & ~KNOWN);
    b->comm[slot] = *known & ~KNOWN;
    b->member[slot] = c->n_ranks;
    c->ranks[c->n_ranks++] = r;
  }
}

static void
bind_slot (LsPlan *plan, const Strides *s, LsSlot slot, const LsCoord *at, GArray *comms)
{
  g_autofree uint32_t *group = g_new (uint32_t, plan->n_ranks), *size = g_new0 (uint32_t, plan->n_ranks);
  for (uint32_t r = 0; r < plan->n_ranks; r++) {
    group[r] = has_stage (s->m, slot, at[r].pp) ? group_of (s, slot, r, at[r]) : UINT32_MAX;
    if (group[r] != UINT32_MAX)
      size[group[r]]++;
  }
  add_communicators (plan, s->m, slot, group, size, comms);
}

static LsCoord
coord_of (const Strides *s, uint32_t rank)
{
  return (LsCoord) {
    .tp = rank / s->stride[LS_DIM_TP] % s->m->tp,
    .cp = rank / s->stride[LS_DIM_CP] % s->m->cp,
    .dp = rank / s->stride[LS_DIM_DP] % s->m->dp,
    .pp = rank / s->stride[LS_DIM_PP] % s->m->pp,
  };
}

/* Its role and its neighbours; no communicators yet. */
static void
bind_rank (LsBinding *b, const Strides *s, uint32_t rank, LsCoord at)
{
  uint32_t pp = s->m->pp, first = rank - at.pp * s->stride[LS_DIM_PP];
  b->role = at.pp;
  b->peer[0] = pp > 1 ? first + (at.pp + pp - 1) % pp * s->stride[LS_DIM_PP] : UINT32_MAX;
  b->peer[1] = pp > 1 ? first + (at.pp + 1) % pp * s->stride[LS_DIM_PP] : UINT32_MAX;
  memset (b->comm, 0xff, sizeof b->comm);
  memset (b->member, 0xff, sizeof b->member);
}

void
ls_plan_bind_mesh (LsPlan *plan, const LsMesh *mesh, uint32_t slots)
{
  g_assert (mesh->shard > 0 || !(slots & (LS_SLOT_BIT (LS_SLOT_SHARD) | LS_SLOT_BIT (LS_SLOT_REPLICA))));
  g_assert (mesh->pipes > 0 || !(slots & LS_SLOT_BIT (LS_SLOT_PIPES)));
  g_assert ((mesh->ep > 0 && mesh->etp > 0)
            || !(slots & (LS_SLOT_BIT (LS_SLOT_EP) | LS_SLOT_BIT (LS_SLOT_ETP) | LS_SLOT_BIT (LS_SLOT_EDP))));
  plan->n_ranks = ls_mesh_n_ranks (mesh);
  plan->bindings = ls_arena_new_array (plan->arena, LsBinding, plan->n_ranks);
  plan->gpu_of_rank = ls_arena_new_array (plan->arena, uint32_t, plan->n_ranks);
  const Strides strides = strides_of (mesh);
  g_autofree LsCoord *at = g_new (LsCoord, plan->n_ranks);
  for (uint32_t r = 0; r < plan->n_ranks; r++) {
    at[r] = coord_of (&strides, r);
    bind_rank (&plan->bindings[r], &strides, r, at[r]);
    plan->gpu_of_rank[r] = r;
  }

  g_autoptr (GArray) comms = g_array_new (FALSE, FALSE, sizeof (LsCommunicator));
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (slots & LS_SLOT_BIT (s))
      bind_slot (plan, &strides, (LsSlot) s, at, comms);
  plan->n_comms = comms->len;
  plan->comms = ls_arena_new_array (plan->arena, LsCommunicator, MAX (1, comms->len));
  if (comms->len > 0)
    memcpy (plan->comms, comms->data, comms->len * sizeof (LsCommunicator));
}
