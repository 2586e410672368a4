#include "exec/shortcuts/plan_bound.h"

#include <math.h>
#include <stdlib.h>

#include "base/order.h"
#include "exec/extras.h"

/* A collective of a rank, or what it sends to a neighbour. */
typedef struct {
  CallKey key;
  uint8_t slot;
  LsTime alone, moving;
  double channels, stall; /* that it takes of a kernel's rate while it moves */
} BoundCall;

typedef struct {
  LsTime busy, moving;
  double channels, stall; /* the least of its collectives; 1: none */
} StreamSum;

/* Of a rank and a step. */
typedef struct {
  Run *x;
  LsCollMemo *memo;
  uint32_t rank;
  double slow;
  const XKind *kind;
  GArray *known;  /* BoundCall                                                         */
  LsTime *work;   /* [n_kernels + 1] on the compute stream; last: of recorded duration */
  LsTime slowed;  /* the same of those whose recorded duration holds a slowdown: not in work */
  LsTime kernels; /* on all streams                                                    */
  LsTime idle;
  StreamSum streams[LS_N_STREAMS];
} RankSum;

#define BOUND_NEVER (-1) /* it does not follow from where a path begins */

/* --- one op --------------------------------------------------------------------------- */

/* NULL: the rank has not had it yet. */
static const BoundCall *
known_call (const RankSum *r, uint8_t slot, CallKey key)
{
  for (guint i = 0; i < r->known->len; i++) {
    const BoundCall *k = &g_array_index (r->known, BoundCall, i);
    if (k->slot == slot && call_key_equal (k->key, key))
      return k;
  }
  return NULL;
}

/* ranks: who takes part in it. */
static const BoundCall *
new_call (RankSum *r, uint8_t slot, CallKey key, const uint32_t *ranks, uint32_t n_ranks)
{
  BoundCall k = { .key = key, .slot = slot, .channels = 1, .stall = 1 };
  const Run *x = r->x;
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsCollRequest request = call_request (x->whole->plan, key, ranks, n_ranks, r->memo, arena);
  const LsCollPlan *p = x->options.network != LS_NETWORK_STEP && n_ranks > 1
      ? known_call_plan (x, &request, arena, NULL)
      : NULL;
  if (p) {
    LsTime latency = 0, alone = ls_coll_time_on_links (x->cluster, p);
    for (uint32_t i = 0; i < p->n_phases; i++)
      latency += p->phases[i].latency;
    k.alone = (LsTime) ((double) alone * LS_RATE_ROUNDING);
    k.moving = (LsTime) ((double) (alone - latency) * LS_RATE_ROUNDING);
    k.channels = p->sm_share;
    k.stall = (double) call_stall (x, key, &request, p) / (double) LS_COEF_ONE;
  }
  g_array_append_val (r->known, k);
  return &g_array_index (r->known, BoundCall, r->known->len - 1);
}

static const BoundCall *
known_collective (RankSum *r, const LsOp *op)
{
  const LsPlan *plan = r->x->plan;
  const CallKey key = collective_key (op);
  const BoundCall *known = known_call (r, op->slot, key);
  if (known)
    return known;
  const LsCommunicator c = ls_plan_communicator (plan, ls_plan_comm_of (plan, r->rank, op->slot));
  g_autofree uint32_t *ranks = ls_comm_ranks (&c); /* of some calls thousands */
  return new_call (r, op->slot, key, ranks, c.n_ranks);
}

/* Of bytes sent to the neighbour of LS_SLOT_PREV or LS_SLOT_NEXT. */
static LsTime
send_alone (RankSum *r, const LsTransfer *t)
{
  const uint32_t ranks[] = { r->rank, ls_plan_peer (r->x->plan, r->rank, t->slot == LS_SLOT_NEXT) };
  const CallKey key = transfer_key (t->bytes, t->max_ctas);
  const BoundCall *known = known_call (r, t->slot, key);
  return (known ? known : new_call (r, t->slot, key, ranks, 2))->alone;
}

/* Of an op; 0 for what is not known. */
static LsTime
op_alone (RankSum *r, const LsOp *op, const XOp *xop)
{
  if (ls_op_takes (op->kind, LS_TAKES_GPU))
    return kernel_time_alone (r->slow, xop);
  if (ls_op_takes (op->kind, LS_TAKES_ENGINE))
    return xop->alone == LS_TIME_NEVER ? 0 : xop->alone;
  return ls_op_has (op->kind, LS_HAS_CALL) ? known_collective (r, op)->alone : 0;
}

/* A kernel of the compute stream at its slowest; what that waits for, alone. */
static LsTime
op_longest (RankSum *r, const LsOp *op, const XOp *xop)
{
  LsTime alone = op_alone (r, op, xop);
  if (!ls_op_takes (op->kind, LS_TAKES_GPU) || op->stream != LS_STREAM_COMPUTE || alone == 0)
    return alone;
  if (op->recorded != LS_TIME_NEVER)
    return (LsTime) ((double) alone / (1 - MOST_SHARE));
  const LsKernelCost *cost = &r->kind->costs[op->kernel];
  double stretch = ls_time_to_s (ls_kernel_time_beside (cost, MOST_SHARE)) / ls_time_to_s (cost->alone);
  return (LsTime) ((double) alone * fmax (1, stretch));
}

/* --- one segment ------------------------------------------------------------------------ */

/* How long after the compute stream begins a segment each stream is behind its last op that follows
 * from that, or BOUND_NEVER. is_longest: kernels of the compute stream at their slowest, and all else
 * alone. Returns the time of what the compute stream runs. */
static LsTime
segment_path (RankSum *r, const XSegment *seg, bool is_longest, LsTime ret_end[LS_N_STREAMS])
{
  g_autofree LsTime *end = g_new (LsTime, seg->n_ops);
  LsTime *tail = ret_end, work = 0;
  for (int s = 0; s < LS_N_STREAMS; s++)
    tail[s] = s == LS_STREAM_COMPUTE ? 0 : BOUND_NEVER;
  for (uint32_t i = 0; i < seg->n_ops; i++) {
    const LsOp *op = &seg->ops[i];
    end[i] = BOUND_NEVER;
    if (ls_op_is_of_host (op->kind))
      continue;
    LsTime start = tail[op->stream];
    for (uint32_t d = 0; d < seg->x[i].n_deps; d++) {
      LsDep dep = seg->x[i].deps[d];
      if (dep.kind == LS_DEP_END)
        start = MAX (start, end[dep.index]);
      else if (dep.kind == LS_DEP_STREAM && dep.index == LS_STREAM_COMPUTE)
        start = MAX (start, 0);
    }
    if (start == BOUND_NEVER)
      continue;
    LsTime time = is_longest ? op_longest (r, op, &seg->x[i]) : op_alone (r, op, &seg->x[i]);
    tail[op->stream] = end[i] = start + time;
    if (op->stream == LS_STREAM_COMPUTE)
      work += time;
  }
  return work;
}

static void
add_op (RankSum *r, const LsOp *op, const XOp *xop, LsTime n)
{
  LsTime alone = op_alone (r, op, xop);
  StreamSum *s = &r->streams[op->stream];
  s->busy += n * alone;
  if (ls_op_has (op->kind, LS_HAS_CALL) && alone > 0) {
    const BoundCall *k = known_collective (r, op);
    s->moving += n * k->moving;
    s->channels = fmin (s->channels, k->channels);
    s->stall = fmin (s->stall, k->stall);
  }
  if (!ls_op_takes (op->kind, LS_TAKES_GPU))
    return;
  r->kernels += n * alone;
  bool is_recorded = op->recorded != LS_TIME_NEVER;
  if (op->stream == LS_STREAM_COMPUTE && op->beside > 0)
    r->slowed += n * alone;
  else if (op->stream == LS_STREAM_COMPUTE)
    r->work[is_recorded ? r->x->plan->n_kernels : op->kernel] += n * alone;
}

static void
add_segment (RankSum *r, const XSegment *seg, LsTime n)
{
  for (uint32_t i = 0; i < seg->n_ops; i++)
    add_op (r, &seg->ops[i], &seg->x[i], n);
  LsTime end[LS_N_STREAMS], work = segment_path (r, seg, true, end); /* what the compute stream waits for */
  r->idle += n * (end[LS_STREAM_COMPUTE] - work);
}

/* --- one rank ----------------------------------------------------------------------------- */

/* Kernels that lose the same part of their rate. */
typedef struct {
  double loss; /* [0, 1); first, as they are sorted by it */
  LsTime work;
} Lot;

/* Of kernel i, or of those of recorded duration, which may be GEMMs too. A persistent GEMM keeps its
 * SMs if it was there first. */
static double
loss_of (const RankSum *r, uint32_t i, const StreamSum *of)
{
  bool is_recorded = i == r->x->plan->n_kernels;
  double lost = is_recorded ? kernel_least_lost (r->x, r->kind, NO_ID) : kernel_least_lost (r->x, r->kind, i);
  double share = fmin (lost * of->channels + of->stall, MOST_SHARE);
  if (is_recorded)
    return share;
  const LsKernelCost *cost = &r->kind->costs[i];
  return 1 - fmin (1, ls_time_to_s (cost->alone) / ls_time_to_s (ls_kernel_time_beside (cost, share)));
}

/* By how much kernels get longer at least beside something that moves for `beside`. */
static LsTime
least_loss (const RankSum *r, const StreamSum *of, LsTime beside)
{
  uint32_t n = r->x->plan->n_kernels, n_lots = 0;
  g_autofree Lot *lots = g_new (Lot, n + 2);
  lots[n_lots++] = (Lot) { 0, r->slowed };
  for (uint32_t i = 0; i <= n; i++)
    if (r->work[i] > 0)
      lots[n_lots++] = (Lot) { loss_of (r, i, of), r->work[i] };
  qsort (lots, n_lots, sizeof *lots, ls_compare_doubles);
  double left = (double) beside, lost = 0;
  for (uint32_t i = 0; i < n_lots && left > 0; i++) {
    double stretched = (double) lots[i].work / (1 - lots[i].loss), t = fmin (left, stretched);
    lost += t * lots[i].loss;
    left -= t;
  }
  return (LsTime) (lost * LS_RATE_ROUNDING);
}

static LsTime
bound_of_sums (const RankSum *r)
{
  LsTime work = r->slowed, lost = 0, least = r->kernels;
  for (uint32_t i = 0; i <= r->x->plan->n_kernels; i++)
    work += r->work[i];
  for (int s = 0; s < LS_N_STREAMS; s++) {
    const StreamSum *of = &r->streams[s];
    least = MAX (least, of->busy);
    if (of->moving > r->idle)
      lost = MAX (lost, least_loss (r, of, of->moving - r->idle));
  }
  return MAX (least, work + r->idle + lost);
}

static RankSum *
rank_sum_new (Run *x, LsCollMemo *memo, uint32_t rank)
{
  const LsPlan *plan = x->plan;
  const LsProgram *p = &plan->programs[ls_plan_role (plan, rank)];
  g_autofree uint32_t *n_uses = ls_program_uses (plan, p, p->n_lead);
  RankSum *r = ls_arena_new_array (x->arena, RankSum, 1);
  *r = (RankSum) {
    .x = x,
    .memo = memo,
    .rank = rank,
    .slow = x->options.slow ? x->options.slow[rank] : 1.0,
    .kind = run_kind_of (x, plan, rank),
    .known = ls_arena_list (x->arena, sizeof (BoundCall)),
    .work = ls_arena_new_array (x->arena, LsTime, plan->n_kernels + 1),
  };
  for (int s = 0; s < LS_N_STREAMS; s++)
    r->streams[s].channels = r->streams[s].stall = 1;
  for (uint32_t s = 0; s < plan->n_segments; s++)
    if (n_uses[s] > 0)
      add_segment (r, &r->kind->segments[s], n_uses[s]);
  return r;
}

/* ---- the longest chain ---- */

/* How long ranks of a pipeline take at least for a step: the longest
 * chain that leads from something in one step to the same in the next.
 *
 * Problem. Ranks of a pipeline wait for each other: what each does by itself says nothing of bubbles.
 *
 * Method. The programs of a rank and of those that it exchanges messages with, one for each stage, are
 * gone through once, as in a run in which all takes as long as alone and nothing is shared. An op begins
 * behind what is before it on its stream, what it depends on, the event that it waits for, and the syncs of
 * the host before it; a message moves when it is sent and asked for, behind those before it on its way; a
 * group is over when its messages are. Of a segment without messages, events and syncs only the longest
 * ways from its begin on the compute stream count, found once (segment_path ()). Then
 *
 *     barrier   T >= longest chain from the end of a collective of all these ranks, the last of a step,
 *                    to the end of the same in the next step
 *     none      T >= longest chain on the first rank from where its compute stream ends a step to where
 *                    it ends the next
 *
 * Proof. By induction along the chain: in a run an op starts at the latest of things of which those above are
 * some (exec/replay/rank.c, exec/replay/motion.c), and takes no less than alone;
 * what a chain does not connect to its begin counts as over long before. So no op of a run is nearer to the
 * begin of its chain than here. Messages meet in the order in which they are posted, and those of a step
 * meet in it (a run refuses others), so number k of a step here is number k there. The end of the chain is
 * what it began with, a step later: T is at least its length, in the long run.
 *
 * Worked example. One micro-batch through two stages: forward of 1 ms, message of 1 ms, forward and
 * backward of 3 ms together, message of 1 ms, backward of 2 ms, optimizer of 0.5 ms on each. The first rank
 * computes for 3.5 ms, the second as long; the chain is 1 + 1 + 3 + 1 + 2 + 0.5 = 8.5 ms.
 *
 * Deviations. Ranks are gone through in the order of their programs. If each waits for another, as where a
 * receive is posted long before it is needed, one goes on as if its messages had come. A barrier with
 * messages behind it counts as none, and programs with something for the first step only are left out. */

/* --- ranks on their way ------------------------------------------------------------------- */

typedef struct {
  LsTime at, alone;
} Sent;

/* What a rank sends to a neighbour, by number: posted, asked for, over. */
typedef struct {
  GArray *sent;         /* Sent   */
  GArray *asked, *over; /* LsTime */
} Lane;

typedef struct {
  uint32_t instance, op;
} Place;

typedef enum { WALK_ON, WALK_BLOCKED, WALK_OVER } WalkState;

/* A rank in its program. */
typedef struct {
  RankSum *sum;
  const LsProgram *program;
  const Place *barrier; /* NULL: none */
  Place barrier_place;
  Place at;
  bool is_posted; /* the messages of the op that it is at */
  bool has_begun; /* the barrier was there                */
  WalkState state;
  LsTime host, tail[LS_N_STREAMS];
  LsTime arrived; /* at the barrier of the next step      */
  LsTime *end;    /* of the ops of the instance           */
  LsTime *events;
  LsTime (*paths)[LS_N_STREAMS]; /* [n_segments] segment_path () */
  bool *has_path;
  Lane lanes[2]; /* to the next rank, to the previous    */
} Walk;

typedef struct {
  Run *x;
  GPtrArray *walks;     /* Walk: ranks that exchange messages   */
  const bool *is_plain; /* [n_segments]                         */
} Round;

static Walk *
walk_new (const Run *x, RankSum *sum)
{
  const LsPlan *plan = x->plan;
  Walk *w = ls_arena_new_array (x->arena, Walk, 1);
  uint32_t n_ops = 1;
  w->sum = sum;
  w->program = &plan->programs[ls_plan_role (plan, sum->rank)];
  for (uint32_t i = 0; i < w->program->n_instances; i++)
    n_ops = MAX (n_ops, x->segments[w->program->instances[i].segment].n_ops);
  gsize n_events = (gsize) w->program->n_events * plan->n_micro_batches * plan->n_chunks;
  w->end = ls_arena_new_array (x->arena, LsTime, n_ops);
  w->events = ls_arena_new_array (x->arena, LsTime, n_events + 1);
  for (gsize i = 0; i < n_events; i++)
    w->events[i] = BOUND_NEVER;
  w->paths = ls_arena_alloc (x->arena, plan->n_segments, sizeof *w->paths);
  w->has_path = ls_arena_new_array (x->arena, bool, plan->n_segments);
  w->host = w->arrived = BOUND_NEVER;
  for (int s = 0; s < LS_N_STREAMS; s++)
    w->tail[s] = BOUND_NEVER;
  for (int i = 0; i < 2; i++)
    w->lanes[i] = (Lane) { ls_arena_list (x->arena, sizeof (Sent)), ls_arena_list (x->arena, sizeof (LsTime)),
                           ls_arena_list (x->arena, sizeof (LsTime)) };
  return w;
}

static Walk *
walk_of (const Round *round, uint32_t rank)
{
  for (guint i = 0; i < round->walks->len; i++) {
    Walk *w = round->walks->pdata[i];
    if (w->sum->rank == rank)
      return w;
  }
  return NULL;
}

static const XSegment *
segment_at (const Round *round, const Walk *w)
{
  return &w->sum->kind->segments[w->program->instances[w->at.instance].segment];
}

static LsTime
behind (LsTime start, LsTime time)
{
  return start == BOUND_NEVER ? BOUND_NEVER : start + time;
}

/* --- messages ----------------------------------------------------------------------------- */

/* That a transfer travels on: as group_channel (). */
static Lane *
lane_of (const Round *round, Walk *w, const LsTransfer *t)
{
  bool is_to_next = t->slot == LS_SLOT_NEXT;
  Walk *sender = t->is_send ? w : walk_of (round, ls_plan_peer (round->x->plan, w->sum->rank, is_to_next));
  return &sender->lanes[t->is_send == is_to_next ? 0 : 1];
}

static void
lane_advance (Lane *lane)
{
  guint at = lane->over->len;
  LsTime last = at > 0 ? g_array_index (lane->over, LsTime, at - 1) : BOUND_NEVER;
  for (; at < MIN (lane->sent->len, lane->asked->len); at++) {
    const Sent *sent = &g_array_index (lane->sent, Sent, at);
    last = behind (MAX (MAX (last, sent->at), g_array_index (lane->asked, LsTime, at)), sent->alone);
    g_array_append_val (lane->over, last);
  }
}

static void
post (const Round *round, Walk *w, const LsOp *op, LsTime at)
{
  for (uint32_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *t = &op->transfers[i];
    Lane *lane = lane_of (round, w, t);
    Sent sent = { at, t->is_send ? send_alone (w->sum, t) : 0 };
    if (t->is_send)
      g_array_append_val (lane->sent, sent);
    else
      g_array_append_val (lane->asked, at);
    lane_advance (lane);
  }
}

/* False: not all partners are there. They are behind what the rank posted before. */
static bool
are_over (const Round *round, Walk *w, const LsOp *op, LsTime *ret_at)
{
  bool all = true;
  for (uint32_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *t = &op->transfers[i];
    const Lane *lane = lane_of (round, w, t);
    guint n = t->is_send ? lane->sent->len : lane->asked->len;
    if (lane->over->len < n)
      all = false;
    else
      *ret_at = MAX (*ret_at, g_array_index (lane->over, LsTime, n - 1));
  }
  return all;
}

/* --- ops ---------------------------------------------------------------------------------- */

static LsTime
start_of (const Walk *w, const XOp *op)
{
  bool is_on_host = ls_op_is_of_host (op->kind);
  LsTime start = is_on_host ? w->host : MAX (w->host, w->tail[op->stream]);
  for (uint32_t d = 0; d < op->n_deps; d++) {
    LsDep dep = op->deps[d];
    if (dep.kind != LS_DEP_ISSUE)
      start = MAX (start, dep.kind == LS_DEP_END ? w->end[dep.index] : w->tail[dep.index]);
  }
  return start;
}

static LsTime *
event_of (const Round *round, const Walk *w, const LsOp *op)
{
  return &w->events[ls_plan_event (round->x->plan, &w->program->instances[w->at.instance], op)];
}

static bool
is_at_barrier (const Walk *w)
{
  return w->barrier && w->at.instance == w->barrier->instance && w->at.op == w->barrier->op;
}

/* is_forced: partners that are not there count as if they had been. */
static WalkState
walk_op (const Round *round, Walk *w, const LsOp *op, const XOp *xop, bool is_forced)
{
  LsTime start = start_of (w, xop), end = start;
  if (is_at_barrier (w) && w->has_begun) {
    w->arrived = start;
    return WALK_OVER;
  }
  if (is_at_barrier (w)) {
    w->has_begun = true;
    end = 0;
  } else if (ls_op_has (op->kind, LS_HAS_TRANSFERS)) {
    if (!w->is_posted)
      post (round, w, op, start);
    w->is_posted = true;
    if (!are_over (round, w, op, &end) && !is_forced)
      return WALK_BLOCKED;
    w->is_posted = false;
  } else if (ls_op_kinds[op->kind].host_waits)
    w->host = start;
  else if (ls_op_awaits (op))
    end = MAX (end, *event_of (round, w, op));
  else if (ls_op_records (op))
    *event_of (round, w, op) = start;
  else
    end = behind (start, op_alone (w->sum, op, xop));
  w->end[w->at.op] = end;
  if (!ls_op_is_of_host (op->kind))
    w->tail[op->stream] = end;
  return WALK_ON;
}

/* Of a segment whose streams depend on nothing but each other. */
static void
walk_segment (const Round *round, Walk *w)
{
  uint32_t segment = w->program->instances[w->at.instance].segment;
  LsTime start = MAX (w->host, w->tail[LS_STREAM_COMPUTE]);
  if (!w->has_path[segment])
    segment_path (w->sum, &w->sum->kind->segments[segment], false, w->paths[segment]);
  w->has_path[segment] = true;
  for (int s = 0; s < LS_N_STREAMS && start != BOUND_NEVER; s++)
    if (w->paths[segment][s] != BOUND_NEVER)
      w->tail[s] = MAX (w->tail[s], start + w->paths[segment][s]);
}

static void
next_instance (Walk *w)
{
  w->at = (Place) { w->at.instance + 1, 0 };
  if (w->at.instance < w->program->n_instances)
    return;
  w->at.instance = 0;
  if (!w->barrier)
    w->state = WALK_OVER;
}

/* As far as it gets; true: from where it was. */
static bool
walk (const Round *round, Walk *w, bool is_forced)
{
  bool has_moved = false;
  while (w->state != WALK_OVER) {
    const XSegment *seg = segment_at (round, w);
    bool has_barrier = w->barrier && w->at.instance == w->barrier->instance;
    if (round->is_plain[w->program->instances[w->at.instance].segment] && !has_barrier)
      walk_segment (round, w);
    else
      for (w->state = WALK_ON; w->at.op < seg->n_ops; w->at.op++, is_forced = false, has_moved = true) {
        w->state = walk_op (round, w, &seg->ops[w->at.op], &seg->x[w->at.op], is_forced);
        if (w->state != WALK_ON)
          return has_moved || w->state == WALK_OVER;
      }
    next_instance (w);
    has_moved = true;
  }
  return has_moved;
}

/* --- the round ---------------------------------------------------------------------------- */

static bool
is_of_all (const Round *round, uint32_t comm)
{
  if (comm >= round->x->plan->n_comms)
    return false;
  bool all = ls_plan_communicator (round->x->plan, comm).spans_stages;
  for (guint i = 0; i < round->walks->len && all; i++)
    all = ls_plan_slots_to (round->x->plan, ((const Walk *) round->walks->pdata[i])->sum->rank, comm) != 0;
  return all;
}

/* The last collective of the program on this communicator, or, if it is UINT32_MAX, on one of all ranks.
 * False: there is none, or messages are behind it. */
static bool
find_barrier (const Round *round, const Walk *w, uint32_t *comm, Place *ret_place)
{
  const LsBinding binding = ls_plan_binding (round->x->plan, w->sum->rank);
  const uint32_t *comms = binding.comm;
  for (uint32_t i = w->program->n_instances; i-- > 0;) {
    const XSegment *seg = &round->x->segments[w->program->instances[i].segment];
    bool is_found = false;
    for (uint32_t o = seg->n_ops; o-- > 0;) {
      const LsOp *op = &seg->ops[o];
      if (ls_op_has (op->kind, LS_HAS_TRANSFERS))
        return false;
      if (!ls_op_has (op->kind, LS_HAS_CALL) || is_found)
        continue;
      is_found = *comm == UINT32_MAX ? is_of_all (round, comms[op->slot]) : comms[op->slot] == *comm;
      *comm = is_found ? comms[op->slot] : *comm;
      *ret_place = (Place) { i, o };
    }
    if (is_found)
      return true;
  }
  return false;
}

static bool
set_barriers (const Round *round)
{
  uint32_t comm = UINT32_MAX;
  for (guint i = 0; i < round->walks->len; i++) {
    Walk *w = round->walks->pdata[i];
    if (round->walks->len == 1 || !find_barrier (round, w, &comm, &w->barrier_place))
      return false;
  }
  for (guint i = 0; i < round->walks->len; i++) {
    Walk *w = round->walks->pdata[i];
    w->barrier = &w->barrier_place;
    w->at = (Place) { w->barrier_place.instance, 0 };
  }
  return true;
}

/* All ranks to the end of their way. */
static void
walk_all (const Round *round)
{
  for (bool is_forced = false, goes_on = true; goes_on;) {
    bool has_moved = false, is_open = false;
    for (guint i = 0; i < round->walks->len; i++) {
      Walk *w = round->walks->pdata[i];
      bool moved = walk (round, w, is_forced && !has_moved);
      has_moved |= moved;
      is_open |= w->state != WALK_OVER;
    }
    is_forced = !has_moved;
    goes_on = is_open;
  }
}

static LsTime
length (const Round *round)
{
  Walk *first = round->walks->pdata[0];
  if (!set_barriers (round)) {
    first->tail[LS_STREAM_COMPUTE] = 0;
    walk_all (round);
    return first->tail[LS_STREAM_COMPUTE];
  }
  walk_all (round);
  LsTime arrived = 0;
  for (guint i = 0; i < round->walks->len; i++)
    arrived = MAX (arrived, ((const Walk *) round->walks->pdata[i])->arrived);
  const XSegment *seg = segment_at (round, first);
  return arrived + op_alone (first->sum, &seg->ops[first->at.op], &seg->x[first->at.op]);
}

/* The rank and those that it exchanges messages with, and so on. False: one of them is not the first of
 * its role, or does something in the first step only. */
static bool
gather (Round *round, RankSum *const *sums, RankSum *first)
{
  const LsPlan *plan = round->x->plan;
  g_ptr_array_add (round->walks, walk_new (round->x, first));
  for (guint i = 0; i < round->walks->len; i++) {
    const Walk *w = round->walks->pdata[i];
    const LsBinding b = ls_plan_binding (plan, w->sum->rank);
    if (w->program->n_lead > 0)
      return false;
    for (int side = 0; side < 2; side++) {
      uint32_t peer = b.peer[side];
      if (peer == UINT32_MAX || walk_of (round, peer))
        continue;
      RankSum *sum = sums[ls_plan_role (plan, peer)];
      if (!sum || sum->rank != peer)
        return false;
      g_ptr_array_add (round->walks, walk_new (round->x, sum));
    }
  }
  return true;
}

static bool
is_plain (const XSegment *seg)
{
  for (uint32_t i = 0; i < seg->n_ops; i++) {
    const LsOp *op = &seg->ops[i];
    if (ls_op_has (op->kind, LS_HAS_TRANSFERS) || ls_op_kinds[op->kind].host_waits || ls_op_awaits (op)
        || ls_op_records (op))
      return false;
  }
  return true;
}

/* sums: [n_roles] of the first rank of each role; NULL: it has none. */
static LsTime
longest_round (Run *x, RankSum *const *sums)
{
  const LsPlan *plan = x->plan;
  g_autofree bool *plain = g_new0 (bool, plan->n_segments + 1), *is_known = g_new0 (bool, plan->n_roles + 1);
  LsTime least = 0;
  for (uint32_t s = 0; s < plan->n_segments; s++)
    plain[s] = is_plain (&x->segments[s]);
  for (uint32_t role = 0; role < plan->n_roles; role++) {
    if (!sums[role] || is_known[role])
      continue;
    g_autoptr (GPtrArray) walks = g_ptr_array_new ();
    Round round = { x, walks, plain };
    LsTime time = gather (&round, sums, sums[role]) ? length (&round) : 0;
    least = MAX (least, time);
    for (guint i = 0; i < walks->len; i++)
      is_known[ls_plan_role (plan, ((const Walk *) walks->pdata[i])->sum->rank)] = true;
  }
  return least;
}

/* ---- all of it ---- */

LsTime
ls_plan_bound (const LsPlan *plan, const LsCluster *cluster, const LsCalibration *calibration,
               const LsNccl *nccl, const LsRunOptions *options)
{
  Whole whole = { .plan = plan };
  Extras extras = { 0 };
  g_autoptr (LsCollMemo) memo = ls_coll_memo_new ();
  g_autoptr (LsArena) arena = ls_arena_new ();
  XJob job = { .plan = plan, .calibration = calibration, .host = &options->host };
  Run x = {
    .plan = plan, .jobs = &job, .n_jobs = 1, .cluster = cluster, .nccl = nccl, .arena = arena, .whole = &whole
  };
  extras_hang (&x, &extras, options);
  if (!run_compile (&x, NULL))
    return 0;
  RankSum **sums = ls_arena_new_array (arena, RankSum *, plan->n_roles);
  LsTime least = 0;
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++) {
    RankSum **sum = &sums[ls_plan_role (plan, rank)];
    if (*sum)
      continue;
    *sum = rank_sum_new (&x, memo, rank);
    LsTime alone = bound_of_sums (*sum);
    least = MAX (least, alone);
  }
  LsTime round = longest_round (&x, sums);
  return MAX (least, round);
}
