/* parallel/bind.c — communicators and neighbours by the rules of a mesh. */
#include "parallel/bind.h"

#include <string.h>

/* Only the tied embedding leaves stages out: all but the first and the last. */
static bool
has_stage (const LsMesh *m, LsSlot slot, uint32_t pp)
{
  return slot != LS_SLOT_EMBEDDING || pp == 0 || pp == m->pp - 1;
}

/* The ranks of the communicator that `first` is the lowest member of: enumerated
 * along the joined axes only, so that the work is proportional to members. */
static GArray *
members_from (const LsMesh *m, LsSlot slot, LsCoord at)
{
  GArray *ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  bool joins_tp = slot == LS_SLOT_TP || slot == LS_SLOT_MODEL || slot == LS_SLOT_WORLD;
  bool joins_dp = slot == LS_SLOT_DP || slot == LS_SLOT_WORLD;
  bool joins_pp = slot == LS_SLOT_EMBEDDING || slot == LS_SLOT_MODEL || slot == LS_SLOT_WORLD;
  for (uint32_t pp = joins_pp ? 0 : at.pp; pp < (joins_pp ? m->pp : at.pp + 1); pp++) {
    if (!has_stage (m, slot, pp))
      continue;
    for (uint32_t dp = joins_dp ? 0 : at.dp; dp < (joins_dp ? m->dp : at.dp + 1); dp++)
      for (uint32_t tp = joins_tp ? 0 : at.tp; tp < (joins_tp ? m->tp : at.tp + 1); tp++) {
        uint32_t rank = ls_mesh_rank (m, (LsCoord) { .tp = tp, .cp = at.cp, .dp = dp, .pp = pp });
        g_array_append_val (ranks, rank);
      }
  }
  return ranks;
}

static LsAxis
axis_of (const LsMesh *m, LsSlot slot)
{
  if (slot == LS_SLOT_TP)
    return LS_AXIS_TP;
  if (slot == LS_SLOT_DP)
    return LS_AXIS_DP;
  if (m->pp > 1)
    return LS_AXIS_PP;
  return slot == LS_SLOT_WORLD ? LS_AXIS_DP : LS_AXIS_TP;
}

static void
add_communicator (LsPlan *plan, const LsMesh *m, LsSlot slot, const GArray *ranks, GArray *comms)
{
  LsCommunicator c = { .axis = axis_of (m, slot), .n_ranks = ranks->len };
  c.spans_stages = m->pp > 1 && slot != LS_SLOT_TP && slot != LS_SLOT_DP;
  c.ranks = ls_arena_new_array (plan->arena, uint32_t, ranks->len);
  memcpy (c.ranks, ranks->data, ranks->len * sizeof (uint32_t));
  uint32_t id = comms->len;
  g_array_append_val (comms, c);
  for (uint32_t i = 0; i < c.n_ranks; i++) {
    plan->bindings[c.ranks[i]].comm[slot] = id;
    plan->bindings[c.ranks[i]].member[slot] = i;
  }
}

static void
bind_slot (LsPlan *plan, const LsMesh *m, LsSlot slot, GArray *comms)
{
  for (uint32_t r = 0; r < plan->n_ranks; r++) {
    LsCoord at = ls_mesh_coord (m, r);
    if (plan->bindings[r].comm[slot] != UINT32_MAX || !has_stage (m, slot, at.pp))
      continue;
    g_autoptr (GArray) ranks = members_from (m, slot, at);
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
  g_assert ((slots & ~LS_MESH_SLOTS) == 0);
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
