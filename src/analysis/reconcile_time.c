/* analysis/reconcile_time.c — each instant of a step belongs to one thing. */
#include "analysis/reconcile.h"

typedef struct {
  LsTime at;
  int32_t delta; /* +1 begins, -1 ends                  */
  LsTime launch; /* of the op that begins; LS_TIME_NEVER */
  uint8_t tier;
  bool is_matched;
} Edge;

typedef struct {
  LsStepTime time;
  int32_t n[LS_N_TIERS][2]; /* that run now, by tier and whether matched */
} Sweep;

static LsTier
tier_of (uint8_t class)
{
  return class == LS_CLASS_COPY                          ? LS_TIER_COPY
      : ls_op_class_is_communication ((LsOpClass) class) ? LS_TIER_COMMUNICATION
                                                         : LS_TIER_COMPUTE;
}

static void
add_piece (GArray *edges, const LsStepOp *op, LsTime from, LsTime to, LsTime launch)
{
  Edge e = { from, +1, launch, (uint8_t) tier_of (op->class), op->match != LS_UNMATCHED };
  g_array_append_val (edges, e);
  e.at = to;
  e.delta = -1;
  g_array_append_val (edges, e);
}

/* On a circle as long as the step. */
static void
add_op (GArray *edges, const LsStepOp *op, LsTime length)
{
  if (op->end - op->start >= length) {
    add_piece (edges, op, 0, length, LS_TIME_NEVER);
    return;
  }
  LsTime turns = op->start / length * length, start = op->start - turns, end = op->end - turns;
  LsTime launch = op->launch == LS_TIME_NEVER ? LS_TIME_NEVER : op->launch - turns;
  add_piece (edges, op, start, MIN (end, length), launch);
  if (end > length)
    add_piece (edges, op, 0, end - length, LS_TIME_NEVER);
}

/* What begins comes before what ends, so that ops that touch leave no gap. The first of
 * what begins at an instant explains the idle stretch before it. */
static int
by_time (gconstpointer a, gconstpointer b)
{
  const Edge *x = a, *y = b;
  if (x->at != y->at)
    return x->at < y->at ? -1 : 1;
  if (x->delta != y->delta)
    return y->delta - x->delta;
  if (x->tier != y->tier)
    return (int) x->tier - (int) y->tier;
  if (x->is_matched != y->is_matched)
    return (int) y->is_matched - (int) x->is_matched;
  return x->launch < y->launch ? -1 : x->launch > y->launch;
}

/* Nothing ran from `from` to `to`, when an op began that was launched at `launch`. */
static void
add_idle (LsStepTime *t, LsTime from, LsTime to, LsTime launch)
{
  LsTime host = launch == LS_TIME_NEVER ? 0 : CLAMP (launch, from, to) - from;
  t->idle_host += host;
  t->idle_device += to - from - host;
}

static bool
is_busy (const Sweep *s)
{
  for (guint tier = 0; tier < LS_N_TIERS; tier++)
    if (s->n[tier][0] + s->n[tier][1] > 0)
      return true;
  return false;
}

static void
add_busy (Sweep *s, LsTime length)
{
  for (guint tier = 0; tier < LS_N_TIERS; tier++)
    if (s->n[tier][1] > 0) {
      s->time.matched[tier] += length;
      return;
    } else if (s->n[tier][0] > 0) {
      s->time.unmatched[tier] += length;
      return;
    }
}

/* The launch of the op that begins at the start of the next turn. */
static LsTime
first_launch (const LsStepSide *side)
{
  const LsStepOp *first = &g_array_index (side->ops, LsStepOp, 0);
  return first->launch == LS_TIME_NEVER ? LS_TIME_NEVER : first->launch + side->length;
}

LsStepTime
ls_reconcile_time (const LsStepSide *side)
{
  g_autoptr (GArray) edges = g_array_new (FALSE, FALSE, sizeof (Edge));
  for (guint i = 0; i < side->ops->len; i++)
    add_op (edges, &g_array_index (side->ops, LsStepOp, i), side->length);
  g_array_sort (edges, by_time);
  Sweep s = { .time.step = side->length };
  LsTime now = 0;
  for (guint i = 0; i < edges->len; i++) {
    const Edge *e = &g_array_index (edges, Edge, i);
    if (e->at > now && is_busy (&s))
      add_busy (&s, e->at - now);
    else if (e->at > now)
      add_idle (&s.time, now, e->at, e->launch);
    now = e->at;
    s.n[e->tier][e->is_matched] += e->delta;
  }
  if (now < side->length)
    add_idle (&s.time, now, side->length, edges->len > 0 ? first_launch (side) : LS_TIME_NEVER);
  return s.time;
}
