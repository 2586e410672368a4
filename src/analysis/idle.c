#include "analysis/idle.h"

#include <string.h>

#include "base/order.h"

typedef struct {
  const LsTimeline *t;
  uint32_t rank;
  LsIdleFunc each;
  void *data;
  LsTime from;     /* start of the gap                  */
  LsTime to;       /* [from, to) is not yet explained   */
  uint32_t before; /* LsIdlePiece */
} Gap;

LsTime
ls_span_end (const LsTimeline *t, const LsSpan *span)
{
  return span->end == LS_TIME_NEVER ? MAX (t->window_end, span->start) : span->end;
}

bool
ls_span_is_compute (const LsTimeline *t, uint32_t rank, const LsSpan *span)
{
  const LsOp *op = ls_span_op (t, rank, span);
  return ls_op_takes (op->kind, LS_TAKES_GPU);
}

/* Gives [since, to) to a part, as far as it lies in the gap and the window. */
static void
explain (Gap *g, LsTime since, LsPart part, const LsOp *op)
{
  since = MAX (since, g->from);
  if (since >= g->to)
    return;
  LsTime to = MIN (g->to, g->t->window_end);
  if (since < to)
    g->each (&(LsIdlePiece) { part, since, to, g->before, op }, g->data);
  g->to = since;
}

static void
explain_communication (Gap *g, const LsSpan *x, const LsOp *op)
{
  static const LsPart parts[LS_N_AXES] = {
    [LS_AXIS_TP] = LS_PART_EXPOSED_TP, [LS_AXIS_DP] = LS_PART_EXPOSED_DP, [LS_AXIS_PP] = LS_PART_EXPOSED_PP,
    [LS_AXIS_CP] = LS_PART_EXPOSED_CP, [LS_AXIS_EP] = LS_PART_EXPOSED_EP,
  };
  LsPart moving = LS_PART_EXPOSED_PP, waiting = LS_PART_BUBBLE;
  if (ls_op_has (op->kind, LS_HAS_CALL)) {
    const LsPlan *plan = g->t->plan;
    const LsCommunicator comm = ls_plan_communicator (plan, ls_plan_comm_of (plan, g->rank, op->slot));
    if (!comm.spans_stages) {
      moving = parts[comm.axis];
      waiting = LS_PART_SKEW;
    }
  }
  explain (g, x->matched, moving, op); /* never matched: nothing moved */
  explain (g, x->start, waiting, op);
}

static void
explain_span (Gap *g, const LsSpan *x)
{
  const LsOp *op = ls_span_op (g->t, g->rank, x);
  switch ((LsOpTakes) ls_op_kinds[op->kind].takes) {
  case LS_TAKES_NETWORK:
    explain_communication (g, x, op);
    break;
  case LS_TAKES_HOST:
    explain (g, x->start, LS_PART_HOST, op);
    break;
  case LS_TAKES_ENGINE:
    explain (g, x->start, ls_copies[op->direction].is_in_host ? LS_PART_OPTIMIZER : LS_PART_EXPOSED_COPY,
             op); /* the CPU's Adam */
    break;
  case LS_TAKES_GPU: /* a kernel of another stream */
  case LS_TAKES_NOTHING:
    explain (g, x->start, LS_PART_OTHER, op);
  }
}

/* The hop count guards against a timeline whose causes run in a circle; what is
 * then left over is not explained. */
static void
explain_gap (Gap *g, uint8_t kind, uint32_t cause)
{
  const LsRankSpans *r = ls_timeline_spans (g->t, g->rank);
  for (uint32_t hops = 0; g->to > g->from && kind != LS_CAUSE_NONE && cause != LS_SPAN_NONE; hops++) {
    if (hops > r->n) {
      kind = LS_CAUSE_NONE;
      break;
    }
    const LsSpan *x = &r->spans[cause];
    explain (g, ls_span_end (g->t, x), kind == LS_CAUSE_HOST ? LS_PART_HOST : LS_PART_OTHER, NULL);
    explain_span (g, x);
    kind = x->cause_kind;
    cause = x->cause;
  }
  explain (g, g->from, kind == LS_CAUSE_HOST ? LS_PART_HOST : LS_PART_OTHER, NULL);
}

/* --- kernels ----------------------------------------------------------------------- */

static gint
by_start (gconstpointer a, gconstpointer b)
{
  const LsKernelTime *x = a, *y = b;
  LS_SMALLER_FIRST (x->from, y->from);
  return x->span < y->span ? -1 : 1;
}

GArray *
ls_kernel_times_new (const LsTimeline *t, uint32_t rank)
{
  const LsRankSpans *r = ls_timeline_spans (t, rank);
  GArray *kernels = g_array_sized_new (FALSE, FALSE, sizeof (LsKernelTime), r->n);
  LsKernelTime *to = (LsKernelTime *) (gpointer) kernels->data; /* has room for all */
  bool is_sorted = true;
  LsTime last = G_MININT64;
  for (uint32_t i = 0; i < r->n; i++) {
    const LsSpan *s = &r->spans[i];
    if (ls_span_end (t, s) <= t->window_start)
      continue;
    const LsOp *op = ls_span_op (t, rank, s);
    if (!ls_op_takes (op->kind, LS_TAKES_GPU))
      continue;
    to[kernels->len++] = (LsKernelTime) { i, s->start, ls_span_end (t, s), op };
    is_sorted &= s->start >= last;
    last = s->start;
  }
  if (!is_sorted)
    g_array_sort (kernels, by_start);
  LsTime free_at = G_MININT64;
  for (guint i = 0; i < kernels->len; i++) {
    LsKernelTime *k = &g_array_index (kernels, LsKernelTime, i);
    k->from = MAX (k->from, free_at);
    k->to = MAX (k->to, k->from);
    free_at = k->to;
  }
  return kernels;
}

void
ls_idle_each (const LsTimeline *t, uint32_t rank, const GArray *kernels, LsIdleFunc each, void *data)
{
  const LsRankSpans *r = ls_timeline_spans (t, rank);
  Gap gap = { .t = t, .rank = rank, .each = each, .data = data, .from = t->window_start };
  for (guint i = 0; i < kernels->len; i++) {
    const LsKernelTime *k = &g_array_index (kernels, LsKernelTime, i);
    const LsSpan *s = &r->spans[k->span];
    gap.to = k->from;
    gap.before = k->span;
    explain_gap (&gap, s->cause_kind, s->cause);
    gap.from = MAX (gap.from, k->to);
  }
  gap.to = t->window_end;
  gap.before = LS_SPAN_NONE;
  explain_gap (&gap, r->tail_cause_kind, r->tail_cause);
}

/* ---- where the time of a rank went ---- */

/* Integers throughout, so the parts sum to the window to the picosecond. */

const char *const ls_part_names[LS_N_PARTS] = {
  [LS_PART_FORWARD] = "forward",
  [LS_PART_BACKWARD] = "backward",
  [LS_PART_RECOMPUTE] = "recompute",
  [LS_PART_OPTIMIZER] = "optimizer",
  [LS_PART_SLOWDOWN] = "slowdown",
  [LS_PART_EXPOSED_TP] = "exposed_tp",
  [LS_PART_EXPOSED_DP] = "exposed_dp",
  [LS_PART_EXPOSED_PP] = "exposed_pp",
  [LS_PART_EXPOSED_CP] = "exposed_cp",
  [LS_PART_EXPOSED_EP] = "exposed_ep",
  [LS_PART_EXPOSED_COPY] = "exposed_copy",
  [LS_PART_BUBBLE] = "bubble",
  [LS_PART_SKEW] = "skew",
  [LS_PART_HOST] = "host",
  [LS_PART_OTHER] = "other",
};

/* How much of its time alone a kernel has behind it at instant `at`. Rounding
 * down at both edges of a cut makes the pieces of two windows add up. A kernel
 * that never finished ran at full speed as far as anybody knows. */
static LsTime
alone_by (const LsSpan *s, LsTime at)
{
  if (s->end == LS_TIME_NEVER)
    return MIN (at - s->start, s->alone);
  LsTime duration = s->end - s->start;
  if (duration <= s->alone)
    return at - s->start;
  return (LsTime) ((__int128) s->alone * (at - s->start) / duration);
}

/* What these take of the window, alone and beside others: added to the parts. */
static void
add_kernels (const LsTimeline *t, uint32_t rank, const GArray *kernels, LsTime parts[LS_N_PARTS])
{
  static const LsPart part_of[LS_N_TAGS] = {
    [LS_TAG_F] = LS_PART_FORWARD,           [LS_TAG_I] = LS_PART_BACKWARD,
    [LS_TAG_W] = LS_PART_BACKWARD,          [LS_TAG_B] = LS_PART_BACKWARD,
    [LS_TAG_RECOMPUTE] = LS_PART_RECOMPUTE, [LS_TAG_OPTIMIZER] = LS_PART_OPTIMIZER,
    [LS_TAG_SYNC] = LS_PART_BACKWARD,
  };
  for (guint i = 0; i < kernels->len; i++) {
    const LsKernelTime *k = &g_array_index (kernels, LsKernelTime, i);
    const LsSpan *s = &ls_timeline_spans (t, rank)->spans[k->span];
    LsTime from = MAX (k->from, t->window_start), to = MIN (k->to, t->window_end);
    if (from >= to)
      continue;
    LsTime alone = alone_by (s, to) - alone_by (s, from);
    parts[part_of[k->op->tag]] += alone;
    parts[LS_PART_SLOWDOWN] += to - from - alone;
  }
}

/* --- why the pipeline had nothing for a rank ----------------------------------------------------- */

/* A piece of bubble that was spent on a collective (gradient norm, found-inf, tied
 * embedding) is optimizer_sync. All others were spent on p2p, and the kernel that ended the
 * interval says where in the step the rank was:
 *
 *     F0 F1 F2 . . B0 F3 . B1 F4 . B2 . B3 . . B4 | norm . . optimizer
 *             warm-up    steady         drain           optimizer sync
 *
 *     warm-up   up to the first backward of the program, that one included
 *     steady    up to its last forward
 *     drain     behind
 *
 * At the end of the window no kernel ended the interval: the one that comes next in the
 * program would have. A rank that computes less than the busiest waits for it somewhere,
 * whatever the schedule: that difference is imbalance, as far as the rank's steady state
 * has it.
 *
 * Deviation: what the imbalance of others makes a rank wait in warm-up and drain is left
 * there, as these would be there with even stages too. */

/* Instances of a program, up to the first forward behind a flush of the pipeline; UINT32_MAX, 0: none. */
typedef struct {
  uint32_t first_backward, last_forward, end;
} Phases;

enum { HAS_FORWARD = 1, HAS_BACKWARD = 2 };

/* [n_segments], newly allocated. */
static uint8_t *
passes_of_segments (const LsPlan *plan)
{
  uint8_t *passes = g_new0 (uint8_t, plan->n_segments);
  for (uint32_t i = 0; i < plan->n_segments; i++)
    for (uint32_t o = 0; o < plan->segments[i].n_ops; o++) {
      const LsOp *op = &plan->segments[i].ops[o];
      if (ls_op_takes (op->kind, LS_TAKES_GPU))
        passes[i] |= op->tag == LS_TAG_F                 ? HAS_FORWARD
            : op->tag == LS_TAG_I || op->tag == LS_TAG_B ? HAS_BACKWARD
                                                         : 0;
    }
  return passes;
}

/* Phases in order, newly allocated: one, or one for each flush. */
static GArray *
phases_of (const LsProgram *program, const uint8_t *passes)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (Phases));
  Phases p = { UINT32_MAX, 0, UINT32_MAX };
  for (uint32_t i = 0; i < program->n_instances; i++) {
    const LsInstance *in = &program->instances[i];
    uint8_t pass = passes[in->segment];
    bool is_flushed = program->n_per_flush > 0 && in->mb / program->n_per_flush > all->len;
    if ((pass & HAS_FORWARD) && is_flushed) {
      p.end = i;
      g_array_append_val (all, p);
      p = (Phases) { UINT32_MAX, 0, UINT32_MAX };
    }
    if (pass & HAS_FORWARD)
      p.last_forward = i;
    if (pass & HAS_BACKWARD)
      p.first_backward = MIN (p.first_backward, i);
  }
  g_array_append_val (all, p);
  return all;
}

/* Of a rank and the window. */
typedef struct {
  const LsTimeline *t;
  uint32_t rank, next;  /* instance behind the last kernel of the window */
  const GArray *phases; /* Phases: of its role; NULL: they do not matter  */
  LsTime parts[LS_N_PARTS], bubbles[LS_N_BUBBLES];
} Account;

static LsBubble
bubble_of (const Account *a, const LsIdlePiece *piece)
{
  uint32_t instance = piece->before == LS_SPAN_NONE
      ? a->next
      : ls_timeline_spans (a->t, a->rank)->spans[piece->before].instance;
  const Phases *at = &g_array_index (a->phases, Phases, 0), *last = at + a->phases->len - 1;
  while (at < last && instance >= at->end)
    at++;
  return piece->op && ls_op_has (piece->op->kind, LS_HAS_CALL) ? LS_BUBBLE_OPTIMIZER_SYNC
      : instance <= at->first_backward                         ? LS_BUBBLE_WARMUP
      : instance <= at->last_forward                           ? LS_BUBBLE_STEADY
                                                               : LS_BUBBLE_DRAIN;
}

static void
add_piece (const LsIdlePiece *piece, void *data)
{
  Account *a = data;
  a->parts[piece->part] += piece->to - piece->from;
  if (piece->part == LS_PART_BUBBLE && a->phases)
    a->bubbles[bubble_of (a, piece)] += piece->to - piece->from;
}

static Account
account_of (const LsTimeline *t, uint32_t rank, const GArray *phases)
{
  Account a = { .t = t, .rank = rank, .phases = phases };
  const LsRankSpans *r = ls_timeline_spans (t, rank);
  const LsProgram *program = &t->plan->programs[ls_plan_role (t->plan, rank)];
  uint32_t last = r->n; /* behind the last kernel */
  while (last > 0 && !ls_span_is_compute (t, rank, &r->spans[last - 1]))
    last--;
  if (last > 0)
    a.next = r->spans[last - 1].instance + 1 < program->n_instances ? r->spans[last - 1].instance + 1
                                                                    : program->n_lead;
  g_autoptr (GArray) kernels = ls_kernel_times_new (t, rank);
  add_kernels (t, rank, kernels, a.parts);
  ls_idle_each (t, rank, kernels, add_piece, &a);
  LsTime sum = 0;
  for (int part = 0; part < LS_N_PARTS; part++)
    sum += a.parts[part];
  g_assert_cmpint (sum, ==, t->window_end - t->window_start);
  return a;
}

static LsTime
work_of (const Account *a)
{
  return a->parts[LS_PART_FORWARD] + a->parts[LS_PART_BACKWARD] + a->parts[LS_PART_RECOMPUTE];
}

void
ls_breakdown_rank (const LsTimeline *t, uint32_t rank, LsTime ret_rank[LS_N_PARTS])
{
  Account a = account_of (t, rank, NULL);
  memcpy (ret_rank, a.parts, sizeof a.parts);
}

static void
add_account (const Account *a, LsTime most_work, LsTime sum[LS_N_PARTS], LsTime bubbles[LS_N_BUBBLES])
{
  LsTime n = ls_timeline_multiplicity (a->t, a->rank), steady = a->bubbles[LS_BUBBLE_STEADY];
  LsTime imbalance = MIN (steady, most_work - work_of (a));
  for (int part = 0; part < LS_N_PARTS; part++)
    sum[part] += n * a->parts[part];
  for (int b = 0; b < LS_N_BUBBLES; b++)
    bubbles[b] += n * a->bubbles[b];
  bubbles[LS_BUBBLE_STEADY] -= n * imbalance;
  bubbles[LS_BUBBLE_IMBALANCE] += n * imbalance;
}

void
ls_breakdown (const LsTimeline *t, LsTime ret_sum[LS_N_PARTS], LsTime ret_bubbles[LS_N_BUBBLES])
{
  g_autofree uint8_t *passes = passes_of_segments (t->plan);
  g_autoptr (GPtrArray) phases = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  for (uint32_t role = 0; role < t->plan->n_roles; role++)
    g_ptr_array_add (phases, phases_of (&t->plan->programs[role], passes));
  g_autoptr (GArray) accounts = g_array_new (FALSE, FALSE, sizeof (Account));
  LsTime most_work = 0;
  for (uint32_t row = 0; row < t->n_rows; row++) {
    uint32_t rank = ls_timeline_rank (t, row);
    if (t->multiplicity[row] == 0)
      continue;
    Account a = account_of (t, rank, g_ptr_array_index (phases, ls_plan_role (t->plan, rank)));
    most_work = MAX (most_work, work_of (&a));
    g_array_append_val (accounts, a);
  }
  memset (ret_sum, 0, LS_N_PARTS * sizeof *ret_sum);
  memset (ret_bubbles, 0, LS_N_BUBBLES * sizeof *ret_bubbles);
  for (guint i = 0; i < accounts->len; i++)
    add_account (&g_array_index (accounts, Account, i), most_work, ret_sum, ret_bubbles);
}
