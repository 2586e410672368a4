/* List scheduling of F, I and W in the order of time, under a limit of memory.
 *
 * Problem. A string for all ranks at once, such that nobody stalls. The rank that is free
 * first takes, of what is ready, what comes first, by a fixed priority of kinds or by the
 * keys of a periodic template; a W where nothing is ready, or where there is no memory.
 *
 * A V can starve itself: chunk 0 of later micro-batches may take the memory that chunk 1
 * of the first needs. So an F of chunk 0 that overtakes leaves room for one of chunk 1;
 * then chunk 1 waits only for older micro-batches, and the oldest never waits.
 *
 *     p = 2, V, m = 3, F = I = W = 1, memory 2, kinds by priority I1 I0 F1 F0
 *     rank 0   F0.0 F0.1 F0.2 F1.0 I1.0 W F1.1 I1.1 I0.0 ...     chunk.micro-batch
 *     rank 1        F0.0 F1.0 F0.1 F1.1 I1.0 I0.0 W I1.1 ...
 *
 * Deviation: what arrives later than a rank looks is not foreseen, except from actions that
 * run already; schedules/zb_fill.c places the W again with full knowledge.
 *
 * Reference: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024 (greedy
 * order, periodic building blocks). */
#include "schedules/zb.h"

#include <string.h>

/* ---- which rank looks next: a tree of winners over their wake times ---- */

static void
tree_play (LsZbRun *run, uint32_t node)
{
  uint32_t p = run->job->p, *tree = run->heap;
  uint32_t a = 2 * node, b = a + 1;
  a = a < p ? tree[a] : a - p;
  b = b < p ? tree[b] : b - p;
  LsTime at = run->ranks[a].wake, bt = run->ranks[b].wake;
  tree[node] = at < bt || (at == bt && a < b) ? a : b;
}

static void
tree_update (LsZbRun *run, uint32_t rank)
{
  for (uint32_t node = run->job->p > 1 ? (rank + run->job->p) / 2 : 0; node > 0; node /= 2)
    tree_play (run, node);
}

static uint32_t
tree_first (const LsZbRun *run)
{
  return run->job->p > 1 ? run->heap[1] : 0;
}

/* ---- one look ---- */

typedef struct {
  uint32_t kinds[LS_ZB_N_KINDS]; /* that are left, in the order in which they are considered */
  double keys[LS_ZB_N_KINDS];    /* of each */
  uint32_t n;
  double window;
} Queue;

typedef struct {
  int pick;      /* kind, or -1 */
  bool is_short; /* of memory, for one that could run otherwise */
  LsTime next;   /* earliest known arrival */
} Look;

static Queue
queue_of (const LsZbRun *run, const LsZbList *list, uint32_t rank)
{
  const LsZbRank *a = &run->ranks[rank];
  Queue q = { .window = G_MAXDOUBLE };

  for (uint32_t i = 0; i < LS_ZB_N_KINDS; i++) {
    uint32_t kind = list->keys ? i : list->priority[i];
    if ((kind & 1) >= run->job->v || a->n[kind] == run->job->m)
      continue;
    double key = list->keys ? list->keys[rank][kind] + a->n[kind] : 0;
    uint32_t at = q.n++;
    for (; at > 0 && q.keys[at - 1] > key; at--) {
      q.kinds[at] = q.kinds[at - 1];
      q.keys[at] = q.keys[at - 1];
    }
    q.kinds[at] = kind;
    q.keys[at] = key;
  }
  return q;
}

static bool
is_drain (const LsZbRun *run, const LsZbList *list, const LsZbRank *a)
{
  return a->n[0] == run->job->m && (!list->drains_late || a->n[run->job->v - 1] == run->job->m);
}

/* Whether the template has a W before the first key: those that ran early count. */
static bool
has_planned_w (const LsZbRun *run, const LsZbList *list, uint32_t rank, double before)
{
  LsZbRank *a = &run->ranks[rank];
  while (true) {
    double w0 = list->keys[rank][LS_ZB_W] + a->n_planned[0];
    double w1 = list->keys[rank][LS_ZB_W + 1] + a->n_planned[1];
    if (MIN (w0, w1) > before)
      return false;
    bool is_due = a->n_w <= a->n_w_seen && a->n_w < a->n_i;
    a->n_planned[w1 < w0]++;
    a->n_w_seen = MIN (a->n_w_seen + 1, a->n_w + is_due);
    if (is_due)
      return true;
  }
}

static bool
is_capped (const LsZbList *list, const LsZbRank *a, uint32_t rank)
{
  return !list->keys && a->n[LS_ZB_F] - a->n[LS_ZB_I] >= MAX (1, list->cap - rank * list->cap_slope);
}

static Look
look (const LsZbRun *run, const LsZbList *list, uint32_t rank, const Queue *q)
{
  const LsZbJob *job = run->job;
  const LsZbRank *a = &run->ranks[rank];
  Look look = { .pick = -1, .next = INT64_MAX };

  for (uint32_t i = 0; i < q->n && q->keys[i] - q->keys[0] <= q->window; i++) {
    uint32_t kind = q->kinds[i];
    LsTime at = ls_zb_arrival (run, rank, kind);
    if (at < 0 || (kind == LS_ZB_F && is_capped (list, a, rank)))
      continue;
    bool leaves_room = job->v == 2 && kind == LS_ZB_F && (!list->keys || i > 0);
    uint32_t needs = ls_zb_needs (job, ls_zb_stage (job, rank, kind & 1), kind < LS_ZB_I);
    bool may_wait = kind < LS_ZB_I || (needs > 0 && a->n_w < a->n_i); /* for a W */
    if (may_wait && a->mem + (leaves_room ? 2 : 1) * needs > job->limit) {
      look.is_short = look.is_short || at <= a->t || i == 0;
      continue;
    }
    if (at <= a->t) {
      look.pick = (int) kind;
      return look;
    }
    look.next = MIN (look.next, at);
  }
  return look;
}

static bool
wants_w (const LsZbRun *run, const LsZbList *list, uint32_t rank, const Look *look)
{
  const LsZbJob *job = run->job;
  const LsZbRank *a = &run->ranks[rank];

  if (a->n_w == a->n_i)
    return false;
  if (look->is_short || look->next == INT64_MAX)
    return true;
  uint32_t chunk = run->w_chunks[(size_t) rank * job->v * job->m + a->n_w];
  double w = (double) job->w[ls_zb_stage (job, rank, chunk)];
  return (double) (look->next - a->t) * 16 >= (double) list->sixteenths * w;
}

static void
append (LsZbRun *run, uint32_t rank, uint32_t symbol, uint8_t *string)
{
  string[rank * ls_zb_length (run->job) + run->ranks[rank].n_out++] = (uint8_t) symbol;
}

/* The rank does one thing, or sleeps until the next that it knows of; true if it did an F
 * or I. */
static bool
step (LsZbRun *run, const LsZbList *list, uint32_t rank, uint8_t *string)
{
  LsZbRank *a = &run->ranks[rank];
  Queue q = queue_of (run, list, rank);
  bool is_draining = is_drain (run, list, a);
  Look seen = { .pick = -1, .is_short = true };

  a->t = MAX (a->t, a->wake);
  if (list->keys)
    q.window = a->n_i == 0 ? list->warm_window : is_draining ? list->drain_window : 0;
  if (!list->keys || is_draining || q.n == 0 || !has_planned_w (run, list, rank, q.keys[0]))
    seen = look (run, list, rank, &q);
  if (seen.pick < 0) {
    if (wants_w (run, list, rank, &seen)) {
      append (run, rank, LS_ZB_W, string);
      ls_zb_do_w (run, rank);
      a->wake = a->t;
    } else {
      a->wake = seen.next;
    }
    return false;
  }

  append (run, rank, (uint32_t) seen.pick, string);
  uint32_t fed = ls_zb_do (run, rank, (uint32_t) seen.pick, a->t);
  a->wake = a->t;
  if (fed < run->job->p && fed != rank) {
    LsZbRank *b = &run->ranks[fed];
    b->wake = MIN (b->wake, MAX (b->t, a->t + run->job->comm));
    tree_update (run, fed);
  }
  return true;
}

bool
ls_zb_list (LsZbRun *run, const LsZbList *list, uint8_t *string)
{
  const LsZbJob *job = run->job;
  size_t n = ls_zb_length (job), n_left = (size_t) job->p * 2 * job->v * job->m;

  run->budget -= 3 * (int64_t) (job->p * n); /* about what it takes more than a fill */
  ls_zb_run_reset (run);
  for (uint32_t node = job->p; --node > 0;)
    tree_play (run, node);
  while (n_left > 0) {
    uint32_t r = tree_first (run);
    if (run->ranks[r].wake == INT64_MAX)
      return false;
    n_left -= step (run, list, r, string);
    tree_update (run, r);
  }
  for (uint32_t r = 0; r < job->p; r++)
    memset (string + r * n + run->ranks[r].n_out, LS_ZB_W, n - run->ranks[r].n_out);
  return true;
}
