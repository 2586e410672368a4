/* exec/run.c — runs, and their plain twins. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/diag.h"
#include "exec/extras.h"

/* ---- --fold check, --coarsen check: a run against its plain twin ---- */

/* Times and steps count from those of the window: one run may have come to it earlier than the other. */
static LsTime
since (const LsTimeline *t, LsTime at)
{
  return at == LS_TIME_NEVER ? at : at - t->window_start;
}

/* Spans of a rank are in the order in which the engine met them, which may differ between
 * streams; and a rank may have run ahead of the end of the window in one run only. */
static int
by_place (int8_t later_by, const LsSpan *x, const LsSpan *y)
{
  if (later_by != 0)
    return later_by < 0 ? -1 : 1;
  if (x->instance != y->instance)
    return x->instance < y->instance ? -1 : 1;
  return (int) x->op - (int) y->op;
}

static int
by_op (const void *a, const void *b)
{
  const LsSpan *x = *(const LsSpan *const *) a, *y = *(const LsSpan *const *) b;
  return by_place ((int8_t) (x->step - y->step), x, y);
}

static bool
is_same_op (const LsTimeline *a, const LsSpan *x, const LsTimeline *b, const LsSpan *y)
{
  uint8_t of_x = (uint8_t) (x->step - a->n_steps), of_y = (uint8_t) (y->step - b->n_steps);
  return by_place ((int8_t) (of_x - of_y), x, y) == 0;
}

/* LsSpan * in the window, sorted; newly allocated. */
static GPtrArray *
spans_of (const LsTimeline *t, uint32_t rank)
{
  GPtrArray *spans = g_ptr_array_new ();
  const LsRankSpans *r = ls_timeline_spans (t, rank);
  for (uint32_t i = 0; i < r->n; i++)
    if (r->spans[i].start < t->window_end)
      g_ptr_array_add (spans, &r->spans[i]);
  if (spans->len > 0)
    qsort (spans->pdata, spans->len, sizeof *spans->pdata, by_op);
  return spans;
}

static LsTime
within (const LsTimeline *t, LsTime at)
{
  return since (t, MIN (at, t->window_end));
}

/* Of a kernel, and of a copy of recorded length, how long it takes alone. */
static LsTime
matched (const LsTimeline *t, uint32_t rank, const LsSpan *s)
{
  const LsOp *op = ls_span_op (t, rank, s);
  bool is_duration = ls_op_takes (op->kind, LS_TAKES_GPU)
      || (ls_op_takes (op->kind, LS_TAKES_ENGINE) && op->recorded != LS_TIME_NEVER);
  return is_duration ? s->alone : within (t, s->matched);
}

/* What it waited for, as (step, instance, op). */
static bool
is_same_cause (const LsTimeline *a, uint32_t rank_a, const LsSpan *x, const LsTimeline *b, uint32_t rank_b,
               const LsSpan *y)
{
  if (x->cause_kind != y->cause_kind || (x->cause == LS_SPAN_NONE) != (y->cause == LS_SPAN_NONE))
    return false;
  if (x->cause == LS_SPAN_NONE)
    return true;
  const LsSpan *of_x = &ls_timeline_spans (a, rank_a)->spans[x->cause],
               *of_y = &ls_timeline_spans (b, rank_b)->spans[y->cause];
  return is_same_op (a, of_x, b, of_y);
}

static const char *
difference (const LsTimeline *a, uint32_t rank_a, const LsSpan *x, const LsTimeline *b, uint32_t rank_b,
            const LsSpan *y)
{
  if (!is_same_op (a, x, b, y))
    return "order";
  if (since (a, x->start) != since (b, y->start))
    return "start";
  if (within (a, x->end) != within (b, y->end))
    return "end";
  if (matched (a, rank_a, x) != matched (b, rank_b, y))
    return "match";
  if (since (a, x->issued) != since (b, y->issued))
    return "issue";
  return is_same_cause (a, rank_a, x, b, rank_b, y) ? NULL : "cause";
}

/* Why the GPU idles at the end of the window: what the first kernel behind that waited for, if the
 * rank has run ahead so far, else what it waits for now. False: it does not idle, and nobody asks. */
static bool
last_idle_cause (const LsTimeline *t, uint32_t rank, LsCause *ret_kind, bool *ret_has_span)
{
  LsTime last = t->window_start;
  const LsSpan *next = NULL;
  for (uint32_t i = 0; i < ls_timeline_spans (t, rank)->n; i++) {
    const LsSpan *s = &ls_timeline_spans (t, rank)->spans[i];
    if (!ls_op_takes (ls_span_op (t, rank, s)->kind, LS_TAKES_GPU))
      continue;
    if (s->start < t->window_end)
      last = MAX (last, s->end);
    else if (!next || s->start < next->start)
      next = s;
  }
  *ret_kind = next ? next->cause_kind : ls_timeline_spans (t, rank)->tail_cause_kind;
  *ret_has_span = (next ? next->cause : ls_timeline_spans (t, rank)->tail_cause) != LS_SPAN_NONE;
  return last < t->window_end;
}

static gboolean
check_last_idle (const LsTimeline *folded, uint32_t other, const LsTimeline *whole, uint32_t rank,
                 const char *names, GError **error)
{
  LsCause a, b;
  bool a_has_span, b_has_span;
  if (!last_idle_cause (whole, rank, &b, &b_has_span))
    return TRUE;
  last_idle_cause (folded, other, &a, &a_has_span);
  if (a == b && a_has_span == b_has_span)
    return TRUE;
  return ls_fail (error, LS_ERROR_FAILED,
                  "%s differ in what rank %u waits for at the end: %s on rank %u, %s itself", names, rank,
                  ls_cause_names[a], other, ls_cause_names[b]);
}

static gboolean
check_rank (const LsTimeline *folded, const LsTimeline *whole, uint32_t rank, const char *names,
            GError **error)
{
  uint32_t other = ls_timeline_representative (folded, rank);
  g_autoptr (GPtrArray) x = spans_of (folded, other), y = spans_of (whole, rank);
  if (x->len != y->len)
    return ls_fail (error, LS_ERROR_FAILED,
                    "%s differ: rank %u has %u spans for rank %u, which has %u itself", names, other, x->len,
                    rank, y->len);
  for (guint i = 0; i < x->len; i++) {
    const LsSpan *p = x->pdata[i], *q = y->pdata[i];
    const char *what = difference (folded, other, p, whole, rank, q);
    if (!what)
      continue;
    return ls_fail (error, LS_ERROR_FAILED,
                    "%s differ in the %s of %s (step %u, instance %u, op %u): from %" G_GINT64_FORMAT
                    " to %" G_GINT64_FORMAT " ps on rank %u for rank %u, from %" G_GINT64_FORMAT
                    " to %" G_GINT64_FORMAT " ps on that itself",
                    names, what, ls_span_name (whole, rank, q), q->step, q->instance, q->op, p->start, p->end,
                    other, rank, q->start, q->end);
  }
  return check_last_idle (folded, other, whole, rank, names, error);
}

static gboolean
check_times (const LsTimeline *folded, const LsTimeline *whole, const char *names, GError **error)
{
  const struct {
    const char *what;
    gint64 folded, whole;
  } figures[] = {
    { "duration of the step", within (folded, folded->window_end), within (whole, whole->window_end) },
    { "duration of the first step", folded->first_step, folded->first_step == 0 ? 0 : whole->first_step },
    { "digest", (gint64) folded->digest, (gint64) whole->digest },
  };
  for (guint i = 0; i < G_N_ELEMENTS (figures); i++)
    if (figures[i].folded != figures[i].whole)
      return ls_fail (error, LS_ERROR_FAILED,
                      "%s differ in the %s: %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT, names,
                      figures[i].what, figures[i].folded, figures[i].whole);
  return TRUE;
}

static gboolean
check_links (const LsTimeline *folded, const LsTimeline *whole, const LsCluster *cluster, const char *names,
             GError **error)
{
  for (uint32_t i = 0; i < whole->n_resources; i++)
    if (ls_timeline_bytes (folded, i) != ls_timeline_bytes (whole, i)) {
      g_autofree char *name = ls_cluster_resource_name (cluster, i);
      return ls_fail (error, LS_ERROR_FAILED, "%s differ in the bytes of %s: %.17g and %.17g", names, name,
                      ls_timeline_bytes (folded, i), ls_timeline_bytes (whole, i));
    }
  return TRUE;
}

gboolean
fold_check (const LsTimeline *folded, const LsTimeline *whole, const LsCluster *cluster, const char *names,
            GError **error)
{
  if (!check_times (folded, whole, names, error) || !check_links (folded, whole, cluster, names, error))
    return FALSE;
  for (uint32_t rank = 0; rank < whole->n_ranks; rank++) {
    uint32_t other = ls_timeline_representative (folded, rank);
    if (ls_timeline_spans (whole, rank)->spans && ls_timeline_spans (folded, other)->spans
        && !check_rank (folded, whole, rank, names, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- a run ---- */

void
ls_run_options_init (LsRunOptions *o)
{
  memset (o, 0, sizeof *o);
  o->n_steps = 3;
  o->max_spans = 20000000;
  o->max_memory_bytes = UINT64_C (16) << 30;
  o->network = LS_NETWORK_FLOW;
  o->queue = LS_QUEUE_FAST;
  o->solver = LS_SOLVER_FAST;
  ls_host_costs_default (&o->host);
  const char *debug = g_getenv ("LS_DEBUG");
  g_auto (GStrv) items = g_strsplit (debug ? debug : "", ",", -1);
  o->checks = g_strv_contains ((const char *const *) items, "check");
}

/* What a run is asked for; borrowed. */
typedef struct {
  const LsPlan *plan;
  const LsCluster *cluster;
  const LsCalibration *calibration;
  const LsNccl *nccl;
  const LsRunOptions *options;
} Asked;

/* With other options. */
static Asked
asked_with (Asked asked, const LsRunOptions *options)
{
  asked.options = options;
  return asked;
}

/* *ret_is_folded: whether a rank stood for another. *ret_is_lost: there is no result, for it did not begin as
 * it should have. */
static LsTimeline *
run_from (Asked asked, double *ret_cost_share, bool *ret_is_folded, bool *ret_is_lost, GError **error)
{
  XJob job = { .plan = asked.plan, .calibration = asked.calibration, .host = &asked.options->host };
  Extras extras = { 0 };
  Run x = { .plan = asked.plan,
            .jobs = &job,
            .n_jobs = 1,
            .cluster = asked.cluster,
            .nccl = asked.nccl,
            .n_steps = MAX (1, asked.options->n_steps) };
  LsTimeline *timeline = NULL;
  extras_hang (&x, &extras, asked.options);
  bool is_over = run_begin (&x, error) && run_clock (&x, error);
  *ret_is_folded = extras.fold != NULL;
  *ret_is_lost = x.begins_late && !x.is_periodic;
  if (is_over && !*ret_is_lost) {
    timeline = timeline_collect (&x);
    timeline->n_coarse = coarsen_count (&x);
  }
  if (ret_cost_share && timeline)
    memcpy (ret_cost_share, x.cost_share, sizeof x.cost_share);
  extras_clear (&x);
  run_clear (&x);
  return timeline;
}

/* From the quiescent point if only the steady state is wanted, and from the beginning if that leads
 * nowhere. */
static LsTimeline *
run_once (Asked asked, double *ret_cost_share, bool *ret_is_folded, GError **error)
{
  bool is_lost;
  g_autoptr (GError) failed = NULL;
  LsTimeline *t = run_from (asked, ret_cost_share, ret_is_folded, &is_lost, &failed);
  if (is_lost) {
    LsRunOptions whole = *asked.options;
    whole.steady = false;
    return run_from (asked_with (asked, &whole), ret_cost_share, ret_is_folded, &is_lost, error);
  }
  if (failed)
    g_propagate_error (error, g_steal_pointer (&failed));
  return t;
}

bool
run_names_ranks (const GError *error)
{
  return g_error_matches (error, LS_ERROR, LS_ERROR_DEADLOCK)
      || g_error_matches (error, LS_ERROR, LS_ERROR_INPUT);
}

LsRunOptions
run_plain_twin (const LsRunOptions *options, bool checks_fold, bool checks_pieces)
{
  LsRunOptions plain = *options;
  plain.fold = checks_fold ? LS_SHORTCUT_OFF : plain.fold;
  plain.coarsen = checks_pieces ? LS_SHORTCUT_OFF : plain.coarsen;
  return plain;
}

/* What is to be checked is done the plain way, and compared. */
static gboolean
check_twin (const LsTimeline *t, bool is_folded, Asked asked, GError **error)
{
  bool checks_fold = is_folded && asked.options->fold == LS_SHORTCUT_CHECK,
       checks_pieces = asked.options->coarsen == LS_SHORTCUT_CHECK;
  if (!checks_fold && !checks_pieces)
    return TRUE;
  const LsRunOptions plain = run_plain_twin (asked.options, checks_fold, checks_pieces);
  bool none;
  g_autoptr (LsTimeline) twin = run_once (asked_with (asked, &plain), NULL, &none, error);
  const char *names = !checks_pieces ? "folded and unfolded"
      : checks_fold                  ? "folded in pieces, and unfolded op by op,"
                                     : "in pieces and op by op";
  return twin && fold_check (t, twin, asked.cluster, names, error);
}

/* Folded or each rank by itself, or both. */
static LsTimeline *
run_folded (Asked asked, double *ret_cost_share, GError **error)
{
  bool is_folded, none;
  g_autoptr (GError) failed = NULL;
  g_autoptr (LsTimeline) t = run_once (asked, ret_cost_share, &is_folded, &failed);
  if (!t && is_folded && run_names_ranks (failed)) {
    const LsRunOptions unfolded = run_plain_twin (asked.options, true, false);
    return run_once (asked_with (asked, &unfolded), ret_cost_share, &none, error);
  }
  if (!t) {
    g_propagate_error (error, g_steal_pointer (&failed));
    return NULL;
  }
  return check_twin (t, is_folded, asked, error) ? g_steal_pointer (&t) : NULL;
}

LsTimeline *
ls_run (const LsPlan *plan, const LsCluster *cluster, const LsCalibration *calibration, const LsNccl *nccl,
        const LsRunOptions *options, double *ret_cost_share, GError **error)
{
  LsRunOptions own = *options;
  g_autofree double *slow = NULL;
  if (options->stragglers && !options->slow) {
    g_autoptr (GError) failed = NULL;
    own.slow = slow = ls_slow_factors (options->stragglers, plan->n_ranks, &failed);
    if (failed) {
      g_propagate_error (error, g_steal_pointer (&failed));
      return NULL;
    }
  }
  return run_folded ((Asked) { plan, cluster, calibration, nccl, &own }, ret_cost_share, error);
}

/* ---- ranks whose kernels take longer ---- */

void
ls_slow_clear (LsSlow *s)
{
  g_clear_pointer (&s->ranks, g_array_unref);
  *s = (LsSlow) { 0 };
}

static double
draw_normal (GRand *rand)
{
  double u, v, square;
  do {
    u = g_rand_double_range (rand, -1, 1);
    v = g_rand_double_range (rand, -1, 1);
    square = u * u + v * v;
  } while (square >= 1 || square == 0);
  return u * sqrt (-2 * log (square) / square);
}

double *
ls_slow_factors (const LsSlow *s, uint32_t n_ranks, GError **error)
{
  guint n = s->ranks ? s->ranks->len : 0;
  if (n == 0 && s->sigma == 0)
    return NULL;
  for (guint i = 0; i < n; i++) {
    uint32_t rank = g_array_index (s->ranks, LsSlowRank, i).rank;
    if (rank < n_ranks)
      continue;
    return ls_fail_null (error, LS_ERROR_CONFLICT, "rank %u is to be slow, but the job has %u ranks", rank,
                         n_ranks);
  }
  double *factor = g_new (double, n_ranks);
  g_autoptr (GRand) rand = g_rand_new_with_seed (s->seed);
  for (uint32_t r = 0; r < n_ranks; r++) {
    double drawn = s->sigma > 0 ? exp (s->sigma * draw_normal (rand)) : 1;
    factor[r] = CLAMP (drawn, LS_SLOW_MIN, LS_SLOW_MAX);
  }
  for (guint i = 0; i < n; i++) {
    const LsSlowRank *slow = &g_array_index (s->ranks, LsSlowRank, i);
    factor[slow->rank] *= slow->factor;
  }
  return factor;
}
