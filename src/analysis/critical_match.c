#include "analysis/critical_match.h"

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

LsMatcher *
ls_matcher_new (const LsTimeline *t)
{
  LsMatcher *m = g_new0 (LsMatcher, 1);
  m->t = t;
  m->ranks = g_new0 (RankEnds, t->n_ranks);
  return m;
}

void
ls_matcher_free (LsMatcher *m)
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

bool
ls_matcher_is_reported (const LsTimeline *t, const LsSpan *span)
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
  const LsRankSpans *r = &m->t->ranks[rank];
  e->calls = g_array_new (FALSE, FALSE, sizeof (MatchedCall));
  for (int i = 0; i < 4; i++)
    e->posts[i / 2][i % 2] = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (uint32_t i = 0; i < r->n; i++) {
    if (!ls_matcher_is_reported (m->t, &r->spans[i]))
      continue;
    const LsOp *op = ls_span_op (m->t, rank, &r->spans[i]);
    MatchedCall call = { r->spans[i].matched, i };
    if (op->kind == LS_OP_COLLECTIVE)
      g_array_append_val (e->calls, call);
    for (uint16_t k = 0; op->kind == LS_OP_P2P && k < op->n_transfers; k++)
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

uint32_t
ls_match_call (LsMatcher *m, uint32_t rank, uint32_t comm, const LsSpan *x)
{
  const GArray *calls = ends_of (m, rank)->calls;
  const LsRankSpans *r = &m->t->ranks[ls_timeline_representative (m->t, rank)];
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

uint32_t
ls_match_transfer (LsMatcher *m, uint32_t rank, uint32_t x, uint32_t i, uint32_t *ret_rank)
{
  const LsRankSpans *r = &m->t->ranks[ls_timeline_representative (m->t, rank)];
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
