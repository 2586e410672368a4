/* data/traces/goal_write.c — plan -> GOAL. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <lockstep/error.h>

#include "base/diag.h"
#include "data/text/write_file.h"
#include "data/traces/traces.h"
#include "data/traces/trace_file.h"
#include "exec/replay/calls.h"
#include "network/script.h"

/* --- collectives as the messages of each member ------------------------------------------ */

typedef struct {
  uint32_t round, lane;
  uint32_t peer; /* rank */
  uint64_t bytes;
  bool is_send;
} GoalMessage;

/* Of one collective of a communicator. */
typedef struct {
  uint32_t n_lanes;   /* 1: a round waits for all of the one before */
  GPtrArray *members; /* GArray of GoalMessage, by round, then as the sender has them */
} GoalCall;

typedef struct {
  const LsGoal *goal;
  GHashTable *calls; /* char * -> GoalCall */
  uint64_t n_messages;
  uint32_t n_rings;
} GoalCalls;

static void
free_call (gpointer call)
{
  g_ptr_array_unref (((GoalCall *) call)->members);
  g_free (call);
}

static void
add_round (GoalCall *call, const LsScript *s, const uint32_t *ranks, uint32_t round, LsSend *sends)
{
  for (uint32_t place = 0; place < s->n; place++) {
    uint32_t n = s->sends (s, place, round, sends);
    for (uint32_t k = 0; k < n; k++) {
      uint64_t bytes = (uint64_t) MAX (1, llround (sends[k].n * s->block_bytes));
      uint32_t lane = s->has_lanes ? k : 0;
      const GoalMessage sent = { round, lane, ranks[sends[k].to], bytes, true },
                        received = { round, lane, ranks[place], bytes, false };
      g_array_append_val ((GArray *) call->members->pdata[place], sent);
      g_array_append_val ((GArray *) call->members->pdata[sends[k].to], received);
    }
  }
}

static GoalCall *
call_of (const LsScript *s, const uint32_t *ranks)
{
  GoalCall *call = g_new0 (GoalCall, 1);
  call->n_lanes = s->has_lanes ? s->max_sends : 1;
  call->members = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  for (uint32_t i = 0; i < s->n; i++)
    g_ptr_array_add (call->members, g_array_new (FALSE, FALSE, sizeof (GoalMessage)));
  g_autofree LsSend *sends = g_new (LsSend, MAX (1, s->max_sends));
  for (uint32_t round = 0; s->n > 1 && round < s->n_rounds; round++)
    add_round (call, s, ranks, round, sends);
  return call;
}

/* The messages of a collective op on a communicator; each distinct one is made once. NULL: errors as of
 * ls_goal_write(). */
static const GoalCall *
calls_find (GoalCalls *c, const LsOp *op, uint32_t comm, GError **error)
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
  const LsScript *s = ls_coll_script (c->goal->cluster, c->goal->nccl, &request, arena);
  if (s->n_switches > 0) { /* without switches that compute */
    c->n_rings++;
    request.algorithm = ls_coll_algorithm_name (LS_ALGORITHM_RING);
    s = ls_coll_script (c->goal->cluster, c->goal->nccl, &request, arena);
  }
  c->n_messages += ls_script_n_messages (s);
  if ((double) c->n_messages > LS_GOAL_MAX_LINES / 2)
    return ls_fail_null (
        error, LS_ERROR_LIMIT,
        "distinct collectives of more than %.3g messages; GOAL is written of at most so many",
        LS_GOAL_MAX_LINES / 2);
  GoalCall *call = call_of (s, ranks);
  g_hash_table_insert (c->calls, g_steal_pointer (&key), call);
  return call;
}

/* --- ranks, one after the other ----------------------------------------------------------- */

/* Tags of a pair: 16 k + space. */
#define N_SPACES 16
enum { SPACE_NEXT = 14, SPACE_PREVIOUS = 15 };

/* One rank on its way. Labels are l1, l2, ...; label 0 is none: nothing has to be over. */
typedef struct {
  const LsGoal *goal;
  const LsPlan *plan;
  GoalCalls calls;
  FILE *out;
  LsOpWalk at;
  uint64_t label, n_lines;
  GHashTable *counts;  /* messages by pair, space and direction */
  LsTime computed;     /* by this rank so far */
  uint64_t written_ns; /* of that */
} Writer;

/* --- nodes ------------------------------------------------------------------------------ */

static void
add_dep (GArray *deps, uint64_t label)
{
  if (label > 0)
    ls_op_walk_add (deps, label);
}

static void
put_deps (Writer *w, const GArray *deps)
{
  for (guint i = 0; i < deps->len; i++)
    fprintf (w->out, "l%" PRIu64 " requires l%" PRIu64 "\n", w->label, g_array_index (deps, uint64_t, i));
  w->n_lines += 1 + deps->len;
}

static uint64_t
put_calc (Writer *w, uint64_t ns, unsigned cpu, const GArray *deps)
{
  fprintf (w->out, "l%" PRIu64 ": calc %" PRIu64 " cpu %u\n", ++w->label, ns, cpu);
  put_deps (w, deps);
  return w->label;
}

/* What is over when all of these are. */
static uint64_t
join (Writer *w, const GArray *deps, unsigned cpu)
{
  if (deps->len == 0)
    return 0;
  return deps->len == 1 ? g_array_index (deps, uint64_t, 0) : put_calc (w, 0, cpu, deps);
}

/* With the next tag of a message to, or from, that rank. */
static uint64_t
put_message (Writer *w, bool is_send, uint32_t peer, uint64_t bytes, uint32_t space, unsigned cpu,
             const GArray *deps)
{
  gpointer pair = GSIZE_TO_POINTER (((gsize) peer * N_SPACES + space) << 1 | is_send);
  guint64 k = GPOINTER_TO_SIZE (g_hash_table_lookup (w->counts, pair));
  g_hash_table_insert (w->counts, pair, GSIZE_TO_POINTER (k + 1));
  fprintf (w->out, "l%" PRIu64 ": %s %" PRIu64 "b %s %u tag %" PRIu64 " cpu %u\n", ++w->label,
           is_send ? "send" : "recv", bytes, is_send ? "to" : "from", peer, k * N_SPACES + space, cpu);
  put_deps (w, deps);
  return w->label;
}

/* --- collectives ------------------------------------------------------------------------ */

/* Of the communicators that both ranks have, how many come before this one. */
static uint32_t
space_of (const Writer *w, uint32_t peer, uint32_t comm)
{
  const uint32_t *mine = w->at.binding.comm;
  const LsBinding other = ls_plan_binding (w->plan, peer);
  uint32_t n = 0;
  for (int s = 0; s < LS_SLOT_PREV; s++) {
    bool is_both = false, is_new = mine[s] < comm;
    for (int t = 0; t < LS_SLOT_PREV; t++)
      is_both |= other.comm[t] == mine[s];
    for (int t = 0; t < s; t++)
      is_new &= mine[t] != mine[s];
    n += is_both && is_new;
  }
  return n;
}

/* The rounds of a call. A lane's next sends need what it had in the round before. */
typedef struct {
  GArray *ready, *now; /* uint64_t: labels that are over before this round; of this round */
} Lane;

static Lane *
lanes_new (uint32_t n, uint64_t entry)
{
  Lane *lanes = g_new (Lane, n);
  for (uint32_t i = 0; i < n; i++) {
    lanes[i] = (Lane) { g_array_new (FALSE, FALSE, sizeof entry), g_array_new (FALSE, FALSE, sizeof entry) };
    add_dep (lanes[i].ready, entry);
  }
  return lanes;
}

/* Many that all of the next round needs are one. */
static void
next_round (Writer *w, Lane *lanes, uint32_t n, unsigned cpu)
{
  for (Lane *lane = lanes; lane < lanes + n; lane++) {
    uint64_t one = lane->now->len > 2 ? join (w, lane->now, cpu) : 0;
    if (lane->now->len == 0)
      continue;
    g_array_set_size (lane->ready, 0);
    if (one > 0)
      add_dep (lane->ready, one);
    else
      g_array_append_vals (lane->ready, lane->now->data, lane->now->len);
    g_array_set_size (lane->now, 0);
  }
}

/* Frees them. */
static uint64_t
lanes_end (Writer *w, Lane *lanes, uint32_t n, unsigned cpu)
{
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  next_round (w, lanes, n, cpu);
  for (Lane *lane = lanes; lane < lanes + n; lane++) {
    for (guint i = 0; i < lane->ready->len; i++)
      add_dep (all, g_array_index (lane->ready, uint64_t, i));
    g_array_unref (lane->ready);
    g_array_unref (lane->now);
  }
  g_free (lanes);
  return join (w, all, cpu);
}

static uint64_t
put_collective (Writer *w, const LsOp *op, const GoalCall *call, uint32_t comm)
{
  const GArray *messages = call->members->pdata[w->at.binding.member[op->slot]];
  g_autoptr (GArray) entry = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  uint64_t begin = join (w, w->at.ends, op->stream);
  Lane *lanes = lanes_new (call->n_lanes, begin);
  uint32_t round = 0;
  add_dep (entry, begin);
  for (guint i = 0; i < messages->len; i++) {
    const GoalMessage *m = &g_array_index (messages, GoalMessage, i);
    if (m->round != round)
      next_round (w, lanes, call->n_lanes, op->stream);
    round = m->round;
    uint64_t label = put_message (w, m->is_send, m->peer, m->bytes, space_of (w, m->peer, comm), op->stream,
                                  m->is_send ? lanes[m->lane].ready : entry);
    g_array_append_val (lanes[m->lane].now, label);
  }
  return lanes_end (w, lanes, call->n_lanes, op->stream);
}

/* --- ops ---------------------------------------------------------------------------------- */

/* Sends and receives of a group begin together. */
static uint64_t
put_p2p (Writer *w, const LsOp *op)
{
  g_autoptr (GArray) labels = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  for (uint32_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *t = &op->transfers[i];
    bool to_next = (t->slot == LS_SLOT_NEXT) == (t->is_send != 0);
    uint32_t peer = w->at.binding.peer[t->slot == LS_SLOT_NEXT];
    add_dep (labels,
             put_message (w, t->is_send, peer, MAX (1, t->bytes), to_next ? SPACE_NEXT : SPACE_PREVIOUS,
                          op->stream, w->at.ends));
  }
  return join (w, labels, op->stream);
}

/* Of a copy and a kernel that no record has, alone. */
static LsTime
time_of (const Writer *w, const LsOp *op)
{
  LsTime each = op->recorded;
  if (each == LS_TIME_NEVER && ls_op_takes (op->kind, LS_TAKES_ENGINE)) {
    g_autoptr (LsArena) arena = ls_arena_new ();
    const LsCollPlan *plan
        = ls_copy_plan (w->goal->cluster, ls_plan_gpu (w->plan, w->at.rank), (LsCopyDirection) op->direction,
                        op->bytes, LS_NETWORK_ALPHABETA, arena);
    each = ls_coll_time_alone (w->goal->cluster, plan);
  } else if (each == LS_TIME_NEVER)
    each = op->kernel == UINT32_MAX ? 0 : w->goal->kernel_times[op->kernel];
  return each * MAX (op->repeat, 1);
}

static gboolean
put_op (void *data, const LsOp *op, LsOpNodes *ret_nodes, GError **error)
{
  Writer *w = data;
  bool is_call = ls_op_has (op->kind, LS_HAS_CALL);
  uint32_t comm = is_call ? w->at.binding.comm[op->slot] : 0;
  const GoalCall *call = is_call ? calls_find (&w->calls, op, comm, error) : NULL;
  if (is_call && !call)
    return FALSE;
  if (call)
    ret_nodes->first = put_collective (w, op, call, comm);
  else if (ls_op_is_communication (op->kind))
    ret_nodes->first = put_p2p (w, op);
  else if (ls_op_has (op->kind, LS_HAS_RECORDED)) {
    w->computed += time_of (w, op); /* of whole nanoseconds the rest is carried on */
    uint64_t all = (uint64_t) ((w->computed + LS_NS / 2) / LS_NS), ns = all - w->written_ns;
    w->written_ns = all;
    ret_nodes->first = put_calc (w, ns, op->stream, w->at.ends);
  } else /* it only waits */
    ret_nodes->first = join (w, w->at.ends, op->stream);
  ret_nodes->n = ret_nodes->first > 0;
  return (double) w->n_lines <= LS_GOAL_MAX_LINES
      || ls_fail (error, LS_ERROR_LIMIT,
                  "more than %.3g lines up to rank %u of %u; GOAL is written of at most so many",
                  LS_GOAL_MAX_LINES, w->at.rank, w->plan->n_ranks);
}

/* --- ranks ---------------------------------------------------------------------------------- */

static gboolean
put_rank (Writer *w, uint32_t rank, GError **error)
{
  gboolean ok = TRUE;
  ls_op_walk_begin (&w->at, w->plan, rank);
  w->label = w->written_ns = 0;
  w->computed = 0;
  g_hash_table_remove_all (w->counts);
  fprintf (w->out, "\nrank %u {\n", rank);
  for (uint32_t i = 0; ok && i < w->at.program->n_instances; i++)
    ok = ls_op_walk_instance (&w->at, &w->at.program->instances[i], put_op, w, error);
  fputs ("}\n", w->out);
  ls_op_walk_end (&w->at);
  return ok;
}

static gboolean
write_all (FILE *out, void *data, GError **error)
{
  Writer *w = data;
  w->out = out;
  g_autofree char *source = g_strdelimit (g_strdup (w->goal->source), "\r\n", ' ');
  fprintf (out, "num_ranks %u\n// %s\n", w->plan->n_ranks, source);
  for (uint32_t rank = 0; rank < w->plan->n_ranks; rank++)
    if (!put_rank (w, rank, error))
      return FALSE;
  return TRUE;
}

gboolean
ls_goal_write (const LsGoal *goal, const char *path, uint32_t *ret_n_rings, GError **error)
{
  g_autoptr (GHashTable) calls = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, free_call),
                         counts = g_hash_table_new (NULL, NULL);
  Writer w = { .goal = goal, .plan = goal->plan, .calls = { goal, calls }, .counts = counts };
  gboolean ok = ls_write_file (path, write_all, &w, error);
  *ret_n_rings = w.calls.n_rings;
  return ok;
}
