#include "analysis/critical_path.h"

#include <lockstep/error.h>
#include <math.h>

#include "analysis/idle.h"
#include "base/list.h"
#include "base/order.h"
#include "cluster/route.h"
#include "core/maxmin.h"
#include "exec/replay/calls.h"
#include "exec/replay/timeline.h"

/* --- a critical path added up: by kind, op, link and rank ---------------------------------------- */

void
ls_path_summary_free (LsPathSummary *s)
{
  if (!s)
    return;
  g_array_unref (s->ops);
  g_array_unref (s->links);
  g_array_unref (s->ranks);
  g_array_unref (s->hops);
  g_free (s);
}

/* The place in an array of what has this key; a new one at its end for a new key. Takes key. */
static guint
place_of (GHashTable *places, char *key, GArray *rows)
{
  gpointer place;
  if (g_hash_table_lookup_extended (places, key, NULL, &place)) {
    g_free (key);
    return GPOINTER_TO_UINT (place);
  }
  g_hash_table_insert (places, key, GUINT_TO_POINTER (rows->len));
  g_array_set_size (rows, rows->len + 1); /* zeros */
  return rows->len - 1;
}

static void
add_op (LsPathSummary *s, GHashTable *places, const LsCriticalPath *path, const LsPathPiece *piece)
{
  const char *name = ls_path_name (path, piece);
  guint at = place_of (places, g_strdup_printf ("op %d %s", (int) piece->kind, name), s->ops);
  LsPathOp *op = &g_array_index (s->ops, LsPathOp, at);
  op->name = name;
  op->kind = piece->kind;
  op->time += piece->to - piece->from;
  op->n++;
}

static void
add_link (LsPathSummary *s, GHashTable *places, const LsCriticalPath *path, const LsPathPiece *piece)
{
  if (piece->link == LS_PATH_NO_LINK)
    return;
  guint at = place_of (places, g_strdup_printf ("link %u", piece->link), s->links);
  LsPathLink *link = &g_array_index (s->links, LsPathLink, at);
  if (!link->name)
    link->name = ls_cluster_resource_name (path->cluster, piece->link);
  link->n_alike = MAX (link->n_alike, piece->n_links);
  link->time += piece->to - piece->from;
  link->busy_s += piece->busy_s;
  link->n++;
}

static void
add_rank (LsPathSummary *s, GHashTable *places, const LsCriticalPath *path, const LsPathPiece *piece)
{
  const LsTimeline *t = path->timeline;
  guint at = place_of (places, g_strdup_printf ("rank %u", piece->rank), s->ranks);
  LsPathRank *rank = &g_array_index (s->ranks, LsPathRank, at);
  rank->rank = piece->rank;
  rank->stage = t->plan->programs[ls_plan_role (t->plan, piece->rank)].stage;
  rank->class = ls_timeline_representative (t, piece->rank);
  rank->n_class = ls_timeline_multiplicity (t, rank->class);
  rank->time += piece->to - piece->from;
}

static const LsSortKey by_op[] = {
  { LS_FALLING (LsPathOp, time) }, { LS_RISING (LsPathOp, name) }, { LS_RISING (LsPathOp, kind) }, { 0 }
};

static const LsSortKey by_link[]
    = { { LS_FALLING (LsPathLink, time) }, { LS_RISING (LsPathLink, name) }, { 0 } };

static const LsSortKey by_rank[]
    = { { LS_FALLING (LsPathRank, time) }, { LS_RISING (LsPathRank, rank) }, { 0 } };

LsPathSummary *
ls_path_summary_new (const LsCriticalPath *path)
{
  g_autoptr (GHashTable) places = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  LsPathSummary *s = g_new0 (LsPathSummary, 1);
  s->ops = g_array_new (FALSE, TRUE, sizeof (LsPathOp));
  s->links = ls_list_new (sizeof (LsPathLink), ls_clear_text);
  s->ranks = g_array_new (FALSE, TRUE, sizeof (LsPathRank));
  s->hops = g_array_new (FALSE, TRUE, sizeof (LsPathHop));
  const LsPathPiece *pieces = (const LsPathPiece *) (gpointer) path->pieces->data;
  for (guint i = 0; i < path->pieces->len; i++) {
    s->step += pieces[i].to - pieces[i].from;
    s->by_kind[pieces[i].kind] += pieces[i].to - pieces[i].from;
    add_op (s, places, path, &pieces[i]);
    add_link (s, places, path, &pieces[i]);
    add_rank (s, places, path, &pieces[i]);
    const LsPathHop hop = { i > 0 ? pieces[i - 1].rank : 0, pieces[i].rank,
                            pieces[i].from - path->timeline->window_start, ls_path_name (path, &pieces[i]) };
    if (i > 0 && hop.from != hop.to)
      g_array_append_val (s->hops, hop);
  }
  g_assert_cmpint (s->step, ==, path->timeline->window_end - path->timeline->window_start);
  ls_sort_by (s->ops, by_op);
  ls_sort_by (s->links, by_link);
  ls_sort_by (s->ranks, by_rank);
  return s;
}

/* --- which link limits a call, and how it is run ------------------------------------------------- */

#define NO_LINK UINT32_MAX
#define ALIKE   1e-9 /* relative: sums of the same terms in another order */

struct LsCallLimits {
  const LsPlan *plan;
  const LsCluster *cluster;
  const LsNccl *nccl;
  GHashTable *known; /* char * to LsCallLimit * */
};

LsCallLimits *
ls_call_limits_new (const LsPlan *plan, const LsCluster *cluster, const LsNccl *nccl)
{
  LsCallLimits *l = g_new (LsCallLimits, 1);
  *l = (LsCallLimits) { plan, cluster, nccl,
                        g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free) };
  return l;
}

void
ls_call_limits_free (LsCallLimits *l)
{
  if (!l)
    return;
  g_hash_table_unref (l->known);
  g_free (l);
}

/* The lowest of the links that need longest. */
static LsCallLimit
limit_of_plan (const LsCluster *c, const LsCollPlan *plan)
{
  LsCallLimit limit = { .link = NO_LINK };
  g_autofree double *busy_s = g_new0 (double, ls_cluster_n_resources (c));
  g_autoptr (GArray) resources = g_array_new (FALSE, FALSE, sizeof (uint32_t)); /* each once */
  for (uint32_t p = 0; p < plan->n_phases; p++) {
    const LsPhase *phase = &plan->phases[p];
    limit.latency += phase->latency;
    for (uint32_t i = 0; phase->demand_bytes > 0 && i < phase->n_loads; i++) {
      uint32_t resource = phase->loads[i].resource;
      double flows = (double) phase->loads[i].coef / (double) LS_COEF_ONE;
      double capacity = ls_cluster_resource_capacity (c, resource);
      if (flows <= 0 || capacity <= 0)
        continue;
      if (busy_s[resource] == 0)
        g_array_append_val (resources, resource);
      busy_s[resource] += phase->demand_bytes * flows / capacity;
      limit.busy_s = fmax (limit.busy_s, busy_s[resource]);
    }
  }
  for (guint i = 0; i < resources->len; i++) {
    uint32_t resource = g_array_index (resources, uint32_t, i);
    if (busy_s[resource] < limit.busy_s * (1 - ALIKE))
      continue;
    limit.link = MIN (limit.link, resource);
    limit.n_links++;
  }
  return limit;
}

/* name: of the call among all; taken. */
static LsCallLimit
limit_of_ranks (LsCallLimits *l, char *name, CallKey key, const uint32_t *ranks, uint32_t n)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollRequest request = call_request (l->plan, key, ranks, n, NULL, arena);
  const LsCollPlan *plan = ls_coll_plan (l->cluster, l->nccl, &request, LS_NETWORK_FLOW, arena);
  LsCallLimit limit = limit_of_plan (l->cluster, plan);
  limit.algorithm = plan->algorithm;
  limit.protocol = plan->protocol;
  g_hash_table_insert (l->known, name, g_memdup2 (&limit, sizeof limit));
  return limit;
}

LsCallLimit
ls_limit_of_call (LsCallLimits *l, uint32_t rank, const LsOp *op)
{
  if (!l->cluster || !l->nccl)
    return (LsCallLimit) { .link = NO_LINK };
  uint32_t id = ls_plan_comm_of (l->plan, rank, op->slot);
  const LsCommunicator comm = ls_plan_communicator (l->plan, id);
  g_autofree char *key
      = g_strdup_printf ("%u %u %u %u %" G_GUINT64_FORMAT " %u %u %u %u", id, op->coll, op->root, op->parts,
                         op->bytes, op->algorithm, op->max_ctas, op->is_light, op->carries_scores);
  const LsCallLimit *known = g_hash_table_lookup (l->known, key);
  if (known)
    return *known;
  g_autofree uint32_t *ranks = ls_comm_ranks (&comm);
  return limit_of_ranks (l, g_steal_pointer (&key), collective_key (op), ranks, comm.n_ranks);
}

LsCallLimit
ls_limit_of_transfer (LsCallLimits *l, uint32_t from, uint32_t to, const LsTransfer *t)
{
  if (!l->cluster || !l->nccl)
    return (LsCallLimit) { .link = NO_LINK };
  g_autofree char *key = g_strdup_printf ("%u>%u %" G_GUINT64_FORMAT " %u", from, to, t->bytes, t->max_ctas);
  const LsCallLimit *known = g_hash_table_lookup (l->known, key);
  if (known)
    return *known;
  const uint32_t ranks[] = { from, to };
  return limit_of_ranks (l, g_steal_pointer (&key), transfer_key (t->bytes, t->max_ctas), ranks, 2);
}

static LsCallLimit
limit_of_copy (LsCallLimits *l, uint32_t rank, const LsOp *op)
{
  LsCallLimit limit = { .link = NO_LINK };
  if (!l->cluster || op->recorded != LS_TIME_NEVER)
    return limit;
  LsRoute route = { 0 };
  uint32_t gpu = ls_plan_gpu (l->plan, rank);
  ls_copy_route (l->cluster, gpu, (LsCopyDirection) op->direction, &route);
  limit.latency = route.latency;
  for (uint32_t i = 0; i < route.n_hops; i++) {
    double capacity = ls_cluster_resource_capacity (l->cluster, route.hop[i].trunk);
    double busy_s = (double) op->bytes * route.hop[i].share / LS_HOP_WHOLE / capacity;
    limit.n_links += busy_s == limit.busy_s;
    if (busy_s <= limit.busy_s)
      continue;
    limit.busy_s = busy_s;
    limit.link = route.hop[i].trunk;
    limit.n_links = 1;
  }
  return limit;
}

/* --- the other ends of communication ------------------------------------------------------------- */

/* All members of a collective match and end at the same instants, and calls of a communicator
 * follow each other: communicator, match and end tell a call. The k-th send to a neighbour meets
 * the k-th receive there, per direction and step, in the order in which they were launched,
 * which is that of the spans (exec/replay/motion.c). Only spans of the reported step are looked at:
 * what they wait for is of that step. */

typedef struct {
  LsTime matched;
  uint32_t span;
} MatchedCall;

/* Of one rank that stands for its class: what it met others in. */
typedef struct {
  GArray *calls;       /* MatchedCall, by time of match; NULL: not looked at yet      */
  GArray *posts[2][2]; /* uint32_t: span of each transfer; [to next][is send]         */
} RankEnds;

/* Where it is: the op `span` of `rank`; [to, end of the window) is explained. */
typedef struct {
  const LsTimeline *t;
  RankEnds *ends; /* [n_ranks] */
  LsCallLimits *limits;
  GArray *pieces; /* backwards */
  uint32_t rank, span;
  LsTime to;
} Walk;

static void
walk_clear (Walk *w)
{
  for (uint32_t rank = 0; rank < w->t->n_ranks; rank++) {
    g_clear_pointer (&w->ends[rank].calls, g_array_unref);
    for (int i = 0; i < 4; i++)
      g_clear_pointer (&w->ends[rank].posts[i / 2][i % 2], g_array_unref);
  }
  g_free (w->ends);
}

/* Whether a span is of the step that the window reports. */
static bool
is_reported (const LsTimeline *t, const LsSpan *span)
{
  return span->step == (uint8_t) (t->n_steps - 1);
}

static int
by_match (const void *a, const void *b)
{
  const MatchedCall *x = a, *y = b;
  LS_SMALLER_FIRST (x->matched, y->matched);
  return x->span < y->span ? -1 : x->span > y->span;
}

static void
look_at (const Walk *w, uint32_t rank, RankEnds *e)
{
  const LsRankSpans *r = ls_timeline_spans (w->t, rank);
  e->calls = g_array_new (FALSE, FALSE, sizeof (MatchedCall));
  for (int i = 0; i < 4; i++)
    e->posts[i / 2][i % 2] = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (uint32_t i = 0; i < r->n; i++) {
    if (!is_reported (w->t, &r->spans[i]))
      continue;
    const LsOp *op = ls_span_op (w->t, rank, &r->spans[i]);
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
ends_of (Walk *w, uint32_t rank)
{
  uint32_t own = ls_timeline_representative (w->t, rank);
  if (!w->ends[own].calls)
    look_at (w, own, &w->ends[own]);
  return &w->ends[own];
}

/* The span of a rank's call on this communicator that matched and ended as x did;
 * LS_SPAN_NONE: none. */
static uint32_t
match_call (Walk *w, uint32_t rank, uint32_t comm, const LsSpan *x)
{
  const GArray *calls = ends_of (w, rank)->calls;
  const LsRankSpans *r = ls_timeline_spans (w->t, ls_timeline_representative (w->t, rank));
  const MatchedCall first = { x->matched, 0 };
  for (guint i = ls_list_first_from (calls, by_match, &first); i < calls->len; i++) {
    const MatchedCall *call = &g_array_index (calls, MatchedCall, i);
    if (call->matched != x->matched)
      break;
    const LsSpan *y = &r->spans[call->span];
    if (y->end == x->end && ls_plan_comm_of (w->t->plan, rank, ls_span_op (w->t, rank, y)->slot) == comm)
      return call->span;
  }
  return LS_SPAN_NONE;
}

/* The span that met transfer i of the group x (index of a span of who represents the rank),
 * and the rank that it is of; LS_SPAN_NONE: none. */
static uint32_t
match_transfer (Walk *w, uint32_t rank, uint32_t x, uint32_t i, uint32_t *ret_rank)
{
  const LsRankSpans *r = ls_timeline_spans (w->t, ls_timeline_representative (w->t, rank));
  const LsOp *op = ls_span_op (w->t, rank, &r->spans[x]);
  const LsTransfer *transfer = &op->transfers[i];
  bool is_to_next = transfer->slot == LS_SLOT_NEXT;
  *ret_rank = ls_plan_peer (w->t->plan, rank, is_to_next);
  if (*ret_rank >= w->t->n_ranks)
    return LS_SPAN_NONE;

  guint k = ls_list_first_from (ends_of (w, rank)->posts[is_to_next][transfer->is_send], ls_compare_uint32,
                                &x); /* in the order of spans */
  for (uint32_t before = 0; before < i; before++)
    k += op->transfers[before].slot == transfer->slot && op->transfers[before].is_send == transfer->is_send;
  const GArray *theirs = ends_of (w, *ret_rank)->posts[!is_to_next][!transfer->is_send];
  return k < theirs->len ? g_array_index (theirs, uint32_t, k) : LS_SPAN_NONE;
}

/* --- which ops, links and ranks a step's time went through --------------------------------------- */

const char *const ls_path_kind_names[LS_N_PATH_KINDS] = {
  [LS_PATH_KERNEL] = "kernel", [LS_PATH_SLOWDOWN] = "slowdown", [LS_PATH_LATENCY] = "latency",
  [LS_PATH_MOVING] = "moving", [LS_PATH_HOST] = "host",         [LS_PATH_QUEUE] = "queue",
  [LS_PATH_OTHER] = "other",
};

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
    uint32_t span = match_call (w, ls_comm_rank (&comm, i), id, x);
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
  uint32_t peer, span = match_transfer (w, w->rank, w->span, i, &peer);
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
    take_moving (w, x->start, limit_of_copy (w->limits, w->rank, op));
    break;
  case LS_TAKES_HOST:
    take (w, x->start, LS_PATH_HOST);
    break;
  case LS_TAKES_NOTHING:
    take (w, x->start, LS_PATH_OTHER);
  }
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
    const LsSpan *spans = span_of (w, w->rank, 0); /* a GPU runs one kernel at a time: the one before this */
    uint32_t before = w->span;
    while (before > 0 && !ls_span_is_compute (w->t, w->rank, &spans[before - 1]))
      before--;
    if (before > 0 && spans[before - 1].end == x->start) {
      w->span = before - 1;
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
      if (!is_reported (w->t, x) || x->end > w->t->window_end || x->end <= last)
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

LsCriticalPath *
ls_critical_path_new (const LsTimeline *t, const LsCluster *cluster, const LsNccl *nccl, GError **error)
{
  if (t->is_sampled)
    return ls_fail_null (
        error, LS_ERROR_LIMIT,
        "--critical-path needs what every rank did; this step has too many ops on %u classes of "
        "ranks to keep them all\n"
        "note: --fold auto keeps ranks that behave alike once; --global-batch makes fewer "
        "micro-batches",
        t->n_classes);
  g_autoptr (LsCallLimits) limits = ls_call_limits_new (t->plan, cluster, nccl);
  LsCriticalPath *path = g_new (LsCriticalPath, 1);
  *path = (LsCriticalPath) { t, cluster, g_array_new (FALSE, FALSE, sizeof (LsPathPiece)) };
  Walk w = { .t = t,
             .ends = g_new0 (RankEnds, t->n_ranks),
             .limits = limits,
             .pieces = path->pieces,
             .span = LS_SPAN_NONE,
             .to = t->window_end };
  walk (&w);
  walk_clear (&w);
  LsPathPiece *pieces = (LsPathPiece *) (gpointer) path->pieces->data;
  for (guint i = 0, k = path->pieces->len; i + 1 < k; i++) {
    LsPathPiece first = pieces[i];
    pieces[i] = pieces[--k];
    pieces[k] = first;
  }
  return path;
}
