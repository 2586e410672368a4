/* plan/bind.c — communicators and neighbours by the rules of a mesh. */
#include "plan/bind.h"

#include <string.h>

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

/* Ranks of one slot that share a communicator have the same number here, that of the one whose indices are 0
 * in what the slot spans; of pipes it is any. */
static uint32_t
group_of (const LsMesh *m, LsSlot slot, uint32_t rank)
{
  LsCoord at = ls_mesh_coord (m, rank);
  uint32_t copy = ls_mesh_copy (m, at); /* among the ranks with the same parameters */
  switch (slot) {
  case LS_SLOT_TP:
    at.tp = 0;
    break;
  case LS_SLOT_CP:
    at.cp = 0;
    break;
  case LS_SLOT_DP:
    at.cp = at.dp = 0;
    break;
  case LS_SLOT_SHARD:
    at = ls_mesh_at_copy (m, at, copy / m->shard * m->shard);
    break;
  case LS_SLOT_REPLICA:
    at = ls_mesh_at_copy (m, at, copy % m->shard);
    break;
  case LS_SLOT_ETP:
  case LS_SLOT_EP:
  case LS_SLOT_EDP:
    return first_of_experts (m, slot, rank);
  case LS_SLOT_EMBEDDING:
    at.pp = 0;
    break;
  case LS_SLOT_PIPES:
    at.pp = stages_class (m, at.pp);
    break;
  case LS_SLOT_MODEL:
    at.tp = at.pp = 0;
    break;
  default: /* world */
    return 0;
  }
  return ls_mesh_rank (m, at);
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

static void
add_communicator (LsPlan *plan, const LsMesh *m, LsSlot slot, const GArray *ranks, GArray *comms)
{
  LsCommunicator c = { .axis = axis_of (m, slot), .n_ranks = ranks->len };
  c.spans_stages = m->pp > 1
      && (slot == LS_SLOT_EMBEDDING || slot == LS_SLOT_PIPES || slot == LS_SLOT_MODEL
          || slot == LS_SLOT_WORLD);
  c.ranks = ls_arena_new_array (plan->arena, uint32_t, ranks->len);
  memcpy (c.ranks, ranks->data, ranks->len * sizeof (uint32_t));
  uint32_t id = comms->len;
  g_array_append_val (comms, c);
  for (uint32_t i = 0; i < c.n_ranks; i++) {
    plan->bindings[c.ranks[i]].comm[slot] = id;
    plan->bindings[c.ranks[i]].member[slot] = i;
  }
}

/* Communicators are numbered by their lowest rank. */
static void
bind_slot (LsPlan *plan, const LsMesh *m, LsSlot slot, GArray *comms)
{
  g_autoptr (GPtrArray) groups = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  g_autofree uint32_t *number = g_new0 (uint32_t, plan->n_ranks); /* of a group, + 1 */
  for (uint32_t r = 0; r < plan->n_ranks; r++) {
    LsCoord at = ls_mesh_coord (m, r);
    if (!has_stage (m, slot, at.pp))
      continue;
    uint32_t *n = &number[group_of (m, slot, r)];
    if (*n == 0) {
      g_ptr_array_add (groups, g_array_new (FALSE, FALSE, sizeof (uint32_t)));
      *n = groups->len;
    }
    g_array_append_val ((GArray *) g_ptr_array_index (groups, *n - 1), r);
  }
  for (guint i = 0; i < groups->len; i++) {
    const GArray *ranks = g_ptr_array_index (groups, i);
    if (ranks->len > 1)
      add_communicator (plan, m, slot, ranks, comms);
  }
}

/* Its role and its neighbours; no communicators yet. */
static void
bind_rank (LsBinding *b, const LsMesh *m, uint32_t rank)
{
  LsCoord at = ls_mesh_coord (m, rank), prev = at, next = at;
  prev.pp = (at.pp + m->pp - 1) % m->pp;
  next.pp = (at.pp + 1) % m->pp;
  b->role = at.pp;
  b->peer[0] = m->pp > 1 ? ls_mesh_rank (m, prev) : UINT32_MAX;
  b->peer[1] = m->pp > 1 ? ls_mesh_rank (m, next) : UINT32_MAX;
  for (int s = 0; s < LS_N_SLOTS; s++)
    b->comm[s] = b->member[s] = UINT32_MAX;
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
  for (uint32_t r = 0; r < plan->n_ranks; r++) {
    bind_rank (&plan->bindings[r], mesh, r);
    plan->gpu_of_rank[r] = r;
  }

  g_autoptr (GArray) comms = g_array_new (FALSE, FALSE, sizeof (LsCommunicator));
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (slots & LS_SLOT_BIT (s))
      bind_slot (plan, mesh, (LsSlot) s, comms);
  plan->n_comms = comms->len;
  plan->comms = ls_arena_new_array (plan->arena, LsCommunicator, MAX (1, comms->len));
  if (comms->len > 0)
    memcpy (plan->comms, comms->data, comms->len * sizeof (LsCommunicator));
}
