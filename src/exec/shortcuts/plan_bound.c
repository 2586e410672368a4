#include "exec/shortcuts/plan_bound_sum.h"

#include <math.h>
#include <stdlib.h>

/* --- calls of other plans ------------------------------------------------------------------ */

/* key NULL: nothing is. */
static bool
find_call (const Run *x, GBytes *key, BoundCall *ret_call)
{
  LsKnownCalls *calls = x->extras->options->calls;
  if (!key)
    return false;
  known_calls_lock (calls);
  const BoundCall *known = g_hash_table_lookup (calls->bounds, key);
  if (known)
    *ret_call = *known;
  known_calls_unlock (calls);
  return known != NULL;
}

static void
keep_call (const Run *x, GBytes *key, const BoundCall *call)
{
  LsKnownCalls *calls = x->extras->options->calls;
  if (!key)
    return;
  known_calls_lock (calls);
  g_hash_table_insert (calls->bounds, g_bytes_ref (key), g_memdup2 (call, sizeof *call));
  known_calls_unlock (calls);
}

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
  g_autoptr (GBytes) bytes = known_calls_key (x->extras->options->calls, x->cluster, &request);
  if (find_call (x, bytes, &k)) {
    k.slot = slot;
    g_array_append_val (r->known, k);
    return &g_array_index (r->known, BoundCall, r->known->len - 1);
  }
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
  keep_call (x, bytes, &k);
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

LsTime
bound_send_alone (RankSum *r, const LsTransfer *t)
{
  const uint32_t ranks[] = { r->rank, ls_plan_peer (r->x->plan, r->rank, t->slot == LS_SLOT_NEXT) };
  const CallKey key = transfer_key (t->bytes, t->max_ctas);
  const BoundCall *known = known_call (r, t->slot, key);
  return (known ? known : new_call (r, t->slot, key, ranks, 2))->alone;
}

LsTime
bound_op_alone (RankSum *r, const LsOp *op, const XOp *xop)
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
  LsTime alone = bound_op_alone (r, op, xop);
  if (!ls_op_takes (op->kind, LS_TAKES_GPU) || op->stream != LS_STREAM_COMPUTE || alone == 0)
    return alone;
  if (op->recorded != LS_TIME_NEVER)
    return (LsTime) ((double) alone / (1 - MOST_SHARE));
  const LsKernelCost *cost = &r->kind->costs[op->kernel];
  double stretch = ls_time_to_s (ls_kernel_time_beside (cost, MOST_SHARE)) / ls_time_to_s (cost->alone);
  return (LsTime) ((double) alone * fmax (1, stretch));
}

/* --- one segment ------------------------------------------------------------------------ */

LsTime
bound_segment_path (RankSum *r, const XSegment *seg, bool is_longest, LsTime ret_end[LS_N_STREAMS])
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
    LsTime time = is_longest ? op_longest (r, op, &seg->x[i]) : bound_op_alone (r, op, &seg->x[i]);
    tail[op->stream] = end[i] = start + time;
    if (op->stream == LS_STREAM_COMPUTE)
      work += time;
  }
  return work;
}

/* What the compute stream waits for, once in the segment. */
static LsTime
idle_of_segment (RankSum *r, const XSegment *seg)
{
  LsTime end[LS_N_STREAMS], work = bound_segment_path (r, seg, true, end);
  return end[LS_STREAM_COMPUTE] - work;
}

static void
add_op (RankSum *r, const LsOp *op, const XOp *xop, LsTime n)
{
  LsTime alone = bound_op_alone (r, op, xop);
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
  r->idle += n * idle_of_segment (r, seg);
}

/* --- one rank ----------------------------------------------------------------------------- */

/* Kernels that lose the same part of their rate. */
typedef struct {
  double loss; /* [0, 1) */
  LsTime work;
} Lot;

static int
by_loss (const void *a, const void *b)
{
  double x = ((const Lot *) a)->loss, y = ((const Lot *) b)->loss;
  return (x > y) - (x < y);
}

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
  qsort (lots, n_lots, sizeof *lots, by_loss);
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
  g_autofree LsTime *n_uses = g_new0 (LsTime, plan->n_segments + 1);
  RankSum *r = g_new0 (RankSum, 1);
  *r = (RankSum) {
    .x = x,
    .memo = memo,
    .rank = rank,
    .slow = x->options.slow ? x->options.slow[rank] : 1.0,
    .kind = run_kind_of (x, plan, rank),
  };
  r->known = g_array_new (FALSE, FALSE, sizeof (BoundCall));
  r->work = g_new0 (LsTime, plan->n_kernels + 1);
  for (int s = 0; s < LS_N_STREAMS; s++)
    r->streams[s].channels = r->streams[s].stall = 1;
  for (uint32_t i = p->n_lead; i < p->n_instances; i++)
    n_uses[p->instances[i].segment]++;
  for (uint32_t s = 0; s < plan->n_segments; s++)
    if (n_uses[s] > 0)
      add_segment (r, &r->kind->segments[s], n_uses[s]);
  return r;
}

static void
rank_sum_free (gpointer sum)
{
  RankSum *r = sum;
  if (!r)
    return;
  g_array_unref (r->known);
  g_free (r->work);
  g_free (r);
}

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
  g_autoptr (GPtrArray) sums = g_ptr_array_new_with_free_func (rank_sum_free);
  g_ptr_array_set_size (sums, (gint) plan->n_roles);
  LsTime least = 0;
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++) {
    gpointer *sum = &sums->pdata[ls_plan_role (plan, rank)];
    if (*sum)
      continue;
    *sum = rank_sum_new (&x, memo, rank);
    LsTime alone = bound_of_sums (*sum);
    least = MAX (least, alone);
  }
  LsTime round = bound_round (&x, (RankSum *const *) sums->pdata);
  return MAX (least, round);
}
