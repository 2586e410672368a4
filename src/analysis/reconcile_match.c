/* analysis/reconcile_match.c — which measured op is which predicted one. */
#include "analysis/reconcile.h"

#include <math.h>

#include "base/order.h"

/* --- each instant of a step belongs to one thing ------------------------------------------------- */

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

/* --- which measured op is which predicted one ---------------------------------------------------- */

#define GAP          0.7 /* about ln 2 */
#define MAX_SIZE_GAP 0.1 /* ln: padding, and where buckets end */
#define MIN_BAND     64u
#define MAX_CELLS    (1u << 24) /* of a table of moves, a byte each */

enum { PAIR, SKIP_MEASURED, SKIP_PREDICTED };

/* The ops of one class on both sides, as indices. */
typedef struct {
  LsStepOp *m, *p; /* all ops of a side */
  const uint32_t *of_m, *of_p;
  uint32_t n_m, n_p;
  double shift;   /* of ln (predicted / measured) of a pair: what it costs is the distance from that */
  uint32_t band;  /* half of its width */
  uint8_t *moves; /* [n_m + 1][2 band + 1] */
  double *row, *last;
} Alignment;

static uint32_t *
indices_of (const LsStepSide *side, uint8_t class, uint32_t *ret_n)
{
  g_autoptr (GArray) list = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (uint32_t i = 0; i < side->ops->len; i++)
    if (g_array_index (side->ops, LsStepOp, i).class == class)
      g_array_append_val (list, i);
  *ret_n = list->len;
  return (uint32_t *) (gpointer) g_array_free (g_steal_pointer (&list), FALSE);
}

static double
mean_s (const LsStepOp *ops, const uint32_t *of, uint32_t n)
{
  double sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += (double) (ops[of[i]].end - ops[of[i]].start);
  return sum / n;
}

static double
median_s (const LsStepOp *ops, const uint32_t *of, uint32_t n)
{
  g_autofree double *s = g_new (double, n);
  for (uint32_t i = 0; i < n; i++)
    s[i] = (double) (ops[of[i]].end - ops[of[i]].start);
  return ls_median (s, n);
}

/* ln of the ratio of two sizes; 0 where one is not known. */
static double
size_gap (const LsStepOp *m, const LsStepOp *p)
{
  return m->bytes == 0 || p->bytes == 0 ? 0 : fabs (log ((double) p->bytes / (double) m->bytes));
}

static bool
may_pair (const LsStepOp *m, const LsStepOp *p)
{
  return size_gap (m, p) <= MAX_SIZE_GAP;
}

static void
pair (Alignment *a, uint32_t i, uint32_t j)
{
  a->m[a->of_m[i]].match = a->of_p[j];
  a->p[a->of_p[j]].match = a->of_m[i];
}

static void
unpair (Alignment *a)
{
  for (uint32_t i = 0; i < a->n_m; i++)
    a->m[a->of_m[i]].match = LS_UNMATCHED;
  for (uint32_t j = 0; j < a->n_p; j++)
    a->p[a->of_p[j]].match = LS_UNMATCHED;
}

/* As many on both sides, and all of one size: nothing to find out. */
static bool
pair_in_order (Alignment *a)
{
  if (a->n_m != a->n_p)
    return false;
  for (uint32_t i = 0; i < a->n_m; i++)
    if (!may_pair (&a->m[a->of_m[i]], &a->p[a->of_p[i]]))
      return false;
  for (uint32_t i = 0; i < a->n_m; i++)
    pair (a, i, i);
  return true;
}

static double
cost_of_pair (const Alignment *a, uint32_t i, uint32_t j)
{
  const LsStepOp *m = &a->m[a->of_m[i]], *p = &a->p[a->of_p[j]];
  if (!may_pair (m, p))
    return INFINITY;
  return fabs (log ((double) (p->end - p->start) / (double) (m->end - m->start)) - a->shift)
      + size_gap (m, p);
}

/* Column of the table that is predicted op 0 in row i; the band follows the diagonal. */
static int64_t
first_column (const Alignment *a, uint32_t i)
{
  return (int64_t) ((uint64_t) i * a->n_p / a->n_m) - a->band;
}

/* The cheapest way to (i, j) from those before; rows are kept two deep. */
static void
fill_row (Alignment *a, uint32_t i)
{
  uint32_t width = 2 * a->band + 1;
  int64_t first = first_column (a, i), before = i > 0 ? first_column (a, i - 1) : 0;
  for (uint32_t c = 0; c < width; c++) {
    int64_t j = first + c, above = j - before;
    a->row[c] = INFINITY;
    if (j < 0 || j > a->n_p)
      continue;
    if (i == 0 && j == 0)
      a->row[c] = 0;
    double best = a->row[c];
    uint8_t move = PAIR;
    if (i > 0 && j > 0 && above - 1 >= 0 && above - 1 < width) {
      best = a->last[above - 1] + cost_of_pair (a, i - 1, (uint32_t) j - 1);
      move = PAIR;
    }
    if (i > 0 && above >= 0 && above < width && a->last[above] + GAP < best) {
      best = a->last[above] + GAP;
      move = SKIP_MEASURED;
    }
    if (j > 0 && c > 0 && a->row[c - 1] + GAP < best) {
      best = a->row[c - 1] + GAP;
      move = SKIP_PREDICTED;
    }
    a->row[c] = best;
    a->moves[(size_t) i * width + c] = move;
  }
}

static void
walk_back (Alignment *a)
{
  uint32_t i = a->n_m, j = a->n_p, width = 2 * a->band + 1;
  while (i > 0 || j > 0) {
    int64_t c = (int64_t) j - first_column (a, i);
    g_assert (c >= 0 && c < width);
    switch (a->moves[(size_t) i * width + (size_t) c]) {
    case PAIR:
      pair (a, --i, --j);
      break;
    case SKIP_MEASURED:
      i--;
      break;
    default:
      j--;
    }
  }
}

/* The band must be wide enough for the diagonal's own steps. */
static uint32_t
choose_band (uint32_t n_m, uint32_t n_p)
{
  uint32_t most = MAX_CELLS / (2 * (n_m + 1)), slope = 2 * (n_p / n_m + 1);
  return MIN (n_p, MAX (MAX (MIN_BAND, slope), most));
}

/* Aligns by that shift, and pairs if it costs less than the best so far. */
static void
align (Alignment *a, double shift, double *cheapest)
{
  a->shift = shift;
  a->band = choose_band (a->n_m, a->n_p);
  size_t width = 2 * (size_t) a->band + 1;
  a->moves = g_malloc ((a->n_m + 1) * width);
  a->row = g_new (double, width);
  a->last = g_new (double, width);
  for (uint32_t i = 0; i <= a->n_m; i++) {
    fill_row (a, i);
    double *filled = a->row;
    a->row = a->last;
    a->last = filled;
  }
  double cost = a->last[a->n_p - first_column (a, a->n_m)];
  if (cost < *cheapest) {
    *cheapest = cost;
    unpair (a);
    walk_back (a);
  }
  g_free (a->moves);
  g_free (a->row);
  g_free (a->last);
}

static void
match_class (LsStepSide *measured, LsStepSide *predicted, uint8_t class)
{
  uint32_t n_m, n_p;
  g_autofree uint32_t *of_m = indices_of (measured, class, &n_m), *of_p = indices_of (predicted, class, &n_p);
  Alignment a = { .m = (LsStepOp *) (gpointer) measured->ops->data,
                  .p = (LsStepOp *) (gpointer) predicted->ops->data,
                  .of_m = of_m,
                  .of_p = of_p,
                  .n_m = n_m,
                  .n_p = n_p };
  if (n_m == 0 || n_p == 0 || pair_in_order (&a))
    return;
  double cheapest = INFINITY;
  align (&a, log (mean_s (a.p, of_p, n_p) / mean_s (a.m, of_m, n_m)), &cheapest);
  align (&a, log (median_s (a.p, of_p, n_p) / median_s (a.m, of_m, n_m)), &cheapest);
  align (&a, 0, &cheapest);
}

void
ls_reconcile_match (LsStepSide *measured, LsStepSide *predicted)
{
  for (uint32_t i = 0; i < measured->ops->len; i++)
    g_array_index (measured->ops, LsStepOp, i).match = LS_UNMATCHED;
  for (uint32_t i = 0; i < predicted->ops->len; i++)
    g_array_index (predicted->ops, LsStepOp, i).match = LS_UNMATCHED;
  for (uint8_t class = 0; class < LS_N_CLASSES; class ++)
    match_class (measured, predicted, class);
}
