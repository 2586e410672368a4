#include "analysis/critical_path.h"

#include <lockstep/error.h>

#include "analysis/idle.h"
#include "exec/replay/timeline.h"

/* --- the other ends of communication ------------------------------------------------------------- */

/* All members of a collective match and end at the same instants, and calls of a communicator
 * follow each other: communicator, match and end tell a call. The k-th send to a neighbour meets
 * the k-th receive there, per direction and step, in the order in which they were launched,
 * which is that of the spans (exec/replay/group.c). Only spans of the reported step are looked at:
 * what they wait for is of that step. */

typedef struct LsMatcher LsMatcher;

static void matcher_free (LsMatcher *m);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsMatcher, matcher_free)

typedef struct {
  LsTime matched;
  uint32_t span;
} MatchedCall;

/* Of one rank that stands for its class: what it met others in. */
typedef struct {
  GArray *calls;       /* MatchedCall, by time of match; NULL: not looked at yet      */
  GArray *posts[2][2]; /* uint32_t: span of each transfer; [to next][is send]         */
} RankEnds;

struct LsMatcher {
  const LsTimeline *t;
  RankEnds *ranks; /* [n_ranks] */
};

static LsMatcher *
matcher_new (const LsTimeline *t)
{
  LsMatcher *m = g_new0 (LsMatcher, 1);
  m->t = t;
  m->ranks = g_new0 (RankEnds, t->n_ranks);
  return m;
}

/* NULL allowed */
static void
matcher_free (LsMatcher *m)
{
  if (!m)
    return;
  for (uint32_t rank = 0; rank < m->t->n_ranks; rank++) {
    RankEnds *e = &m->ranks[rank];
    if (!e->calls)
      continue;
    g_array_unref (e->calls);
    for (int i = 0; i < 4; i++)
      g_array_unref (e->posts[i / 2][i % 2]);
  }
  g_free (m->ranks);
  g_free (m);
}

/* Whether a span is of the step that the window reports. */
static bool
matcher_is_reported (const LsTimeline *t, const LsSpan *span)
{
  return span->step == (uint8_t) (t->n_steps - 1);
}

static int
by_match (const void *a, const void *b)
{
  const MatchedCall *x = a, *y = b;
  if (x->matched != y->matched)
    return x->matched < y->matched ? -1 : 1;
  return x->span < y->span ? -1 : x->span > y->span;
}

static void
look_at (const LsMatcher *m, uint32_t rank, RankEnds *e)
{
  const LsRankSpans *r = ls_timeline_spans (m->t, rank);
  e->calls = g_array_new (FALSE, FALSE, sizeof (MatchedCall));
  for (int i = 0; i < 4; i++)
    e->posts[i / 2][i % 2] = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (uint32_t i = 0; i < r->n; i++) {
    if (!matcher_is_reported (m->t, &r->spans[i]))
      continue;
    const LsOp *op = ls_span_op (m->t, rank, &r->spans[i]);
    MatchedCall call = { r->spans[i].matched, i };
    if (ls_op_has (op->kind, LS_HAS_CALL))
      g_array_append_val (e->calls, call);
    for (uint16_t k = 0; k < op->n_transfers; k++)
      g_array_append_val (e->posts[op->transfers[k].slot == LS_SLOT_NEXT][op->transfers[k].is_send], i);
  }
  g_array_sort (e->calls, by_match);
}

/* Of who represents the rank. */
static const RankEnds *
ends_of (LsMatcher *m, uint32_t rank)
{
  uint32_t own = ls_timeline_representative (m->t, rank);
  if (!m->ranks[own].calls)
    look_at (m, own, &m->ranks[own]);
  return &m->ranks[own];
}

/* The first call that did not match before; their number if all did. */
static guint
first_at (const GArray *calls, LsTime matched)
{
  guint low = 0, high = calls->len;
  while (low < high) {
    guint middle = low + (high - low) / 2;
    if (g_array_index (calls, MatchedCall, middle).matched < matched)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The span of a rank's call on this communicator that matched and ended as x did;
 * LS_SPAN_NONE: none. */
static uint32_t
match_call (LsMatcher *m, uint32_t rank, uint32_t comm, const LsSpan *x)
{
  const GArray *calls = ends_of (m, rank)->calls;
  const LsRankSpans *r = ls_timeline_spans (m->t, ls_timeline_representative (m->t, rank));
  for (guint i = first_at (calls, x->matched); i < calls->len; i++) {
    const MatchedCall *call = &g_array_index (calls, MatchedCall, i);
    if (call->matched != x->matched)
      break;
    const LsSpan *y = &r->spans[call->span];
    if (y->end == x->end && ls_plan_comm_of (m->t->plan, rank, ls_span_op (m->t, rank, y)->slot) == comm)
      return call->span;
  }
  return LS_SPAN_NONE;
}

/* The first post of this span; posts are in the order of spans. */
static guint
first_post (const GArray *posts, uint32_t span)
{
  guint low = 0, high = posts->len;
  while (low < high) {
    guint middle = low + (high - low) / 2;
    if (g_array_index (posts, uint32_t, middle) < span)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The span that met transfer i of the group x (index of a span of who represents the rank),
 * and the rank that it is of; LS_SPAN_NONE: none. */
static uint32_t
match_transfer (LsMatcher *m, uint32_t rank, uint32_t x, uint32_t i, uint32_t *ret_rank)
{
  const LsRankSpans *r = ls_timeline_spans (m->t, ls_timeline_representative (m->t, rank));
  const LsOp *op = ls_span_op (m->t, rank, &r->spans[x]);
  const LsTransfer *transfer = &op->transfers[i];
  bool is_to_next = transfer->slot == LS_SLOT_NEXT;
  *ret_rank = ls_plan_peer (m->t->plan, rank, is_to_next);
  if (*ret_rank >= m->t->n_ranks)
    return LS_SPAN_NONE;

  guint k = first_post (ends_of (m, rank)->posts[is_to_next][transfer->is_send], x);
  for (uint32_t before = 0; before < i; before++)
    k += op->transfers[before].slot == transfer->slot && op->transfers[before].is_send == transfer->is_send;
  const GArray *theirs = ends_of (m, *ret_rank)->posts[!is_to_next][!transfer->is_send];
  return k < theirs->len ? g_array_index (theirs, uint32_t, k) : LS_SPAN_NONE;
}

/* --- which ops, links and ranks a step's time went through --------------------------------------- */

const char *
ls_path_kind_name (LsPathKind kind)
{
  static const char *const names[LS_N_PATH_KINDS] = {
    [LS_PATH_KERNEL] = "kernel", [LS_PATH_SLOWDOWN] = "slowdown", [LS_PATH_LATENCY] = "latency",
    [LS_PATH_MOVING] = "moving", [LS_PATH_HOST] = "host",         [LS_PATH_QUEUE] = "queue",
    [LS_PATH_OTHER] = "other",
  };
  return names[kind];
}

void
ls_critical_path_free (LsCriticalPath *path)
{
  if (!path)
    return;
  g_array_unref (path->pieces);
  g_free (path);
}

const char *
ls_path_name (const LsCriticalPath *path, const LsPathPiece *piece)
{
  const LsTimeline *t = path->timeline;
  if (piece->span == LS_SPAN_NONE)
    return "nothing";
  return ls_span_name (
      t, piece->rank,
      &ls_timeline_spans (t, ls_timeline_representative (t, piece->rank))->spans[piece->span]);
}

/* --- the walk ----------------------------------------------------------- */

/* Where it is: the op `span` of `rank`; [to, end of the window) is explained. */
typedef struct {
  const LsTimeline *t;
  LsMatcher *matcher;
  LsCallLimits *limits;
  GArray *pieces; /* backwards */
  uint32_t rank, span;
  LsTime to;
} Walk;

static const LsSpan *
span_of (const Walk *w, uint32_t rank, uint32_t span)
{
  return &ls_timeline_spans (w->t, ls_timeline_representative (w->t, rank))->spans[span];
}

/* [since, to) belongs to where the walk is, as far as it lies in the window. */
static LsPathPiece *
take (Walk *w, LsTime since, LsPathKind kind)
{
  since = MAX (since, w->t->window_start);
  if (since >= w->to)
    return NULL;
  const LsPathPiece piece = {
    .from = since,
    .to = w->to,
    .rank = w->rank,
    .span = w->span,
    .link = LS_PATH_NO_LINK,
    .kind = kind,
  };
  g_array_append_val (w->pieces, piece);
  w->to = since;
  return &g_array_index (w->pieces, LsPathPiece, w->pieces->len - 1);
}

static void
take_kernel (Walk *w, const LsSpan *x)
{
  LsTime from = MAX (x->start, w->t->window_start), to = w->to, duration = ls_span_end (w->t, x) - x->start;
  LsTime alone = MIN (x->alone, duration);
  if (from < to)
    take (w, from + (LsTime) ((__int128) alone * (to - from) / duration), LS_PATH_SLOWDOWN);
  take (w, x->start, LS_PATH_KERNEL);
}

/* What moves from `since` to here: first its latency, then data. */
static void
take_moving (Walk *w, LsTime since, LsCallLimit limit)
{
  LsPathPiece *piece = take (w, since + limit.latency, LS_PATH_MOVING);
  if (piece) {
    piece->link = limit.link;
    piece->n_links = limit.n_links;
    piece->busy_s = limit.busy_s;
  }
  take (w, since, LS_PATH_LATENCY);
}

static void
go_to (Walk *w, uint32_t rank, uint32_t span)
{
  w->rank = rank;
  w->span = span;
}

/* To the member that came last. */
static void
take_collective (Walk *w, const LsSpan *x, const LsOp *op)
{
  uint32_t id = ls_plan_comm_of (w->t->plan, w->rank, op->slot), last = w->rank, last_span = w->span;
  const LsCommunicator comm = ls_plan_communicator (w->t->plan, id);
  LsTime came = x->start;
  take_moving (w, x->matched, ls_limit_of_call (w->limits, w->rank, op));
  for (uint32_t i = 0; i < comm.n_ranks && came < x->matched; i++) {
    uint32_t span = match_call (w->matcher, ls_comm_rank (&comm, i), id, x);
    if (span == LS_SPAN_NONE || span_of (w, ls_comm_rank (&comm, i), span)->start <= came)
      continue;
    came = span_of (w, ls_comm_rank (&comm, i), span)->start;
    last = ls_comm_rank (&comm, i);
    last_span = span;
  }
  take (w, came, LS_PATH_OTHER); /* a member without a span */
  go_to (w, last, last_span);
}

/* One transfer of a group, as far as the spans of both ends tell. */
typedef struct {
  uint32_t peer, span; /* LS_SPAN_NONE: not known */
  uint32_t index;
  LsTime came, matched; /* when the later end did, and both */
} Met;

/* False: it was over before the group. A group with one transfer knows when that matched. */
static bool
meet (Walk *w, const LsSpan *x, const LsOp *op, uint32_t i, Met *ret_met)
{
  uint32_t peer, span = match_transfer (w->matcher, w->rank, w->span, i, &peer);
  *ret_met = (Met) { peer, span, i, x->start, x->matched };
  if (span == LS_SPAN_NONE)
    return true;
  const LsSpan *y = span_of (w, peer, span);
  bool is_alone = ls_span_op (w->t, peer, y)->n_transfers == 1;
  ret_met->came = MAX (x->start, y->start);
  if (op->n_transfers > 1)
    ret_met->matched = is_alone ? y->matched : ret_met->came;
  return is_alone ? y->end == x->end : y->end >= x->end;
}

/* Of those that may have ended the group, the one whose ends came last. */
static Met
find_last_met (Walk *w, const LsSpan *x, const LsOp *op)
{
  Met last = { .span = LS_SPAN_NONE, .index = op->n_transfers, .came = x->start, .matched = x->matched };
  for (uint32_t i = 0; i < op->n_transfers; i++) {
    Met met;
    if (meet (w, x, op, i, &met) && (last.index == op->n_transfers || met.came > last.came))
      last = met;
  }
  return last;
}

/* To the end that came last. */
static void
take_group (Walk *w, const LsSpan *x, const LsOp *op)
{
  Met last = find_last_met (w, x, op);
  LsCallLimit limit = { .link = LS_PATH_NO_LINK };
  if (last.span != LS_SPAN_NONE) {
    const LsTransfer *transfer = &op->transfers[last.index];
    limit = transfer->is_send ? ls_limit_of_transfer (w->limits, w->rank, last.peer, transfer)
                              : ls_limit_of_transfer (w->limits, last.peer, w->rank, transfer);
  }
  take_moving (w, last.matched, limit);
  take (w, last.came, last.span != LS_SPAN_NONE ? LS_PATH_QUEUE : LS_PATH_OTHER);
  if (last.came > x->start)
    go_to (w, last.peer, last.span);
}

/* From the end of an op to its start, which may be that of another rank's. */
static void
take_op (Walk *w)
{
  const LsSpan *x = span_of (w, w->rank, w->span);
  const LsOp *op = ls_span_op (w->t, w->rank, x);
  switch ((LsOpTakes) ls_op_kinds[op->kind].takes) {
  case LS_TAKES_GPU:
    take_kernel (w, x);
    break;
  case LS_TAKES_NETWORK:
    (ls_op_has (op->kind, LS_HAS_CALL) ? take_collective : take_group) (w, x, op);
    break;
  case LS_TAKES_ENGINE:
    take_moving (w, x->start, ls_limit_of_copy (w->limits, w->rank, op));
    break;
  case LS_TAKES_HOST:
    take (w, x->start, LS_PATH_HOST);
    break;
  case LS_TAKES_NOTHING:
    take (w, x->start, LS_PATH_OTHER);
  }
}

/* A GPU runs one kernel at a time: the one before this, if it ended as this one began. */
static uint32_t
kernel_before (const Walk *w, uint32_t span)
{
  const LsSpan *spans = span_of (w, w->rank, 0);
  for (uint32_t i = span; i-- > 0;)
    if (ls_span_is_compute (w->t, w->rank, &spans[i]))
      return spans[i].end == spans[span].start ? i : LS_SPAN_NONE;
  return LS_SPAN_NONE;
}

/* Of an op that began at `to`: what it had waited for. False: nothing that is known. */
static bool
step_back (Walk *w)
{
  const LsSpan *x = span_of (w, w->rank, w->span);
  const LsOp *op = ls_span_op (w->t, w->rank, x);
  uint32_t cause = x->cause_kind == LS_CAUSE_NONE ? LS_SPAN_NONE : x->cause;
  LsTime free_at
      = cause == LS_SPAN_NONE ? w->t->window_start : ls_span_end (w->t, span_of (w, w->rank, cause));
  bool is_hosts = x->cause_kind == LS_CAUSE_HOST;
  if (ls_op_takes (op->kind, LS_TAKES_GPU) && free_at < w->to && !(is_hosts && x->issued == x->start)) {
    uint32_t before = kernel_before (w, w->span);
    if (before != LS_SPAN_NONE) {
      w->span = before;
      return true;
    }
  }
  bool is_copy = ls_op_takes (op->kind, LS_TAKES_ENGINE),
       is_queued = is_copy || ls_op_is_communication (op->kind);
  if (is_queued && is_hosts)
    take (w, MAX (x->issued, free_at), LS_PATH_QUEUE);
  bool is_behind = is_copy || (is_queued && cause != LS_SPAN_NONE);
  take (w, free_at, is_hosts ? LS_PATH_HOST : is_behind ? LS_PATH_QUEUE : LS_PATH_OTHER);
  w->span = cause;
  return cause != LS_SPAN_NONE;
}

/* The last to end of the step, on the lowest rank; false if there is none. */
static bool
find_last (Walk *w)
{
  LsTime last = -1;
  for (uint32_t row = 0; row < w->t->n_rows; row++)
    for (uint32_t i = 0; w->t->multiplicity[row] > 0 && i < w->t->ranks[row].n; i++) {
      const LsSpan *x = &w->t->ranks[row].spans[i];
      if (!matcher_is_reported (w->t, x) || x->end > w->t->window_end || x->end <= last)
        continue;
      last = x->end;
      go_to (w, ls_timeline_rank (w->t, row), i);
    }
  return last >= 0;
}

/* Each op is met at most once, unless the causes of a timeline run in a circle: what is then
 * left over is not explained. */
static void
walk (Walk *w)
{
  uint64_t n_most = 1;
  for (uint32_t row = 0; row < w->t->n_rows; row++)
    n_most += (uint64_t) w->t->multiplicity[row] * w->t->ranks[row].n;
  if (find_last (w)) {
    take (w, span_of (w, w->rank, w->span)->end,
          LS_PATH_HOST); /* what has no span and no stream: a host that waited */
    for (uint64_t n = 0; n < n_most && w->to > w->t->window_start; n++) {
      take_op (w);
      if (w->to > w->t->window_start && !step_back (w))
        break;
    }
  }
  take (w, w->t->window_start, LS_PATH_OTHER);
}

static void
turn_round (GArray *pieces)
{
  LsPathPiece *p = (LsPathPiece *) (gpointer) pieces->data;
  for (guint i = 0; i < pieces->len / 2; i++) {
    LsPathPiece first = p[i];
    p[i] = p[pieces->len - 1 - i];
    p[pieces->len - 1 - i] = first;
  }
}

LsCriticalPath *
ls_critical_path_new (const LsTimeline *t, const LsCluster *cluster, const LsNccl *nccl, GError **error)
{
  if (t->is_sampled) {
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
                 "--critical-path needs what every rank did; this step has too many ops on %u classes of "
                 "ranks to keep them all\n"
                 "note: --fold auto keeps ranks that behave alike once; --global-batch makes fewer "
                 "micro-batches",
                 t->n_classes);
    return NULL;
  }
  g_autoptr (LsMatcher) matcher = matcher_new (t);
  g_autoptr (LsCallLimits) limits = ls_call_limits_new (t->plan, cluster, nccl);
  LsCriticalPath *path = g_new (LsCriticalPath, 1);
  *path = (LsCriticalPath) { t, cluster, g_array_new (FALSE, FALSE, sizeof (LsPathPiece)) };
  Walk w = { .t = t,
             .matcher = matcher,
             .limits = limits,
             .pieces = path->pieces,
             .span = LS_SPAN_NONE,
             .to = t->window_end };
  walk (&w);
  turn_round (path->pieces);
  return path;
}
