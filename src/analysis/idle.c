#include "analysis/idle.h"

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

static LsPart
exposed_part (LsAxis axis)
{
  static const LsPart parts[LS_N_AXES] = {
    [LS_AXIS_TP] = LS_PART_EXPOSED_TP, [LS_AXIS_DP] = LS_PART_EXPOSED_DP, [LS_AXIS_PP] = LS_PART_EXPOSED_PP,
    [LS_AXIS_CP] = LS_PART_EXPOSED_CP, [LS_AXIS_EP] = LS_PART_EXPOSED_EP,
  };
  return parts[axis];
}

static void
explain_communication (Gap *g, const LsSpan *x, const LsOp *op)
{
  LsPart moving = LS_PART_EXPOSED_PP, waiting = LS_PART_BUBBLE;
  if (ls_op_has (op->kind, LS_HAS_CALL)) {
    const LsPlan *plan = g->t->plan;
    const LsCommunicator comm = ls_plan_communicator (plan, ls_plan_comm_of (plan, g->rank, op->slot));
    if (!comm.spans_stages) {
      moving = exposed_part (comm.axis);
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
    explain (g, x->start, op->root == LS_COPY_IN_HOST ? LS_PART_OPTIMIZER : LS_PART_EXPOSED_COPY,
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
  if (x->from != y->from)
    return x->from < y->from ? -1 : 1;
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
