#include "analysis/reconcile.h"

#include <lockstep/error.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/diag.h"
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

static void
add_piece (GArray *edges, const LsStepOp *op, LsTime from, LsTime to, LsTime launch)
{
  LsTier tier = op->class == LS_CLASS_COPY                   ? LS_TIER_COPY
      : ls_op_class_is_communication ((LsOpClass) op->class) ? LS_TIER_COMMUNICATION
                                                             : LS_TIER_COMPUTE;
  Edge e = { from, +1, launch, (uint8_t) tier, op->match != LS_UNMATCHED };
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
static const LsSortKey edges_by_time[]
    = { { LS_RISING (Edge, at) },          { LS_FALLING (Edge, delta) }, { LS_RISING (Edge, tier) },
        { LS_FALLING (Edge, is_matched) }, { LS_RISING (Edge, launch) }, { 0 } };

/* Nothing ran from `from` to `to`, when an op began that was launched at `launch`. */
static void
add_idle (LsStepTime *t, LsTime from, LsTime to, LsTime launch)
{
  LsTime host = launch == LS_TIME_NEVER ? 0 : CLAMP (launch, from, to) - from;
  t->idle_host += host;
  t->idle_device += to - from - host;
}

/* To what is running; false: nothing is. */
static bool
add_busy (Sweep *s, LsTime length)
{
  for (guint tier = 0; tier < LS_N_TIERS; tier++)
    if (s->n[tier][1] > 0 || s->n[tier][0] > 0) {
      *(s->n[tier][1] > 0 ? &s->time.matched[tier] : &s->time.unmatched[tier]) += length;
      return true;
    }
  return false;
}

LsStepTime
ls_reconcile_time (const LsStepSide *side)
{
  g_autoptr (GArray) edges = g_array_new (FALSE, FALSE, sizeof (Edge));
  for (guint i = 0; i < side->ops->len; i++)
    add_op (edges, &g_array_index (side->ops, LsStepOp, i), side->length);
  ls_sort_by (edges, edges_by_time);
  Sweep s = { .time.step = side->length };
  LsTime now = 0;
  for (guint i = 0; i < edges->len; i++) {
    const Edge *e = &g_array_index (edges, Edge, i);
    if (e->at > now && !add_busy (&s, e->at - now))
      add_idle (&s.time, now, e->at, e->launch);
    now = e->at;
    s.n[e->tier][e->is_matched] += e->delta;
  }
  /* what ends it is the op that begins at the start of the next turn */
  LsTime launch = edges->len > 0 ? g_array_index (side->ops, LsStepOp, 0).launch : LS_TIME_NEVER;
  if (now < side->length)
    add_idle (&s.time, now, side->length, launch == LS_TIME_NEVER ? launch : launch + side->length);
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

/* The mean, and the median. */
static void
durations_of (const LsStepOp *ops, const uint32_t *of, uint32_t n, double *ret_mean, double *ret_median)
{
  g_autofree double *s = g_new (double, n);
  double sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += s[i] = (double) (ops[of[i]].end - ops[of[i]].start);
  *ret_mean = sum / n;
  *ret_median = ls_median (s, n);
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
      a->m[a->of_m[--i]].match = LS_UNMATCHED;
      break;
    default:
      a->p[a->of_p[--j]].match = LS_UNMATCHED;
    }
  }
}

/* Aligns by that shift, and pairs if it costs less than the best so far. */
static void
align (Alignment *a, double shift, double *cheapest)
{
  uint32_t most = MAX_CELLS / (2 * (a->n_m + 1)),
           slope = 2 * (a->n_p / a->n_m + 1); /* of the diagonal's own steps */
  a->shift = shift;
  a->band = MIN (a->n_p, MAX (MAX (MIN_BAND, slope), most));
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
  double cheapest = INFINITY, mean_m, mean_p, median_m, median_p;
  durations_of (a.m, of_m, n_m, &mean_m, &median_m);
  durations_of (a.p, of_p, n_p, &mean_p, &median_p);
  align (&a, log (mean_p / mean_m), &cheapest);
  align (&a, log (median_p / median_m), &cheapest);
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

#define N_NAMES   12
#define SHARE     0.01 /* of the step: below, nothing is worth a word */
#define TOLERANCE 0.10 /* of a time */

/* ---- sides ---- */

LsStepSide *
ls_step_side_new (void)
{
  LsStepSide *side = g_new0 (LsStepSide, 1);
  side->ops = g_array_new (FALSE, FALSE, sizeof (LsStepOp));
  return side;
}

void
ls_step_side_free (LsStepSide *side)
{
  if (!side)
    return;
  g_array_unref (side->ops);
  g_free (side);
}

static const LsSortKey by_start[] = {
  { LS_RISING (LsStepOp, start) }, { LS_RISING (LsStepOp, class) }, { LS_RISING (LsStepOp, end) }, { 0 }
};

void
ls_step_side_finish (LsStepSide *side, LsTime start)
{
  guint n = 0;
  for (guint i = 0; i < side->ops->len; i++) {
    LsStepOp op = g_array_index (side->ops, LsStepOp, i);
    if (op.end <= op.start)
      continue;
    op.start -= start;
    op.end -= start;
    if (op.launch != LS_TIME_NEVER)
      op.launch -= start;
    g_array_index (side->ops, LsStepOp, n++) = op;
  }
  g_array_set_size (side->ops, n);
  ls_sort_by (side->ops, by_start);
}

static uint64_t
bytes_of (const LsOp *op)
{
  uint64_t bytes = 0;
  if (!ls_op_has (op->kind, LS_HAS_TRANSFERS))
    return ls_op_takes (op->kind, LS_TAKES_GPU) ? 0 : op->bytes;
  for (uint16_t i = 0; i < op->n_transfers; i++)
    bytes = MAX (bytes, op->transfers[i].bytes);
  return bytes;
}

LsStepSide *
ls_step_side_of_timeline (const LsTimeline *t, uint32_t rank, GError **error)
{
  if (rank >= t->n_ranks)
    return ls_fail_null (error, LS_ERROR_CONFLICT, "--rank %u: the job has ranks 0 to %u", rank,
                         t->n_ranks - 1);
  g_autoptr (LsStepSide) side = ls_step_side_new ();
  uint32_t who = ls_timeline_representative (t, rank);
  const LsRankSpans *spans = ls_timeline_spans (t, who);
  LsTime first = LS_TIME_NEVER;
  for (uint32_t i = 0; i < spans->n; i++) {
    const LsSpan *s = &spans->spans[i];
    const LsOp *op = ls_span_op (t, who, s);
    LsOpClass class;
    if (s->step != (uint8_t) (t->n_steps - 1) || s->end == LS_TIME_NEVER || s->end <= s->start
        || !ls_op_class_of_op (t->plan, op, &class))
      continue;
    const LsStepOp row = { .start = s->start,
                           .end = s->end,
                           .launch = s->issued,
                           .bytes = bytes_of (op),
                           .name = ls_span_name (t, who, s),
                           .class = (uint8_t) class };
    first = MIN (first, s->start);
    g_array_append_val (side->ops, row);
  }
  if (side->ops->len == 0)
    return ls_fail_null (error, LS_ERROR_CONFLICT, "rank %u runs nothing on its device", rank);
  side->length = t->window_end - t->window_start;
  ls_step_side_finish (side, first);
  return g_steal_pointer (&side);
}

/* ---- rows ---- */

static const LsSortKey by_class_and_bytes[]
    = { { LS_RISING (LsReconcileRow, class) }, { LS_RISING (LsReconcileRow, bytes) }, { 0 } };

static LsReconcileRow *
row_of (GArray *rows, uint8_t class, uint64_t bytes)
{
  return ls_list_like (rows, by_class_and_bytes, &(LsReconcileRow) { .class = class, .bytes = bytes });
}

static void
count (LsReconcileRow *row, const LsStepOp *op, bool is_measured)
{
  LsTime time = op->end - op->start;
  bool is_matched = op->match != LS_UNMATCHED;
  *(is_measured ? &row->measured : &row->predicted) += time;
  *(is_measured ? &row->n_measured : &row->n_predicted) += 1;
  if (is_matched)
    *(is_measured ? &row->matched_measured : &row->matched_predicted) += time;
  row->n_matched += is_matched && is_measured;
}

static void
add_side (LsReconciled *r, const LsStepSide *side, const LsStepSide *other, bool is_measured)
{
  for (guint i = 0; i < side->ops->len; i++) {
    const LsStepOp *op = &g_array_index (side->ops, LsStepOp, i);
    count (row_of (r->classes, op->class, 0), op, is_measured);
    bool has_others = op->bytes == 0 && op->match != LS_UNMATCHED; /* the size of what it matches */
    uint64_t bytes = has_others ? g_array_index (other->ops, LsStepOp, op->match).bytes : op->bytes;
    if (ls_op_class_is_communication ((LsOpClass) op->class))
      count (row_of (r->collectives, op->class, bytes), op, is_measured);
  }
}

static const LsSortKey by_time[]
    = { { LS_FALLING (LsReconcileName, time) }, { LS_RISING (LsReconcileName, name) }, { 0 } };

static void
add_unmatched_names (LsReconciled *r, const LsStepSide *measured)
{
  g_autoptr (GHashTable) places = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < measured->ops->len; i++) {
    const LsStepOp *op = &g_array_index (measured->ops, LsStepOp, i);
    gpointer place;
    if (op->match != LS_UNMATCHED)
      continue;
    if (!g_hash_table_lookup_extended (places, op->name, NULL, &place)) {
      const LsReconcileName blank = { .name = op->name, .class = op->class };
      place = GUINT_TO_POINTER (r->unmatched->len);
      g_hash_table_insert (places, (gpointer) op->name, place);
      g_array_append_val (r->unmatched, blank);
    }
    LsReconcileName *n = &g_array_index (r->unmatched, LsReconcileName, GPOINTER_TO_UINT (place));
    n->n++;
    n->time += op->end - op->start;
  }
  ls_sort_by (r->unmatched, by_time);
  if (r->unmatched->len > N_NAMES)
    g_array_set_size (r->unmatched, N_NAMES);
}

/* ---- words ---- */

typedef struct {
  double weight; /* seconds by which the step is off */
  char *text;
} Word;

static const LsSortKey by_weight[] = { { LS_FALLING (Word, weight) }, { LS_RISING (Word, text) }, { 0 } };

static void G_GNUC_PRINTF (3, 4) say (GArray *words, LsTime weight, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  Word w = { fabs (ls_time_to_s (weight)), g_strdup_vprintf (format, args) };
  va_end (args);
  g_array_append_val (words, w);
}

#define MS(ps) (ls_time_to_s (ps) * 1e3)

static void
judge_class (GArray *words, const LsReconcileRow *c, LsTime step)
{
  const char *name = ls_op_class_name ((LsOpClass) c->class);
  LsTime worth = (LsTime) (SHARE * (double) step), off = c->matched_predicted - c->matched_measured;
  LsTime extra = c->measured - c->matched_measured, missing = c->predicted - c->matched_predicted;
  if (ABS (off) > worth && fabs ((double) off) > TOLERANCE * (double) c->matched_measured)
    say (words, off, "%s: those that match are predicted %.2f times what they took (%.3f ms against %.3f ms)",
         name, (double) c->matched_predicted / (double) c->matched_measured, MS (c->matched_predicted),
         MS (c->matched_measured));
  if (extra > worth && c->n_predicted == 0)
    say (words, extra,
         "%s: %u measured (%.3f ms), none predicted: the job runs something that is not modelled", name,
         c->n_measured, MS (extra));
  else if (extra > worth)
    say (words, extra, "%s: %u of %u that were measured have no counterpart (%.3f ms)", name,
         c->n_measured - c->n_matched, c->n_measured, MS (extra));
  if (missing > worth && c->n_measured == 0)
    say (words, missing,
         "%s: %u predicted (%.3f ms), none measured: fused into others, or the job's flags are not those of "
         "the run",
         name, c->n_predicted, MS (missing));
  else if (missing > worth)
    say (words, missing, "%s: %u of %u that were predicted have no counterpart (%.3f ms)", name,
         c->n_predicted - c->n_matched, c->n_predicted, MS (missing));
}

static void
judge_part (GArray *words, const char *what, LsTime measured, LsTime predicted, LsTime step, const char *hint)
{
  LsTime off = predicted - measured;
  if (fabs ((double) off) > SHARE * (double) step && fabs ((double) off) > TOLERANCE * (double) measured)
    say (words, off, "%s: %.3f ms measured, %.3f ms predicted%s", what, MS (measured), MS (predicted), hint);
}

static LsTime
communication (const LsStepTime *t)
{
  return t->matched[LS_TIER_COMMUNICATION] + t->unmatched[LS_TIER_COMMUNICATION];
}

static void
find_words (LsReconciled *r)
{
  const LsStepTime *m = &r->measured, *p = &r->predicted;
  g_autoptr (GArray) words = g_array_new (FALSE, FALSE, sizeof (Word));
  for (guint i = 0; i < r->classes->len; i++)
    judge_class (words, &g_array_index (r->classes, LsReconcileRow, i), m->step);
  judge_part (words, "exposed communication", communication (m), communication (p), m->step, "");
  judge_part (words, "the device waits for the host", m->idle_host, p->idle_host, m->step,
              m->idle_host > p->idle_host ? ": see --host-launch and --host-comm; the profiler itself costs "
                                            "the host time, too"
                                          : "");
  judge_part (words, "gaps of the device", m->idle_device, p->idle_device, m->step, "");
  ls_sort_by (words, by_weight);
  for (guint i = 0; i < words->len; i++)
    g_ptr_array_add (r->words, g_array_index (words, Word, i).text);
}

/* ---- all of it ---- */

LsReconciled *
ls_reconcile (LsStepSide *measured, LsStepSide *predicted)
{
  LsReconciled *r = g_new0 (LsReconciled, 1);
  r->classes = g_array_new (FALSE, FALSE, sizeof (LsReconcileRow));
  r->collectives = g_array_new (FALSE, FALSE, sizeof (LsReconcileRow));
  r->unmatched = g_array_new (FALSE, FALSE, sizeof (LsReconcileName));
  r->words = g_ptr_array_new_with_free_func (g_free);
  ls_reconcile_match (measured, predicted);
  r->measured = ls_reconcile_time (measured);
  r->predicted = ls_reconcile_time (predicted);
  add_side (r, measured, predicted, true);
  add_side (r, predicted, measured, false);
  ls_sort_by (r->classes, by_class_and_bytes);
  ls_sort_by (r->collectives, by_class_and_bytes);
  add_unmatched_names (r, measured);
  find_words (r);
  return r;
}

void
ls_reconciled_free (LsReconciled *r)
{
  if (!r)
    return;
  g_array_unref (r->classes);
  g_array_unref (r->collectives);
  g_array_unref (r->unmatched);
  g_ptr_array_unref (r->words);
  g_free (r);
}

/* --- whether it is of another job ------------------------------------------------------------------- */

#define MOST_RATIO    3.0 /* of the kernels' time, either way */
#define LEAST_MATCHED 0.5 /* of the measured kernels' time    */

/* Its kernels, each for all of its time. */
static bool
is_kernel (const LsReconcileRow *row)
{
  return row->class != LS_CLASS_COPY && !ls_op_class_is_communication ((LsOpClass) row->class);
}

char *
ls_reconciled_other (const LsReconciled *r)
{
  LsTime measured = 0, predicted = 0, matched = 0;
  for (guint i = 0; i < r->classes->len; i++) {
    const LsReconcileRow *row = &g_array_index (r->classes, LsReconcileRow, i);
    measured += is_kernel (row) ? row->measured : 0;
    predicted += is_kernel (row) ? row->predicted : 0;
    matched += is_kernel (row) ? row->matched_measured : 0;
  }
  double share = measured > 0 ? ls_time_to_s (matched) / ls_time_to_s (measured) : 1;
  double longer = ls_time_to_s (MAX (measured, predicted)),
         shorter = ls_time_to_s (MIN (measured, predicted));
  if (share >= LEAST_MATCHED && longer <= MOST_RATIO * shorter)
    return NULL;
  g_autofree char *took = ls_format_time (measured), *would = ls_format_time (predicted);
  return g_strdup_printf (
      "its kernels took %s, those of the job take %s, and %.0f %% of their time matches no "
      "kernel of the job",
      took, would, 100 * (1 - share));
}

/* ---- what a profiled step shows of the software that ran it ---- */

#define MIN_LAUNCHES 6 /* of a median, see reconcile.h */

static const LsStepOp *
op_at (const LsStepSide *side, guint i)
{
  return &g_array_index (side->ops, LsStepOp, i);
}

/* ---- what a launch costs ---- */

/* A launch, and whether the GPU had nothing left to do then. */
typedef struct {
  LsTime at;
  bool finds_idle, is_kernel;
  bool is_behind_unknown; /* of the kernel before it no launch is in the trace */
} Launch;

static const LsSortKey launches_by_time[] = { { LS_RISING (Launch, at) }, { 0 } };

static GArray *
launches_of (const LsStepSide *side)
{
  GArray *launches = g_array_new (FALSE, FALSE, sizeof (Launch));
  LsTime busy_until = 0;
  bool is_behind_unknown = false;
  for (guint i = 0; i < side->ops->len; i++) {
    const LsStepOp *op = op_at (side, i);
    const Launch l = { .at = op->launch,
                       .finds_idle = i > 0 && busy_until <= op->launch,
                       .is_kernel = op->class != LS_CLASS_COPY && !op->in_graph
                           && !ls_op_class_is_communication ((LsOpClass) op->class),
                       .is_behind_unknown = is_behind_unknown };
    if (op->launch != LS_TIME_NEVER)
      g_array_append_val (launches, l);
    is_behind_unknown = op->launch == LS_TIME_NEVER;
    busy_until = MAX (busy_until, op->end);
  }
  ls_sort_by (launches, launches_by_time);
  return launches;
}

static void
find_host_launch (const LsStepSide *side, LsSeenSoftware *seen)
{
  g_autoptr (GArray) launches = launches_of (side);
  g_autoptr (GArray) times = g_array_new (FALSE, FALSE, sizeof (LsTime));
  for (guint i = 1; i < launches->len; i++) {
    const Launch *before = &g_array_index (launches, Launch, i - 1),
                 *l = &g_array_index (launches, Launch, i);
    LsTime time = l->at - before->at;
    if (l->finds_idle && l->is_kernel && before->is_kernel && !l->is_behind_unknown && time > 0)
      g_array_append_val (times, time);
  }
  g_array_sort (times, ls_compare_int64);
  seen->n_launches = times->len;
  seen->host_launch = times->len < MIN_LAUNCHES ? -1 : g_array_index (times, LsTime, times->len / 2);
}

/* ---- graphs ---- */

typedef struct {
  LsTime launch;
  guint n_forward, n_backward; /* attentions */
  bool is_behind_attention;    /* its last op: several kernels of one */
} Graph;

static const LsSortKey by_launch[] = { { LS_RISING (Graph, launch) }, { 0 } };

static void
find_graphs (const LsStepSide *side, LsSeenSoftware *seen)
{
  g_autoptr (GArray) graphs = g_array_new (FALSE, FALSE, sizeof (Graph));
  bool is_step = false, is_layers = true;
  for (guint i = 0; i < side->ops->len; i++) {
    const LsStepOp *op = op_at (side, i);
    bool is_forward = op->class == LS_CLASS_ATTENTION_FWD, is_backward = op->class == LS_CLASS_ATTENTION_BWD;
    if (!op->in_graph)
      continue;
    Graph *g = ls_list_like (graphs, by_launch, &(Graph) { .launch = op->launch });
    g->n_forward += is_forward && !g->is_behind_attention;
    g->n_backward += is_backward && !g->is_behind_attention;
    g->is_behind_attention = is_forward || is_backward;
  }
  for (guint i = 0; i < graphs->len; i++) {
    const Graph *g = &g_array_index (graphs, Graph, i);
    is_step |= g->n_forward > 0 && g->n_backward > 0;
    is_layers &= g->n_forward + g->n_backward == 1;
  }
  seen->n_graphs = graphs->len;
  seen->cuda_graphs = is_step ? LS_GRAPHS_STEP : is_layers && graphs->len > 1 ? LS_GRAPHS_LAYER : -1;
}

/* ---- attention ---- */

static const struct {
  const char *part; /* of a name in small letters */
  LsAttentionKernel kernel;
} attentions[] = {
  { "flashattnfwd", LS_ATTENTION_KERNEL_FA3 },  { "flashattnbwd", LS_ATTENTION_KERNEL_FA3 },
  { "flash_fwd", LS_ATTENTION_KERNEL_FA2 },     { "flash_bwd", LS_ATTENTION_KERNEL_FA2 },
  { "fmha_fwd_loop", LS_ATTENTION_KERNEL_FA1 }, { "fmha_bwd_dq_dk_dv_loop", LS_ATTENTION_KERNEL_FA1 },
  { "cudnn", LS_ATTENTION_KERNEL_CUDNN },
};

static void
find_attention (const LsStepSide *side, LsSeenSoftware *seen)
{
  for (guint i = 0; i < side->ops->len && !seen->attention_name; i++) {
    const LsStepOp *op = op_at (side, i);
    if (op->class == LS_CLASS_ATTENTION_FWD || op->class == LS_CLASS_ATTENTION_BWD)
      seen->attention_name = op->name;
  }
  g_autofree char *small = g_ascii_strdown (seen->attention_name ? seen->attention_name : "", -1);
  for (guint i = 0; i < G_N_ELEMENTS (attentions) && seen->attention < 0; i++)
    if (strstr (small, attentions[i].part))
      seen->attention = attentions[i].kernel;
}

LsSeenSoftware
ls_software_seen (const LsStepSide *side)
{
  LsSeenSoftware seen = { .host_launch = -1, .cuda_graphs = -1, .attention = -1 };
  find_host_launch (side, &seen);
  find_graphs (side, &seen);
  find_attention (side, &seen);
  return seen;
}
