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

/* What rank i sends to that neighbour, the neighbour expects, and nobody else does; what it expects from
 * there, is sent. */
static bool
check_neighbour (const Owed *l, uint32_t i, uint32_t p)
{
  const uint32_t *own = l->roles[ls_plan_role (l->plan, i)].id;
  if (own[SENDS + p] == 0 && own[RECEIVES + p] == 0)
    return true;
  uint32_t peer = ls_plan_peer (l->plan, i, p);
  if (peer == UINT32_MAX || ls_plan_peer (l->plan, peer, 1 - p) != i)
    return false;
  const uint32_t *theirs = l->roles[ls_plan_role (l->plan, peer)].id;
  return (own[SENDS + p] == 0 || theirs[RECEIVES + 1 - p] == own[SENDS + p])
      && (own[RECEIVES + p] == 0 || theirs[SENDS + 1 - p] == own[RECEIVES + p]);
}

static bool
check_transfers (const Owed *l)
{
  for (uint32_t i = 0; i < l->plan->n_ranks; i++)
    for (uint32_t p = 0; p < 2; p++)
      if (!check_neighbour (l, i, p))
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
