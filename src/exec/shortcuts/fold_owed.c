/* exec/shortcuts/fold_owed.c — what ranks owe each other: before it is asked who is alike, each must get what
 * it waits for. */
#include "exec/state.h"

typedef struct {
  const LsPlan *plan;     /* whole */
  const RoleCalls *roles; /* Run.role_calls */
} Owed;

/* As fold_owed(), of communicators. */
static uint8_t *
check_calls (const Owed *l)
{
  const LsPlan *plan = l->plan;
  g_autofree uint8_t *slot = g_new0 (uint8_t, plan->n_comms + 1);
  g_autofree uint32_t *n_bound = g_new0 (uint32_t, plan->n_comms + 1),
                      *id = g_new0 (uint32_t, plan->n_comms + 1);
  for (uint32_t i = 0; i < plan->n_ranks; i++)
    for (int s = 0; s < LS_SLOT_PREV; s++) {
      uint32_t member, comm = ls_plan_comm (plan, i, (LsSlot) s, &member),
                       of_rank = l->roles[ls_plan_role (plan, i)].id[CALLS + s];
      if (comm == UINT32_MAX)
        continue;
      if (n_bound[comm]++ == 0) {
        slot[comm] = (uint8_t) s;
        id[comm] = of_rank;
      }
      if (id[comm] != of_rank || member >= plan->comms[comm].n_ranks
          || ls_comm_rank (&plan->comms[comm], member) != i)
        return NULL;
    }
  for (uint32_t c = 0; c < plan->n_comms; c++)
    if (n_bound[c] != plan->comms[c].n_ranks)
      return NULL;
  return g_steal_pointer (&slot);
}

/* What rank i sends towards `to_next`, the rank there expects, and nobody else does; or what it receives from
 * there, that one sends. */
static bool
check_neighbour (const Owed *l, uint32_t i, int to_next, int own, int theirs)
{
  uint32_t owed = l->roles[ls_plan_role (l->plan, i)].id[own + to_next];
  if (owed == 0)
    return true;
  uint32_t peer = ls_plan_peer (l->plan, i, (uint32_t) to_next);
  return peer != UINT32_MAX && ls_plan_peer (l->plan, peer, (uint32_t) !to_next) == i
      && l->roles[ls_plan_role (l->plan, peer)].id[theirs + !to_next] == owed;
}

static bool
check_transfers (const Owed *l)
{
  for (uint32_t i = 0; i < l->plan->n_ranks; i++)
    for (int p = 0; p < 2; p++)
      if (!check_neighbour (l, i, p, SENDS, RECEIVES) || !check_neighbour (l, i, p, RECEIVES, SENDS))
        return false;
  return true;
}

uint8_t *
fold_owed (const Run *x)
{
  const Owed o = { x->plan, x->role_calls };
  g_autofree uint8_t *slot = check_calls (&o);
  return slot && check_transfers (&o) ? g_steal_pointer (&slot) : NULL;
}

uint8_t *
fold_peers (const Run *x)
{
  uint8_t *peers = g_new0 (uint8_t, x->plan->n_roles + 1);
  for (uint32_t r = 0; r < x->plan->n_roles; r++)
    for (int p = 0; p < 2; p++)
      if (x->role_calls[r].id[SENDS + p] != 0 || x->role_calls[r].id[RECEIVES + p] != 0)
        peers[r] |= (uint8_t) (1 << p);
  return peers;
}
