#include "exec/least.h"

#include <math.h>
#include <stdlib.h>

#include "exec/state.h"

/* A collective of a rank. */
typedef struct {
  CallKey key;
  uint8_t slot;
  LsTime alone, moving;
  double channels, stall; /* that it takes of a kernel's rate while it moves */
} Known;

typedef struct {
  LsTime busy, moving;
  double channels, stall; /* the least of its collectives; 1: none */
} StreamSum;

/* Of a rank and a step. */
typedef struct {
  Run *x;
  uint32_t rank;
  double slow;
  GArray *known;  /* Known                                                             */
  LsTime *work;   /* [n_kernels + 1] on the compute stream; last: of recorded duration */
  LsTime kernels; /* on all streams                                                    */
  LsTime idle;
  StreamSum streams[LS_N_STREAMS];
} RankSum;

/* --- one op --------------------------------------------------------------------------- */

static const Known *
known_call (RankSum *r, const LsOp *op)
{
  CallKey key = collective_key (op);
  for (guint i = 0; i < r->known->len; i++) {
    const Known *k = &g_array_index (r->known, Known, i);
    if (k->slot == op->slot && call_key_equal (k->key, key))
      return k;
  }
  Known k = { .key = key, .slot = op->slot, .channels = 1, .stall = 1 };
  const LsPlan *plan = r->x->plan;
  const LsCommunicator *c = &plan->comms[plan->bindings[r->rank].comm[op->slot]];
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsCollRequest request = call_request (r->x, key, c->ranks, c->n_ranks, r->x->coll_memo, arena);
  bool is_known = r->x->options->network != LS_NETWORK_STEP && c->n_ranks > 1
                  && ls_coll_applies (r->x->cluster, r->x->nccl, &request)
                  && ls_coll_check_size (r->x->cluster, r->x->nccl, &request, r->x->options->network, NULL);
  if (is_known) {
    const LsCollPlan *p = ls_coll_plan (r->x->cluster, r->x->nccl, &request, r->x->options->network, arena);
    LsTime latency = 0, alone = ls_coll_time_alone (r->x->cluster, p);
    for (uint32_t i = 0; i < p->n_phases; i++)
      latency += p->phases[i].latency;
    k.alone = (LsTime) ((double) alone * LS_RATE_ROUNDING);
    k.moving = (LsTime) ((double) (alone - latency) * LS_RATE_ROUNDING);
    k.channels = p->sm_share;
    k.stall = (double) call_stall (r->x, key, p) / (double) LS_COEF_ONE;
  }
  g_array_append_val (r->known, k);
  return &g_array_index (r->known, Known, r->known->len - 1);
}

static LsTime
op_alone (RankSum *r, const LsOp *op, const XOp *xop)
{
  switch (op->kind) {
  case LS_OP_KERNEL:
    return kernel_time_alone (r->slow, xop);
  case LS_OP_COPY:
    return xop->alone == LS_TIME_NEVER ? 0 : xop->alone;
  case LS_OP_COLLECTIVE:
    return known_call (r, op)->alone;
  default:
    return 0;
  }
}

/* A kernel of the compute stream at its slowest; what that waits for, alone. */
static LsTime
op_longest (RankSum *r, const LsOp *op, const XOp *xop)
{
  LsTime alone = op_alone (r, op, xop);
  if (op->kind != LS_OP_KERNEL || op->stream != LS_STREAM_COMPUTE || alone == 0)
    return alone;
  if (op->recorded != LS_TIME_NEVER)
    return (LsTime) ((double) alone / (1 - MOST_SHARE));
  const LsKernelCost *cost = &r->x->costs[op->kernel];
  double stretch = ls_time_to_s (ls_kernel_time_beside (cost, MOST_SHARE)) / ls_time_to_s (cost->alone);
  return (LsTime) ((double) alone * fmax (1, stretch));
}

/* --- one segment ------------------------------------------------------------------------ */

#define UNANCHORED (-1) /* does not follow from an op of the compute stream */

/* What the compute stream waits for, once in the segment. */
static LsTime
idle_of_segment (RankSum *r, const XSegment *seg)
{
  g_autofree LsTime *end = g_new (LsTime, seg->n_ops);
  LsTime tail[LS_N_STREAMS], work = 0;
  for (int s = 0; s < LS_N_STREAMS; s++)
    tail[s] = s == LS_STREAM_COMPUTE ? 0 : UNANCHORED;
  for (uint32_t i = 0; i < seg->n_ops; i++) {
    const LsOp *op = &seg->ops[i];
    end[i] = UNANCHORED;
    if (op->kind == LS_OP_HOST_SYNC || op->kind == LS_OP_HOST_DELAY)
      continue;
    LsTime start = tail[op->stream];
    for (uint32_t d = 0; d < seg->x[i].n_deps; d++) {
      LsDep dep = seg->x[i].deps[d];
      if (dep.kind == LS_DEP_END)
        start = MAX (start, end[dep.index]);
      else if (dep.kind == LS_DEP_STREAM && dep.index == LS_STREAM_COMPUTE)
        start = MAX (start, 0);
    }
    if (start == UNANCHORED)
      continue;
    LsTime longest = op_longest (r, op, &seg->x[i]);
    tail[op->stream] = end[i] = start + longest;
    if (op->stream == LS_STREAM_COMPUTE)
      work += longest;
  }
  return tail[LS_STREAM_COMPUTE] - work;
}

static void
add_op (RankSum *r, const LsOp *op, const XOp *xop, LsTime n)
{
  LsTime alone = op_alone (r, op, xop);
  StreamSum *s = &r->streams[op->stream];
  s->busy += n * alone;
  if (op->kind == LS_OP_COLLECTIVE && alone > 0) {
    const Known *k = known_call (r, op);
    s->moving += n * k->moving;
    s->channels = fmin (s->channels, k->channels);
    s->stall = fmin (s->stall, k->stall);
  }
  if (op->kind != LS_OP_KERNEL)
    return;
  r->kernels += n * alone;
  bool is_recorded = op->recorded != LS_TIME_NEVER;
  if (op->stream == LS_STREAM_COMPUTE)
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
  bool keeps_sms = is_recorded ? r->x->cluster->spec.gpu.persistent_gemms : kernel_is_persistent (r->x, i);
  double share = fmin (keeps_sms ? of->stall : of->channels + of->stall, MOST_SHARE);
  if (is_recorded)
    return share;
  const LsKernelCost *cost = &r->x->costs[i];
  return 1 - fmin (1, ls_time_to_s (cost->alone) / ls_time_to_s (ls_kernel_time_beside (cost, share)));
}

/* By how much kernels get longer at least beside something that moves for `beside`. */
static LsTime
least_loss (const RankSum *r, const StreamSum *of, LsTime beside)
{
  uint32_t n = r->x->plan->n_kernels, n_lots = 0;
  g_autofree Lot *lots = g_new (Lot, n + 1);
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
least_of_sums (const RankSum *r)
{
  LsTime work = 0, lost = 0, least = r->kernels;
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

static LsTime
least_of_rank (Run *x, uint32_t rank)
{
  const LsProgram *p = &x->plan->programs[x->plan->bindings[rank].role];
  g_autoptr (GArray) known = g_array_new (FALSE, FALSE, sizeof (Known));
  g_autofree LsTime *work = g_new0 (LsTime, x->plan->n_kernels + 1), *n_uses = g_new0 (LsTime, x->plan->n_segments + 1);
  RankSum r = { .x = x, .rank = rank, .slow = x->options->slow ? x->options->slow[rank] : 1.0, .known = known, .work = work };
  for (int s = 0; s < LS_N_STREAMS; s++)
    r.streams[s].channels = r.streams[s].stall = 1;
  for (uint32_t i = p->n_lead; i < p->n_instances; i++)
    n_uses[p->instances[i].segment]++;
  for (uint32_t s = 0; s < x->plan->n_segments; s++)
    if (n_uses[s] > 0)
      add_segment (&r, &x->segments[s], n_uses[s]);
  return least_of_sums (&r);
}

LsTime
ls_run_least (const LsPlan *plan, const LsCluster *cluster, const LsCalibration *calibration, const LsNccl *nccl,
              const LsRunOptions *options)
{
  Fold whole = { .plan = plan };
  g_autoptr (LsCollMemo) memo = ls_coll_memo_new ();
  g_autoptr (LsArena) arena = ls_arena_new ();
  Run x = { .plan = plan, .cluster = cluster, .nccl = nccl, .options = options, .arena = arena, .fold = &whole, .coll_memo = memo };
  if (!run_compile (&x, calibration, NULL))
    return 0;
  g_autofree bool *is_known = g_new0 (bool, plan->n_roles + 1);
  LsTime least = 0;
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++) {
    uint32_t role = plan->bindings[rank].role;
    if (!is_known[role])
      least = MAX (least, least_of_rank (&x, rank));
    is_known[role] = true;
  }
  return least;
}
