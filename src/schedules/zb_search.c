/* The best order so far of an automatic schedule, and small moves that better it.
 *
 * Problem. The rules by which strings are made are global; what is left is local: one
 * symbol too early on one rank. Moves: a symbol goes up to three places later or earlier
 * in its rank's string; a rank takes another rule for its W. A move stays if the largest
 * span falls, or the sum of the spans at the same largest. The moves go on until none
 * helps, the goal is reached or the budget of timed actions is used up: a count, not a
 * clock, so that the result is the same everywhere.
 *
 *     rank 1   F0 F1 I0 ...   ->   F0 I0 F1 ...   if rank 0 waits for I0
 *
 * Deviation: a local optimum; no bound tells how far from the best order. Reference: the
 * neighbourhoods of job-shop scheduling (Nowicki, Smutnicki 1996), here with swaps on
 * all ranks, not only on the critical path. */
#include "schedules/zb.h"

#include <string.h>

#define LS_ZB_MAX_MOVE 3

const LsZbRule ls_zb_rules[] = {
  { LS_ZB_OBEY, 16 },
  { LS_ZB_OBEY_UNTIL_DRAIN, 16 },
  { LS_ZB_OBEY_UNTIL_DRAIN, 8 },
  { LS_ZB_OBEY_UNTIL_DRAIN, 12 },
  { LS_ZB_OBEY_UNTIL_DRAIN, 4 },
  { LS_ZB_OBEY, 12 },
  { LS_ZB_OBEY, 8 },
  { LS_ZB_OBEY, 4 },
  { LS_ZB_IGNORE, 16 },
  { LS_ZB_IGNORE, 12 },
  { LS_ZB_IGNORE, 8 },
  { LS_ZB_IGNORE, 4 },
  { LS_ZB_IGNORE, 1 },
};

guint
ls_zb_n_rules (LsZbRules which, guint *ret_first)
{
  *ret_first = which == LS_ZB_RULES_IGNORE ? 8 : 0;
  return which == LS_ZB_RULES_FEW ? 3 : G_N_ELEMENTS (ls_zb_rules) - *ret_first;
}

void
ls_zb_search_init (LsZbSearch *search, const LsZbJob *job, int64_t budget, LsArena *arena)
{
  size_t n = job->p * ls_zb_length (job);
  *search = (LsZbSearch) {
    .best = LS_ZB_NEVER,
    .best_string = ls_arena_new_array (arena, uint8_t, n),
    .string = ls_arena_new_array (arena, uint8_t, n),
    .best_rules = ls_arena_new_array (arena, LsZbRule, job->p),
    .rules = ls_arena_new_array (arena, LsZbRule, job->p),
  };
  ls_zb_run_init (&search->run, job, budget, arena);
  for (uint32_t r = 0; r < job->p; r++)
    search->goal = MAX (search->goal, search->run.work[r]);
}

bool
ls_zb_search_is_over (const LsZbSearch *search)
{
  return search->best.span <= search->goal || search->run.budget <= 0;
}

LsZbScore
ls_zb_try (LsZbSearch *search)
{
  const LsZbJob *job = search->run.job;
  LsZbScore score = ls_zb_fill (&search->run, search->string, search->rules, NULL);

  if (ls_zb_is_better (score, search->best)) {
    search->best = score;
    memcpy (search->best_string, search->string, job->p * ls_zb_length (job));
    memcpy (search->best_rules, search->rules, job->p * sizeof *search->rules);
  }
  return score;
}

LsZbScore
ls_zb_try_rules (LsZbSearch *search, LsZbRules which)
{
  LsZbScore best = LS_ZB_NEVER;
  guint first, n = ls_zb_n_rules (which, &first), chosen = first;

  for (guint i = first; i < first + n; i++) {
    for (uint32_t r = 0; r < search->run.job->p; r++)
      search->rules[r] = ls_zb_rules[i];
    LsZbScore score = ls_zb_try (search);
    if (ls_zb_is_better (score, best)) {
      best = score;
      chosen = i;
    }
  }
  for (uint32_t r = 0; r < search->run.job->p; r++)
    search->rules[r] = ls_zb_rules[chosen];
  return best;
}

/* ---- moves ---- */

static bool
is_uniform (const uint8_t *at, uint32_t n)
{
  for (uint32_t k = 1; k < n; k++)
    if (at[k] != at[0])
      return false;
  return true;
}

static void
move_first_to_last (uint8_t *at, uint32_t n)
{
  uint8_t first = at[0];
  memmove (at, at + 1, n - 1);
  at[n - 1] = first;
}

static void
move_last_to_first (uint8_t *at, uint32_t n)
{
  uint8_t last = at[n - 1];
  memmove (at + 1, at, n - 1);
  at[0] = last;
}

static bool
keeps (LsZbSearch *search, LsZbScore *current)
{
  search->run.cutoff = current->span;
  LsZbScore score = ls_zb_try (search);
  search->run.cutoff = INT64_MAX;
  if (!ls_zb_is_better (score, *current))
    return false;
  *current = score;
  return true;
}

/* Both moves over n places; whether one helped. */
static bool
try_moves (LsZbSearch *search, LsZbScore *current, uint8_t *at, uint32_t n)
{
  if (is_uniform (at, n))
    return false;
  move_first_to_last (at, n);
  if (keeps (search, current))
    return true;
  move_last_to_first (at, n);
  if (n == 2)
    return false;
  move_last_to_first (at, n);
  if (keeps (search, current))
    return true;
  move_first_to_last (at, n);
  return false;
}

static bool
polish_strings (LsZbSearch *search, LsZbScore *current)
{
  const LsZbJob *job = search->run.job;
  size_t length = ls_zb_length (job);
  bool helped = false;

  for (uint32_t n = 2; n <= LS_ZB_MAX_MOVE + 1; n++)
    for (uint32_t r = 0; r < job->p; r++)
      for (size_t k = 0; k + n <= length && !ls_zb_search_is_over (search); k++)
        helped |= try_moves (search, current, search->string + r * length + k, n);
  return helped;
}

static bool
polish_rules (LsZbSearch *search, LsZbScore *current)
{
  bool helped = false;
  guint first, n = ls_zb_n_rules (LS_ZB_RULES_ALL, &first);

  for (uint32_t r = 0; r < search->run.job->p; r++)
    for (guint i = first; i < first + n && !ls_zb_search_is_over (search); i++) {
      LsZbRule before = search->rules[r];
      search->rules[r] = ls_zb_rules[i];
      if (keeps (search, current))
        helped = true;
      else
        search->rules[r] = before;
    }
  return helped;
}

void
ls_zb_polish (LsZbSearch *search)
{
  LsZbScore current = ls_zb_try (search);
  bool helped = current.span < INT64_MAX;

  while (helped && !ls_zb_search_is_over (search)) {
    helped = polish_rules (search, &current);
    helped |= polish_strings (search, &current);
  }
}

void
ls_zb_polish_best (LsZbSearch *search)
{
  const LsZbJob *job = search->run.job;
  memcpy (search->string, search->best_string, job->p * ls_zb_length (job));
  memcpy (search->rules, search->best_rules, job->p * sizeof *search->rules);
  ls_zb_polish (search);
}

/* Runs a string of symbols and lets the weight gradients fill the waits.
 *
 * Problem. Where the F and I of each rank are ordered, the W are free: whatever a W delays
 * must be weighed against the wait that it fills. Rule: before a symbol whose input arrives
 * after the rank is free, W that are due run while they fit (or nearly: LsZbRule); before
 * an F for which there is no memory, or an I that keeps more than it frees, they run until there is; the
 * rest runs at the end. A
 * W that the string itself asks for runs there, unless one ran early in its place.
 *
 * All inputs are known when a symbol is placed, as ranks are advanced as far as they go and
 * woken by whoever feeds them: O(1) an action, and the order does not matter.
 *
 *     F = I = 2, W = 1, string F F I I, inputs of the I at 4 and 9:
 *     F 0-2, F 2-4, I 4-6, W 6-7, idle, I 9-11, W 11-12
 *
 * Deviations: as in schedules/sched_eval.h. Reference: Qi et al., Zero Bubble Pipeline
 * Parallelism, ICLR 2024 (W fills the bubbles). */

void
ls_zb_run_init (LsZbRun *run, const LsZbJob *job, int64_t budget, LsArena *arena)
{
  size_t n = (size_t) job->p * job->v * job->m;
  *run = (LsZbRun) {
    .job = job,
    .ranks = ls_arena_new_array (arena, LsZbRank, job->p),
    .end = { ls_arena_new_array (arena, LsTime, n), ls_arena_new_array (arena, LsTime, n) },
    .w_chunks = ls_arena_new_array (arena, uint8_t, n),
    .heap = ls_arena_new_array (arena, uint32_t, 2 * (size_t) job->p),
    .work = ls_arena_new_array (arena, LsTime, job->p),
    .cutoff = INT64_MAX,
    .budget = budget,
  };
  for (uint32_t s = 0; s < job->p * job->v; s++)
    run->work[ls_zb_rank (job, s)] += job->m * (job->f[s] + job->i[s] + job->w[s]);
}

static void
run_reset (LsZbRun *run)
{
  const LsZbJob *job = run->job;
  size_t n = (size_t) job->p * job->v * job->m;

  for (size_t k = 0; k < n; k++)
    run->end[0][k] = run->end[1][k] = -1;
  for (uint32_t r = 0; r < job->p; r++)
    run->ranks[r] = (LsZbRank) { .first = -1 };
}

/* When the inputs of the next symbol of that kind have arrived; -1: not known yet. */
static LsTime
arrival (const LsZbRun *run, uint32_t rank, uint32_t kind)
{
  const LsZbJob *job = run->job;
  const LsTime *end_f = run->end[0], *end_i = run->end[1];
  uint32_t n_stages = job->p * job->v;
  uint32_t s = ls_zb_stage (job, rank, kind & 1), k = run->ranks[rank].n[kind];
  bool is_f = kind < LS_ZB_I;

  if (is_f && s == 0)
    return 0;
  if (!is_f && end_f[(size_t) s * job->m + k] < 0)
    return -1;
  if (!is_f && s == n_stages - 1)
    return end_f[(size_t) s * job->m + k];

  uint32_t from = is_f ? s - 1 : s + 1;
  LsTime at = (is_f ? end_f : end_i)[(size_t) from * job->m + k];
  return at < 0 || ls_zb_rank (job, from) == rank ? at : at + job->comm;
}

/* Runs it from at, and says whose next symbol may now be known (p: nobody's). */
static uint32_t
do_symbol (LsZbRun *run, uint32_t rank, uint32_t kind, LsTime at)
{
  const LsZbJob *job = run->job;
  LsZbRank *a = &run->ranks[rank];
  uint32_t chunk = kind & 1, s = ls_zb_stage (job, rank, chunk);
  bool is_f = kind < LS_ZB_I;

  if (a->first < 0)
    a->first = at;
  a->t = at + (is_f ? job->f : job->i)[s];
  run->end[!is_f][(size_t) s * job->m + a->n[kind]++] = a->t;
  if (is_f) {
    a->mem += ls_zb_takes (job);
    return s + 1 < job->p * job->v ? ls_zb_rank (job, s + 1) : job->p;
  }
  a->mem = a->mem + ls_zb_kept (job, s) - ls_zb_takes (job);
  run->w_chunks[(size_t) rank * job->v * job->m + a->n_i++] = (uint8_t) chunk;
  return s > 0 ? ls_zb_rank (job, s - 1) : job->p;
}

static uint32_t
next_w_chunk (const LsZbRun *run, uint32_t rank)
{
  return run->w_chunks[(size_t) rank * run->job->v * run->job->m + run->ranks[rank].n_w];
}

/* Runs the rank's oldest W at its t. */
static void
do_w (LsZbRun *run, uint32_t rank)
{
  LsZbRank *a = &run->ranks[rank];
  uint32_t s = ls_zb_stage (run->job, rank, next_w_chunk (run, rank));
  a->t += run->job->w[s];
  a->n_w++;
  a->mem -= ls_zb_kept (run->job, s);
}

static void
emit (LsZbRun *run, uint32_t rank, uint32_t symbol, uint8_t *out)
{
  if (out)
    out[rank * ls_zb_length (run->job) + run->ranks[rank].n_out++] = (uint8_t) symbol;
}

static void
run_w (LsZbRun *run, uint32_t rank, uint8_t *out)
{
  emit (run, rank, LS_ZB_W + next_w_chunk (run, rank), out);
  do_w (run, rank);
}

/* A W of the string. */
static void
meet_w (LsZbRun *run, uint32_t rank, LsZbRule rule, uint8_t *out)
{
  LsZbRank *a = &run->ranks[rank];
  bool is_drain = a->n[run->job->v - 1] == run->job->m;

  if (rule.obey == LS_ZB_IGNORE || (rule.obey == LS_ZB_OBEY_UNTIL_DRAIN && is_drain))
    return;
  if (a->n_w > a->n_w_seen) {
    a->n_w_seen++;
  } else if (a->n_w < a->n_i) {
    run_w (run, rank, out);
    a->n_w_seen++;
  }
}

/* W before a symbol that takes so much memory, whose input arrives at `at`. */
static void
fill_wait (LsZbRun *run, uint32_t rank, uint32_t needs, LsTime at, uint8_t sixteenths, uint8_t *out)
{
  const LsZbJob *job = run->job;
  LsZbRank *a = &run->ranks[rank];

  while (a->n_w < a->n_i) {
    if (needs == 0 || a->mem + needs <= job->limit) {
      LsTime w = job->w[ls_zb_stage (job, rank, next_w_chunk (run, rank))];
      if (at <= a->t || (double) (at - a->t) * 16 < (double) sixteenths * (double) w)
        return;
    }
    run_w (run, rank, out);
  }
}

static void
push (LsZbRun *run, uint32_t rank, uint32_t *n_stack)
{
  if (!run->ranks[rank].is_queued) {
    run->ranks[rank].is_queued = true;
    run->heap[(*n_stack)++] = rank;
  }
}

/* Advances a rank until an input is not known or its string ends; false if it cannot. */
static bool
advance (LsZbRun *run, uint32_t rank, const uint8_t *string, LsZbRule rule, uint8_t *out, uint32_t *n_stack)
{
  LsZbRank *a = &run->ranks[rank];
  size_t n = ls_zb_length (run->job);

  for (; a->pos < n; a->pos++) {
    uint32_t kind = string[rank * n + a->pos];
    if (kind >= LS_ZB_W) {
      meet_w (run, rank, rule, out);
      continue;
    }
    bool is_f = kind < LS_ZB_I;
    LsTime at = arrival (run, rank, kind);
    if (at < 0)
      return is_f || a->n[kind] < a->n[kind - LS_ZB_I];
    uint32_t needs = ls_zb_needs (run->job, ls_zb_stage (run->job, rank, kind & 1), is_f);
    fill_wait (run, rank, needs, at, rule.sixteenths, out);
    if (is_f && a->mem + needs > run->job->limit)
      return false;
    if (at > a->t && a->first >= 0)
      a->idle += at - a->t;
    if (a->idle > run->cutoff - run->work[rank])
      return false;
    emit (run, rank, kind, out);
    uint32_t next = do_symbol (run, rank, kind, MAX (at, a->t));
    if (next < run->job->p && next != rank)
      push (run, next, n_stack);
  }
  return true;
}

LsZbScore
ls_zb_fill (LsZbRun *run, const uint8_t *string, const LsZbRule *rules, uint8_t *out)
{
  const LsZbJob *job = run->job;
  uint32_t n_stack = 0;
  LsZbScore score = { 0, 0 };

  run_reset (run);
  for (uint32_t r = job->p; r-- > 0;)
    push (run, r, &n_stack);
  while (n_stack > 0) {
    uint32_t r = run->heap[--n_stack];
    run->ranks[r].is_queued = false;
    size_t before = run->ranks[r].pos;
    bool is_ok = advance (run, r, string, rules[r], out, &n_stack);
    run->budget -= (int64_t) (run->ranks[r].pos - before);
    if (!is_ok)
      return LS_ZB_NEVER;
  }
  for (uint32_t r = 0; r < job->p; r++) {
    LsZbRank *a = &run->ranks[r];
    if (a->pos < ls_zb_length (job))
      return LS_ZB_NEVER;
    while (a->n_w < a->n_i)
      run_w (run, r, out);
    score.span = MAX (score.span, a->t - a->first);
    score.sum += a->t - a->first;
  }
  return score;
}

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
 * run already; ls_zb_fill() places the W again with full knowledge.
 *
 * Reference: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024 (greedy
 * order, periodic building blocks). */

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
    LsTime at = arrival (run, rank, kind);
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
  double w = (double) job->w[ls_zb_stage (job, rank, next_w_chunk (run, rank))];
  return (double) (look->next - a->t) * 16 >= (double) list->sixteenths * w;
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
      emit (run, rank, LS_ZB_W, string);
      do_w (run, rank);
      a->wake = a->t;
    } else {
      a->wake = seen.next;
    }
    return false;
  }

  emit (run, rank, (uint32_t) seen.pick, string);
  uint32_t fed = do_symbol (run, rank, (uint32_t) seen.pick, a->t);
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
  run_reset (run);
  for (uint32_t node = job->p; --node > 0;)
    tree_play (run, node);
  while (n_left > 0) {
    uint32_t r = run->job->p > 1 ? run->heap[1] : 0;
    if (run->ranks[r].wake == INT64_MAX)
      return false;
    n_left -= step (run, list, r, string);
    tree_update (run, r);
  }
  for (uint32_t r = 0; r < job->p; r++)
    memset (string + r * n + run->ranks[r].n_out, LS_ZB_W, n - run->ranks[r].n_out);
  return true;
}
