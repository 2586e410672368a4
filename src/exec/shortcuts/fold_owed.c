/* exec/shortcuts/fold_owed.c — what ranks owe each other: before it is asked who is alike, each must get what
 * it waits for. */
#include <string.h>

#include "exec/extras.h"

typedef struct {
  const LsPlan *plan;     /* whole */
  const RoleCalls *roles; /* Run.role_calls */
  bool is_by_stage;       /* ranks of a mesh, all of a stage do the same */
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
      if (id[comm] != of_rank || member >= ls_plan_communicator (plan, comm).n_ranks
          || ls_plan_member (plan, comm, member) != i)
        return NULL;
    }
  for (uint32_t c = 0; c < plan->n_comms; c++)
    if (n_bound[c] != ls_plan_communicator (plan, c).n_ranks)
      return NULL;
  return g_steal_pointer (&slot);
}

/* Members of a communicator must call the same. */
static bool
calls_the_same (const Owed *l, uint32_t comm, int list)
{
  const LsCommunicator c = ls_plan_communicator (l->plan, comm);
  uint32_t role = ls_plan_role (l->plan, ls_comm_rank (&c, 0));
  for (uint32_t i = 1; i < c.n_ranks; i++) {
    uint32_t other = ls_plan_role (l->plan, ls_comm_rank (&c, i));
    if (other != role && l->roles[other].id[list] != l->roles[role].id[list])
      return false;
  }
  return true;
}

/* As check_calls() of a mesh, where members have a communicator in one slot. Communicators of most slots have
 * members of the same stages each, or of one: where all of a stage do the same, the first says it of all. */
static uint8_t *
check_calls_of_mesh (const Owed *l)
{
  const LsPlan *plan = l->plan;
  g_autofree uint8_t *slot = g_new0 (uint8_t, plan->n_comms + 1);
  for (int s = 0; s < LS_SLOT_PREV; s++) {
    uint32_t first, n = ls_mesh_binding_comms (plan->by_mesh, (LsSlot) s, &first);
    memset (&slot[first], s, n);
    uint32_t n_looked_at = l->is_by_stage && s != LS_SLOT_PIPES ? MIN (n, 1) : n;
    for (uint32_t i = 0; i < n_looked_at; i++)
      if (!calls_the_same (l, first + i, CALLS + s))
        return NULL;
  }
  return g_steal_pointer (&slot);
}

/* What rank i sends to that neighbour, the neighbour expects, and nobody else does; what it expects from
 * there, is sent. In a mesh each is the neighbour of its neighbour. */
static bool
check_neighbour (const Owed *l, uint32_t i, uint32_t p)
{
  const uint32_t *own = l->roles[ls_plan_role (l->plan, i)].id;
  if (own[SENDS + p] == 0 && own[RECEIVES + p] == 0)
    return true;
  uint32_t peer = ls_plan_peer (l->plan, i, p);
  if (peer == UINT32_MAX || (l->plan->bindings && l->plan->bindings[peer].peer[1 - p] != i))
    return false;
  const uint32_t *theirs = l->roles[ls_plan_role (l->plan, peer)].id;
  return (own[SENDS + p] == 0 || theirs[RECEIVES + 1 - p] == own[SENDS + p])
      && (own[RECEIVES + p] == 0 || theirs[SENDS + 1 - p] == own[RECEIVES + p]);
}

static bool
check_neighbours (const Owed *l, uint32_t i)
{
  return check_neighbour (l, i, 0) && check_neighbour (l, i, 1);
}

/* Of all ranks, or of one of each stage. */
static bool
check_transfers (const Owed *l)
{
  bool ok = true;
  for (uint32_t s = 0; s < l->plan->n_roles && l->is_by_stage && ok; s++)
    ok = check_neighbours (l, ls_mesh_binding_first_of_stage (l->plan->by_mesh, s));
  for (uint32_t i = 0; i < l->plan->n_ranks && !l->is_by_stage && ok; i++)
    ok = check_neighbours (l, i);
  return ok;
}

uint8_t *
fold_owed (const Run *x)
{
  bool is_plain = x->plan->bindings || x->extras->options->folds_by_walk;
  const Owed o
      = { .plan = x->plan,
          .roles = x->role_calls,
          .is_by_stage = !is_plain && x->plan->n_roles == ls_mesh_binding_stages (x->plan->by_mesh) };
  g_autofree uint8_t *slot = is_plain ? check_calls (&o) : check_calls_of_mesh (&o);
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
