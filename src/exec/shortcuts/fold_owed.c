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
      uint32_t comm = plan->bindings[i].comm[s], of_rank = l->roles[plan->bindings[i].role].id[CALLS + s];
      if (comm == UINT32_MAX)
        continue;
      if (n_bound[comm]++ == 0) {
        slot[comm] = (uint8_t) s;
        id[comm] = of_rank;
      }
      if (id[comm] != of_rank || plan->bindings[i].member[s] >= plan->comms[comm].n_ranks
          || plan->comms[comm].ranks[plan->bindings[i].member[s]] != i)
        return NULL;
    }
  for (uint32_t c = 0; c < plan->n_comms; c++)
    if (n_bound[c] != plan->comms[c].n_ranks)
      return NULL;
  return g_steal_pointer (&slot);
}

/* What rank i sends towards `to_next`, the rank there expects, and nobody else does. */
static bool
check_sends (const Owed *l, uint32_t i, int to_next)
{
  const LsBinding *b = &l->plan->bindings[i];
  uint32_t sent = l->roles[b->role].id[SENDS + to_next], peer = b->peer[to_next];
  if (sent == 0)
    return true;
  const LsBinding *there = peer != UINT32_MAX ? &l->plan->bindings[peer] : NULL;
  return there && there->peer[!to_next] == i && l->roles[there->role].id[RECEIVES + !to_next] == sent;
}

static bool
check_receives (const Owed *l, uint32_t i, int from_next)
{
  const LsBinding *b = &l->plan->bindings[i];
  uint32_t expected = l->roles[b->role].id[RECEIVES + from_next], peer = b->peer[from_next];
  if (expected == 0)
    return true;
  const LsBinding *there = peer != UINT32_MAX ? &l->plan->bindings[peer] : NULL;
  return there && there->peer[!from_next] == i && l->roles[there->role].id[SENDS + !from_next] == expected;
}

static bool
check_transfers (const Owed *l)
{
  for (uint32_t i = 0; i < l->plan->n_ranks; i++)
    for (int p = 0; p < 2; p++)
      if (!check_sends (l, i, p) || !check_receives (l, i, p))
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
