#include "data/traces/goal_calls.h"

#include <math.h>

#include <lockstep/error.h>

#include "exec/calls.h"
#include "network/script.h"

static void
free_call (gpointer call)
{
  GoalCall *c = call;
  for (uint32_t i = 0; i < c->n; i++)
    g_array_unref (c->members[i]);
  g_free (c->members);
  g_free (c);
}

void
goal_calls_init (GoalCalls *c, const LsGoal *goal)
{
  *c = (GoalCalls) { .goal = goal };
  c->calls = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, free_call);
}

void
goal_calls_clear (GoalCalls *c)
{
  g_hash_table_unref (c->calls);
}

/* Without switches that compute. */
static const LsScript *
script_of (GoalCalls *c, LsCollRequest *request, LsArena *arena)
{
  const LsScript *s = ls_coll_script (c->goal->cluster, c->goal->nccl, request, arena);
  if (s->n_switches == 0)
    return s;
  c->n_rings++;
  request->algorithm = ls_coll_algorithm_name (LS_ALGORITHM_RING);
  return ls_coll_script (c->goal->cluster, c->goal->nccl, request, arena);
}

static gboolean
check_messages (GoalCalls *c, const LsScript *s, GError **error)
{
  c->n_messages += ls_script_n_messages (s);
  if ((double) c->n_messages <= LS_GOAL_MAX_LINES / 2)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
               "distinct collectives of more than %.3g messages; GOAL is written of at most so many",
               LS_GOAL_MAX_LINES / 2);
  return FALSE;
}

static void
add_message (GoalCall *call, uint32_t member, GoalMessage m)
{
  g_array_append_val (call->members[member], m);
}

static void
add_round (GoalCall *call, const LsScript *s, const uint32_t *ranks, uint32_t round, LsSend *sends)
{
  for (uint32_t place = 0; place < s->n; place++) {
    uint32_t n = s->sends (s, place, round, sends);
    for (uint32_t k = 0; k < n; k++) {
      uint64_t bytes = (uint64_t) MAX (1, llround (sends[k].n * s->block_bytes));
      uint32_t lane = s->has_lanes ? k : 0;
      add_message (call, place, (GoalMessage) { round, lane, ranks[sends[k].to], bytes, true });
      add_message (call, sends[k].to, (GoalMessage) { round, lane, ranks[place], bytes, false });
    }
  }
}

static GoalCall *
call_of (const LsScript *s, const uint32_t *ranks)
{
  GoalCall *call = g_new0 (GoalCall, 1);
  call->has_lanes = s->has_lanes;
  call->n_lanes = s->has_lanes ? s->max_sends : 1;
  call->n = s->n;
  call->members = g_new (GArray *, s->n);
  for (uint32_t i = 0; i < s->n; i++)
    call->members[i] = g_array_new (FALSE, FALSE, sizeof (GoalMessage));
  g_autofree LsSend *sends = g_new (LsSend, MAX (1, s->max_sends));
  for (uint32_t round = 0; s->n > 1 && round < s->n_rounds; round++)
    add_round (call, s, ranks, round, sends);
  return call;
}

const GoalCall *
goal_calls_find (GoalCalls *c, const LsOp *op, uint32_t comm, GError **error)
{
  g_autofree char *key = g_strdup_printf ("%u %u %u %u %u %u %" G_GUINT64_FORMAT, comm, op->coll,
                                          op->algorithm, op->parts, op->root, op->max_ctas, op->bytes);
  const GoalCall *known = g_hash_table_lookup (c->calls, key);
  if (known)
    return known;
  const LsPlan *plan = c->goal->plan;
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCommunicator of = ls_plan_communicator (plan, comm);
  g_autofree uint32_t *ranks = ls_comm_ranks (&of);
  LsCollRequest request = call_request (plan, collective_key (op), ranks, of.n_ranks, NULL, arena);
  if (!call_check (c->goal->cluster, c->goal->nccl, &request, LS_NETWORK_STEP, error))
    return NULL;
  const LsScript *s = script_of (c, &request, arena);
  if (!check_messages (c, s, error))
    return NULL;
  GoalCall *call = call_of (s, ranks);
  g_hash_table_insert (c->calls, g_steal_pointer (&key), call);
  return call;
}
